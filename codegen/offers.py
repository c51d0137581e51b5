"""Schedules that may beat the default on some GPU or shape: where a tuner looks, too."""

from __future__ import annotations

from dataclasses import replace

from boleir.codegen.defaults import FEW_REQUESTS, default_schedule, key_loop
from boleir.codegen.plan import Plan
from boleir.codegen.request import Shapes
from boleir.codegen.schedule import InvalidSchedule, Schedule
from boleir.codegen.schedule_limits import validate


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


def spread_walks(schedule: Schedule, plan: Plan, shapes: Shapes) -> Schedule | None:
    """The same with walks that several programs of the prepare kernel share, where they can."""
    spread = replace(schedule, path_sum="select", factor_stages=1, gates="prepare", walk_nodes=16)
    try:
        validate(spread, plan, shapes)
    except InvalidSchedule:
        return None
    return spread


def offered_schedules(plan: Plan, shapes: Shapes, batch: int = 1) -> list[Schedule]:
    """A loop over key chunks whose loads run ahead; several value heads in one factors program.
    Decays per key channel as differences of sums, where one block holds all nodes: their value
    tiles are those of decays per head; for few requests, walks that more programs share."""
    base = default_schedule(plan, shapes, batch)
    if plan.key_decay is None:
        ahead = key_loop(base, plan, shapes, 4) if base.orientation == "nodes" else None
        found = (ahead, head_groups(base, plan, shapes))
        return [schedule for schedule in found if schedule is not None]
    many = default_schedule(plan, shapes, FEW_REQUESTS + 1)
    sums = [many] if many.path_sum == "dot" and many != base else []
    shared = spread_walks(base, plan, shapes) if batch <= FEW_REQUESTS else None
    return sums if shared is None else [*sums, shared]
