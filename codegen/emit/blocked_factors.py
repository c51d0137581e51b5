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
from boleir.codegen.emit.factors import CELL, erase_of_pair, hand_over, readout_tile
from boleir.codegen.emit.handover import folded_dtype, handover
from boleir.codegen.emit.precision import Pieces, Precision
from boleir.codegen.emit.prepare import needs_prepare
from boleir.codegen.emit.system import System
from boleir.codegen.emit.text import product
from boleir.codegen.emit.writer import EmittedKernel, Writer
from boleir.codegen.plan import Operand, WritePlan
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
        self.inverse: Pieces | None = None
        self.seen: list[Pieces] = []
        """Pieces of -M of the program's own block, by pure write."""

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
            self._invert()
            self.seen = [
                self.precision.pieces(w, self._sees(OWN, write, m, plan.pairs[0].erase))
                for m, write in enumerate(plan.writes)
            ]
        w.section("what outputs of the block read of it")
        results = self._results("fold", self._readouts(OWN))
        self._store(readout_slot(self.context, "block", "block"), results)

    def _invert(self) -> None:
        """(I+G)^-1 of the block in pieces."""
        w, pair = self.writer, self.plan.pairs[0]
        w.section("G (with a minus sign)")
        minus_g = self.system.coupling(
            "minus_g", OWN, OWN, pair.erase, pair.write, pair.after_decay, sign="-", strict=True
        )
        sweeps = max(sweeps_of_block(self.context, b) for b in range(self.context.blocks))
        product_form = self.context.schedule.solver == "product"
        build = self.system.product if product_form else self.system.inverse
        self.inverse = self.precision.pieces(w, build("inverse", OWN, minus_g, sweeps))

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
                results = self._results("fold_later", self._readouts(LATER))
                w.comment("outputs below a non-finite input become NaN")
                w.let(results[0], f'tl.where(lost[:, None], float("nan"), {results[0]})')
                self._store(readout_slot(context, "later", "block"), results)
                if self.plan.pairs:
                    w.section("what unknowns see, with a minus sign")
                    seen = self._results("seen_later", self._erased())
                    self._store(seen_slot(context, "later", "block"), seen)

    # -- tiles ------------------------------------------------------------------------------------

    def _readouts(self, b: int) -> list[str]:
        """Tiles of C, one per pair and pure write."""
        plan, found = self.plan, []
        if plan.pairs:
            own = None if plan.inclusive else plan.own_pairs[0] or "0.0"
            found.append(self._readout(b, "readout", plan.pairs[0].write, own))
        for m, write in enumerate(plan.writes):
            own = None if plan.inclusive else plan.own_writes[m] or "0.0"
            found.append(self._readout(b, f"write_readout{m or ''}", write.key, own))
        return found

    def _readout(self, b: int, name: str, written: Operand, own: str | None) -> str:
        own = own if b == OWN else None
        return readout_tile(self.system, self.context.block(name, b), written, own, b, OWN)

    def _erased(self) -> list[str]:
        """Tiles of -G and -M of a later block, without the scalars that multiply all of its right
        side."""
        pair = self.plan.pairs[0]
        erase = erase_of_pair(self.context)
        minus_g = self.system.coupling(
            "minus_g_later", LATER, OWN, erase, pair.write, pair.after_decay, sign="-", strict=True
        )
        writes = enumerate(self.plan.writes)
        return [minus_g, *(self._sees(LATER, write, m, erase) for m, write in writes)]

    def _sees(self, b: int, write: WritePlan, m: int, erase: Operand) -> str:
        pair, name = self.plan.pairs[0], self.context.block(f"minus_seen{m or ''}", b)
        return self.system.coupling(
            name, b, OWN, erase, write.key, pair.after_decay, sign="-", strict=True
        )

    def _results(self, name: str, found: list[str]) -> list[str]:
        """The tiles as the value kernel takes them: that of the pair times X, those of pure writes
        less what the pair erases of them."""
        if not self.plan.pairs:
            return found
        w, precision = self.writer, self.precision
        tile, *others = found
        assert self.inverse is not None
        fold = precision.dot(w, name, precision.pieces(w, tile), self.inverse)
        if others:
            pieces = precision.pieces(w, fold)
            for other, seen in zip(others, self.seen, strict=True):
                precision.dot(w, other, pieces, seen, other)
        if self.common:
            w.let(fold, f"{fold} * column_scale[None, :]")
        return [fold, *others]

    def _store(self, slot: str, results: list[str]) -> None:
        w = self.writer
        w.let("slot", slot)
        for number, tile in enumerate(results):
            for piece, name in enumerate(self.precision.pieces(w, tile).names):
                w.line(f"tl.store({slot_piece(self.context, 'slot', number, piece)}, {name})")
