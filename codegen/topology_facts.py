"""What a compiler may assume about ancestry: everything for a static tree, only the bounds for a dynamic one."""

from __future__ import annotations

from boleir.codegen.emit.tiles import Context
from boleir.codegen.schedule import block_depth


def alive(context: Context, b: int, a: int) -> bool:
    """Whether any node of block `b` can have an ancestor in block `a` (always, unless the tree is static)."""
    parents = context.shapes.parents
    if parents is None:
        return True
    size = context.schedule.node_block
    for node in range(b * size, min(len(parents), (b + 1) * size)):
        while node >= 0:
            if a * size <= node < (a + 1) * size:
                return True
            node = parents[node]
    return False


def sweeps_of_block(context: Context, b: int) -> int:
    """Sweeps after which the system of block `b` is solved: its nilpotency index less one."""
    plan, shapes, schedule = context.plan, context.shapes, context.schedule
    steps = max(1, plan.form.micro_steps)
    if schedule.solver == "levels":
        return shapes.max_depth
    if shapes.parents is None:
        return steps * (block_depth(schedule, shapes) + 1) - 1
    size = schedule.node_block
    depth: dict[int, int] = {}
    for node in range(b * size, min(len(shapes.parents), (b + 1) * size)):
        depth[node] = depth.get(shapes.parents[node], -1) + 1
    return steps * (max(depth.values(), default=0) + 1) - 1
