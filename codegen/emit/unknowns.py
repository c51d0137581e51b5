"""The unknowns kernel of the staged schedule: (I + G) U = R in tiles of the unknowns' channels.

    u_j = R_j - gain_j * sum over ancestors i of G[j, i] exp(c_j - c_i) * u_i

First all right sides, products with the committed state, are put where the unknowns belong. Then
node after node: parents come before children, and what is no ancestor is never looked at. Every
channel has a system of its own, and exponents are differences within one path. The work is that of
the paths, not of all pairs of nodes.
"""

from __future__ import annotations

from boleir.codegen.emit.context import Context
from boleir.codegen.emit.groups import OTHER, OWN, split_program
from boleir.codegen.emit.right_sides import ChannelTiles, RightSides
from boleir.codegen.emit.staged import (
    TOGETHER,
    gram_count,
    gram_plane,
    path_at,
    path_length,
    place_paths,
    place_vectors,
    sources,
    sum_times,
)
from boleir.codegen.emit.text import product
from boleir.codegen.emit.writer import EmittedKernel, Writer
from boleir.codegen.schedule_footprint import unknown_tile


def unknown_tiles(context: Context) -> int:
    """Tiles of the unknowns' channels per head."""
    plan = context.plan
    return -(-context.shapes.width(plan.unknown) // unknown_tile(context.schedule, plan))


def emit_unknowns(context: Context, *, pdl: bool) -> EmittedKernel:
    """One program per request, value head and tile of channels."""
    w, s = Writer(context.reserved), context.schedule
    _Unknowns(context, w).emit(pdl=pdl)
    return w.kernel(
        "unknowns",
        "A tile of the unknowns' channels per program: the system of the tree, node after node.",
        (f"{unknown_tiles(context) * context.shapes.value_heads} * batch", "1", "1"),
        warps=s.warps,
        stages=s.stages,
        registers=s.registers,
        pdl=pdl,
    )


class _Unknowns(ChannelTiles):
    """Emits the body of the kernel; the first group is the one node whose turn it is, the second
    are its ancestors."""

    def __init__(self, context: Context, writer: Writer) -> None:
        super().__init__(context, writer, "now")

    def emit(self, *, pdl: bool) -> None:
        """The whole body."""
        w, tiles = self.writer, unknown_tiles(self.whole)
        split_program(w, (("channel_tile", tiles),))
        if pdl:
            w.line("tl.extra.cuda.gdc_wait()")
            w.line("tl.extra.cuda.gdc_launch_dependents()")
        self.request("")
        start = f"channel_tile * {self.lanes} + " if tiles > 1 else ""
        w.let(self.lane, f"{start}tl.arange(0, {self.lanes})")
        place_vectors(self)
        w.let("slot", f"tl.load({w.arg('slots', '*i32')} + request)")
        pool, stride = w.arg("state", "*" + self.context.state_dtype), w.arg("state_stride", "i64")
        slot = f"tl.maximum(slot, 0).to(tl.int64) * {stride}"
        w.let("state_rows", f"{pool} + {slot} + head * (D_V * D_K)")
        w.section("right sides: R = r - e^T S_pre")
        if self.whole.blocks == 1:
            with w.scope():
                RightSides(self.whole, w).emit("")
        else:
            with w.block("for block in range(0, (count + NODE_BLOCK - 1) // NODE_BLOCK):"):
                RightSides(self.whole, w).emit("block * NODE_BLOCK + ")
        place_paths(self)
        w.section("node after node: unknowns of ancestors are there when a node's turn comes")
        w.line("tl.debug_barrier()")
        with w.block("for j in range(0, count):"):
            self._turn()
            w.line("tl.debug_barrier()")

    def _turn(self) -> None:
        """The turn of node j: what its ancestors take out of its right side, pair after pair."""
        w, plan = self.writer, self.context.plan
        w.let("node_now", "j + tl.arange(0, 1)")
        w.let("inside_now", "node_now < count")
        w.let("length", f"tl.load({w.arg('depths', '*i32')} + first + j)")
        self.load_sums(OWN, sum_times(plan))
        totals = [self.numbered("seen", p) for p in range(len(self.pairs))]
        if path_length(self.whole.shapes) == TOGETHER:
            w.let("step", f"tl.arange(0, {TOGETHER})")
            for name, seen in zip(totals, self._seen(), strict=True):
                w.let(name, seen)
        else:
            for name in totals:
                w.let(name, f"tl.zeros([1, {self.lanes}], tl.float32)")
            with w.block(f"for nearer in range(0, length, {TOGETHER}):"):
                w.let("step", f"nearer + tl.arange(0, {TOGETHER})")
                for name, seen in zip(totals, self._seen(), strict=True):
                    w.let(name, f"{name} + {seen}")
        names: list[str] = []
        for p, pair in enumerate(self.pairs):
            right = f"tl.load({self.rows(p, OWN)}, mask={self.mask(OWN)}, other=0.0)"
            factors = [self.unknown_vector(pair.gain, OWN)] if pair.gain is not None else []
            text = f"{right} - {product(*factors, totals[p])}"
            for weight, earlier in zip(pair.coupling, names, strict=True):
                if weight is not None:
                    scalar = self.row_scalar(plan.scalar(weight), OWN)
                    text += f" - {product(f'{scalar}[:, None]', earlier)}"
            names.append(w.let(self.numbered("u", p), text))
            w.line(f"tl.store({self.rows(p, OWN)}, {names[p]}, mask={self.mask(OWN)})")

    def _seen(self) -> list[str]:
        """The sums over some steps up the path, [1, channels], one text for each pair."""
        w, plan = self.writer, self.context.plan
        w.let("inside_source", "step < length")
        numbers = path_at(self, gram_count(plan), "j", "step")
        load = f"tl.load({numbers}, mask=inside_source, other=0.0)"
        w.let("node_source", f"{load}.to(tl.int32)")
        mask = self.mask(OTHER)
        found = [
            w.let(
                f"{self.numbered('u', p)}_source",
                f"tl.load({self.rows(p, OTHER)}, mask={mask}, other=0.0)",
            )
            for p in range(len(self.pairs))
        ]
        found += [self.unknown_vector(write.value, OTHER) for write in plan.writes]
        decays = self._decays(mask)
        return [
            self._sum_of(p, found, decays.get(pair.after_decay))
            for p, pair in enumerate(self.pairs)
        ]

    def _decays(self, mask: str) -> dict[bool, str]:
        """Decays between the ancestors and node j, for the times at which pairs read."""
        w, plan = self.writer, self.context.plan
        if plan.unknown_log_decay is None:
            return {}
        self.load_sums(OTHER, (True,))
        found = {}
        for after in sorted({pair.after_decay for pair in self.pairs}, reverse=True):
            parts = [
                f"({self.sum_name(after, rest, OWN)} - {self.sum_name(True, rest, OTHER)})"
                for rest in (False, True)
            ]
            text = f"tl.where({mask}, tl.exp2({' + '.join(parts)}), 0.0)"
            found[after] = w.let("decay" if after else "decay_above", text)
        return found

    def _sum_of(self, p: int, found: list[str], decay: str | None) -> str:
        """What one pair reads of the found vectors, summed over the steps; text."""
        w, plan = self.writer, self.context.plan
        terms = []
        for m, vector in enumerate(found):
            at = path_at(self, gram_plane(plan, p, m), "j", "step")
            load = f"tl.load({at}, mask=inside_source, other=0.0)"
            name = w.let(f"g{self._index(p, m)}", load)
            terms.append(product(f"{name}[:, None]", vector))
        read = " + ".join(terms)
        return f"tl.sum({product(decay, read) if decay else read}, axis=0, keep_dims=True)"

    def _index(self, p: int, m: int) -> str:
        several = len(sources(self.context.plan)) > 1
        return f"{p}{m}" if several else ""
