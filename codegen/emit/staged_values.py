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
from boleir.codegen.emit.precision import Pieces, Precision
from boleir.codegen.emit.staged import UNROLLED, sources, unknown_rows
from boleir.codegen.emit.state import load_chunk, place_state, state_pieces
from boleir.codegen.emit.system import System
from boleir.codegen.emit.text import TERM, bracket, product
from boleir.codegen.emit.walk import Walk, passed, walk_tiles
from boleir.codegen.emit.writer import EmittedKernel, Writer
from boleir.codegen.plan import ReadPlan
from boleir.codegen.schedule import padded
from boleir.ir import Expr, Kind


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
        self.state: Pieces | None = None
        """The tile of the state, once an output has read it whole."""

    def emit(self, *, pdl: bool) -> None:
        """The whole body."""
        w, plan = self.writer, self.context.plan
        self.open((("value_tile", self.whole.value_tiles),), pdl=pdl)
        start = "value_tile * B_V + " if self.whole.value_tiles > 1 else ""
        w.let("value", f"{start}tl.arange(0, B_V)")
        place_state(self)
        if self.decay_kind is not Kind.KEY:
            self._read_state()
        self.queries = [self.whole_operand(Kind.KEY, x.query, OWN) for x in plan.readouts]
        for own in (own for readout in plan.readouts for own in readout.own):
            if own is not None:
                self.row_scalar(plan.scalar(own), OWN)
        self.begin(tuple(dict.fromkeys(x.after_decay for x in plan.readouts)), self._ones())
        for readout in plan.readouts:
            w.let(f"out_tile{readout.mark}", f"tl.zeros([{self.nodes}, B_V], tl.float32)")
        w.let("poisoned", f"tl.zeros([{self.nodes}], tl.int32)")
        with self.steps():
            self._take_in()
        for readout, query in zip(plan.readouts, self.queries, strict=True):
            self._add_state(readout, query)
            self._finish(readout)

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
        queries = [
            self._decayed(readout, query)
            for readout, query in zip(plan.readouts, self.queries, strict=True)
        ]
        terms: list[list[str]] = [[] for _ in queries]
        for m in range(len(sources(plan))):
            keys = self._key_side(m)
            shares = [
                self._share(readout, m, product(query, keys))
                for readout, query in zip(plan.readouts, queries, strict=True)
            ]
            values = bracket(self._value_side(m))
            for share, of_output in zip(shares, terms, strict=True):
                of_output.append(product(share, values))
        for readout, of_output in zip(plan.readouts, terms, strict=True):
            if not of_output:
                continue
            read, out = " + ".join(of_output), f"out_tile{readout.mark}"
            if self.decay_kind is Kind.VALUE:
                read = product(passed(readout.after_decay), read)
            total = f"{out} + {bracket(read, TERM)}"
            w.let(out, f"tl.where(inside_reached[:, None], {total}, {out})")

    def _decayed(self, readout: ReadPlan, query: str) -> str:
        """A query times what has decayed so far of its own channels."""
        if self.decay_kind is not Kind.KEY:
            return query
        name = f"query_decayed{readout.mark}"
        return self.writer.let(name, product(passed(readout.after_decay), query))

    def _share(self, readout: ReadPlan, m: int, products: str) -> str:
        """C: how much of the value side of a write an output of the node reads; `products` of its
        query with the key side."""
        w, plan = self.writer, self.context.plan
        name = w.let(f"share_{m}{readout.mark}", f"tl.sum({products}, axis=1)")
        if self.decay_kind is Kind.HEAD:
            w.let(name, product(name, passed(readout.after_decay)))
        if not readout.inclusive:
            own = readout.own[m]
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
            system = System(tiles, self.precision)
            for chunk in range(tiles.context.key_chunks):
                first = f"{chunk * step} + " if chunk else ""
                w.let(tiles.key_name(chunk), f"{first}tl.arange(0, {step})")
                state = state_pieces(tiles, self.precision, [load_chunk(tiles, chunk)])[0]
                for base, name in self._reads().items():
                    keys = system.key_pieces(base, OWN, chunk)
                    self.precision.dot(w, name, keys, state, name if chunk else None)

    def _reads(self) -> dict[Expr, str]:
        """What is read of the committed state, by the vector that reads."""
        bases = dict.fromkeys(readout.query.base for readout in self.context.plan.readouts)
        return {base: f"read{n or ''}" for n, base in enumerate(bases)}

    def _add_state(self, readout: ReadPlan, query: str) -> None:
        """P (S_pre^T q)."""
        w, kind, out = self.writer, self.decay_kind, f"out_tile{readout.mark}"
        w.section("output: + P (q^T S_pre)")
        w.origin("readout", place(readout.output))
        if kind is Kind.KEY:
            read, tile = f"read{readout.mark}", self._decayed(readout, query)
            self.state = self.state or state_pieces(self, self.precision, [load_chunk(self, 0)])[0]
            keys = self.precision.pieces(w, tile)
            self.precision.dot(w, read, keys, self.state)
        else:
            read = self.with_scalars(readout.query, OWN, self._reads()[readout.query.base])
        if kind is Kind.HEAD:
            read = product(f"{passed(readout.after_decay)}[:, None]", read)
        elif kind is Kind.VALUE:
            read = product(passed(readout.after_decay), read)
        w.let(out, f"{out} + {read}")

    def _finish(self, readout: ReadPlan) -> None:
        """Gain, direct part, NaN below a non-finite input, zero for a padding row."""
        w, out = self.writer, f"out_tile{readout.mark}"
        if readout.gain is not None:
            per_head = readout.gain.kind is Kind.HEAD
            gain = self.weight(readout.gain, OWN, "[:, None]") if per_head else None
            w.let(out, product(out, gain or self.value(readout.gain, OWN)))
        if readout.direct is not None:
            w.let(out, f"{out} + {self.value(readout.direct, OWN)}")
        w.let(out, f'tl.where((poisoned != 0)[:, None], float("nan"), {out})')
        w.let(out, f"tl.where(slot >= 0, {out}, 0.0)")
        rows, step = output_rows(self, readout)
        pointer = w.arg(readout.pointer, "*" + self.whole.out_dtype)
        value = f"{out}.to({pointer}.dtype.element_ty)"
        at = f"{rows} + (node * {step})[:, None] + value[None, :]"
        w.line(f"tl.store({at}, {value}, mask={self.value_mask(OWN)})")
