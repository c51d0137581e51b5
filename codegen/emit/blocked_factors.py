"""The factors kernel of a split schedule with several node blocks: one program per head and block.

A program inverts the system of its own block and folds it into everything that is read of that
block (see `boleir.codegen.emit.blocked`), so no program waits for another. Later blocks without a
descendant of the block are passed over, and the value tiles are told so.
"""

from __future__ import annotations

from dataclasses import replace

from boleir.codegen.emit.blocked import (
    ColumnContext,
    ColumnTiles,
    folded_place,
    reached_at,
    readout_slot,
    seen_slot,
    slot_piece,
)
from boleir.codegen.emit.context import EARLIER, OWN, Context
from boleir.codegen.emit.elimination import Elimination, Tile, erasures, readouts
from boleir.codegen.emit.factors import erase_of_pair, hand_over
from boleir.codegen.emit.handover import CELL, folded_dtype, handover
from boleir.codegen.emit.precision import Precision
from boleir.codegen.emit.prepare import needs_prepare
from boleir.codegen.emit.system import System
from boleir.codegen.emit.text import product
from boleir.codegen.emit.writer import EmittedKernel, Writer
from boleir.codegen.plan import ReadPlan
from boleir.codegen.topology_facts import sweeps_of_block
from boleir.ir import Kind

LATER = EARLIER
"""The block of nodes that read the program's own."""

DECODE = """\
systems = tl.num_programs(0) // NODE_BLOCKS
block = program // systems
head = program % systems % VALUE_HEADS
request = program % systems // VALUE_HEADS"""

WAIT = "tl.extra.cuda.gdc_wait()"


def emit_blocked_factors(context: Context, *, pdl: bool) -> EmittedKernel:
    """One program per request, value head and node block: X, then K and H of all blocks that read
    it."""
    w, schedule = Writer(context.reserved), replace(context.schedule, orientation="nodes")
    column = ColumnContext(context.plan, context.shapes, schedule)
    prepared = needs_prepare(context)
    tiles = ColumnTiles(column, w)
    if pdl and not prepared:
        w.line(WAIT)
    _open(tiles, pdl=pdl, prepared=prepared)
    with w.block("if block * NODE_BLOCK < count:"):
        tiles.prefetch(frozenset({Kind.KEY}))
        tiles.scalars(OWN)
        hand_over(column, tiles)
        emitted = _Column(tiles)
        emitted.own()
        emitted.later()
    return w.kernel(
        "factors",
        "Once per head and node block: its system, solved and folded into what is read of it.",
        (f"{context.shapes.value_heads * context.blocks} * batch", "1", "1"),
        warps=schedule.factor_warps,
        pdl=pdl,
    )


def _open(tiles: ColumnTiles, *, pdl: bool, prepared: bool) -> None:
    """Indices and the first loads of the program's own block, which may be empty."""
    w = tiles.writer
    tiles.program(DECODE)
    tiles.channels()
    tiles.node_block(OWN)
    early = prepared and not tiles.context.plan.mixed
    if early:
        w.section("not from the prepare kernel, which writes row scalars only")
        tiles.ancestors(OWN, OWN)
        tiles.prefetch(frozenset({Kind.KEY}))
    if pdl:
        if prepared:
            w.line(WAIT)
        w.comment("after the wait: a value program that runs knows that all before this is done")
        w.line("tl.extra.cuda.gdc_launch_dependents()")
    tiles.ancestors(OWN, OWN)


