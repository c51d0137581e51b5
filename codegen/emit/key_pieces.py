"""Vectors that read the committed state with the decays of their paths in them, in pieces.

Where every key channel decays on its own, a row scalar cannot multiply by the decays afterwards.
The factors kernel multiplies them into the vectors once per head and leaves the pieces that
products take, behind the folded tiles: value tiles load them as they would load inputs.
"""

from __future__ import annotations

from boleir.codegen.emit.context import Context
from boleir.codegen.emit.handover import (
    folded_pieces,
    folded_tiles,
    place_folded,
    vector_entries,
)
from boleir.codegen.emit.key_vectors import Reader, readers
from boleir.codegen.emit.key_walks import WalkedSystem
from boleir.codegen.emit.output import system_number
from boleir.codegen.emit.precision import Pieces
from boleir.codegen.emit.text import bracket
from boleir.codegen.emit.tiles import Tiles
from boleir.codegen.naming import leaf
from boleir.codegen.schedule import padded
from boleir.ir import Expr


def _vector_at(
    tiles: Tiles, reader: Reader, piece: int, chunk: int, whole: Context | None = None
) -> str:
    """Addresses of a key chunk of a piece, relative to `place`. `whole`: the context of the factors
    kernel, where that of the tiles is another."""
    context = whole or tiles.context
    count = folded_pieces(context)
    number = readers(context.plan).index(reader) * count + piece
    first = folded_tiles(context) * count * context.schedule.node_block**2
    first += number * vector_entries(context)
    row = f"(node * {padded(context.shapes.d_k)})[:, None]"
    return f"place + {first} + {row} + {tiles.key_name(chunk)}[None, :]"


def store_vector(
    tiles: Tiles,
    reader: Reader,
    chunk: int,
    pieces: Pieces,
    mask: str | None = None,
    whole: Context | None = None,
) -> None:
    """Store the pieces of a key chunk, `place` being known."""
    masked = f", mask={mask}" if mask else ""
    for number, piece in enumerate(pieces.names):
        at = _vector_at(tiles, reader, number, chunk, whole)
        tiles.writer.line(f"tl.store({at}, {piece}{masked})")


class PieceSystem(WalkedSystem):
    """What value tiles multiply the state by: pieces that the factors kernel has left."""

    def state_reader(self, base: Expr, after_decay: bool, b: int, chunk: int) -> Pieces:
        """The pieces of a vector times the decays of its path."""
        t, w = self.tiles, self.writer
        known = ("read pieces", base.key, after_decay, chunk)
        if known not in self.memo:
            place_folded(self.context, w, f"{bracket(system_number(self.context))}.to(tl.int64)")
            live = f", mask=({t.key_name(chunk)} < D_K)[None, :], other=0.0"
            mask = live if t.is_partial(chunk) else ""
            stem, names = f"{leaf(base)}_decayed{t.key_part(chunk)}", []
            for number in range(folded_pieces(self.context)):
                at = _vector_at(t, (base, after_decay), number, chunk)
                names.append(w.temp(f"tl.load({at}{mask})", f"{stem}_{number}"))
            self.memo[known] = " ".join(names)
        return Pieces(tuple(self.memo[known].split()))
