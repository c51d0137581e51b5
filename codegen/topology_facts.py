"""What a compiler may assume about ancestry: all of it for a static tree, bounds for a dynamic
one."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from boleir.codegen.schedule import block_depth

if TYPE_CHECKING:
    from boleir.codegen.emit.context import Context

ROLLED_SWEEPS = 16
"""More sweeps than this become a loop of the kernel: unrolled, they cost seconds of compilation."""


def is_chain(parents: tuple[int, ...] | None) -> bool:
    """Whether a static tree is a chain: then ancestors are simply the nodes before."""
    return parents is not None and parents == tuple(range(-1, len(parents) - 1))


def alive(context: Context, b: int, a: int) -> bool:
    """Whether any node of block `b` can have an ancestor in block `a` (always, unless the tree is
    static)."""
    parents = context.shapes.parents
    if parents is None:
        return True
    size = context.schedule.node_block
    for node in _nodes(context, b, parents):
        while node >= 0:
            if node // size == a:
                return True
            node = parents[node]
    return False


def sweeps_of_block(context: Context, b: int) -> int:
    """Sweeps after which the system of block `b` is solved: its nilpotency index less one.

    Where the solve is folded, pairs of a token are eliminated one after the other, and what is left
    for each couples ancestors alone: as many sweeps as the tree is deep do for every pair.
    """
    plan, shapes, schedule = context.plan, context.shapes, context.schedule
    steps = 1 if schedule.folds else max(1, plan.form.micro_steps)
    if schedule.solver == "levels":
        return shapes.max_depth
    if shapes.parents is None:
        return steps * (block_depth(schedule, shapes) + 1) - 1
    depth: dict[int, int] = {}
    for node in _nodes(context, b, shapes.parents):
        depth[node] = depth.get(shapes.parents[node], -1) + 1
    return steps * (max(depth.values(), default=0) + 1) - 1


def _nodes(context: Context, b: int, parents: tuple[int, ...]) -> Iterable[int]:
    """Nodes of block `b` of a static tree."""
    size = context.schedule.node_block
    return range(b * size, min(len(parents), (b + 1) * size))
