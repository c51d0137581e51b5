"""The value kernel of the split schedule: the state read once, times what the factors kernel
left."""

from __future__ import annotations

from boleir.codegen.emit.context import Context
from boleir.codegen.emit.folded import Folded
from boleir.codegen.emit.handover import handover, packs, vector_entries
from boleir.codegen.emit.key_loop import looped_tiles, read_state
from boleir.codegen.emit.key_pieces import PieceSystem
from boleir.codegen.emit.key_vectors import Reader
from boleir.codegen.emit.key_walks import WalkedSystem
from boleir.codegen.emit.one_reader_values import emit_outputs, right_of_targets
from boleir.codegen.emit.output import find_tile, system_number, value_grid
from boleir.codegen.emit.packed import WordFolded, WordSystem, load_words
from boleir.codegen.emit.precision import Pieces, Precision
from boleir.codegen.emit.signals import expect, wait, wait_prepared
from boleir.codegen.emit.state import find_slot, load_state, state_pieces
from boleir.codegen.emit.system import System
from boleir.codegen.emit.tiles import Tiles
from boleir.codegen.emit.value_parts import (
    decayed_products,
    finish,
    load_rows,
    own_rows,
    right_operands,
    scalars_of_values,
    state_products,
)
from boleir.codegen.emit.writer import EmittedKernel, Writer
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
        reading = WordSystem if packs(context) else reading
        self.system = reading(self.tiles, Precision(context.schedule.precision))
        self.products: dict[Reader, str] = {}

    def emit(self) -> None:
        """The whole body."""
        state = self._begin()
        if self.context.folds_readers:
            self._read_once(state)
        elif self.context.leaves_rows:
            self._read_rows(state)
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
            wait(self.context, self.writer)

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
            scalars_of_values(c, tiles)
        emit_outputs(system, state, targets or right_of_targets(system), folded.tile)

    def _read_rows(self, state: list[Pieces]) -> None:
        """Outputs from what programs that walk have left: one wait for all of it."""
        c, tiles, system = self.context, self.tiles, self.system
        prepared = tiles.rows_ready and bool(handover(c).others)
        right = [] if prepared else self._written_values()
        wait(c, self.writer)
        if isinstance(system, WordSystem):
            load_words(system)
            load_rows(tiles, 0, handover(c).names)
        right = right or self._written_values()
        products = decayed_products(c, system, state)
        if not packs(c):
            load_rows(tiles, 0, handover(c).names)
        folded = WordFolded(tiles) if packs(c) else Folded(tiles)
        finish(c, tiles, system, products, folded, right)

    def _written_values(self) -> list[Pieces]:
        """What the folded tiles multiply where nothing is erased."""
        scalars_of_values(self.context, self.tiles)
        return right_operands(self.context, self.tiles, self.system, {})

    def _read_apart(self, state: list[Pieces]) -> None:
        """Outputs from right sides, which take what is erased, and queries."""
        c, tiles, system = self.context, self.tiles, self.system
        right: list[Pieces] | None = None
        if c.spread_walks:
            right = _right_of_walks(c, tiles, system, self.products, state, pdl=self.pdl)
        self._wait_for_factors()
        folded = Folded(tiles)
        if self.late and not c.spread_walks:
            self.products = decayed_products(c, system, state)
        load_rows(tiles, 0, handover(c).names)
        finish(c, tiles, system, self.products, folded, right)


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
    own_rows(context, tiles)
    if not tiles.rows_ready:
        _wait_for_walks(context, tiles.writer, pdl=pdl)
    products |= decayed_products(context, system, state)
    return right_operands(context, tiles, system, products)


def _wait_for_launch(w: Writer, before: str) -> None:
    """Wait for the kernel `before` this one, which has let it start early."""
    w.section(f"what follows reads results of the {before} kernel")
    w.line("tl.extra.cuda.gdc_wait()")
    if before == "prepare":
        w.line("tl.extra.cuda.gdc_launch_dependents()")
