"""What one program of a schedule needs at least, before anything is compiled."""

from __future__ import annotations

from boleir.codegen.plan import Plan
from boleir.codegen.request import Shapes
from boleir.codegen.resources import Footprint
from boleir.codegen.schedule import Schedule, blocks, loops_keys, padded

BYTES = {"bfloat16": 2, "float16": 2, "float32": 4}
STAGED_BYTES = {"fp32": 4, "tf32": 4, "bf16": 2, "ieee": 4}
"""Shared memory per element of an operand of a product: two bf16 pieces, or one fp32 or bf16
value."""


def footprint(schedule: Schedule, plan: Plan, shapes: Shapes) -> Footprint:
    """Least needs of one program of the verify kernel (shared memory in bytes, live 32-bit values).

    The compiler reuses shared memory between products, so what counts is the largest operand staged
    for one of them; this agrees with what compiled variants report.
    """
    nodes = schedule.node_block
    if schedule.fusion == "staged":
        return _staged_footprint(schedule, plan, shapes)
    operand = max(max(nodes, schedule.b_v) * schedule.b_k, nodes * nodes)
    kept = blocks(schedule, shapes) * max(1, len(plan.pairs)) + len(plan.readouts) - 1
    unknowns = kept * schedule.b_v * nodes
    shared = operand * STAGED_BYTES[schedule.precision]
    return Footprint(
        shared=max(shared, _ahead(schedule, plan, shapes)),
        live=schedule.b_v * schedule.b_k + unknowns + nodes * nodes,
        warps=schedule.warps,
    )


def _ahead(schedule: Schedule, plan: Plan, shapes: Shapes) -> int:
    """Shared memory in bytes that a loop over key chunks has its loads in: `stages` chunks of the
    vectors, which products read there, one less of the state, and its pieces."""
    if not loops_keys(schedule, shapes):
        return 0
    vectors = {reader.base.key for reader in plan.reading}
    keys = len(vectors) * schedule.node_block * BYTES[shapes.dtype]
    state = schedule.b_v * ((schedule.stages - 1) * BYTES[shapes.state_dtype])
    pieces = schedule.b_v * STAGED_BYTES[schedule.precision]
    return schedule.b_k * (schedule.stages * keys + state + pieces)


def unknown_tile(schedule: Schedule, plan: Plan) -> int:
    """Channels of the unknowns in one tile."""
    return schedule.b_k if plan.right else schedule.b_v


def _staged_footprint(schedule: Schedule, plan: Plan, shapes: Shapes) -> Footprint:
    """Least needs of one program of the unknowns kernel, or of the value kernel where those are
    more."""
    channels = unknown_tile(schedule, plan)
    nodes, walking = schedule.node_block, min(32, padded(shapes.max_nodes))
    chunk = shapes.d_k if plan.key_decay is not None else min(32, shapes.d_k)
    kept = len(plan.pairs) + sum(pair.gain is not None for pair in plan.pairs)
    kept += 2 if plan.unknown_log_decay is not None else 0
    unknowns = nodes * channels * kept + 32 * (nodes + channels) if plan.pairs else 0
    outputs = len(plan.readouts)
    held = (1 + outputs) * padded(shapes.d_k) + (2 + outputs) * schedule.b_v
    values = walking * held + schedule.b_v * chunk
    operand = max(32 * max(nodes, channels), max(walking, schedule.b_v) * chunk)
    return Footprint(
        shared=operand * STAGED_BYTES[schedule.precision],
        live=max(unknowns, values),
        warps=schedule.warps,
    )
