"""In how many digits nodes see each other.

What a path has written and erased again cancels in its later outputs, the more the longer it is and
the more a node erases. Where one value tile solves for all unknowns, or one node block passes its
right sides on to the next, two bfloat16 pieces of such terms leave too few digits; three keep all.
One inverse folded into one readout has cancelled before it is rounded, and needs no more than two;
that of several pairs is multiplied by what they do to each other.

Written values of the layer alone lie on one line: a whole path of them cancels as a sum of numbers
does, where different vectors of tokens would not. All digits of these numbers are kept, too.
"""

from __future__ import annotations

from boleir.codegen.plan import Operand, PairPlan, Plan
from boleir.codegen.request import Shapes
from boleir.codegen.schedule import Schedule, blocks
from boleir.functions import FUNCTIONS
from boleir.ir import Add, Call, Dot, Expr, Input, Kind, Number, Per, walk

MILD = 8
"""Longest path, in edges, along which two pieces will do where nodes erase no more than there
is."""
STRONG = 3
"""The same where they may erase up to twice as much."""


def keeps_digits(plan: Plan, shapes: Shapes, schedule: Schedule) -> bool:
    """Whether tiles of pairs of nodes, and what they multiply, enter products in three pieces."""
    if schedule.precision != "fp32" or schedule.fusion == "staged":
        return False
    if not plan.pairs:
        return any(_is_of_layer(x.value) for x in plan.writes)
    if schedule.folds and blocks(schedule, shapes) == 1:
        return len(plan.pairs) > 1 and shapes.max_depth > MILD
    mild = len(plan.writing) == 1 and is_mild(plan, plan.writing[0])
    return shapes.max_depth > (MILD if mild else STRONG)


def is_mild(plan: Plan, pair: PairPlan) -> bool:
    """Whether a node erases at most what stands along a vector of length one, which it is known to
    write along."""
    norm = _norm(plan, pair.write)
    erase, write = pair.erase, pair.write
    if norm is None or pair.gain is not None or erase.base != write.base:
        return False
    rest = list(erase.scalars)
    if norm not in rest or write.scalars != (norm,):
        return False
    rest.remove(norm)
    bounded = all(_is_share(plan.scalar(name).expr) for name in rest)
    return bounded and abs(erase.constant * write.constant) <= 1.0


def _is_of_layer(value: Expr) -> bool:
    """Whether no vector of a token is in a written value, which tokens may scale all the same."""
    inputs = [x for x in walk(value) if isinstance(x, Input) and x.kind is Kind.VALUE]
    return all(x.per is not Per.TOKEN for x in inputs)


def _norm(plan: Plan, operand: Operand) -> str | None:
    """The row scalar that makes an operand one of length one."""
    for name in operand.scalars:
        match plan.scalar(name).expr:
            case Call(fn="rsqrt", arg=Add(left=Dot(left=left, right=right), right=Number())):
                if left == right == operand.base:
                    return name
    return None


def _is_share(expr: Expr) -> bool:
    """Whether a scalar lies between 0 and 1 whatever the inputs are."""
    if not isinstance(expr, Call):
        return False
    function = FUNCTIONS[expr.fn]
    return function.low >= 0.0 and function.high <= 1.0
