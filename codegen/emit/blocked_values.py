"""The value kernel of a split schedule with several node blocks: the state is read once, then the
blocks have their turns in order.

Two blocks are written out. More are walked in a loop: right sides of earlier blocks come back from
a buffer of the request (each program its own value tile). The tiles through which they are seen
come from the factors kernel; blocks without an ancestor of the nodes at hand are passed over.
"""

from __future__ import annotations

from contextlib import nullcontext

from boleir.codegen.emit.blocked import (
    folded_place,
    reached_at,
    readout_slot,
    seen_slot,
    slot_piece,
)
from boleir.codegen.emit.context import EARLIER, OWN, Context, place, unknown_place
from boleir.codegen.emit.handover import CELL, folded_dtype, folded_pieces, handover
from boleir.codegen.emit.key_vectors import Reader
from boleir.codegen.emit.looped import LoopTiles
from boleir.codegen.emit.output import (
    find_tile,
    finish_output,
    output_rows,
    store_output,
    unknowns_at,
    value_grid,
)
from boleir.codegen.emit.precision import Pieces, Precision
from boleir.codegen.emit.state import load_state, state_pieces
from boleir.codegen.emit.system import System
from boleir.codegen.emit.tiles import Tiles
from boleir.codegen.emit.value_parts import load_rows, state_products
from boleir.codegen.emit.verify import written_pieces
from boleir.codegen.emit.writer import EmittedKernel, Writer
from boleir.ir import Kind


def emit_blocked_values(context: Context, *, pdl: bool) -> EmittedKernel:
    """One program per value tile: read the state, then multiply block by block."""
    w, s = Writer(context.reserved), context.schedule
    _Values(context, w).emit(pdl=pdl)
    return w.kernel(
        "values",
        "One value tile per program: the state read once, times the folded factors of all blocks.",
        value_grid(context),
        warps=s.warps,
        stages=s.stages,
        registers=s.registers,
        pdl=pdl,
    )


