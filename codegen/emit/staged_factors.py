"""The factors kernel of the staged schedule: walks that leave G and what reads the state.

    G[i, j] = e_i^T (decays between i and j of the written side, or of the head) w_j

Only ancestors j have an entry. It is kept with the step at which the walk of i reaches j.
Decays of the unknowns' channels stay outside: of those the sums of logarithms are handed on.
"""

from __future__ import annotations

from boleir.codegen.emit.context import LOG2_E, Context, place
from boleir.codegen.emit.groups import OTHER, OWN
from boleir.codegen.emit.staged import (
    gram_count,
    gram_plane,
    path_at,
    place_paths,
    place_vectors,
    sources,
    sum_plane,
    sum_times,
    vector_at,
)
from boleir.codegen.emit.text import product
from boleir.codegen.emit.tiles import bounded_below, eighths
from boleir.codegen.emit.walk import NODES, Walk, passed, walk_tiles
from boleir.codegen.emit.writer import EmittedKernel, Writer
from boleir.codegen.schedule import padded
from boleir.ir import Kind


def emit_staged_factors(context: Context, *, pdl: bool) -> EmittedKernel:
    """One program per request, value head and sixteen nodes."""
    w = Writer(context.reserved)
    _Factors(context, w).emit(pdl=pdl)
    return w.kernel(
        "factors",
        "Walks up the paths: G, and the erase vectors times the decays of their paths.",
        (f"{walk_tiles(context) * context.shapes.value_heads} * batch", "1", "1"),
        warps=context.schedule.factor_warps,
        pdl=pdl,
    )


class _Factors(Walk):
    """Emits the body of the kernel."""

    def emit(self, *, pdl: bool) -> None:
        """The whole body."""
        w, plan = self.writer, self.context.plan
        self.open((), pdl=pdl)
        place_vectors(self)
        place_paths(self)
        w.section("what reads the state")
        self.erase = [self.whole_operand(self.written, pair.erase, OWN) for pair in plan.pairs]
        times = tuple(sorted({pair.after_decay for pair in plan.pairs}))
        ones = f"tl.full([{NODES}, {self._size(self.written)}], 1.0, tl.float32)"
        scalar = f"tl.full([{NODES}], 1.0, tl.float32)"
        self.begin(times, {self.written: ones, Kind.HEAD: scalar})
        self._begin_sums()
        with self.steps():
            self._entries()
            self._add_logs()
        w.section("what reads the committed state, times the decays of its path")
        for number, pair in enumerate(plan.pairs):
            tile = self._decayed(self.erase[number], pair.after_decay)
            self._store(number, self.written, tile)
        for after in sum_times(plan):
            for rest in (False, True):
                self._store(sum_plane(plan, after, rest), self.unknown, _sum(after, rest))

    def _size(self, kind: Kind) -> int:
        return padded(self.context.shapes.width(kind))

    def _decayed(self, tile: str, after: bool) -> str:
        if after in self.times and self.decay_kind is Kind.HEAD:
            return f"{passed(after)}[:, None] * {tile}"
        return self.scaled(tile, after)

    def _entries(self) -> None:
        """Entries of G for what has been reached, and its number, put where that step belongs."""
        w, plan = self.writer, self.context.plan
        w.let("above", "inside_reached & (node_reached != node)")
        at = path_at(self, gram_count(plan), "node", "step - 1")
        w.line(f"tl.store({at}, node_reached.to(tl.float32), mask=above)")
        for m, (operand, _) in enumerate(sources(plan)):
            written = self.whole_operand(self.written, operand, OTHER)
            for a, pair in enumerate(plan.pairs):
                reader = self.erase[a]
                after = pair.after_decay
                inside = after in self.times and self.decay_kind is not Kind.HEAD
                factors = ([passed(after)] if inside else []) + [reader, written]
                entry = f"tl.sum({product(*factors)}, axis=1)"
                if after in self.times and not inside:
                    entry = f"{passed(after)} * {entry}"
                at = path_at(self, gram_plane(plan, a, m), "node", "step - 1")
                w.line(f"tl.store({at}, {entry}, mask=above)")

    # -- sums of logarithms -----------------------------------------------------------------------

    def _begin_sums(self) -> None:
        zeros = f"tl.zeros([{NODES}, {self._size(self.unknown)}], tl.float32)"
        for after in sum_times(self.context.plan):
            for rest in (False, True):
                self.writer.let(_sum(after, rest), zeros)

    def _add_logs(self) -> None:
        """Add the logarithm of what has been reached, in base 2: in eighths, whose sums are exact,
        and what they leave."""
        w, plan = self.writer, self.context.plan
        log = plan.unknown_log_decay
        if log is None:
            return
        w.origin("log-decay g, and c its sum over the path", place(log, plan.form.decay))
        tile = self.whole_vector(self.unknown, log, OTHER)
        exists = self.exists(self.unknown, OTHER)
        bounded_below(w, "g", f"tl.where({exists}, {tile} * {LOG2_E}, 0.0)")
        w.let("g_eighths", eighths("g"))
        w.let("g_rest", "g - g_eighths")
        for after in sum_times(plan):
            for rest, step in ((False, "g_eighths"), (True, "g_rest")):
                added = step if after else f"tl.where(own[:, None], 0.0, {step})"
                w.let(_sum(after, rest), f"{_sum(after, rest)} + {added}")

    def _store(self, plane: int, kind: Kind, tile: str) -> None:
        at = vector_at(self, plane, kind, self.channel(kind))
        self.writer.line(f"tl.store({at}, {tile}, mask={self.exists(kind, OWN)})")


def _sum(after: bool, rest: bool) -> str:
    return ("c" if after else "c_above") + ("_rest" if rest else "")
