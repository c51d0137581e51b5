"""Small rewrites of IR expressions that several compiler stages share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, replace
from fractions import Fraction
from typing import Any

from boleir.errors import Span
from boleir.functions import L2_EPSILON
from boleir.ir import Add, Call, Dim, Div, Dot, Expr, Input, Kind, Mul, Neg, Number, Sub, walk


def rebuild(root: Expr, change: Callable[[Expr], Expr | None]) -> Expr:
    """`root` with every node for which `change` gives an expression replaced by it, top first.

    Nodes below a replaced one are not visited. Unchanged parts stay the same objects.
    """
    done: dict[int, Expr] = {}

    def visit(node: Expr) -> Expr:
        found = done.get(node.key)
        if found is None:
            found = change(node) or _with_children(node, visit)
            done[node.key] = found
        return found

    return visit(root)


def _with_children(node: Expr, visit: Callable[[Expr], Expr]) -> Expr:
    changed: dict[str, Any] = {}
    for field in fields(node):
        child = getattr(node, field.name)
        if isinstance(child, Expr):
            new = visit(child)
            if new is not child:
                changed[field.name] = new
    return replace(node, **changed) if changed else node


def head_factors(vector: Expr) -> list[Expr]:
    """HEAD factors that a vector expression multiplies by or adds."""
    return [
        factor
        for node in walk(vector)
        if node.kind is not Kind.HEAD
        for child in node.children
        if child.kind is Kind.HEAD
        for factor in split_factors(child)
    ]


def is_number(expr: Expr, value: int) -> bool:
    """Whether `expr` is the constant `value`."""
    return isinstance(expr, Number) and expr.value == value


def is_constant(expr: Expr) -> bool:
    """Whether `expr` is known when compiling (numbers and dimensions only)."""
    return all(isinstance(node, Number | Dim) or node.children for node in walk(expr))


def constant_value(expr: Expr, dims: dict[str, int]) -> float:
    """Value of a constant expression; `dims` gives `d_k` and `d_v`."""
    match expr:
        case Number(value=value):
            return float(value)
        case Dim(name=name):
            return float(dims[name])
        case Neg(arg=arg):
            return -constant_value(arg, dims)
        case Call(fn=fn, arg=arg):
            from boleir.functions import FUNCTIONS

            return float(FUNCTIONS[fn].numpy(constant_value(arg, dims)))
        case Add(left=left, right=right):
            return constant_value(left, dims) + constant_value(right, dims)
        case Sub(left=left, right=right):
            return constant_value(left, dims) - constant_value(right, dims)
        case Mul(left=left, right=right):
            return constant_value(left, dims) * constant_value(right, dims)
        case Div(left=left, right=right):
            return constant_value(left, dims) / constant_value(right, dims)
    raise TypeError(f"not a constant: {type(expr).__name__}")


def vanishes(expr: Expr) -> bool:
    """Whether a vector is zero in every channel where all vectors it is computed from are: then
    channels beyond the last, which are loaded as zero, add nothing to a sum."""
    match expr:
        case Input(kind=kind):
            return kind is not Kind.HEAD
        case Mul(left=left, right=right):
            return vanishes(left) or vanishes(right)
        case Add(left=left, right=right) | Sub(left=left, right=right):
            return vanishes(left) and vanishes(right)
        case Neg(arg=arg) | Div(left=arg):
            return vanishes(arg)
        case Call(fn=fn, arg=arg) if arg.kind is expr.kind:
            return vanishes(arg) and zero_stays(fn)
        case Number(value=value):
            return value == 0
    return False


def zero_stays(fn: str) -> bool:
    """Whether an elementwise function is zero at zero."""
    from boleir.functions import FUNCTIONS

    function = FUNCTIONS[fn]
    return function.elementwise and float(function.numpy(0.0)) == 0.0


def sign(expr: Expr) -> int:
    """1 where an expression is nowhere below zero for finite inputs, -1 where nowhere above it, 0
    where neither is known."""
    from boleir.functions import FUNCTIONS

    match expr:
        case Number(value=value):
            return 1 if value >= 0 else -1
        case Neg(arg=arg):
            return -sign(arg)
        case Mul(left=left, right=right) | Div(left=left, right=right):
            return sign(left) * sign(right)
        case Add(left=left, right=right) if sign(left) == sign(right):
            return sign(left)
        case Sub(left=left, right=right) if sign(left) == -sign(right):
            return sign(left)
        case Call(fn=fn):
            function = FUNCTIONS[fn]
            return 1 if function.low >= 0 else -1 if function.high <= 0 else 0
    return 0


def inverse_norm(vector: Expr, span: Span | None = None) -> Expr:
    """The scalar by which `l2norm` at `span` multiplies `vector`: rsqrt(vector^T vector + eps)."""
    name = vector.hint or getattr(vector, "name", None)
    square = Dot(Kind.HEAD, vector, vector)
    padded = Add(Kind.HEAD, square, Number(Kind.HEAD, Fraction(str(L2_EPSILON))))
    return Call(Kind.HEAD, "rsqrt", padded, hint=f"norm_{name}" if name else None, span=span)


def expand_norms(root: Expr) -> Expr:
    """`root` with every l2norm(x) written as a scalar times x, so that x itself can enter products
    exactly."""

    def change(node: Expr) -> Expr | None:
        if isinstance(node, Call) and node.fn == "l2norm":
            vector = expand_norms(node.arg)
            return Mul(node.kind, inverse_norm(vector, node.span), vector, hint=node.hint)
        return None

    return rebuild(root, change)


def split_scale(expr: Expr) -> tuple[list[Expr], Expr]:
    """`expr` (a vector) as HEAD factors times a vector: the factors (divisors as reciprocals), the
    rest."""
    match expr:
        case Neg(arg=arg):
            factors, base = split_scale(arg)
            return [Number(Kind.HEAD, Fraction(-1)), *factors], base
        case Mul(left=left, right=right) if left.kind is Kind.HEAD and right.kind is not Kind.HEAD:
            factors, base = split_scale(right)
            return [*split_factors(left), *factors], base
        case Mul(left=left, right=right) if right.kind is Kind.HEAD and left.kind is not Kind.HEAD:
            factors, base = split_scale(left)
            return [*split_factors(right), *factors], base
        case Div(left=left, right=right) if right.kind is Kind.HEAD and left.kind is not Kind.HEAD:
            factors, base = split_scale(left)
            return [*(reciprocal(f) for f in split_factors(right)), *factors], base
    return [], expr


def split_factors(expr: Expr) -> list[Expr]:
    """A HEAD expression as a list of factors."""
    match expr:
        case Mul(left=left, right=right):
            return split_factors(left) + split_factors(right)
        case Div(left=left, right=right):
            return split_factors(left) + [reciprocal(f) for f in split_factors(right)]
        case Neg(arg=arg):
            return [Number(Kind.HEAD, Fraction(-1)), *split_factors(arg)]
    return [expr]


def reciprocal(expr: Expr) -> Expr:
    """1 / expr for a HEAD expression."""
    if isinstance(expr, Number):
        return Number(Kind.HEAD, 1 / expr.value)
    return Call(Kind.HEAD, "reciprocal", expr, hint=f"inverse_{expr.hint}" if expr.hint else None)
