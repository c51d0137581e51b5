"""Schedules that may beat the default and that no GPU has measured: where a tuner looks, too."""

from __future__ import annotations

from dataclasses import replace

from boleir.codegen.defaults import default_schedule, key_loop
from boleir.codegen.emit.key_vectors import readers, written_bases
from boleir.codegen.plan import Plan
from boleir.codegen.request import Shapes
from boleir.codegen.schedule import InvalidSchedule, Schedule, padded, validate

MOST_PRODUCTS = 2
"""Products of all nodes that a program of 64 nodes has registers for."""


def head_groups(schedule: Schedule, plan: Plan, shapes: Shapes) -> Schedule | None:
    """The same with as few value heads as possible to a factors program, but several, where there
    are such programs."""
    heads = (n for n in range(2, shapes.group + 1) if shapes.group % n == 0)
    grouped = replace(schedule, factor_heads=next(heads, 1))
    try:
        validate(grouped, plan, shapes)
    except InvalidSchedule:
        return None
    return grouped if grouped != schedule else None


def offered_schedules(plan: Plan, shapes: Shapes, batch: int = 1) -> list[Schedule]:
    """A loop over key chunks whose loads run ahead; several value heads in one factors program.
    Decays per key channel as differences of sums, where one block holds all nodes: their value
    tiles are those of decays per head."""
    base = default_schedule(plan, shapes, batch)
    if plan.key_decay is None:
        found = (key_loop(base, plan, shapes, 4), head_groups(base, plan, shapes))
        return [schedule for schedule in found if schedule is not None]
    if base.fusion != "split" or base.node_block < 64:
        return []
    if len(readers(plan)) * len(written_bases(plan)) > MOST_PRODUCTS:
        return []
    sums = replace(base, path_sum="dot", factor_warps=4)
    if base.b_v < 64:
        return [sums]
    return [replace(sums, orientation="nodes", b_k=min(64, padded(shapes.d_k)))]
