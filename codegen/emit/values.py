"""The value kernel of the split schedule: the state read once, times what the factors kernel
left."""

from __future__ import annotations

from dataclasses import replace

from boleir.codegen.emit.context import Context, place, unknown_place
from boleir.codegen.emit.folded import Folded
from boleir.codegen.emit.handover import handover, vector_entries
from boleir.codegen.emit.key_loop import looped_tiles, read_state
from boleir.codegen.emit.key_pieces import PieceSystem
from boleir.codegen.emit.key_vectors import Reader, readers
from boleir.codegen.emit.key_walks import WalkedSystem
from boleir.codegen.emit.one_reader_values import emit_outputs, right_of_targets
from boleir.codegen.emit.output import (
    find_tile,
    finish_output,
    store_output,
    system_number,
    value_grid,
)
from boleir.codegen.emit.precision import Pieces, Precision
from boleir.codegen.emit.prepare import first_handed_plane
from boleir.codegen.emit.signals import expect, wait, wait_prepared
from boleir.codegen.emit.state import find_slot, load_state, state_pieces
from boleir.codegen.emit.system import System
from boleir.codegen.emit.tiles import Tiles
from boleir.codegen.emit.verify import written_pieces
from boleir.codegen.emit.writer import EmittedKernel, Writer
from boleir.codegen.naming import leaf
from boleir.codegen.schedule import loops_keys
from boleir.ir import Kind


def emit_values(context: Context, *, pdl: bool) -> EmittedKernel:
    """One program per value tile: read the state, multiply by the folded factors."""
    w, s = Writer(context.reserved), context.schedule
    ValueTile(context, w, pdl=pdl).emit()
    return w.kernel(
        "values",
        "One value tile per program: the state read once, times the folded factors.",
        value_grid(context),
        warps=s.warps,
        stages=s.stages,
        registers=s.registers,
        pdl=pdl,
    )


class ValueTile:
    """Emits the body of the kernel: loads, then what depends on no factors, waits, the rest."""

    def __init__(self, context: Context, writer: Writer, *, pdl: bool) -> None:
        self.context, self.writer, self.pdl = context, writer, pdl
        self.looped = loops_keys(context.schedule, context.shapes)
        self.joined = context.schedule.fusion == "joined"
        self.late = context.folds_readers or context.plan.key_decay is not None
        """Whether what reads the state comes from an earlier kernel or program."""
        waits = self.joined and (pdl or context.prepares_first)
        self.convolved = bool(context.plan.mixed) and waits
        """Whether inputs are convolved while the program begins."""
        self.tiles = looped_tiles(context, writer) if self.looped else Tiles(context, writer)
        reading = PieceSystem if vector_entries(context) else WalkedSystem if self.late else System
        self.system = reading(self.tiles, Precision(context.schedule.precision))
        self.products: dict[Reader, str] = {}

    def emit(self) -> None:
        """The whole body."""
        state = self._begin()
        if self.context.folds_readers:
            self._read_once(state)
        else:
            self._read_apart(state)

    def _begin(self) -> list[Pieces]:
        """Indices, loads, products of inputs as they come; the pieces of the state."""
        c, w, tiles = self.context, self.writer, self.tiles
        find_tile(tiles)
        if self.joined:
            expect(c, w, system_number(c))
        w.let("value", "value_tile * B_V + tl.arange(0, B_V)")
        tiles.channels()
        tiles.node_block(0)
        find_slot(tiles)
        if not self.convolved:
            tiles.prefetch(frozenset({Kind.VALUE}))
        loaded = [] if self.looped else load_state(tiles)
        if self.convolved:
            self._wait_for_convolution()
            tiles.prefetch(frozenset({Kind.VALUE}))
        if c.schedule.prefetch and not (self.late or self.looped):
            tiles.prefetch(frozenset({Kind.KEY}))
        if not self.late:
            w.section("products with the committed state, before any row scalar is needed")
        state = state_pieces(tiles, self.system.precision, loaded)
        if self.looped:
            self.products = read_state(self.system)
        elif not self.late:
            self.products = state_products(self.system, 0, state)
        return state

    def _wait_for_convolution(self) -> None:
        if self.pdl:
            _wait_for_launch(self.writer, "prepare")
        else:
            wait_prepared(self.writer)

    def _wait_for_factors(self) -> None:
        """Wait for the system of the head, and for an earlier launch where nothing has yet."""
        if self.pdl and not self.joined:
            _wait_for_launch(self.writer, "factors")
        elif self.pdl and not (self.convolved or self.context.spread_walks):
            _wait_for_launch(self.writer, "prepare")
        if self.joined:
            wait(self.writer)

    def _read_once(self, state: list[Pieces]) -> None:
        """Outputs from one vector for all that reads the state."""
        c, tiles, system, others = (
            self.context,
            self.tiles,
            self.system,
            handover(self.context).others,
        )
        assert isinstance(system, PieceSystem)
        targets = [] if others else right_of_targets(system)
        if c.spread_walks and not c.prepares_first:
            _wait_for_walks(c, self.writer, pdl=self.pdl)
        self._wait_for_factors()
        folded = Folded(tiles)
        load_rows(tiles, 0, others)
        if c.spread_walks:
            _scalars_of_values(c, tiles)
        emit_outputs(system, state, targets or right_of_targets(system), folded.tile)

    def _read_apart(self, state: list[Pieces]) -> None:
        """Outputs from right sides, which take what is erased, and queries."""
        c, tiles, system = self.context, self.tiles, self.system
        right: list[Pieces] | None = None
        if c.spread_walks:
            right = _right_of_walks(c, tiles, system, self.products, state, pdl=self.pdl)
        self._wait_for_factors()
        folded = Folded(tiles)
        if self.late and not c.spread_walks:
            self.products = _decayed_products(c, system, state)
        load_rows(tiles, 0, handover(c).names)
        _finish(c, tiles, system, self.products, folded, right)


