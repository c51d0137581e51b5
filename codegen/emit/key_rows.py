"""Walks whose programs leave finished rows of what value tiles multiply by.

Where nothing is solved, an output of a node is

    o_i = S_pre^T (P_i q_i) + sum_{j on the path} N[i, j] v_j

and all of N[i, :] is known to the program that walks up from node i: products with the decays in
between, and what multiplies the vectors of both. It leaves these rows in the pieces that value
tiles take, zero where a node is no ancestor, and no program has to come between. Value tiles wait
for all programs of their head.

Walks go up several nodes at a time: the bits of an ancestor word tell them all, so that the inputs
of all of them are on their way before the first is needed.

What is not finite at an ancestor need not be looked for here: it may spoil rows of nodes below it,
which are NaN anyway. Each program says of its own nodes alone whether their inputs are finite, by
NaN in what multiplies their outputs, and value tiles spread that to the nodes below.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from boleir.codegen.emit.context import LARGEST, LOG2_E, Context
from boleir.codegen.emit.groups import OWN, GroupContext
from boleir.codegen.emit.handover import (
    first_handed_plane,
    folded_dtype,
    folded_tiles,
    handover,
    parts_stored,
    piece_at,
    place_folded,
)
from boleir.codegen.emit.key_pieces import store_vector
from boleir.codegen.emit.key_spread import Spread, spread_programs
from boleir.codegen.emit.key_vectors import Reader, by_logarithm, is_sized, key_parameters
from boleir.codegen.emit.packed import stored_parts
from boleir.codegen.emit.precision import Pieces
from boleir.codegen.emit.signals import announce_rows
from boleir.codegen.emit.text import bracket, conjunction, product
from boleir.codegen.emit.tiles import is_finite
from boleir.codegen.emit.walk import ancestor_word, isolated_highest
from boleir.codegen.emit.writer import EmittedKernel, Writer
from boleir.codegen.naming import leaf
from boleir.codegen.plan import Operand, ReadPlan
from boleir.codegen.schedule import padded
from boleir.ir import Kind, Per

MOST = 8
"""Most nodes that a walk goes up at a time."""
ENTRIES = 64 * 128 * 2
"""Bytes of one vector of such nodes, for all walks of a program: as many as registers hold."""


def emit_row_walks(context: Context) -> EmittedKernel:
    """Several programs per request and system: each walks up from `walk_nodes` nodes."""
    w = Writer(context.reserved)
    RowWalk(context, w, context.schedule.walk_nodes).emit(pdl=False)
    announce_rows(context, w)
    return w.kernel(
        "prepare",
        "Walks up the paths of a few nodes, which leave their rows of the readout.",
        (f"{spread_programs(context)} * batch", "1", "1"),
        warps=context.schedule.factor_warps,
    )


class StretchContext(GroupContext):
    """Names of what lies n nodes above end in `up` and n."""

    __slots__ = ()

    def block(self, stem: str, number: int) -> str:
        """`stem`, marked by how far above the program's own nodes it lies."""
        return f"{stem}_up{number}" if number != OWN else stem


