"""What value tiles load of the folded tiles that the factors kernel has left."""

from __future__ import annotations

from boleir.codegen.emit.handover import CELL, folded_pieces, folded_tiles, piece_at, place_folded
from boleir.codegen.emit.output import system_number
from boleir.codegen.emit.precision import Pieces
from boleir.codegen.emit.text import bracket
from boleir.codegen.emit.tiles import Tiles


def place_tiles(tiles: Tiles) -> None:
    """Bind `place`, where what is handed over for the program's system begins."""
    context = tiles.context
    system = f"{bracket(system_number(context))}.to(tl.int64)"
    place_folded(context, tiles.writer, system)


def place_cells(tiles: Tiles) -> None:
    """The same, and `cell`, the entries of a tile: addresses take registers, so that nobody binds
    them before they are needed."""
    w = tiles.writer
    place_tiles(tiles)
    if ("cell",) not in w.memo:
        w.memo["cell",] = w.let("cell", CELL)


class Folded:
    """The folded tiles. A single one is loaded at once, so that memory is waited for once; more of
    them, or vectors that come in pieces as well, would take room that other programs use."""

    def __init__(self, tiles: Tiles) -> None:
        self.tiles = tiles
        single = folded_tiles(tiles.context) == 1 and not tiles.context.key_sums
        self._loaded = self._load(0) if single else None

    def tile(self, number: int) -> Pieces:
        """Pieces of a folded tile on its side of the product with the right operands."""
        pieces = self._loaded or self._load(number)
        return pieces if self.tiles.nodes_on_rows else pieces.transposed()

    def _load(self, tile: int) -> Pieces:
        w, context = self.tiles.writer, self.tiles.context
        place_cells(self.tiles)
        count, names = folded_pieces(context), []
        for piece in range(count):
            load = f"tl.load({piece_at(tile * count + piece)})"
            names.append(w.let(f"folded_{tile}_{piece}", load))
        return Pieces(tuple(names))
