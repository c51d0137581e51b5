"""Vectors that read the committed state as the factors kernel has left them, in pieces.

Where every key channel decays on its own, a row scalar cannot multiply by the decays afterwards.
The factors kernel multiplies them into the vectors once per head and leaves the pieces that
products take, behind the folded tiles: value tiles load them as they would load inputs. So they do
with the vector that stands for all that reads the state, where readers are folded (see
`boleir.codegen.emit.one_reader`).
"""

from __future__ import annotations

from boleir.codegen.emit.context import Context
from boleir.codegen.emit.folded import place_tiles
from boleir.codegen.emit.handover import (
    decayed_readers,
    folded_pieces,
    folded_readers,
    folded_tiles,
    parts_stored,
    vector_entries,
)
from boleir.codegen.emit.key_vectors import Reader
from boleir.codegen.emit.key_walks import WalkedSystem
from boleir.codegen.emit.precision import Pieces, Precision
from boleir.codegen.emit.tiles import Tiles
from boleir.codegen.emit.writer import Writer
from boleir.codegen.naming import leaf
from boleir.codegen.schedule import padded
from boleir.ir import Expr


def vector_at(
    tiles: Tiles, vector: int, piece: int, chunk: int, whole: Context | None = None,
    place: str = "place",
) -> str:  # fmt: skip
    """Addresses of a key chunk of a piece of vector number `vector`, relative to `place`, or to
    another name of it. `whole`: the context of the factors kernel, where that of the tiles is
    another."""
    context = whole or tiles.context
    count = parts_stored(context)
    number = vector * count + piece
    first = folded_tiles(context) * count * context.schedule.node_block**2
    first += number * vector_entries(context)
    row = f"(node * {padded(context.shapes.d_k)})[:, None]"
    return f"{place} + {first} + {row} + {tiles.key_name(chunk)}[None, :]"


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
    vector = decayed_readers(whole or tiles.context).index(reader)
    for number, piece in enumerate(pieces.names):
        at = vector_at(tiles, vector, number, chunk, whole)
        tiles.writer.line(f"tl.store({at}, {piece}{masked})")


def stored_pieces(context: Context, writer: Writer, name: str) -> Pieces:
    """The pieces of the float32 tile `name` that are stored."""
    precision = Precision(context.schedule.precision)
    split = precision.thirds if folded_pieces(context) == 3 else precision.pieces
    return split(writer, name)


class PieceSystem(WalkedSystem):
    """What value tiles multiply the state by: pieces that the factors kernel has left."""

    def state_reader(self, base: Expr, after_decay: bool, b: int, chunk: int) -> Pieces:
        """The pieces of a vector times the decays of its path."""
        vector = decayed_readers(self.context).index((base, after_decay))
        return self._vector(vector, f"{leaf(base)}_decayed", chunk)

    def folded_reader(self, number: int, mark: str, chunk: int) -> Pieces:
        """The pieces of what stands for all that output `number` reads the state by."""
        return self._vector(folded_readers(self.context)[number], f"reader{mark}", chunk)

    def _vector(self, vector: int, stem: str, chunk: int) -> Pieces:
        t, w = self.tiles, self.writer
        known = ("read pieces", vector, chunk)
        if known not in self.memo:
            place_tiles(t)
            live = f", mask=({t.key_name(chunk)} < D_K)[None, :], other=0.0"
            mask = live if t.is_partial(chunk) else ""
            stem, names = f"{stem}{t.key_part(chunk)}", []
            for number in range(folded_pieces(self.context)):
                at = vector_at(t, vector, number, chunk)
                names.append(w.temp(f"tl.load({at}{mask})", f"{stem}_{number}"))
            self.memo[known] = " ".join(names)
        return Pieces(tuple(self.memo[known].split()))
