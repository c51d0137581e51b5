"""The least traffic each stage can cause: bytes that must move, over the measured bandwidth."""

from __future__ import annotations

from benchmarks.serving_shapes import Kind, LayerShape, Row

ACTIVATION_BYTES = 2
STATE_BYTES = 4


def gate_elements(shape: LayerShape, kind: Kind) -> int:
    """Gate inputs a and b of one node."""
    return shape.value_heads * ((shape.d_k if kind == "kda" else 1) + 1)


def stage_bytes(shape: LayerShape, row: Row, kind: Kind) -> dict[str, int]:
    """Bytes per layer: each input read once, each result written once, nothing else.

    conv: packed projection and windows in, convolved channels out. verify: one state per request,
    convolved channels and gates in, outputs out. commit: one state per request in and out, and the
    channels and gates of the accepted path (at most `depth + 1` nodes).
    """
    nodes, states = row.total_nodes, row.batch * shape.state_elements * STATE_BYTES
    window = row.batch * shape.packed_dim * (shape.conv_width - 1)
    gates = gate_elements(shape, kind)
    path = row.batch * (row.depth + 1) * (shape.key_dim + shape.value_dim + gates)
    return {
        "conv": (2 * nodes * shape.packed_dim + window) * ACTIVATION_BYTES,
        "verify": states + nodes * (shape.packed_dim + gates + shape.value_dim) * ACTIVATION_BYTES,
        "commit": 2 * states + path * ACTIVATION_BYTES,
    }


def verify_operations(shape: LayerShape, row: Row) -> int:
    """Floating-point operations of the state products, Gram matrices and C U, without the solve."""
    t, group = row.nodes, shape.value_heads // shape.key_heads
    per_head = 4 * t * shape.d_k * shape.d_v + 2 * t * t * shape.d_v
    grams = 4 * t * t * shape.d_k
    return row.batch * shape.value_heads * (per_head + grams // group)


def floor_microseconds(
    shape: LayerShape, row: Row, kind: Kind, bandwidth: float
) -> dict[str, float]:
    """`stage_bytes` over `bandwidth` (bytes per second), in microseconds per layer."""
    needed = stage_bytes(shape, row, kind)
    return {stage: count / bandwidth * 1e6 for stage, count in needed.items()}
