"""The factors kernel of the split schedule where decays per key channel are sums along the paths.

Vectors are multiplied by the decays of their paths and written ones divided by them, so that G and
C are products of matrices; nodes whose sums leave their bounds walk (see
`boleir.codegen.emit.key_sums`). What reads the state is left in the pieces that products take
(`boleir.codegen.emit.key_pieces`).
"""

from __future__ import annotations

from boleir.codegen.emit.context import Context
from boleir.codegen.emit.factors import (
    emit_folded,
    factors_kernel,
    hand_over,
    nodes_on_rows,
    open_kernel,
)
from boleir.codegen.emit.key_far import find_far, find_lost, take_walked, walk_far
from boleir.codegen.emit.key_sums import ANCHOR, SumTiles
from boleir.codegen.emit.key_walks import WalkedSystem
from boleir.codegen.emit.writer import EmittedKernel, Writer
from boleir.codegen.plan import Operand


def emit_summed_factors(context: Context, *, pdl: bool) -> EmittedKernel:
    """One program per request and value head: vectors with the decays of their paths, G, C, the
    solve; nodes on rows."""
    w, context = Writer(context.reserved), nodes_on_rows(context)
    tiles = SumTiles(context, w)
    open_kernel(tiles, lambda: None, pdl=pdl)
    find_far(tiles)
    with w.block("if leaving != 0:"):
        find_lost(tiles)
        walk_far(tiles)
        take_walked(tiles)
    tiles.products.insert_own()
    w.comment("no anchor is in what walks have left")
    anchored = w.let("anchored", f"tl.where(far, 1.0, {2.0**-ANCHOR!r})")
    hand_over(context, tiles, anchored)
    emit_folded(context, tiles, GramSystem(tiles, tiles.precision))
    return factors_kernel(context, w, pdl=pdl)


class GramSystem(WalkedSystem):
    """The masked system whose products have their decays in them and are here."""

    tiles: SumTiles

    def products(self, b: int, a: int, reader: Operand, written: Operand, after_decay: bool) -> str:
        """Products with the decays between the nodes in them; of other pairs than those of a node
        with an ancestor, anything."""
        return self.tiles.products.grams[(reader.base, after_decay), written.base]