class _Values:
    """Emits the body of the kernel."""

    def __init__(self, context: Context, w: Writer) -> None:
        self.context = context
        self.plan = context.plan
        self.writer = w
        self.tiles = (LoopTiles if context.looped else Tiles)(context, w)
        self.solved: dict[int, list[Pieces]] = {}
        """Right sides of a block, by pair."""
        self.system = System(self.tiles, Precision(context.schedule.precision))
        self.precision = self.system.precision
        self.parts = handover(context)

    def emit(self, *, pdl: bool) -> None:
        """The whole body."""
        w, tiles, context = self.writer, self.tiles, self.context
        find_tile(tiles)
        w.let("value", "value_tile * B_V + tl.arange(0, B_V)")
        tiles.channels()
        state = state_pieces(tiles, self.precision, load_state(tiles))
        if context.looped:
            self._wait(pdl=pdl)
            with w.block("for block in range(0, (count + NODE_BLOCK - 1) // NODE_BLOCK):"):
                self._block(OWN, self._from_state(OWN, state))
                if context.keeps_unknowns:
                    w.comment("later blocks read the right sides of this one")
                    w.line("tl.debug_barrier()")
            return
        early = {}
        for b in range(context.blocks if context.schedule.prefetch else 1):
            w.section(f"node block {b}")
            early[b] = self._from_state(b, state)
        self._wait(pdl=pdl)
        self._block(0, early[0])
        for b in range(1, context.blocks):
            with w.block(f"if {b} * NODE_BLOCK < count:"):
                self._block(b, early.get(b) or self._from_state(b, state))

    def _wait(self, *, pdl: bool) -> None:
        """Wait for the factors kernel; addresses that do not change from block to block."""
        w, tiles = self.writer, self.tiles
        if pdl:
            w.section("what follows reads results of the factors kernel")
            w.line("tl.extra.cuda.gdc_wait()")
        for readout in self.plan.readouts:
            output_rows(tiles, readout)
        if self.context.keeps_unknowns and self.context.looped:
            for p in range(len(self.plan.pairs)):
                unknowns_at(tiles, p, OWN)
        folded_place(self.context, w, w.arg("folded", "*" + folded_dtype(self.context)))
        w.let("cell", CELL)
        reached_at(tiles, "0", "0")

    def _from_state(self, b: int, state: list[Pieces]) -> dict[Reader, str]:
        """What needs nothing of the factors kernel: products with the state, loads of values."""
        w, tiles = self.writer, self.tiles
        tiles.node_block(b)
        w.section("products with the committed state, before any row scalar is needed")
        products = state_products(self.system, b, state)
        for item in self.plan.tokens:
            if item.kind is Kind.VALUE:
                tiles.value(item, b)
        return products

    def _block(self, b: int, products: dict[Reader, str]) -> None:
        """The rest of a block: what comes from earlier blocks and from its own nodes."""
        w, tiles = self.writer, self.tiles
        load_rows(tiles, b, self.parts.names)
        right, outs = self._state_terms(b, products)
        earlier = [EARLIER] if self.context.looped else range(b)
        if earlier:
            w.section("what earlier blocks contribute")
        for a in earlier:
            with (
                w.block("for earlier in range(0, block):") if self.context.looped else nullcontext()
            ):
                w.let(
                    "reached",
                    f"tl.load({reached_at(tiles, self._number(b, a), self._number(b, b))})",
                )
                with w.block("if reached != 0.0:"):
                    self._earlier(b, a, right, outs)
        self._own(b, right, outs)
        for readout, out in zip(self.plan.readouts, outs, strict=True):
            finish_output(tiles, b, readout, out)
            store_output(tiles, b, readout, out)

    def _number(self, b: int, a: int) -> str:
        if not self.context.looped:
            return str(a)
        return "block" if a == b else "earlier"

    def _state_terms(self, b: int, products: dict[Reader, str]) -> tuple[list[str], list[str]]:
        """Right sides and outputs as far as the committed state determines them."""
        w, tiles, plan, right = self.writer, self.tiles, self.plan, []
        if plan.pairs:
            w.section("right side: R = r - P (e^T S_pre)")
        for p, (pair, target) in enumerate(zip(plan.pairs, self.parts.targets, strict=True)):
            w.origin(f"u{p or ''}", unknown_place(plan.form, p))
            row = tiles.across(self.context.block(self.parts.erase_rows[p], b))
            erased = f"{row} * {products[pair.erase.base, pair.after_decay]}"
            name = self.context.block(f"right{p or ''}", b)
            right.append(w.let(name, f"{tiles.value(target, b)} - {erased}"))
        outs = []
        for readout, row in zip(plan.readouts, self.parts.out_rows, strict=True):
            w.section("output: P (q^T S_pre)")
            w.origin("readout", place(readout.output))
            read = products[readout.query.base, readout.after_decay]
            name = self.context.block(f"out_tile{readout.mark}", b)
            outs.append(w.let(name, f"{tiles.across(self.context.block(row, b))} * {read}"))
        return right, outs

    def _earlier(self, b: int, a: int, right: list[str], outs: list[str]) -> None:
        """What one earlier block contributes to right sides and outputs."""
        w, tiles, context = self.writer, self.tiles, self.context
        if context.looped:
            tiles.node_block(a)
            sources = [self._right_side(p, a) for p in range(len(right))]
        else:
            sources = list(self.solved[a])
        if self.plan.writes and context.looped:
            load_rows(tiles, a, self.parts.others)
        sources += self._written(a)
        reader, read = self._number(b, b), self._number(b, a)
        if right:
            w.let("seen_slot", seen_slot(context, reader, read))
        for p, name in enumerate(right):
            self._apply("seen_slot", sources, name, p * len(sources))
        w.let("read_slot", readout_slot(context, reader, read))
        for number, out in enumerate(outs):
            self._apply("read_slot", sources, out, number * len(sources))

    def _right_side(self, p: int, a: int) -> Pieces:
        """The right side of a pair of an earlier block, read back."""
        tiles = self.tiles
        load = f"tl.load({unknowns_at(tiles, p, a)}, mask={tiles.value_mask(a)}, other=0.0)"
        name = self.writer.let(self.context.block(f"right{p or ''}", a), load)
        return self.system.pieces(name)

    def _own(self, b: int, right: list[str], outs: list[str]) -> None:
        """What the nodes of the block do to each other."""
        w, tiles, context = self.writer, self.tiles, self.context
        w.section("output: + F R")
        for name in right:
            tiles.absorb(name, name, b)
        if right and context.looped:
            with w.block("if (block + 1) * NODE_BLOCK < count:"):
                for p, name in enumerate(right):
                    at = unknowns_at(tiles, p, b)
                    w.line(f"tl.store({at}, {name}, mask={tiles.value_mask(b)})")
        self.solved[b] = [self.system.pieces(name) for name in right]
        number = self._number(b, b)
        sources = [*self.solved[b], *self._written(b)]
        w.let("read_slot", readout_slot(context, number, number))
        for row, out in enumerate(outs):
            self._apply("read_slot", sources, out, row * len(sources))

    def _written(self, b: int) -> list[Pieces]:
        """Pieces of the values of pure writes."""
        tiles = self.tiles
        return [
            written_pieces(self.system, write.value, tiles.finite_value(write.value, b))
            for write in self.plan.writes
        ]

    def _apply(self, slot: str, sources: list[Pieces], into: str, first: int = 0) -> None:
        """Add what is seen of `sources` through the folded tiles from `slot` on, behind `first`
        others."""
        w = self.writer
        for number, pieces in enumerate(sources):
            loaded = []
            for piece in range(folded_pieces(self.context)):
                at = slot_piece(self.context, slot, first + number, piece)
                loaded.append(w.let(f"folded_{number}_{piece}", f"tl.load({at})"))
            tile = Pieces(tuple(loaded))
            tile = tile if self.tiles.nodes_on_rows else tile.transposed()
            self.system.apply(into, pieces, tile, into)
