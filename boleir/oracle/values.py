"""Values of state-free expressions over all nodes of a tree at once.

Every value is an array of shape [T or 1, heads or 1, d or 1]: scalars have d = 1, parameters T = 1,
keys come with their own (smaller) number of heads and are repeated only where they meet a value
head (value head h uses key head h // (HV / H)).
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any, Protocol, TypeAlias

import numpy as np

from boleir.errors import CheckError
from boleir.functions import FUNCTIONS
from boleir.ir import (
    Add,
    Call,
    Conv,
    Dim,
    Div,
    Dot,
    Expr,
    Input,
    Kind,
    Mul,
    Neg,
    Number,
    Per,
    Sub,
    walk,
)

Array: TypeAlias = Any
"""A numpy array of float64, or of `Fraction` objects."""

Inputs: TypeAlias = Mapping[str, Array]
"""Input name -> array. Token inputs: HEAD [T, HV], KEY [T, H, d_k], VALUE [T, HV, d_v]; parameters
the same without T."""


class Field(Protocol):
    """The numbers that an oracle computes with."""

    def array(self, values: Array) -> Array:
        """`values` as an array of this field."""

    def number(self, value: Fraction) -> Any:
        """An exact constant."""

    def call(self, fn: str, argument: Array) -> Array:
        """A function of `boleir.functions`; vector functions run along the last axis, kept."""


class Floats:
    """Float64."""

    def array(self, values: Array) -> Array:
        return np.asarray(values, dtype=np.float64)

    def number(self, value: Fraction) -> float:
        return float(value)

    def call(self, fn: str, argument: Array) -> Array:
        with np.errstate(over="ignore", divide="ignore", invalid="ignore", under="ignore"):
            result = FUNCTIONS[fn].numpy(argument)
        return result[..., None] if fn == "sum" else result


class Singles(Floats):
    """Float32: shows how far a recurrence itself can be trusted in that format."""

    def array(self, values: Array) -> Array:
        return np.asarray(values, dtype=np.float32)

    def number(self, value: Fraction) -> Any:
        return np.float32(float(value))


class Exact:
    """Rational numbers; a transcendental function is a random table over its exact arguments.

    Equal arguments give equal values and nothing else is known about the function, as for a fresh
    symbol: an identity that holds for random tables holds for every function. Only exp(-x) is
    1 / exp(x).
    """

    def __init__(self, seed: int = 0) -> None:
        self._seed = seed
        self._table: dict[tuple[str, tuple[Fraction, ...]], list[Fraction]] = {}

    def array(self, values: Array) -> Array:
        given = np.asarray(values)
        result = np.empty(given.shape, dtype=object)
        for place, value in np.ndenumerate(given):
            # numpy's whole numbers would survive inside a Fraction, and overflow there.
            result[place] = Fraction(value.item() if isinstance(value, np.generic) else value)
        return result

    def number(self, value: Fraction) -> Fraction:
        return value

    def call(self, fn: str, argument: Array) -> Array:
        if fn == "sum":
            return argument.sum(axis=-1, keepdims=True)
        if fn == "square":
            return argument * argument
        if fn == "reciprocal":
            return 1 / argument
        if fn == "rsqrt":
            return 1 / self.call("sqrt", argument)
        result = np.empty(argument.shape, dtype=object)
        if FUNCTIONS[fn].elementwise:
            for place, value in np.ndenumerate(argument):
                result[place] = self._look_up(fn, (value,))[0]
        else:
            for place in np.ndindex(argument.shape[:-1]):
                result[place] = self._look_up(fn, tuple(argument[place]))
        return result

    def _look_up(self, fn: str, argument: tuple[Fraction, ...]) -> list[Fraction]:
        if fn == "exp" and argument[0] == 0:
            return [Fraction(1)]
        if fn == "exp" and argument[0] < 0:  # the one law of exp that the derivation uses
            return [1 / self._look_up(fn, (-argument[0],))[0]]
        entry = (fn, argument)
        if entry not in self._table:
            draw = random.Random(f"{self._seed}:{fn}:{argument}")
            self._table[entry] = [
                Fraction(draw.choice((-3, -2, -1, 1, 2, 3, 4)), draw.choice((1, 2, 3)))
                for _ in argument
            ]
        return self._table[entry]


class Values:
    """State-free expressions of one request: inputs of T nodes on a tree, remembered by structure.

    `weights[name]` [channels, width] belong to the convolution of input `name` (channels = heads x
    d, the last tap is the token itself) and `windows[name]` [channels, width - 1] are the committed
    inputs before the tree, the most recent last. `stored` gives values of whole expressions, [T,
    heads, d]: what an implementation keeps in few digits is taken from there, not computed.
    """

    def __init__(
        self,
        inputs: Inputs,
        parents: Sequence[int],
        dims: tuple[int, int],
        *,
        weights: Inputs | None = None,
        windows: Inputs | None = None,
        field: Field | None = None,
        stored: Mapping[Expr, Array] | None = None,
    ) -> None:
        self.inputs = inputs
        self.parents = [int(p) for p in parents]
        self.d_k, self.d_v = dims
        self.weights = weights or {}
        self.windows = windows or {}
        self.field = field or Floats()
        self._known = {x.key: self.field.array(value) for x, value in (stored or {}).items()}

    def __call__(self, expr: Expr) -> Array:
        """The value of `expr`, [T or 1, heads or 1, d or 1]."""
        if expr.key not in self._known:
            for node in walk(expr):
                if node.key not in self._known:
                    parts = [self._known[child.key] for child in node.children]
                    self._known[node.key] = self._value(node, parts)
        return self._known[expr.key]

    def full(self, expr: Expr, kind: Kind, heads: int) -> Array:
        """The value broadcast to [T, heads, d], d = 1 for a HEAD scalar."""
        width = {Kind.HEAD: 1, Kind.KEY: self.d_k, Kind.VALUE: self.d_v}[kind]
        value = repeat_heads(self(expr), heads)
        return np.broadcast_to(value, (len(self.parents), heads, width))

    def _value(self, node: Expr, parts: list[Array]) -> Array:
        match node:
            case Input():
                return self._input(node)
            case Number():
                return self._constant(self.field.number(node.value))
            case Dim():
                size = self.d_k if node.name == "d_k" else self.d_v
                return self._constant(self.field.number(Fraction(size)))
            case Conv():
                return self._conv(node, parts[0])
            case _:
                return self.apply(node, parts)

    def apply(self, node: Expr, parts: list[Array]) -> Array:
        """Value of an operation from the values of its operands."""
        if isinstance(node, Call):
            return self.field.call(node.fn, self._widened(parts[0], node.arg.kind))
        return combine(node, parts, self._widened)

    def _widened(self, value: Array, kind: Kind) -> Array:
        """A constant vector has d = 1 until a sum over its entries needs them all."""
        width = {Kind.KEY: self.d_k, Kind.VALUE: self.d_v}.get(kind, 1)
        return np.broadcast_to(value, (*value.shape[:2], width)) if value.shape[2] == 1 else value

    def _constant(self, value: Any) -> Array:
        return self.field.array([[[value]]])

    def _input(self, node: Input) -> Array:
        if node.name not in self.inputs:
            raise CheckError(f"no array for input '{node.name}'")
        given = self.field.array(self.inputs[node.name])
        if node.per is Per.HEAD:
            given = given[None]
        if node.kind is Kind.HEAD:
            given = given[..., None]
        if given.ndim != 3:
            raise CheckError(f"input '{node.name}' has the wrong number of axes: {given.shape}")
        return given

    def _conv(self, node: Conv, values: Array) -> Array:
        name = node.arg.name if isinstance(node.arg, Input) else ""
        if name not in self.weights or name not in self.windows:
            raise CheckError(f"no convolution weights and window for input '{name}'")
        taps = self.field.array(self.weights[name])
        window = self.field.array(self.windows[name])
        flat = values.reshape(values.shape[0], -1)
        result = np.empty_like(flat)
        for i in range(len(self.parents)):
            row = flat[i] * taps[:, -1]
            ancestor, beyond = i, 0  # beyond: committed tokens already passed
            for back in range(1, node.width):
                ancestor = self.parents[ancestor] if ancestor >= 0 else -1
                if ancestor < 0:
                    beyond += 1
                entry = flat[ancestor] if ancestor >= 0 else window[:, -beyond]
                row = row + entry * taps[:, -1 - back]
            result[i] = row
        return result.reshape(values.shape)


def combine(node: Expr, parts: list[Array], widened: Any) -> Array:
    """Value of an elementwise operation or a dot from the values of its operands."""
    match node:
        case Neg():
            return -parts[0]
        case Dot():
            kind = node.children[0].kind
            left, right = aligned(*(widened(part, kind) for part in parts))
            return (left * right).sum(axis=-1, keepdims=True)
    return arithmetic(node, *aligned(*parts))


def arithmetic(node: Expr, left: Array, right: Array) -> Array:
    """A sum, difference, product or quotient, entry by entry."""
    match node:
        case Add():
            return left + right
        case Sub():
            return left - right
        case Mul():
            return left * right
        case Div():
            with np.errstate(divide="ignore", invalid="ignore"):
                return left / right
    raise TypeError(f"no value for {type(node).__name__}")


def aligned(left: Array, right: Array) -> tuple[Array, Array]:
    """Both with the same number of heads (or one)."""
    heads = max(left.shape[1], right.shape[1])
    return repeat_heads(left, heads), repeat_heads(right, heads)


def repeat_heads(value: Array, heads: int) -> Array:
    """Each key head once for every value head of its group; one head broadcasts by itself."""
    own = value.shape[1]
    if own in (1, heads):
        return value
    if heads % own:
        raise CheckError(f"{heads} value heads are no multiple of {own} key heads")
    return np.repeat(value, heads // own, axis=1)


def evaluate(
    expr: Expr,
    inputs: Inputs,
    *,
    parents: Sequence[int] | None = None,
    dims: tuple[int, int] | None = None,
    weights: Inputs | None = None,
    windows: Inputs | None = None,
    field: Field | None = None,
) -> Array:
    """Value of one state-free expression, [T or 1, heads, d] (without the last axis for a scalar).

    `dims` = (d_k, d_v) is needed where the expression names them; without `parents` the tokens are
    roots of their own.
    """
    if parents is None:
        lengths = [
            len(inputs[x.name]) for x in walk(expr) if isinstance(x, Input) and x.per is Per.TOKEN
        ]
        parents = [-1] * max(lengths, default=1)
    if dims is None:
        dims = _dims_of(expr, inputs)
    value = Values(inputs, parents, dims, weights=weights, windows=windows, field=field)(expr)
    return value[..., 0] if expr.kind is Kind.HEAD else value


def _dims_of(expr: Expr, inputs: Inputs) -> tuple[int, int]:
    """(d_k, d_v) from the inputs that occur; 1 where none does."""
    found = {Kind.KEY: 1, Kind.VALUE: 1}
    for node in walk(expr):
        if isinstance(node, Input) and node.kind in found:
            found[node.kind] = np.asarray(inputs[node.name]).shape[-1]
    return found[Kind.KEY], found[Kind.VALUE]
