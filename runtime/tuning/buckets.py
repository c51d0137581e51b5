"""Few shapes stand for all: trees change from round to round, and each change must not mean another
kernel or another measurement.

A shape belongs to the smallest bucket that holds it. One that no bucket holds was never tuned.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from boleir.codegen.request import Shapes

NODES = (8, 16, 32, 64, 128, 256)
"""Most nodes of one request's tree."""
DEPTHS = (2, 4, 8, 16, 32, 64, 255)
"""Deepest node, in edges below the root."""
BATCHES = (1, 4, 16, 64)
"""Requests of one round."""


def bucket(size: int, sizes: Sequence[int]) -> int | None:
    """The smallest of `sizes` (ascending) that holds `size`; None if it is beyond the last."""
    return next((held for held in sizes if size <= held), None)


def bucketed(shapes: Shapes, batch: int) -> tuple[Shapes, int] | None:
    """The shapes and batch that are tuned for all of their bucket, or None outside the range.

    A static tree is a constant of its kernels and stays as it is.
    """
    requests = bucket(batch, BATCHES)
    if requests is None:
        return None
    if shapes.parents is not None:
        return shapes, requests
    nodes, depth = bucket(shapes.max_nodes, NODES), bucket(shapes.max_depth, DEPTHS)
    if nodes is None or depth is None:
        return None
    return replace(shapes, max_nodes=nodes, max_depth=min(depth, nodes - 1)), requests
