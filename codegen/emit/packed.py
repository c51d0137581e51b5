"""Folded tiles and vectors in words of two bfloat16 pieces, where value tiles wait for little else.

A piece goes to shared memory as soon as it is loaded, behind a barrier, so that whatever is loaded
next waits for memory once more. A word has to be taken apart before: all of them are on their way
before the first is needed, in half as many loads. The upper half of a word is the larger piece, the
lower half is what that leaves of a float32.
"""

from __future__ import annotations

from boleir.codegen.emit.context import Context
from boleir.codegen.emit.folded import Folded, place_cells, place_tiles
from boleir.codegen.emit.handover import (
    decayed_readers,
    folded_tiles,
    packs,
    piece_at,
)
from boleir.codegen.emit.key_pieces import PieceSystem, stored_pieces, vector_at
from boleir.codegen.emit.precision import Pieces, Precision
from boleir.codegen.emit.tiles import Tiles
from boleir.codegen.emit.writer import Writer
from boleir.codegen.naming import leaf


def stored_parts(context: Context, writer: Writer, name: str) -> tuple[str, ...]:
    """What is stored of the float32 tile `name`: a word of two pieces, or each piece by itself."""
    if not packs(context):
        return stored_pieces(context, writer, name).names
    _, top = Precision(context.schedule.precision).rounded(writer, name)
    low = writer.let(f"{name}_lo", f"({name} - {top}).to(tl.bfloat16)")
    bits = f"({low}.to(tl.int16, bitcast=True).to(tl.int32) & 0xFFFF)"
    word = f"({top}.to(tl.int32, bitcast=True) | {bits}).to(tl.float32, bitcast=True)"
    return (writer.let(f"{name}_word", word),)


def load_words(system: PieceSystem) -> None:
    """All loads of words."""
    c, tiles = system.context, system.tiles
    for number in range(folded_tiles(c)):
        _tile_word(tiles, number)
    for vector in range(len(decayed_readers(c))):
        for chunk in range(c.key_chunks):
            _vector_word(tiles, vector, chunk)


class WordSystem(PieceSystem):
    """Vectors that read the state from words."""

    def _vector(self, vector: int, stem: str, chunk: int) -> Pieces:
        known = ("read pieces", vector, chunk)
        if known not in self.memo:
            word = _vector_word(self.tiles, vector, chunk)
            self.memo[known] = " ".join(_apart(self.writer, word))
        return Pieces(tuple(self.memo[known].split()))


class WordFolded(Folded):
    """Folded tiles from words."""

    def __init__(self, tiles: Tiles) -> None:
        self.tiles = tiles
        self._loaded = None

    def _load(self, tile: int) -> Pieces:
        w = self.tiles.writer
        return Pieces(_apart(w, _tile_word(self.tiles, tile)))


def _tile_word(tiles: Tiles, number: int) -> str:
    """The words of a folded tile; a name."""
    w, known = tiles.writer, ("folded word", number)
    if known not in w.memo:
        place_cells(tiles)
        w.memo[known] = w.temp(f"tl.load({piece_at(number)})", f"folded_{number}")
    return w.memo[known]


def _vector_word(tiles: Tiles, vector: int, chunk: int) -> str:
    """The words of a key chunk of a vector that reads the state; a name."""
    w, known = tiles.writer, ("vector word", vector, chunk)
    if known not in w.memo:
        place_tiles(tiles)
        live = f", mask=({tiles.key_name(chunk)} < D_K)[None, :], other=0.0"
        mask = live if tiles.is_partial(chunk) else ""
        stem = f"{leaf(decayed_readers(tiles.context)[vector][0])}_decayed{tiles.key_part(chunk)}"
        w.memo[known] = w.temp(f"tl.load({vector_at(tiles, vector, 0, chunk)}{mask})", stem)
    return w.memo[known]


def _apart(w: Writer, word: str) -> tuple[str, ...]:
    """The two pieces of words, the larger one first."""
    bits = w.let(f"{word}_bits", f"{word}.to(tl.int32, bitcast=True)")
    half = "to(tl.int16).to(tl.bfloat16, bitcast=True)"
    return w.let(f"{word}_hi", f"({bits} >> 16).{half}"), w.let(f"{word}_lo", f"{bits}.{half}")
