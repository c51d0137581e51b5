"""What an output is summed from, in absolute value: the scale against which rounding is to be seen.

A sum whose terms nearly cancel is smaller than the rounding of its terms allows anybody to know it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from boleir.ir import Add, Call, Conv, Div, Expr, Neg, Previous, Recurrence, Sub, walk
from boleir.oracle.sequential import Step
from boleir.oracle.values import Array, Inputs, Values


def output_sizes(
    recurrence: Recurrence,
    inputs: Inputs,
    parents: Sequence[int],
    state: Array,
    states: Mapping[int, Array],
    *,
    weights: Inputs | None = None,
    windows: Inputs | None = None,
) -> Array:
    """Each node's output [T, HV, d_v] with its own token's sums taken over absolute values.

    `states` are the exact states of all nodes. They and the values of functions enter by their
    absolute values: one token is counted, for over whole paths such a bound says nothing."""
    heads, d_k, d_v = state.shape
    exact = Values(inputs, parents, (d_k, d_v), weights=weights, windows=windows)
    positive, leaves = _positive(recurrence)
    stored = {leaf: np.abs(exact(leaf)) for leaf in leaves}
    step = Step(positive, Values(inputs, parents, (d_k, d_v), stored=stored), heads)
    before = {-1: np.asarray(state, dtype=np.float64), **states}
    rows = [step(node, np.abs(before[parent]))[1] for node, parent in enumerate(parents)]
    return np.stack(rows) if rows else np.empty((0, heads, d_v))


def _positive(recurrence: Recurrence) -> tuple[Recurrence, list[Expr]]:
    """The recurrence with sums for its differences, and what enters it by absolute value alone:
    inputs, constants, functions, convolutions and divisors."""
    nodes = list(walk(recurrence.update, recurrence.output))
    divisors = {node.right for node in nodes if isinstance(node, Div)}
    made: dict[Expr, Expr] = {}
    leaves = []
    for node in nodes:
        parts = [made[child] for child in node.children]
        if isinstance(node, Previous):
            made[node] = node
        elif node in divisors or not parts or _opaque(node):
            made[node] = node
            leaves.append(node)
        elif isinstance(node, Neg):
            made[node] = parts[0]
        elif isinstance(node, Call):
            made[node] = Call(node.kind, node.fn, parts[0])
        else:
            made[node] = (Add if isinstance(node, Sub) else type(node))(node.kind, *parts)
    update, output = made[recurrence.update], made[recurrence.output]
    return Recurrence(recurrence.name, recurrence.inputs, update, output), leaves


def _opaque(node: Expr) -> bool:
    """Whether the value of `node` is no sum of products of its operands."""
    return isinstance(node, Conv) or (isinstance(node, Call) and node.fn != "sum")
