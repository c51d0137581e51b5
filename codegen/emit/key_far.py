"""Nodes on whose path a sum of log-decays leaves its bounds: rarely any, they walk.

Whether a node does is a question to its path alone, so that what is no ancestor of a node changes
no bit of it.
"""

from __future__ import annotations

from boleir.codegen.emit.key_pieces import store_vector
from boleir.codegen.emit.key_sums import SumTiles
from boleir.codegen.emit.key_vectors import computed, plane_tile, product_rows
from boleir.codegen.emit.key_walks import WALK, Walks


def find_far(tiles: SumTiles) -> None:
    """`leaving`, the bits of the nodes whose sums or vectors leave their bounds, and `far`, whether
    there is one on a node's path."""
    w = tiles.writer
    w.section("nodes on whose path a sum leaves its bounds walk: others keep all their bits")
    w.let("beyond", f"inside & ({' | '.join(tiles.leaving())})")
    w.let("leaving", "tl.sum(tl.where(beyond, 1, 0).to(tl.int64) << node.to(tl.int64), axis=0)")
    w.let("far", f"({tiles.ancestors(0, 0)} & leaving) != 0")


def walk_far(tiles: SumTiles) -> None:
    """Their walks, which leave products and vectors that read the state in planes of their own."""
    w, plan = tiles.writer, tiles.context.plan
    assert plan.key_decay is not None
    w.comment("what other threads have stored or read is overwritten below")
    w.line("tl.debug_barrier()")
    tiles.store_parents()
    with tiles.walk_chunks():
        for plane in computed(plan):
            tiles.store_computed(plane, WALK, tiles.key(plan.key_decay, 0, WALK))
    w.comment("rows that other threads have stored are read below")
    w.line("tl.debug_barrier()")
    Walks(tiles, "far").emit()


def take_walked(tiles: SumTiles) -> None:
    """What walks have left takes the place of what sums have given."""
    w = tiles.writer
    w.comment("what other threads have stored is read and overwritten below")
    w.line("tl.debug_barrier()")
    for (reader, base), name in tiles.products.grams.items():
        at = f"{product_rows(tiles, reader, base)} + (node * COLUMNS)[:, None] + node[None, :]"
        load = f"tl.load({at}, mask=far[:, None], other=0.0)"
        w.let(name, f"tl.where(far[:, None], {load}, {name})")
    mask = tiles.key_mask(0, WALK, "far")
    with tiles.walk_chunks():
        for reader in tiles.readers:
            load = f"tl.load({plane_tile(tiles, reader, WALK, 0)}, mask={mask}, other=0.0)"
            walked = w.temp(load, "walked")
            store_vector(tiles, reader, WALK, tiles.precision.pieces(w, walked), mask)
