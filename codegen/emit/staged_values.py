"""The value kernel of the staged schedule: every node reads what its ancestors have written.

    o_i = (decays) S_pre^T q_i + sum_j (q_i^T (decays) x_j) (decays) y_j

with x y^T what node j writes, u among them: unknowns stand on the one side or the other. Nodes walk
up their paths; decays of key channels multiply the query on the way, decays of value channels the
values.
"""

from __future__ import annotations

from boleir.codegen.emit.context import Context, place
from boleir.codegen.emit.groups import OTHER, OWN, GroupTiles, grouped
from boleir.codegen.emit.output import output_rows
from boleir.codegen.emit.precision import Precision
from boleir.codegen.emit.staged import UNROLLED, sources, unknown_rows
from boleir.codegen.emit.state import load_chunk, place_state, state_pieces
from boleir.codegen.emit.system import System
from boleir.codegen.emit.text import TERM, bracket, product
from boleir.codegen.emit.walk import Walk, passed, walk_tiles
from boleir.codegen.emit.writer import EmittedKernel, Writer
from boleir.codegen.schedule import padded
from boleir.ir import Kind


def reading_nodes(context: Context) -> int:
    """Nodes of one program: few, whose vectors it can hold, but every program reads a tile of the
    state."""
    return min(READERS, padded(context.shapes.max_nodes))


def emit_staged_values(context: Context, *, pdl: bool) -> EmittedKernel:
    """One program per request, value head, group of nodes and value tile."""
    w, s = Writer(context.reserved), context.schedule
    _Values(context, w).emit(pdl=pdl)
    groups = walk_tiles(context, reading_nodes(context))
    tiles = groups * context.value_tiles * context.shapes.value_heads
    return w.kernel(
        "values",
        "Walks up the paths: outputs of a value tile from the state and what ancestors wrote.",
        (f"{tiles} * batch", "1", "1"),
        warps=s.warps,
        stages=s.stages,
        registers=s.registers,
        pdl=pdl,
    )


READERS = 32
"""Nodes of one program where a request has as many."""


