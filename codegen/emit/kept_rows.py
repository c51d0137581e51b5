"""Row scalars that the factors kernel computes itself, once per node.

A tile of pairs wants them along its rows and along its columns, and Triton computes again what such
a vector is computed from for every column that a thread has: gates and norms cost more than the
system then. Here each is computed with nodes spread over the threads, left in the row buffer, and
read back.
"""

from __future__ import annotations

from collections.abc import Iterable

from boleir.codegen.emit.context import LARGEST, LOG2_E, place
from boleir.codegen.emit.tiles import Tiles, bounded_below, eighths
from boleir.codegen.plan import Scalar
from boleir.codegen.schedule import block_depth

STEPS = 16
"""Up to this many nodes on a path a walk is cheaper than a sum over a tile of pairs."""


def keeps_rows(tiles: Tiles) -> bool:
    """Whether there are row scalars to compute here that scale anything, not only guards."""
    c = tiles.context
    scaling = any(scalar.watches is None for scalar in c.scalars_needed)
    return not tiles.rows_ready and not c.key_walks and (scaling or c.plan.log_decay is not None)


def keep_rows(tiles: Tiles) -> None:
    """Compute and store; from here on they count as prepared. Programs of value heads that share a
    key head store the same norms to the same place."""
    w, c, plan = tiles.writer, tiles.context, tiles.context.plan
    w.section("row scalars of the head: stored and read back, not computed for every column")
    keep_scalars(tiles, [scalar for scalar in c.scalars_needed if not is_kept(tiles, scalar)])
    if plan.log_decay is not None:
        _keep_path_sums(tiles)
    w.line("tl.debug_barrier()")
    for known in [known for known in w.memo if known[0] == "scalar"]:
        del w.memo[known]
    tiles.rows_ready = True


def keep_scalars(tiles: Tiles, scalars: Iterable[Scalar]) -> None:
    """Compute some row scalars and store them."""
    w, plan = tiles.writer, tiles.context.plan
    for scalar in scalars:
        name = tiles.row_scalar(scalar, 0)
        head = "key_head" if scalar.per_key_head else "head"
        at = tiles.plane_at(plan.scalars.index(scalar), scalar.name, head, 0)
        w.line(f"tl.store({at}, {name}, mask=inside)")
        w.memo["kept", scalar.name] = name


def is_kept(tiles: Tiles, scalar: Scalar) -> bool:
    """Whether a row scalar has been stored."""
    return ("kept", scalar.name) in tiles.writer.memo


def _keep_path_sums(tiles: Tiles) -> None:
    """c, c_rest and g of every node."""
    w, c = tiles.writer, tiles.context
    first = len(c.plan.scalars)
    at = {n: tiles.plane_at(first + i, n, "head", 0) for i, n in enumerate(c.path_planes)}
    if block_depth(c.schedule, c.shapes) < STEPS:
        _walk_up(tiles, at["g"])
    else:
        tiles.decay_rows(0)
        if tiles.sums_by_dot:
            w.comment("a product leaves out what is not finite; the node itself shows it")
            w.let("c", f"tl.where(tl.abs(g) < {LARGEST}, c, float('nan'))")
        w.line(f"tl.store({at['g']}, g, mask=inside)")
    for name in ("c", "c_rest"):
        w.line(f"tl.store({at[name]}, {name}, mask=inside)")


def _walk_up(tiles: Tiles, g_at: str) -> None:
    """Every node adds up what it finds on its path, one ancestor after the other."""
    w, c = tiles.writer, tiles.context
    decay = c.plan.log_decay
    assert decay is not None
    w.origin("log-decay g, and c its sum over the path", place(decay, c.plan.form.decay))
    bounded_below(w, "g", f"{tiles.per_node(decay, 0)} * {LOG2_E}")
    w.line(f"tl.store({g_at}, g, mask=inside)")
    w.line("tl.debug_barrier()")
    w.let("left", tiles.ancestors(0, 0))
    w.let("c", "tl.zeros([NODE_BLOCK], tl.float32)")
    w.let("c_rest", "tl.zeros([NODE_BLOCK], tl.float32)")
    own = tiles.plane_at(len(c.plan.scalars) + 2, "g", "head", 0, node="ancestor")
    with w.block(f"for _ in tl.static_range({block_depth(c.schedule, c.shapes) + 1}):"):
        w.comment("the lowest ancestor left: as a float, a single bit is all exponent")
        w.let("lowest", "left & -left")
        exponent = "(lowest.to(tl.float32).to(tl.int32, bitcast=True) >> 23) & 255"
        w.let("ancestor", f"({exponent}) - 127")
        w.let("g_passed", f"tl.load({own}, mask=left != 0, other=0.0)")
        w.let("g_eighths", eighths("g_passed"))
        w.let("c", "c + g_eighths")
        w.let("c_rest", "c_rest + (g_passed - g_eighths)")
        w.let("left", "left ^ lowest")
