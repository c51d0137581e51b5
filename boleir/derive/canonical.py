"""State-free expressions to polynomials and back: one canonical expression for many spellings.

Functions of inputs stay indivisible, with canonical arguments. Dots expand over their operands, so
that q^T (b k) and b (q^T k) are one thing. Names given by the author do not take part; they return
at the end, where a canonical expression is one that the author has named.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from fractions import Fraction
from typing import Any

from boleir.derive.algebra import (
    ONE,
    OPPOSITES,
    ZERO,
    Monomial,
    Poly,
    atom,
    constant,
    content,
    divide,
    factors,
    order,
    rank,
    term,
    total,
)
from boleir.derive.refusals import DivisionByZero
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
    Sub,
    number,
    walk,
)

MAX_TERMS = 400
"""A product that would expand to more terms stays as it was written."""


LONGEST_CHAIN = 64
"""Terms of a sum that are written one after the other."""


class Canon:
    """Canonical polynomials of state-free expressions, remembered by structure."""

    def __init__(self) -> None:
        self._polys: dict[int, Poly] = {}
        self._named: dict[int, Expr] = {}
        self._dressed: dict[int, Expr] = {}

    def poly(self, expr: Expr) -> Poly:
        """The polynomial of a state-free HEAD, KEY or VALUE expression."""
        if expr.key not in self._polys:
            for node in walk(expr):
                if node.key not in self._polys:
                    self._polys[node.key] = self._of(node)
        return self._polys[expr.key]

    def know(self, expr: Expr, poly: Poly) -> None:
        """Take `poly` for the value of an expression, which no rule here would find."""
        self._polys[expr.key] = poly

    def note(self, expr: Expr) -> None:
        """Remember name and place of an expression of the source for `dress`."""
        canonical = emit(self.poly(expr))
        known = self._named.get(canonical.key)
        if not isinstance(canonical, Number) and (known is None or expr.hint is not None):
            self._named[canonical.key] = expr
            self._dressed.clear()

    def dress(self, expr: Expr) -> Expr:
        """`expr` with the names and places of the source put back wherever they fit."""
        for node in walk(expr):
            if node.key not in self._dressed:
                self._dressed[node.key] = self._dress(node)
        return self._dressed[expr.key]

    def expr(self, poly: Poly) -> Expr:
        """Canonical expression of a polynomial, dressed."""
        return self.dress(emit(poly))

    def _dress(self, node: Expr) -> Expr:
        source = self._named.get(node.key)
        node = rebuilt(node, {key: self._dressed[key] for key in (x.key for x in node.children)})
        if source is None:
            return node
        hint = None if isinstance(node, Input) else source.hint
        return replace(node, hint=hint, span=source.span)

    def _of(self, node: Expr) -> Poly:
        rule = _RULES.get(type(node))
        if rule is None:
            return atom(node)
        parts = [self._polys[child.key] for child in node.children]
        size = 1
        for part in parts:
            size *= max(1, len(part.terms))
        if size > MAX_TERMS and not isinstance(node, Add | Sub | Neg):
            fresh = {child.key: emit(self._polys[child.key]) for child in node.children}
            return atom(replace(rebuilt(node, fresh), hint=None, span=None))
        return self._reduced(rule(node, parts))

    def _reduced(self, poly: Poly) -> Poly:
        """Over one power of every divisor that is a sum, with common factors cancelled."""
        divisors = {
            a for m in poly.terms for a, power in m if power < 0 and isinstance(a, Add | Sub)
        }
        for divisor in sorted(divisors, key=rank):
            poly = _over(poly, divisor, self.poly(divisor))
        return poly


def _over(poly: Poly, divisor: Expr, value: Poly) -> Poly:
    """`poly` with the divisor brought to one power in all terms, the least that will do."""
    most = max(-power for m in poly.terms for a, power in m if a == divisor)
    top = ZERO
    for monomial, size in poly.terms.items():
        missing = most + dict(monomial).get(divisor, 0)
        part = term(tuple(ap for ap in monomial if ap[0] != divisor), size)
        for _ in range(missing):
            part = part * value
        top = top + part
    while most and (quotient := divide(top, value)) is not None:
        top, most = quotient, most - 1
    return top * atom(divisor, -most) if most else top


def rebuilt(node: Expr, operands: Mapping[int, Expr]) -> Expr:
    """`node` with its operands replaced by key; the same object when it has none."""
    changes: dict[str, Any] = {
        f.name: operands[child.key]
        for f in fields(node)
        if isinstance(child := getattr(node, f.name), Expr)
    }
    return replace(node, **changes) if changes else node


def reciprocal(poly: Poly) -> Poly:
    """1 / poly, which is not zero; every irreducible sum in it becomes an indivisible term."""
    single, primitive = content(poly)
    ((monomial, size),) = single.terms.items()
    result = constant(1 / size)
    for base, exponent in monomial:  # 1 / exp(x) is exp(-x)
        opposite = OPPOSITES.get(base.key) if exponent > 0 else None
        result = result * (atom(opposite, exponent) if opposite else atom(base, -exponent))
    if primitive == ONE:
        return result
    product = ONE
    for factor, power in factors(primitive):
        result = result * atom(emit(factor), -power)
        for _ in range(power):
            product = product * factor
    left = divide(primitive, product)
    assert left is not None and left.value
    return result * constant(1 / left.value)


def contract(kind: Kind, poly: Poly) -> Poly:
    """Sum over the entries of a vector of `kind`: a scalar."""
    return total(
        rest * _contract_monomial(kind, vector) for vector, rest in poly.by_vectors(kind).items()
    )


def _contract_monomial(kind: Kind, vector: Monomial) -> Poly:
    if not vector:
        return atom(Dim(Kind.HEAD, "d_k" if kind is Kind.KEY else "d_v"))
    factors = [a for a, power in vector for _ in range(power) if power > 0]
    below = tuple((a, power) for a, power in vector if power < 0)
    if len(factors) + bool(below) == 1:
        return atom(Call(Kind.HEAD, "sum", emit(term(vector))))
    first, *others = factors
    rest = term(below)
    for other in others:
        rest = rest * atom(other)
    return atom(Dot(Kind.HEAD, first, emit(rest)))


def _number(node: Expr, parts: list[Poly]) -> Poly:
    assert isinstance(node, Number)
    return constant(node.value)


def _call(node: Expr, parts: list[Poly]) -> Poly:
    assert isinstance(node, Call)
    (x,) = parts
    if node.fn == "reciprocal" and not x:
        raise DivisionByZero(node)
    if node.fn == "sum":
        return contract(node.arg.kind, x)
    if node.fn == "square":
        return x * x
    if node.fn == "reciprocal":
        return reciprocal(x)
    if node.fn == "rsqrt":
        return atom(Call(node.kind, "sqrt", emit(x)), -1)
    if node.fn == "exp" and not x:
        return ONE
    called = Call(node.kind, node.fn, emit(x))
    if node.fn == "exp":
        opposite = OPPOSITES.get(called.key) or Call(node.kind, node.fn, emit(-x))
        OPPOSITES.put(called.key, opposite)
        OPPOSITES.put(opposite.key, called)
    return atom(called)


def _conv(node: Expr, parts: list[Poly]) -> Poly:
    assert isinstance(node, Conv)
    return atom(Conv(node.kind, emit(parts[0]), node.width))


def _div(node: Expr, parts: list[Poly]) -> Poly:
    top, bottom = parts
    if not bottom:
        raise DivisionByZero(node)
    quotient = divide(top, bottom) if len(bottom.terms) > 1 else None
    return top * reciprocal(bottom) if quotient is None else quotient


_RULES: dict[type[Expr], Callable[[Expr, list[Poly]], Poly]] = {
    Number: _number,
    Neg: lambda node, parts: -parts[0],
    Add: lambda node, parts: parts[0] + parts[1],
    Sub: lambda node, parts: parts[0] - parts[1],
    Mul: lambda node, parts: parts[0] * parts[1],
    Div: _div,
    Call: _call,
    Conv: _conv,
    Dot: lambda node, parts: contract(node.children[0].kind, parts[0] * parts[1]),
}


def emit(poly: Poly) -> Expr:
    """The canonical expression: scalars before vectors, common factors outside, no names, no
    places."""
    if not poly:
        return number(0)
    single, primitive = content(poly)
    ((monomial, size),) = single.terms.items()
    if primitive == ONE:
        return _product(size, monomial, None)
    if size < 0 and any(c < 0 for c in primitive.terms.values()):
        size, primitive = -size, -primitive  # b - a instead of -(a - b)
    return _product(size, monomial, _sum(primitive))


def _sum(poly: Poly) -> Expr:
    """A primitive polynomial of several terms, grouped by its vectors."""
    groups = _vector_groups(poly)
    if len(groups) == 1:
        pieces = [term(monomial, size) for monomial, size in poly.ordered()]
    else:
        pieces = groups
    pieces.sort(key=lambda p: p.ordered()[0][1] < 0)  # stable: a positive piece leads
    if len(pieces) > LONGEST_CHAIN:  # sums of sums, so that no expression nests too deep
        halves = pieces[: len(pieces) // 2], pieces[len(pieces) // 2 :]
        left, right = (_sum(total(half)) for half in halves)
        return Add(_wider(left.kind, right.kind), left, right)
    result: Expr | None = None
    for piece in pieces:
        negative = piece.ordered()[0][1] < 0
        shown = emit(-piece if negative else piece)
        if result is None:
            result = Neg(shown.kind, shown) if negative else shown
        else:
            kind = _wider(result.kind, shown.kind)
            result = Sub(kind, result, shown) if negative else Add(kind, result, shown)
    assert result is not None
    return result


def _vector_groups(poly: Poly) -> list[Poly]:
    """Parts of `poly` that share their vector factors, in order."""
    groups: dict[Monomial, Poly] = {}
    for monomial, size in poly.ordered():
        vector = tuple(ap for ap in monomial if ap[0].kind is not Kind.HEAD)
        groups[vector] = groups.get(vector, ZERO) + term(monomial, size)
    return [groups[vector] for vector in sorted(groups, key=order)]


def _product(size: Fraction, monomial: Monomial, inner: Expr | None) -> Expr:
    """size * monomial * inner as one expression."""
    above = [a for a, power in monomial for _ in range(power)]
    below = [a for a, power in monomial for _ in range(-power)]
    if inner is not None:
        above.append(inner)
    magnitude = abs(size)
    if below and magnitude.denominator != 1:
        below.insert(0, number(magnitude.denominator))
        magnitude = Fraction(magnitude.numerator)
    if magnitude != 1 or not above:
        above.insert(0, number(magnitude))
    result = _chain(above)
    if below:
        under = _chain(below)
        result = Div(_wider(result.kind, under.kind), result, under)
    return Neg(result.kind, result) if size < 0 else result


def _chain(factors: list[Expr]) -> Expr:
    """Product of scalars times product of vectors."""
    scalars = [f for f in factors if f.kind is Kind.HEAD]
    vectors = [f for f in factors if f.kind is not Kind.HEAD]
    halves = [_fold(part) for part in (scalars, vectors) if part]
    return _fold(halves)


def _fold(factors: list[Expr]) -> Expr:
    result = factors[0]
    for factor in factors[1:]:
        result = Mul(_wider(result.kind, factor.kind), result, factor)
    return result


def _wider(left: Kind, right: Kind) -> Kind:
    """Kind of an elementwise result: a scalar broadcasts to the vector."""
    return right if left is Kind.HEAD else left
