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
from boleir.codegen.emit.key_pieces import store_vector
from boleir.codegen.emit.key_sums import ANCHOR, LARGEST_ENTRY, REACH, SumTiles
from boleir.codegen.emit.key_vectors import computed, plane_tile, product_rows
from boleir.codegen.emit.key_walks import WALK, WalkedSystem, Walks
from boleir.codegen.emit.writer import EmittedKernel, Writer
from boleir.codegen.plan import Operand


def emit_summed_factors(context: Context, *, pdl: bool) -> EmittedKernel:
    """One program per request and value head: vectors with the decays of their paths, G, C, the
    solve; nodes on rows."""
    w, context = Writer(context.reserved), nodes_on_rows(context)
    tiles = SumTiles(context, w)
    open_kernel(tiles, lambda: None, pdl=pdl)
    _walk_far(tiles)
    w.comment("no anchor is in what walks have left")
    anchored = w.let("anchored", f"tl.where(far, 1.0, {2.0**-ANCHOR!r})")
    hand_over(context, tiles, anchored)
    emit_folded(context, tiles, GramSystem(tiles, tiles.precision))
    return factors_kernel(context, w, pdl=pdl)


def _walk_far(tiles: SumTiles) -> None:
    """Walks of the nodes on whose path the sums leave their bounds: rarely any."""
    w, plan = tiles.writer, tiles.context.plan
    w.section("nodes on whose path a sum leaves its bounds walk: others keep all their bits")
    w.let("beyond", f"inside & ((reach > {REACH}) | (entry > {LARGEST_ENTRY}))")
    w.let("leaving", "tl.sum(tl.where(beyond, 1, 0).to(tl.int64) << node.to(tl.int64), axis=0)")
    w.let("far", f"({tiles.ancestors(0, 0)} & leaving) != 0")
    with w.block("if leaving != 0:"):
        w.comment("sums that other threads have read are overwritten below")
        w.line("tl.debug_barrier()")
        tiles.store_parents()
        assert plan.key_decay is not None
        with tiles.walk_chunks():
            for plane in computed(plan):
                tiles.store_computed(plane, WALK, tiles.key(plan.key_decay, 0, WALK))
        w.comment("rows that other threads have stored are read below")
        w.line("tl.debug_barrier()")
        Walks(tiles, "far").emit()
        w.line("tl.debug_barrier()")
        for (reader, base), name in tiles.products.grams.items():
            at = f"{product_rows(tiles, reader, base)} + (node * COLUMNS)[:, None] + node[None, :]"
            load = f"tl.load({at}, mask=far[:, None], other=0.0)"
            w.let(name, f"tl.where(far[:, None], {load}, {name})")
        _keep_walked(tiles)
    tiles.products.insert_own()


def _keep_walked(tiles: SumTiles) -> None:
    """What walks have left of the vectors that read the state, in pieces."""
    w, mask = tiles.writer, tiles.key_mask(0, WALK, "far")
    with tiles.walk_chunks():
        for reader in tiles.readers:
            load = f"tl.load({plane_tile(tiles, reader, WALK, 0)}, mask={mask}, other=0.0)"
            walked = w.temp(load, "walked")
            store_vector(tiles, reader, WALK, tiles.precision.pieces(w, walked), mask)


class GramSystem(WalkedSystem):
    """The masked system whose products have their decays in them and are here."""

    tiles: SumTiles

    def products(self, b: int, a: int, reader: Operand, written: Operand, after_decay: bool) -> str:
        """Products with the decays between the nodes in them; of other pairs than those of a node
        with an ancestor, anything."""
        return self.tiles.products.grams[(reader.base, after_decay), written.base]
