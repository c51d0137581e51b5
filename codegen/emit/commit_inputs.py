"""What a commit reads of the tokens on its path, and where convolved inputs wait for it.

Expressions of one step of the recurrence say it, for kernels that walk paths and for buffers alike:
with stored unknowns nothing is left of erase vectors, targets and gains.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from boleir.codegen.plan import Mixed, Plan
from boleir.codegen.schedule import Schedule
from boleir.ir import Expr, Input, walk


def step_expressions(plan: Plan, *, stored: bool = False) -> Iterator[Expr]:
    """The expressions of a step, but for the decay per head; `stored`: unknowns need not be read
    off the state."""
    yield from (x for x in (plan.key_decay, plan.value_decay) if x is not None)
    operands = [pair.write for pair in plan.writing] + [write.key for write in plan.writes]
    if not stored:
        operands += [pair.erase for pair in plan.writing]
        yield from (pair.target for pair in plan.writing)
        yield from (pair.gain for pair in plan.writing if pair.gain is not None)
        for pair in plan.writing:
            yield from (plan.scalar(x).expr for x in pair.coupling if x is not None)
    yield from (write.value for write in plan.writes)
    for operand in operands:
        yield operand.base
        yield from (plan.scalar(name).expr for name in operand.scalars)


def step_inputs(plan: Plan, *, stored: bool = False) -> tuple[tuple[Input, ...], tuple[Input, ...]]:
    """Token inputs and parameters that one step of the recurrence takes, outputs left out."""
    exprs = [*step_expressions(plan, stored=stored)]
    exprs += [] if plan.log_decay is None else [plan.log_decay]
    used = {node.key for expr in exprs for node in walk(expr)}
    return (
        tuple(item for item in plan.tokens if item.key in used),
        tuple(item for item in plan.parameters if item.key in used),
    )


def keep_for_commit(plan: Plan, schedule: Schedule) -> Plan:
    """The plan with memory of every layer's own for those convolved inputs that the schedule's
    commit reads; the others pass through memory that layers share."""
    tokens, _ = step_inputs(plan, stored=schedule.stores_unknowns)
    ends, mixed = {True: 0, False: 0}, list[Mixed]()
    for x in plan.mixed:
        kept = x.item in tokens
        mixed.append(replace(x, kept=kept, column=ends[kept]))
        ends[kept] += x.channels
    return replace(plan, mixed=tuple(mixed))
