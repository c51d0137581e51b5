"""Products of vectors with the decays between their nodes, as matrix products.

    e_i^T diag(2^(c_i - c_j)) w_j  =  (e_i 2^c_i)^T (w_j 2^-c_j)

What reads the state is multiplied by the decays of its whole path anyway; what is written is
divided by them. See `boleir.codegen.emit.key_sums` for the sums c and their bounds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from boleir.codegen.emit.key_pieces import store_vector, stored_pieces
from boleir.codegen.emit.key_steps import STEP
from boleir.codegen.emit.key_totals import SAME
from boleir.codegen.emit.key_vectors import Reader
from boleir.codegen.emit.precision import Pieces
from boleir.codegen.naming import leaf
from boleir.ir import Expr

if TYPE_CHECKING:
    from boleir.codegen.emit.key_sums import SumTiles


class Products:
    """Emits the products of all nodes of a head, a step over the key channels at a time."""

    def __init__(self, tiles: SumTiles) -> None:
        self.tiles = tiles
        self.grams: dict[tuple[Reader, Expr], str] = {}
        """Names of the products of reading and written vectors [node, ancestor]."""

    def begin(self) -> None:
        """Nothing has been added up."""
        w = self.tiles.writer
        for reader in self.tiles.readers:
            for base in self.tiles.written:
                stem = "gram" if reader[1] else "gram_above"
                name = w.fresh(f"{stem}_{leaf(reader[0])}_{leaf(base)}")
                w.let(name, "tl.zeros([NODE_BLOCK, NODE_BLOCK], tl.float32)")
                self.grams[reader, base] = name

    def step(self) -> None:
        """Readers times the decays of their paths, written vectors divided by them, their products;
        from `c`, and `c_above` without the node itself."""
        t, w, write = self.tiles, self.tiles.writer, {}
        w.let("shrunk", "tl.exp2(-c)")
        for base in t.written:
            tile = w.temp(f"{t.key(base, 0, STEP)} * shrunk", f"{leaf(base)}_shrunk")
            write[base] = self._pieces(tile)[0].transposed()
        for reader, tile in t.decayed(STEP):
            self._read(reader, tile, write)

    def _read(self, reader: Reader, tile: str, write: dict[Expr, Pieces]) -> None:
        """A reader times the decays of its path: left for the value tiles, multiplied with what is
        written."""
        t, w = self.tiles, self.tiles.writer
        pieces, halves = self._pieces(tile)
        store_vector(t, reader, STEP, halves)
        for base, right in write.items():
            name = self.grams[reader, base]
            t.precision.dot(w, name, pieces, right, name)

    def _pieces(self, tile: str) -> tuple[Pieces, Pieces]:
        """The pieces of a vector in products, and those that value tiles take. Three pieces where a
        system is solved, which may enlarge errors: two would cost the digits that products of
        stored vectors have where the products of many channels nearly cancel. Without a solve no
        product is better than what is read from the state, in as many pieces as are stored."""
        t = self.tiles
        if t.context.plan.pairs:
            return t.precision.thirds_and_halves(t.writer, tile)
        pieces = stored_pieces(t.context, t.writer, tile)
        return pieces, pieces

    def diagonals(self) -> list[str]:
        """Products of nodes with themselves [node], by which each reader and each written vector
        shows whether it is finite and leaves products finite."""
        w, names = self.tiles.writer, []
        found, bases = self.tiles.readers, self.tiles.written
        for n in range(max(len(found), len(bases))):
            gram = self.grams[found[n % len(found)], bases[n % len(bases)]]
            name = w.let(w.fresh("diagonal"), "tl.zeros([NODE_BLOCK], tl.float32)")
            w.comment(
                "always: Triton 3.6 fails for sm_100 where sums of its rows are reduced again"
            )
            with w.block("if count >= 0:"):
                w.let(name, f"tl.sum(tl.where({SAME}, {gram}, 0.0), axis=1)")
            names.append(name)
        return names

    def insert_own(self) -> None:
        """Put the products of a node's own vectors onto the diagonals."""
        for pair in self.tiles.own:
            name, own = self.grams[pair], self.tiles.own_entries(pair)
            self.tiles.writer.let(name, f"tl.where({SAME}, {own}, {name})")
