"""The walk of a tree, straight from the recurrence: the oracle that everything else must agree
with.

It evaluates `update` and `output` of each node on the state of its parent and uses nothing of the
derivation.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from boleir.ir import (
    Expr,
    Kind,
    Neg,
    Outer,
    Previous,
    Read,
    ReadKey,
    Recurrence,
    walk,
)
from boleir.oracle.values import Array, Field, Floats, Inputs, Values, arithmetic, repeat_heads


@dataclass(frozen=True, slots=True)
class Walk:
    """Outputs [T, HV, d_v] and the states asked for, node -> [HV, d_k, d_v]."""

    output: Array
    states: dict[int, Array]


def sequential(
    recurrence: Recurrence,
    inputs: Inputs,
    parents: Sequence[int],
    state: Array,
    *,
    weights: Inputs | None = None,
    windows: Inputs | None = None,
    field: Field | None = None,
    keep: Collection[int] | None = None,
    stored: Mapping[Expr, Array] | None = None,
) -> Walk:
    """Every node's output, and the states of the nodes in `keep` (None: of all).

    `state` [HV, d_k, d_v] is that of the roots' parent; `parents` has -1 for roots and parents
    before children. Other states are dropped as soon as no child needs them. `stored`: values of
    expressions that are given instead of computed, see `Values`.
    """
    field = field or Floats()
    start = field.array(state)
    heads, d_k, d_v = start.shape
    values = Values(
        inputs, parents, (d_k, d_v), weights=weights, windows=windows, field=field, stored=stored
    )
    step = Step(recurrence, values, heads)
    last_use = {int(parent): node for node, parent in enumerate(parents)}
    states: dict[int, Array] = {-1: start}
    output = np.empty((len(parents), heads, d_v), dtype=start.dtype)
    kept: dict[int, Array] = {}
    for node, parent in enumerate(int(p) for p in parents):
        new, output[node] = step(node, states[parent])
        if keep is None or node in keep:
            kept[node] = new
        if node in last_use:
            states[node] = new
        if last_use[parent] == node:
            del states[parent]
    return Walk(output, kept)


class Step:
    """One token: the nodes of the recurrence that contain the state, operands first."""

    def __init__(self, recurrence: Recurrence, values: Values, heads: int) -> None:
        self.recurrence = recurrence
        self.values = values
        self.heads = heads
        self.order: list[Expr] = []
        inner: set[int] = set()
        for node in walk(recurrence.update, recurrence.output):
            if node.kind is Kind.STATE or any(child.key in inner for child in node.children):
                inner.add(node.key)
                self.order.append(node)
        self.inner = inner

    def __call__(self, node: int, state: Array) -> tuple[Array, Array]:
        """(new state, output) of `node` on its parent's state. Vectors are [1, heads, d] here."""
        known: dict[int, Array] = {}

        def operand(expr: Expr) -> Array:
            if expr.key in self.inner:
                return known[expr.key]
            value = self.values(expr)
            return value[node : node + 1] if value.shape[0] > 1 else value

        for expr in self.order:
            if isinstance(expr, Previous):
                known[expr.key] = state
            else:
                known[expr.key] = self._value(expr, [operand(child) for child in expr.children])
        update = np.broadcast_to(operand(self.recurrence.update), state.shape)
        out = np.broadcast_to(
            repeat_heads(operand(self.recurrence.output), self.heads),
            (1, self.heads, state.shape[2]),
        )
        return update, out[0]

    def _value(self, expr: Expr, parts: list[Array]) -> Array:
        """One node; states are [heads, d_k, d_v]."""
        kinds = [child.kind for child in expr.children]
        match expr:
            case Outer():
                key, value = (repeat_heads(x, self.heads)[0] for x in parts)
                return key[:, :, None] * value[:, None, :]
            case Read():
                key = self._vector(parts[1], Kind.KEY)
                return (key[:, None, :] @ parts[0])[None, :, 0, :]
            case ReadKey():
                value = self._vector(parts[1], Kind.VALUE)
                return (parts[0] @ value[:, :, None])[None, :, :, 0]
        if expr.kind is not Kind.STATE:
            return self.values.apply(expr, parts)
        if isinstance(expr, Neg):
            return -parts[0]
        left, right = (
            part if kind is Kind.STATE else self._diagonal(part, kind)
            for part, kind in zip(parts, kinds, strict=True)
        )
        return arithmetic(expr, left, right)

    def _vector(self, value: Array, kind: Kind) -> Array:
        width = self.values.d_k if kind is Kind.KEY else self.values.d_v
        return np.broadcast_to(repeat_heads(value, self.heads)[0], (self.heads, width))

    def _diagonal(self, value: Array, kind: Kind) -> Array:
        """A factor of a state, shaped to broadcast over [heads, d_k, d_v]."""
        flat = repeat_heads(value, self.heads)[0]
        return flat[:, :, None] if kind is Kind.KEY else flat[:, None, :]