def _wait_for_walks(context: Context, w: Writer, *, pdl: bool) -> None:
    """Wait for the programs that walk. Those of a launch before the factors kernel are done: all of
    that kernel have waited for them before programs of value tiles start."""
    if context.prepares_first:
        wait_prepared(w)
    elif pdl and context.schedule.fusion == "joined":
        _wait_for_launch(w, "prepare")


def _right_of_walks(
    context: Context,
    tiles: Tiles,
    system: System,
    products: dict[Reader, str],
    state: list[Pieces],
    *,
    pdl: bool,
) -> list[Pieces]:
    """All that the folded tiles will multiply, before they are there; row scalars, if they are not
    prepared, while others walk."""
    if tiles.rows_ready:
        _wait_for_walks(context, tiles.writer, pdl=pdl)
    _own_rows(context, tiles)
    if not tiles.rows_ready:
        _wait_for_walks(context, tiles.writer, pdl=pdl)
    products |= _decayed_products(context, system, state)
    return _right_operands(context, tiles, system, products)


def _own_rows(context: Context, tiles: Tiles) -> None:
    """Row scalars of right sides that no factors kernel hands over."""
    plan, w, parts = context.plan, tiles.writer, handover(context)
    w.section("what multiplies rows of right sides")
    _scalars_of_values(context, tiles)
    for p, name in enumerate(parts.erase_rows):
        erase = replace(plan.pairs[p].erase, scalars=parts.erase_scalars[p])
        for scale in erase.scalars:
            tiles.row_scalar(plan.scalar(scale), 0)
        w.let(name, tiles.scale(erase, 0) or "inside.to(tl.float32)")


def _scalars_of_values(context: Context, tiles: Tiles) -> None:
    """Row scalars inside value vectors, where no factors kernel hands them over."""
    for scalar in context.plan.scalars:
        if scalar.name in handover(context).others:
            tiles.row_scalar(scalar, 0)


def _wait_for_launch(w: Writer, before: str) -> None:
    """Wait for the kernel `before` this one, which has let it start early."""
    w.section(f"what follows reads results of the {before} kernel")
    w.line("tl.extra.cuda.gdc_wait()")
    if before == "prepare":
        w.line("tl.extra.cuda.gdc_launch_dependents()")