class _Column:
    """Emits the folded tiles of one program."""

    def __init__(self, tiles: ColumnTiles) -> None:
        self.tiles = tiles
        self.context = tiles.context
        self.plan = self.context.plan
        self.writer = tiles.writer
        self.system = System(tiles, Precision(self.context.schedule.precision))
        self.precision = self.system.precision
        self.common = handover(self.context).common
        sweeps = max(sweeps_of_block(self.context, b) for b in range(self.context.blocks))
        self.elimination = Elimination(self.system, OWN, sweeps)

    # -- the program's own block ------------------------------------------------------------------

    def own(self) -> None:
        """X of the block, and what outputs read of their own block."""
        w, plan = self.writer, self.plan
        folded = w.arg("folded", "*" + folded_dtype(self.context))
        folded_place(self.context, w, folded)
        w.let("cell", CELL)
        if self.common:
            w.comment("a bad node has a zero column, which NaN must not spoil")
            w.let("column_scale", f"tl.where(finite, {product(*self.common)}, 0.0)")
        if plan.pairs:
            w.section("G (with a minus sign)")
            pairs = enumerate(plan.pairs)
            self.elimination.solve([erasures(self.system, p, OWN, OWN, x.erase) for p, x in pairs])
        w.section("what outputs of the block read of it")
        for readout in plan.readouts:
            self.elimination.reread([readout.query], readout.own)
            row = self._read(readout, OWN)
            slot = readout_slot(self.context, "block", "block")
            self._store(slot, row, readout.number * len(row))

    # -- blocks that read it ----------------------------------------------------------------------

    def later(self) -> None:
        """K and H of every later block, where one of its nodes descends from this block."""
        w, tiles, context = self.writer, self.tiles, self.context
        w.section("what later blocks read of this one")
        with w.block("for later in range(block + 1, (count + NODE_BLOCK - 1) // NODE_BLOCK):"):
            tiles.node_block(LATER)
            w.let("reached", f"tl.max(tl.where({tiles.reads(LATER)}, 1, 0), axis=0)")
            w.line(f"tl.store({reached_at(tiles, 'block', 'later')}, reached.to(tl.float32))")
            with w.block("if reached != 0:"):
                tiles.scalars(LATER)
                w.let("lost", f"({tiles.ancestors(LATER, OWN)} & bad) != 0")
                w.section("what outputs read")
                for readout in self.plan.readouts:
                    row = self._read(readout, LATER)
                    w.comment("outputs below a non-finite input become NaN")
                    w.let(row[0], f'tl.where(lost[:, None], float("nan"), {row[0]})')
                    slot = readout_slot(context, "later", "block")
                    self._store(slot, row, readout.number * len(row))
                for p in range(len(self.plan.pairs)):
                    self._unknowns(p)

    def _unknowns(self, p: int) -> None:
        """H of one pair of a later block."""
        w, several = self.writer, len(self.plan.pairs) > 1
        w.section(f"what unknowns{f' of pair {p}' if several else ''} see, with a minus sign")
        tiles = erasures(self.system, p, LATER, OWN, erase_of_pair(self.context, p))
        seen = self._folded(tiles, f"seen{p}" if several else "seen", LATER)
        self._store(seen_slot(self.context, "later", "block"), seen, p * len(seen))

    # -- tiles ------------------------------------------------------------------------------------

    def _read(self, readout: ReadPlan, b: int) -> list[str]:
        """What an output of a block reads of the program's own."""
        return self._folded(readouts(self.system, readout, b, OWN), "fold", b, readout.mark)

    def _folded(self, tiles: tuple[Tile, Tile], stem: str, b: int, mark: str = "") -> list[str]:
        """A row as the value kernel takes it: tiles of pairs times X, those of pure writes less
        what the pairs erase of them."""
        pairs = range(len(self.plan.pairs))
        names = [self.context.block(f"{stem}{p or ''}{mark}", b) for p in pairs]
        row = self.elimination.fold(*tiles, names)
        if self.common:
            self.writer.let(row[0], f"{row[0]} * column_scale[None, :]")
        return row

    def _store(self, slot: str, results: list[str], first: int = 0) -> None:
        """Put tiles where the value kernel looks for them: behind `first` others from `slot` on."""
        w = self.writer
        w.let("slot", slot)
        for number, tile in enumerate(results, first):
            for piece, name in enumerate(self.system.pieces(tile).names):
                w.line(f"tl.store({slot_piece(self.context, 'slot', number, piece)}, {name})")
