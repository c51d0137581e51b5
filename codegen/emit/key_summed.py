"""The factors kernel of the split schedule where decays per key channel are sums along the paths.

Vectors are multiplied by the decays of their paths and written ones divided by them, so that G and
C are products of matrices; nodes whose sums leave their bounds walk (see
`boleir.codegen.emit.key_sums`). What reads the state is left in the pieces that products take
(`boleir.codegen.emit.key_pieces`). All that but the products may come from the prepare kernel
(`boleir.codegen.emit.key_prepared`).
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
from boleir.codegen.emit.handover import place_folded
from boleir.codegen.emit.key_far import find_far, take_walked, walk_far
from boleir.codegen.emit.key_sums import ANCHOR, SumTiles
from boleir.codegen.emit.key_vectors import is_sized, multiplied
from boleir.codegen.emit.key_walks import WalkedSystem
from boleir.codegen.emit.writer import EmittedKernel, Writer
from boleir.codegen.plan import Operand
from boleir.ir import Expr


def emit_summed_factors(context: Context, *, pdl: bool) -> EmittedKernel:
    """One program per request and value head: vectors with the decays of their paths, G, C, the
    solve; nodes on rows."""
    w, context = Writer(context.reserved), nodes_on_rows(context)
    tiles = (MultiplyingTiles if context.prepared_sums else SumTiles)(context, w)
    open_kernel(tiles, lambda: None, pdl=pdl)
    if not context.prepared_sums:
        find_far(tiles)
        with w.block("if leaving != 0:"):
            walk_far(tiles)
            take_walked(tiles)
    tiles.products.insert_own()
    w.comment("no anchor is in what walks have left")
    anchored = w.let("anchored", f"tl.where(far, 1.0, {2.0**-ANCHOR!r})")
    hand_over(context, tiles, anchored)
    emit_folded(context, tiles, GramSystem(tiles, tiles.precision))
    return factors_kernel(context, w, pdl=pdl)


class MultiplyingTiles(SumTiles):
    """The same where the prepare kernel has left the sums."""

    def vectors(self) -> tuple[Expr, ...]:
        """Key vectors of a step: those that are multiplied."""
        return multiplied(self.context.plan)

    def decay_rows(self, b: int) -> list[str]:
        """Products of vectors with the decays of their paths, and rows of what had no need of
        decays. What walks have left is taken before any row scalar takes registers."""
        w, sized = self.writer, ["gates_size"] if is_sized(self.context.plan) else []
        w.section("vectors with the decays of their paths inside, and their products")
        place_folded(self.context, w)
        self.own = self.own_names()
        self.multiply()
        w.let("far", f"{self.walk_plane('far', b)} != 0.0")
        with w.block("if tl.max(tl.where(far, 1, 0), axis=0) != 0:"):
            take_walked(self)
        for number, name in enumerate(self.own.values()):
            w.let(name, self.walk_plane(f"own_{number}", b))
        for name in sized:
            w.let(name, self.walk_plane(name, b))
        return sized


class GramSystem(WalkedSystem):
    """The masked system whose products have their decays in them and are here."""

    tiles: SumTiles

    def products(self, b: int, a: int, reader: Operand, written: Operand, after_decay: bool) -> str:
        """Products with the decays between the nodes in them; of other pairs than those of a node
        with an ancestor, anything."""
        return self.tiles.products.grams[(reader.base, after_decay), written.base]