def load_rows(tiles: Tiles, b: int, names: tuple[str, ...]) -> None:
    """Some of the row scalars that the factors kernel has left for a block."""
    w, context = tiles.writer, tiles.context
    for number, name in enumerate(handover(context).names):
        if name not in names:
            continue
        own = context.block(name, b)
        w.let(own, tiles.plane(first_handed_plane(context) + number, name, context.system_head, b))
        for scalar in context.plan.scalars:
            if scalar.name == name:
                w.memo["scalar", scalar.expr.key, b] = own


def state_products(system: System, b: int, state: list[Pieces]) -> dict[Reader, str]:
    """base^T S_pre for every operand of a block that reads the state, before or after the decay."""
    w = system.writer
    products: dict[Reader, str] = {}
    for base in dict.fromkeys(base for base, _ in readers(system.context.plan)):
        name, start = w.fresh(f"state_dot_{leaf(base)}"), None
        for chunk, pieces in enumerate(state):
            keys = system.key_pieces(base, b, chunk)
            start = system.read(name, keys, pieces, start)
        products[base, False] = products[base, True] = name
    return products


def _decayed_products(context: Context, system: System, state: list[Pieces]) -> dict[Reader, str]:
    """The same with vectors that the factors kernel has multiplied by the decays of their paths."""
    w = system.writer
    w.section("products of the committed state with what has decayed along the paths")
    products: dict[Reader, str] = {}
    for reader in readers(context.plan):
        name, start = w.fresh(f"state_dot_{leaf(reader[0])}"), None
        for chunk, pieces in enumerate(state):
            keys = system.state_reader(*reader, 0, chunk)
            start = system.read(name, keys, pieces, start)
        products[reader] = name
    return products


def _finish(
    context: Context,
    tiles: Tiles,
    system: System,
    products: dict[Reader, str],
    folded: Folded,
    right: list[Pieces] | None = None,
) -> None:
    """Right sides and written values, unless they are there; then the outputs."""
    plan, w, rows = context.plan, tiles.writer, handover(context).out_rows
    right = right or _right_operands(context, tiles, system, products)
    if context.watches_values:
        with w.block("if bad != 0:"):
            poisoned = f"({tiles.ancestors(0, 0)} & bad) != 0"
            for row in rows:
                w.let(row, f'tl.where({poisoned}, float("nan"), {row})')
    for readout, row in zip(plan.readouts, rows, strict=True):
        w.section("output: P (q^T S_pre) + F (r - e^T S_pre)")
        w.origin("readout", place(readout.output))
        read = products[readout.query.base, readout.after_decay]
        out = w.let(f"out_tile{readout.mark}", f"{tiles.across(row)} * {read}")
        for number, pieces in enumerate(right, readout.number * len(right)):
            system.apply(out, pieces, folded.tile(number), out)
        finish_output(tiles, 0, readout, out)
        store_output(tiles, 0, readout, out)


def _right_operands(
    context: Context, tiles: Tiles, system: System, products: dict[Reader, str]
) -> list[Pieces]:
    """What the folded tiles multiply: r - e^T S of the pairs, then the values of pure writes."""
    plan, w, precision = context.plan, tiles.writer, system.precision
    right, parts = [], handover(context)
    if context.watches_values:
        w.let("bad", "tl.zeros([], tl.int64)")
    if plan.pairs:
        w.section("right side: R = r - P (e^T S_pre)")
    for p, (pair, target) in enumerate(zip(plan.pairs, parts.targets, strict=True)):
        w.origin(f"u{p or ''}", unknown_place(plan.form, p))
        read = products[pair.erase.base, pair.after_decay]
        erased = f"{tiles.across(parts.erase_rows[p])} * {read}"
        name = tiles.absorb(f"{tiles.value(target, 0)} - {erased}", f"right{p or ''}", 0)
        right.append(precision.pieces(w, name))
    for write in plan.writes:
        value = tiles.finite_value(write.value, 0)
        right.append(written_pieces(system, write.value, value))
    return right
