"""Nodes on whose path a sum of log-decays leaves its bounds: rarely any, they walk.

Whether a node does is a question to its path alone, so that what is no ancestor of a node changes
no bit of it.
"""

from __future__ import annotations

from boleir.codegen.emit.context import LARGEST
from boleir.codegen.emit.key_pieces import store_vector, stored_pieces
from boleir.codegen.emit.key_sums import REACH, SumTiles
from boleir.codegen.emit.key_vectors import computed, is_sized, plane_tile, product_rows
from boleir.codegen.emit.key_walks import WALK, Walks
from boleir.codegen.emit.text import conjunction
from boleir.ir import Dot


def find_far(tiles: SumTiles) -> None:
    """`leaving`, the bits of the nodes whose sums or products leave their bounds, and `far`,
    whether there is one on a node's path. Entries that are not finite do, and none else are looked
    at closer."""
    w, word = tiles.writer, tiles.ancestors(0, 0)
    w.section("nodes on whose path a sum leaves its bounds walk: others keep all their bits")
    tests = [f"tl.abs({name}) < {LARGEST}" for name in tiles.products.diagonals()]
    w.let("within", conjunction(f"reach <= {REACH}", *tests, *tiles.tests))
    w.let("leaving", f"tl.sum({_bits('within | ~inside')}, axis=0)")
    w.let("far", f"({word} & leaving) != 0")


def find_lost(tiles: SumTiles) -> None:
    """Which of the nodes that have left the bounds have an entry or a decay that is not finite."""
    w, plan = tiles.writer, tiles.context.plan
    vectors = [x.expr.left for x in tiles.guards if isinstance(x.expr, Dot)]
    assert plan.key_decay is not None
    w.comment("which of them have an entry that is not finite")
    tests = [*tiles.tests]
    if vectors or is_sized(plan):
        w.let("size", "tl.zeros([NODE_BLOCK], tl.float32)")
        with tiles.walk_chunks():
            squares = [f"{x} * {x}" for x in (tiles.key(vector, 0, WALK) for vector in vectors)]
            sized = [f"tl.abs({tiles.key(plan.key_decay, 0, WALK)})"] if is_sized(plan) else []
            w.let("size", f"size + tl.sum({' + '.join([*squares, *sized])}, axis=1)")
        tests.append(f"size < {LARGEST}")
    w.let("finite", f"within | ({conjunction(*tests)})" if tests else "node >= 0")
    w.let("bad", f"tl.sum({_bits('finite')}, axis=0)")


def _bits(test: str) -> str:
    """The bits of nodes for which a test fails; text."""
    return f"tl.where({test}, 0, 1).to(tl.int64) << node.to(tl.int64)"


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
            pieces = stored_pieces(tiles.context, w, walked)
            store_vector(tiles, reader, WALK, pieces, mask)