class _Values(Walk):
    """Emits the body of the kernel."""

    def __init__(self, context: Context, writer: Writer) -> None:
        super().__init__(context, writer, reading_nodes(context))
        self.precision = Precision(context.schedule.precision, whole=True)

    def emit(self, *, pdl: bool) -> None:
        """The whole body."""
        w, plan = self.writer, self.context.plan
        self.open((("value_tile", self.whole.value_tiles),), pdl=pdl)
        start = "value_tile * B_V + " if self.whole.value_tiles > 1 else ""
        w.let("value", f"{start}tl.arange(0, B_V)")
        place_state(self)
        if self.decay_kind is not Kind.KEY:
            self._read_state()
        self.after = plan.query_after_decay
        self.query = self.whole_operand(Kind.KEY, plan.query, OWN)
        for own in (*plan.own_pairs, *plan.own_writes):
            if own is not None:
                self.row_scalar(plan.scalar(own), OWN)
        self.begin((self.after,), self._ones())
        w.let("out_tile", f"tl.zeros([{self.nodes}, B_V], tl.float32)")
        w.let("poisoned", f"tl.zeros([{self.nodes}], tl.int32)")
        with self.steps():
            self._take_in()
        self._add_state()
        self._finish()

    def _ones(self) -> dict[Kind, str]:
        width = padded(self.context.shapes.d_k)
        shapes = {Kind.HEAD: "", Kind.KEY: f", {width}", Kind.VALUE: ", B_V"}
        return {k: f"tl.full([{self.nodes}{x}], 1.0, tl.float32)" for k, x in shapes.items()}

    def decay(self) -> str:
        """The decay of what has been reached; of value channels those of the tile."""
        plan = self.context.plan
        if plan.value_decay is None:
            return super().decay()
        self.writer.origin("decay", place(plan.value_decay, plan.form.decay))
        with self.precisely():
            tile = self.value(plan.value_decay, OTHER)
        return f"tl.where({self.value_mask(OTHER)}, {tile}, 1.0)"

    # -- what ancestors wrote ---------------------------------------------------------------------

    def _take_in(self) -> None:
        """Everything that the reached node has written."""
        w, plan = self.writer, self.context.plan
        w.comment("a non-finite input of the reached node")
        w.let("poisoned", f"tl.where(inside_reached & ~({self.is_finite(OTHER)}), 1, poisoned)")
        query = self.query
        if self.decay_kind is Kind.KEY:
            query = w.let("query_decayed", product(passed(self.after), query))
        terms = []
        for m in range(len(sources(plan))):
            share = self._share(m, query)
            if share is not None:
                terms.append(product(share, bracket(self._value_side(m))))
        if not terms:
            return
        read = " + ".join(terms)
        if self.decay_kind is Kind.VALUE:
            read = product(passed(self.after), read)
        total = f"out_tile + {bracket(read, TERM)}"
        w.let("out_tile", f"tl.where(inside_reached[:, None], {total}, out_tile)")

    def _share(self, m: int, query: str) -> str:
        """C: how much of the value side of a write the node reads."""
        w, plan = self.writer, self.context.plan
        name = w.let(f"share_{m}", f"tl.sum({product(query, self._key_side(m))}, axis=1)")
        if self.decay_kind is Kind.HEAD:
            w.let(name, product(name, passed(self.after)))
        if not plan.inclusive:
            own = (*plan.own_pairs, *plan.own_writes)[m]
            weight = "0.0" if own is None else self.row_scalar(plan.scalar(own), OWN)
            weight = product(weight, name) if plan.right and own is not None else weight
            w.let(name, f"tl.where(own, {weight}, {name})")
        return f"{name}[:, None]"

    def _key_side(self, m: int) -> str:
        """The key vector of what the reached node wrote, as a tile."""
        plan = self.context.plan
        operand, other = sources(plan)[m]
        if not plan.right:
            return self.whole_operand(Kind.KEY, operand, OTHER)
        return self._unknown(m) if other is None else self.whole_vector(Kind.KEY, other, OTHER)

    def _value_side(self, m: int) -> str:
        """The value vector of what the reached node wrote, as a value tile."""
        plan = self.context.plan
        operand, other = sources(plan)[m]
        if plan.right:
            return self.value_operand(operand, OTHER)
        return self._unknown(m) if other is None else self.value(other, OTHER)

    def _unknown(self, p: int) -> str:
        """Unknowns of the reached node."""
        right = self.context.plan.right
        channel = self.channel(Kind.KEY) if right else "value"
        mask = self.exists(Kind.KEY, OTHER) if right else self.value_mask(OTHER)
        rows = unknown_rows(self, p, "first + node_reached")
        at = f"({rows})[:, None] + {channel}[None, :]"
        return self.writer.let(f"u{p}_reached", f"tl.load({at}, mask={mask}, other=0.0)")

    # -- the state and the output -----------------------------------------------------------------

    def _read_state(self) -> None:
        """q^T S_pre, in pieces of the key channels: a tile of the state for all of them would take
        most registers."""
        w, step = self.writer, min(UNROLLED, padded(self.context.shapes.d_k))
        w.section("what the queries read of the committed state")
        with w.scope():
            tiles = GroupTiles(self.whole, grouped(self.whole, "reached", self.nodes, step), w)
            system, start = System(tiles, self.precision), None
            for chunk in range(tiles.context.key_chunks):
                first = f"{chunk * step} + " if chunk else ""
                w.let(tiles.key_name(chunk), f"{first}tl.arange(0, {step})")
                state = state_pieces(tiles, self.precision, [load_chunk(tiles, chunk)])[0]
                keys = system.key_pieces(self.context.plan.query.base, OWN, chunk)
                start = self.precision.dot(w, "read", keys, state, start)

    def _add_state(self) -> None:
        """P (S_pre^T q)."""
        w, plan, kind = self.writer, self.context.plan, self.decay_kind
        w.section("output: + P (q^T S_pre)")
        w.origin("readout", place(plan.form.recurrence.output))
        read = "read"
        if kind is Kind.KEY:
            tile = w.let("query_decayed", product(passed(self.after), self.query))
            state = state_pieces(self, self.precision, [load_chunk(self, 0)])[0]
            keys = self.precision.pieces(w, tile)
            self.precision.dot(w, read, keys, state)
        else:
            read = self.with_scalars(plan.query, OWN, read)
        if kind is Kind.HEAD:
            read = product(f"{passed(self.after)}[:, None]", read)
        elif kind is Kind.VALUE:
            read = product(passed(self.after), read)
        w.let("out_tile", f"out_tile + {read}")

    def _finish(self) -> None:
        """Gain, direct part, NaN below a non-finite input, zero for a padding row."""
        w, plan, out = self.writer, self.context.plan, "out_tile"
        if plan.gain is not None:
            per_head = plan.gain.kind is Kind.HEAD
            gain = self.weight(plan.gain, OWN, "[:, None]") if per_head else None
            w.let(out, product(out, gain or self.value(plan.gain, OWN)))
        if plan.direct is not None:
            w.let(out, f"{out} + {self.value(plan.direct, OWN)}")
        w.let(out, f'tl.where((poisoned != 0)[:, None], float("nan"), {out})')
        w.let(out, f"tl.where(slot >= 0, {out}, 0.0)")
        rows, step = output_rows(self)
        value = f"{out}.to({w.arg('out', '*' + self.whole.out_dtype)}.dtype.element_ty)"
        at = f"{rows} + (node * {step})[:, None] + value[None, :]"
        w.line(f"tl.store({at}, {value}, mask={self.value_mask(OWN)})")
