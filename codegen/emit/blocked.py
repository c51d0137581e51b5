"""What both kernels of a split schedule with several node blocks agree on: names and places.

With the inverse of each diagonal block, X_c = (I + G_cc)^-1, the nodes of block b see those of an
earlier block c through two tiles that no third block enters:

    K_bc = C_bc X_c,   H_bc = G_bc X_c
    R'_b = R_b - sum_(c < b) H_bc R'_c,   O_b = D_P Q S + sum_(c <= b) K_bc R'_c

So one program computes everything that is read from one block, without waiting for another; the
value tiles walk the blocks in order. Pure writes add a tile each: with the Gram tiles N of the
output and M of the pair, N_bc - K_bc M_cc and M_bc - H_bc M_cc.

Several pairs per token have a tile each in K, and one in H for every two of them; within a block
they are eliminated one after the other (see `boleir.codegen.emit.elimination`).
"""

from __future__ import annotations

from dataclasses import dataclass

from boleir.codegen.emit.context import OWN, Context
from boleir.codegen.emit.handover import (
    first_handed_plane,
    folded_pieces,
    folded_tiles,
    handover,
    row_tiles,
)
from boleir.codegen.emit.looped import LoopTiles
from boleir.codegen.emit.tiles import Tiles
from boleir.codegen.emit.writer import Writer

PLACE = "(request * VALUE_HEADS + head).to(tl.int64)"
"""Number of a system of the tree."""


@dataclass(frozen=True, slots=True)
class ColumnContext(Context):
    """Names for a program that holds the block whose nodes are read, and one later block of nodes
    that read them at a time."""

    @property
    def looped(self) -> bool:
        """Later blocks are walked."""
        return True

    def block(self, stem: str, number: int) -> str:
        """`stem`, marked when it belongs to a later block."""
        return stem if number == OWN else f"{stem}_later"

    def pair(self, stem: str, b: int, a: int) -> str:
        """The block that is read is always the program's own."""
        return self.block(stem, b)

    def first_node(self, number: int) -> str:
        """First node of a block, as text."""
        return f"{'block' if number == OWN else 'later'} * NODE_BLOCK"


class ColumnTiles(LoopTiles):
    """Operands of the program's block and of a later one."""

    def bad_nodes(self, b: int, a: int) -> list[str]:
        """Bits of the bad nodes of the block that is read: no others matter to its tiles."""
        return [self.context.block("bad", a)]

    def reads(self, b: int) -> str:
        """Whether the nodes of block `b` have ancestors in the program's own block, as a mask."""
        size, word = self.context.schedule.node_block, self.ancestors(b, OWN)
        if size < 64:
            word = f"(({word} >> (block * NODE_BLOCK & 63).to(tl.int64)) & {(1 << size) - 1})"
        return f"{word} != 0"


def folded_slots(context: Context) -> int:
    """Folded tiles of one system: what outputs read of each block and those before it, then what
    unknowns see of those before."""
    b = context.blocks
    seen = len(context.plan.pairs) * row_tiles(context) * (b * (b - 1) // 2)
    return folded_tiles(context) * (b * (b + 1) // 2) + seen


def readout_slot(context: Context, reader: str, read: str) -> str:
    """Number of the first tile through which outputs of block `reader` see block `read`; text. The
    tiles of a second output follow those of the first."""
    return _times(folded_tiles(context), f"{reader} * ({reader} + 1) // 2 + {read}")


def seen_slot(context: Context, reader: str, read: str) -> str:
    """Number of the first tile through which unknowns of a block see an earlier one; text. The
    tiles of a second pair's unknowns follow those of the first."""
    readouts = len(context.plan.readouts) * (context.blocks * (context.blocks + 1) // 2)
    slot, pairs = f"{reader} * ({reader} - 1) // 2 + {read}", len(context.plan.pairs)
    slot = f"{readouts} + {f'({slot}) * {pairs}' if pairs > 1 else slot}"
    return _times(row_tiles(context), slot)


def _times(tiles: int, slot: str) -> str:
    return slot if tiles == 1 else f"({slot}) * {tiles}"


def folded_place(context: Context, w: Writer, folded: str) -> None:
    """`place`: where the folded tiles of the program's system begin."""
    size = folded_slots(context) * folded_pieces(context)
    w.let("place", f"{folded} + {PLACE} * {size} * (NODE_BLOCK * NODE_BLOCK)")


def slot_piece(context: Context, slot: str, tile: int, piece: int) -> str:
    """Addresses of a piece of a tile, counted from the tile that `slot` names; text."""
    pieces = folded_pieces(context)
    number = f"{slot} * {pieces}" if pieces > 1 else slot
    if tile * pieces + piece:
        number = f"({number} + {tile * pieces + piece})"
    return f"place + {number} * (NODE_BLOCK * NODE_BLOCK) + cell"


def reached_at(tiles: Tiles, read: str, reader: str) -> str:
    """Address of the number that says whether any node of block `reader` has an ancestor in block
    `read`: a row of the plane behind those of the nodes, since no block has fewer nodes than there
    are blocks."""
    context = tiles.context
    plane = first_handed_plane(context) + len(handover(context).names)
    return tiles.plane_at(plane, "reached", "head", OWN, f"{read} * NODE_BLOCK + {reader}")
