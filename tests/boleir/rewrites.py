"""Mechanical rewrites of a recurrence: other spellings of the same thing, rule by rule.

Each rule takes a node whose operands have been rewritten already and gives an equal expression of
another structure, or the node itself. `rewritten` applies one everywhere.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction

from boleir.derive.canonical import rebuilt
from boleir.ir import (
    Add,
    Call,
    Div,
    Dot,
    Expr,
    Input,
    Kind,
    Mul,
    Neg,
    Number,
    Outer,
    Read,
    ReadKey,
    Recurrence,
    Sub,
    number,
    walk,
)

Rule = Callable[[Expr], Expr]


def rewritten(recurrence: Recurrence, rule: Rule) -> Recurrence:
    """`recurrence` with `rule` applied to every node, operands first; names and places dropped."""
    known: dict[int, Expr] = {}
    for node in walk(recurrence.update, recurrence.output):
        bare = replace(rebuilt(node, known), span=None, hint=None)
        known[node.key] = rule(bare)
    update, output = known[recurrence.update.key], known[recurrence.output.key]
    return replace(recurrence, update=update, output=output, source=None)


def twice_negated(node: Expr) -> Expr:
    """-(-x)."""
    return Neg(node.kind, Neg(node.kind, node)) if node.children else node


def times_one(node: Expr) -> Expr:
    """1 * (x * 1)."""
    one = number(1)
    return Mul(node.kind, one, Mul(node.kind, node, one)) if node.children else node


def halves(node: Expr) -> Expr:
    """x / 2 + x / 2."""
    if not node.children or node.kind is Kind.HEAD:
        return node
    half = Div(node.kind, node, number(2))
    return Add(node.kind, half, half)


def swapped(node: Expr) -> Expr:
    """y + x, y * x, y^T x."""
    match node:
        case Add() | Mul() | Dot():
            return replace(node, left=node.right, right=node.left)
    return node


def differences_as_sums(node: Expr) -> Expr:
    """x + -y for x - y."""
    if not isinstance(node, Sub):
        return node
    return Add(node.kind, node.left, Neg(node.right.kind, node.right))


def negated_differences(node: Expr) -> Expr:
    """-(y - x) for x - y."""
    if not isinstance(node, Sub):
        return node
    return Neg(node.kind, Sub(node.kind, node.right, node.left))


def quotients(node: Expr) -> Expr:
    """x / (1 / y) for x * y with a scalar y, x * (1 / y) for x / y, x / exp(-y) for x * exp(y)."""
    match node:
        case Mul() if isinstance(node.left, Call) and node.left.fn == "exp":
            below = replace(node.left, arg=Neg(node.left.arg.kind, node.left.arg))
            if node.right.kind is Kind.STATE and below.kind is not Kind.HEAD:
                return Mul(node.kind, Call(below.kind, "reciprocal", below), node.right)
            if node.right.kind is below.kind or below.kind is Kind.HEAD:
                return Div(node.kind, node.right, below)
        case Div():
            return Mul(node.kind, node.left, Call(node.right.kind, "reciprocal", node.right))
    return node


def distributed(node: Expr) -> Expr:
    """x * y + x * z for x * (y + z), for every product that is linear in its operands."""
    for name in ("left", "right", "state", "vector", "arg"):
        operand = getattr(node, name, None)
        if not isinstance(operand, Add | Sub):
            continue
        if not isinstance(node, Mul | Dot | Outer | Read | ReadKey | Neg) or (
            operand.left.kind is not operand.right.kind
        ):
            continue
        parts = [replace(node, **{name: part}) for part in operand.children]
        return type(operand)(node.kind, *(distributed(part) for part in parts))
    above = node.left if isinstance(node, Div) else None
    if isinstance(above, Add | Sub) and above.left.kind is above.right.kind:
        return type(above)(node.kind, *(replace(node, left=part) for part in above.children))
    return node


def expanded_reads(node: Expr) -> Expr:
    """A read of a sum, of a scaled state or of a written term, spelled out term by term."""
    if not isinstance(node, Read):
        return node
    state, vector = node.state, node.vector
    match state:
        case Add() | Sub():
            parts = [expanded_reads(replace(node, state=part)) for part in state.children]
            return type(state)(node.kind, *parts)
        case Neg():
            return Neg(node.kind, expanded_reads(replace(node, state=state.arg)))
        case Mul() if state.left.kind is Kind.STATE or state.right.kind is Kind.STATE:
            factor, inner = state.children
            if factor.kind is Kind.STATE:
                factor, inner = inner, factor
            if factor.kind is Kind.KEY:
                scaled = Mul(Kind.KEY, factor, vector)
                return expanded_reads(replace(node, state=inner, vector=scaled))
            return Mul(node.kind, factor, expanded_reads(replace(node, state=inner)))
        case Outer():
            return Mul(node.kind, Dot(Kind.HEAD, state.left, vector), state.right)
    return node


def gathered_writes(node: Expr) -> Expr:
    """(c * k) u^T and k (c * u)^T for one another: a scalar moves to the other factor."""
    if not isinstance(node, Outer):
        return node
    right = node.right
    if isinstance(right, Mul) and right.left.kind is Kind.HEAD:
        return replace(node, left=Mul(node.left.kind, right.left, node.left), right=right.right)
    left = node.left
    if isinstance(left, Mul) and left.left.kind is Kind.HEAD:
        return replace(node, left=left.right, right=Mul(right.kind, left.left, right))
    return node


def grouped_otherwise(node: Expr) -> Expr:
    """x + (y + z) for (x + y) + z, and the same for products."""
    for kind in (Add, Mul):
        if isinstance(node, kind) and isinstance(node.left, kind) and _all_kinds_equal(node):
            first, second = node.left.children
            return replace(node, left=first, right=kind(node.kind, second, node.right))
    return node


def _all_kinds_equal(node: Add | Mul) -> bool:
    return {child.kind for child in (*node.left.children, node.right)} == {node.kind}


def cancelling(node: Expr) -> Expr:
    """x + (y - y), with an input y of the same kind as the written vector x."""
    if isinstance(node, Outer):
        extra = _first_input(node.right)
        if extra is not None:
            nothing = Sub(node.kind, replace(node, right=extra), replace(node, right=extra))
            return Add(node.kind, node, nothing)
    return node


def _first_input(expr: Expr) -> Expr | None:
    return next((x for x in walk(expr) if isinstance(x, Input) and x.kind is expr.kind), None)


def folded_numbers(node: Expr) -> Expr:
    """3 * x - 2 * x."""
    if not isinstance(node, Read | ReadKey | Outer):
        return node
    three, two = Number(Kind.HEAD, Fraction(3)), Number(Kind.HEAD, Fraction(2))
    return Sub(node.kind, Mul(node.kind, three, node), Mul(node.kind, two, node))


RULES: dict[str, Rule] = {
    rule.__name__: rule
    for rule in (
        twice_negated,
        times_one,
        halves,
        swapped,
        differences_as_sums,
        negated_differences,
        quotients,
        distributed,
        expanded_reads,
        gathered_writes,
        grouped_otherwise,
        cancelling,
        folded_numbers,
    )
}
