"""How much the kernels of a staged schedule have to do; see `boleir.runtime.tuning.work`.

Walks take one step per level, each with a row of every vector that they gather; unknowns take one
step per node. Sums along channels are no matrix products, but cost operations all the same.
"""

from __future__ import annotations

from boleir.codegen.emit.staged import sources
from boleir.codegen.emit.walk import NODES
from boleir.codegen.plan import Plan
from boleir.codegen.request import Shapes
from boleir.codegen.resources import Footprint
from boleir.codegen.schedule import Schedule, blocks
from boleir.codegen.schedule_footprint import BYTES, footprint, unknown_tile
from boleir.runtime.tuning.work import PASSES, Work, floor_bytes

SCALAR = 16
"""Operations that an operation outside the tensor cores counts for."""
TURN = 0.5
"""A node's turn waits for the one before, by about this much of what a product waits."""


def staged_works(schedule: Schedule, plan: Plan, shapes: Shapes, batch: int) -> tuple[Work, ...]:
    """The kernels after prepare, in launch order."""
    values = _values(schedule, plan, shapes, batch)
    if not plan.pairs:
        return (values,)
    return (
        _factors(schedule, plan, shapes, batch),
        _unknowns(schedule, plan, shapes, batch),
        values,
    )


def _programs(shapes: Shapes, batch: int) -> int:
    """Walk programs of one part of each head."""
    return batch * shapes.value_heads * -(-shapes.max_nodes // NODES)


def _sides(plan: Plan, shapes: Shapes) -> tuple[int, int]:
    """Channels of the written side, and of the unknowns."""
    return shapes.width(plan.written), shapes.width(plan.unknown)


def _handed(plan: Plan, shapes: Shapes) -> float:
    """Bytes per request and head of G, of planes and of unknowns."""
    nodes, (written, unknown) = shapes.max_nodes, _sides(plan, shapes)
    gram = len(plan.pairs) * len(sources(plan)) * nodes * nodes
    planes = len(plan.pairs) * written + 2 * unknown * (plan.unknown_log_decay is not None)
    return 4.0 * (gram + nodes * (planes + len(plan.pairs) * unknown))


def _factors(schedule: Schedule, plan: Plan, shapes: Shapes, batch: int) -> Work:
    written, unknown = _sides(plan, shapes)
    steps = shapes.max_depth + 1
    rows = written * len(sources(plan)) + unknown * (plan.unknown_log_decay is not None)
    entries = NODES * written * len(plan.pairs) * len(sources(plan))
    live = NODES * (3 * written + 2 * unknown * (plan.unknown_log_decay is not None))
    return Work(
        "factors",
        _programs(shapes, batch),
        schedule.factor_warps,
        NODES,
        batch * shapes.value_heads * _handed(plan, shapes),
        steps * NODES * rows * BYTES[shapes.dtype],
        2.0 * SCALAR * steps * entries,
        steps,
        Footprint(0, live, schedule.factor_warps),
    )


def _unknowns(schedule: Schedule, plan: Plan, shapes: Shapes, batch: int) -> Work:
    written, unknown = _sides(plan, shapes)
    tile = unknown_tile(schedule, plan)
    count, nodes = blocks(schedule, shapes), schedule.node_block
    turns = nodes * count * (count + 1) // 2
    exponents = 8 if plan.unknown_log_decay is not None else 0
    per_turn = nodes * tile * (3 * len(plan.pairs) * len(sources(plan)) + exponents)
    products = 2.0 * count * nodes * tile * written * 2 * PASSES[schedule.precision]
    return Work(
        "unknowns",
        batch * shapes.value_heads * -(-unknown // tile),
        schedule.warps,
        nodes,
        batch * shapes.value_heads * (_handed(plan, shapes) + 4.0 * written * unknown),
        4.0 * (tile * written + turns * nodes * len(plan.pairs)),
        products + SCALAR * turns * per_turn,
        int(TURN * turns),
        footprint(schedule, plan, shapes),
        schedule.registers,
    )


def _values(schedule: Schedule, plan: Plan, shapes: Shapes, batch: int) -> Work:
    steps, found = shapes.max_depth + 1, len(sources(plan))
    row = found * (shapes.d_k + schedule.b_v) * 4.0
    tile = schedule.b_v * shapes.d_k
    outputs = len(plan.readouts)
    operations = 2.0 * outputs * NODES * tile * PASSES[schedule.precision]
    live = NODES * ((1 + outputs) * shapes.d_k + (2 + outputs) * schedule.b_v) + tile
    found *= outputs
    return Work(
        "values",
        _programs(shapes, batch) * -(-shapes.d_v // schedule.b_v),
        schedule.warps,
        NODES,
        floor_bytes(plan, shapes, batch),
        tile * BYTES[shapes.state_dtype] + steps * NODES * row,
        operations + 2.0 * SCALAR * steps * NODES * found * (shapes.d_k + schedule.b_v),
        steps + 2,
        Footprint(0, live, schedule.warps),
        schedule.registers,
    )