class RowWalk(Spread):
    """Emits the walks of a few nodes, and the rows of N that they leave."""

    def __init__(self, context: Context, writer: Writer, nodes: int) -> None:
        super().__init__(context, writer, nodes)
        c = self.context
        self.context = StretchContext(c.plan, c.shapes, c.schedule, "up")
        bytes_each = nodes * padded(context.shapes.d_k) * (4 if context.dtype == "fp32" else 2)
        most = max(1, min(MOST, ENTRIES // bytes_each))
        self.depth = context.shapes.max_depth
        self.stretch = min(most, self.depth)
        """Nodes that walks go up at a time."""
        self.rows: dict[tuple[int, int], str] = {}
        """Names of the tiles of products, by output and written vector."""
        self.reading: dict[Reader, str] = {}
        """Names of what reads the state, times the decays that walks have passed."""

    def emit(self, *, pdl: bool) -> None:
        """The whole body."""
        self.open((), pdl=pdl)
        self._find_paths()
        self._load()
        self._clear_rows()
        if self.depth <= self.stretch:
            self._look_up()
            self._own_rows()
            self._begin()
            self._go_up()
            self._store_products()
        else:
            self._own_rows()
            self._begin()
            with self._stretches():
                self._look_up()
                self._go_up()
                self._store_products()
                self.writer.let("path", "tl.where(turn >= 0, -1, path)")
        self._store_readers()

    # -- the program's own nodes ------------------------------------------------------------------

    def _find_paths(self) -> None:
        """The bits of the nodes above; how far up the longest path goes."""
        w = self.writer
        w.section("nodes above, as bits")
        own = "~(1 << (node & 63).to(tl.int64))"
        w.let("left_0", f"{ancestor_word(w, 0, 1)} & {own}")
        w.let("node_reached", "tl.where(inside, node, -1)")
        if self.depth > self.stretch:
            at = f"{w.arg('depths', '*i32')} + first + node"
            w.let("deepest", f"tl.max(tl.load({at}, mask=inside, other=-1), axis=0)")

    def _own_rows(self) -> None:
        """What multiplies outputs; row scalars that value tiles look for."""
        w, plan, whole = self.writer, self.context.plan, self.whole
        parts, first = handover(whole), first_handed_plane(whole)
        w.section("what multiplies outputs of the program's nodes, NaN where inputs are not finite")
        tests = [
            is_finite(scalar, self.row_scalar(scalar, OWN))
            for scalar in self.context.scalars_needed
        ]
        w.let("decay", self._decay(OWN))
        if is_sized(plan):
            tests.append(f"{w.let('gates_size', 'tl.sum(tl.abs(decay), axis=1)')} < {LARGEST}")
        elif key_parameters(plan):
            tests.append(f"tl.abs({w.let('gates_size', self._gates_size())}) < {LARGEST}")
        w.let("finite", conjunction(*(tests or ["node >= 0"])))
        for readout, name in zip(plan.readouts, parts.out_rows, strict=True):
            scale = self._scale(readout.query, OWN) or "1.0"
            at = self.plane_at(first + readout.number, name, "head", OWN)
            w.line(f'tl.store({at}, tl.where(finite, {scale}, float("nan")), mask=inside)')
        if whole.schedule.gates == "prepare":
            for number, scalar in enumerate(plan.scalars):
                if scalar.name in parts.others:
                    head = "key_head" if scalar.per_key_head else "head"
                    at = self.plane_at(number, scalar.name, head, OWN)
                    w.line(f"tl.store({at}, {self.row_scalar(scalar, OWN)}, mask=inside)")

    def _scale(self, operand: Operand, b: int) -> str | None:
        """What multiplies a vector of each node; None for one."""
        names = [self.row_scalar(self.context.plan.scalar(name), b) for name in operand.scalars]
        factors = [repr(operand.constant)] if operand.constant != 1.0 else []
        return product(*factors, *names) if factors + names else None

    def _begin(self) -> None:
        """Every node has come to itself: what it reads there has not decayed yet."""
        w, plan = self.writer, self.context.plan
        w.section("what nodes read of themselves, then their decay")
        w.let("turn", f"tl.arange(0, {padded(self.stretch + 1)})[None, :]")
        w.let("path", "tl.where(turn == 0, node_reached[:, None], -1)")
        for readout in plan.readouts:
            for m, write in enumerate(plan.writes):
                entry = self._own_entry(readout, m, write.key)
                name = f"write_readout{m or ''}{readout.mark}"
                self.rows[readout.number, m] = w.let(name, f"tl.where(turn == 0, {entry}, 0.0)")
        for base, after in self.readers:
            vector = self.whole_vector(Kind.KEY, base, OWN)
            name = w.fresh(f"{leaf(base)}_decayed" if after else f"{leaf(base)}_decayed_above")
            self.reading[base, after] = w.let(name, f"{vector} * decay" if after else vector)

    def _own_entry(self, readout: ReadPlan, m: int, key: Operand) -> str:
        """What a node sees of its own write; text."""
        if not readout.inclusive:
            own = readout.own_writes[m]
            if own is None:
                return "0.0"
            return f"{self.row_scalar(self.context.plan.scalar(own), OWN)}[:, None]"
        query, base = (self.whole_vector(Kind.KEY, x, OWN) for x in (readout.query.base, key.base))
        return self._entry(readout, key, f"tl.sum({query} * {base}, axis=1)", OWN)

    def _entry(self, readout: ReadPlan, key: Operand, total: str, b: int) -> str:
        """Products of vectors times what multiplies these; text that broadcasts over steps."""
        factors = [self._scale(readout.query, OWN), self._scale(key, b)]
        return f"{bracket(product(total, *(x for x in factors if x)))}[:, None]"

    # -- nodes above ------------------------------------------------------------------------------

    @contextmanager
    def _stretches(self) -> Iterator[None]:
        """The loop over parts of the paths."""
        w = self.writer
        w.section(f"up the paths, {self.stretch} nodes at a time")
        with w.block(f"for _ in range(0, tl.maximum(deepest, 1), {self.stretch}):"):
            yield

    def _look_up(self) -> None:
        """Which nodes come next, and the loads of their inputs."""
        w = self.writer
        w.comment("the highest bit left is the next node; a float tells it")
        for b in range(1, self.stretch + 1):
            node = self.context.block("node", b)
            w.let("highest", f"({isolated_highest('left_0')} >> 23) - 127")
            w.let(node, "tl.where(left_0 != 0, highest, -1)")
            w.let("left_0", f"left_0 & ~(1 << (tl.maximum({node}, 0) & 63).to(tl.int64))")
            w.let(self.context.block("inside", b), f"{node} >= 0")
        for b in range(1, self.stretch + 1):
            for item in self.reaching:
                if item.per is Per.TOKEN:
                    self._as_loaded(item, b)
        w.comment("other threads have cleared the rows that products are stored in below")
        w.line("tl.debug_barrier()")

    def _go_up(self) -> None:
        """Products with these nodes, one after the other."""
        w = self.writer
        for b in range(1, self.stretch + 1):
            w.section(f"{b} above: products, then its decay")
            self._products_with(b)
            decay = w.let(self.context.block("decay", b), self._decay(b))
            for name in self.reading.values():
                w.let(name, f"{name} * {decay}")

    def _products_with(self, b: int) -> None:
        """Products with the nodes of one step."""
        w, plan, memo = self.writer, self.context.plan, self.memo
        w.let("path", f"tl.where(turn == {b}, {self.context.block('node', b)}[:, None], path)")
        for (number, m), name in self.rows.items():
            readout, key = plan.readouts[number], plan.writes[m].key
            reader = readout.query.base, readout.after_decay
            total = ("total", *reader, key.base.key, b)
            if total not in memo:
                row = self.whole_vector(Kind.KEY, key.base, b)
                stem = self.context.block(f"walked_{leaf(reader[0])}_{leaf(key.base)}", b)
                memo[total] = w.temp(f"tl.sum({self.reading[reader]} * {row}, axis=1)", stem)
            entry = self._entry(readout, key, memo[total], b)
            w.let(name, f"tl.where(turn == {b}, {entry}, {name})")

    def _decay(self, b: int) -> str:
        """The decay of some nodes, one where there are none; text."""
        w, plan, inside = self.writer, self.context.plan, self.context.block("inside", b)
        if not by_logarithm(plan):
            tile = self.whole_vector(Kind.KEY, self.key_decay, b)
            return f"tl.where({self.exists(Kind.KEY, b)}, {tile}, 1.0)"
        assert plan.key_log_decay is not None
        log = self.whole_vector(Kind.KEY, plan.key_log_decay, b)
        rate = w.let("rate", f"tl.where({inside}, {LOG2_E}, 0.0)[:, None]")
        return f"tl.exp2({log} * {rate})"

    # -- results ----------------------------------------------------------------------------------

    def _clear_rows(self) -> None:
        """Zero where no product will come: all of the rows, before any product."""
        w, whole = self.writer, self.whole
        place_folded(whole, w, f"(request * {whole.system_heads} + head).to(tl.int64)")
        if not self.context.plan.writes:
            return
        w.section("rows of N: zero, but for what comes behind the next barrier")
        size, kind = whole.schedule.node_block, folded_dtype(whole)
        w.let("cell", f"(node * NODE_BLOCK)[:, None] + tl.arange(0, {size})[None, :]")
        dtype = {"bf16": "tl.bfloat16", "fp32": "tl.float32"}[kind]
        w.let("nothing", f"tl.zeros([{self.nodes}, {size}], {dtype})")
        for part in range(folded_tiles(whole) * parts_stored(whole)):
            w.line(f"tl.store({piece_at(part)}, nothing, mask=inside[:, None])")

    def _store_products(self) -> None:
        """Products of some steps, each in the column of its node."""
        w, plan, whole = self.writer, self.context.plan, self.whole
        count = parts_stored(whole)
        if self.rows:
            w.section("products, each in the column of its node")
            w.let("entry", "(node * NODE_BLOCK)[:, None] + path")
        for (number, m), name in self.rows.items():
            first = (number * len(plan.writes) + m) * count
            for piece, part in enumerate(stored_parts(whole, w, name), first):
                w.line(f"tl.store({piece_at(piece, 'entry')}, {part}, mask=path >= 0)")

    def _store_readers(self) -> None:
        """What reads the state, times the decays of its path."""
        w, whole, live = self.writer, self.whole, self.exists(Kind.KEY, OWN)
        w.section("what reads the state, times the decays of its path")
        for reader, name in self.reading.items():
            store_vector(self, reader, 0, Pieces(stored_parts(whole, w, name)), live, whole)
