"""Schedules that may beat the default and that no GPU has measured: where a tuner looks, too."""

from __future__ import annotations

from dataclasses import replace

from boleir.codegen.defaults import default_schedule, key_loop
from boleir.codegen.emit.key_vectors import readers, written_bases
from boleir.codegen.plan import Plan
from boleir.codegen.request import Shapes
from boleir.codegen.schedule import Schedule, padded

MOST_PRODUCTS = 2
"""Products of all nodes that a program of 64 nodes has registers for."""


def offered_schedules(plan: Plan, shapes: Shapes, batch: int = 1) -> list[Schedule]:
    """A loop over key chunks whose loads run ahead. Decays per key channel as differences of sums,
    where one block holds all nodes: their value tiles are those of decays per head."""
    base = default_schedule(plan, shapes, batch)
    if plan.key_decay is None:
        ahead = key_loop(base, plan, shapes, 4)
        return [ahead] if ahead else []
    if base.fusion != "split" or base.node_block < 64:
        return []
    if len(readers(plan)) * len(written_bases(plan)) > MOST_PRODUCTS:
        return []
    sums = replace(base, path_sum="dot", factor_warps=4)
    if base.b_v < 64:
        return [sums]
    return [replace(sums, orientation="nodes", b_k=min(64, padded(shapes.d_k)))]
