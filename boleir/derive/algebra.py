"""Exact algebra of state-free terms: Laurent polynomials over the indivisible terms of a
recurrence.

HEAD scalars and the vectors of one side form a commutative ring under the elementwise product
(scalars broadcast), so one polynomial type serves scalars, key vectors and value vectors alike.
Equal polynomials are equal sets of terms, which is what lets different spellings of one recurrence
meet. Only a common factor of several sums needs more than this: then sympy is imported.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from fractions import Fraction
from hashlib import sha256
from math import gcd, lcm
from typing import Any, TypeAlias

from boleir.derive.recent import Recent
from boleir.derive.work import spend
from boleir.ir import Dot, Expr, Input, Kind

Monomial: TypeAlias = tuple[tuple[Expr, int], ...]
"""Factors with their powers (never 0), in the order of `rank`; the empty tuple is 1."""

Rank: TypeAlias = tuple[int, bool, str]

OPPOSITES: Recent[int, Expr] = Recent(20_000)
"""Key of exp(x) -> exp(-x), for exponentials that have come up: their product is 1. A derivation
that is not refused meets far fewer than are kept."""

_SPELLED = 2000
"""Characters of a spelling that order terms; beyond, its digest does."""
_RANKS: Recent[int, Rank] = Recent(100_000)
_KIND_ORDER = {Kind.HEAD: 0, Kind.KEY: 1, Kind.VALUE: 2, Kind.STATE: 3}


def rank(expr: Expr) -> Rank:
    """A total order of terms by their structure alone: scalars, then dots, then vectors, each by
    spelling."""
    known = _RANKS.get(expr.key)
    if known is None:
        content = [getattr(expr, f.name) for f in fields(expr) if f.name not in Expr.SHOWN]
        if isinstance(expr, Input):
            text = f"{expr.name}:{expr.per}"
        else:
            parts = (rank(item)[2] if isinstance(item, Expr) else str(item) for item in content)
            text = f"{type(expr).__name__}({' '.join(parts)})"
            if len(text) > _SPELLED:  # shared terms would double the spelling at every level
                text = text[:_SPELLED] + sha256(text.encode()).hexdigest()
        known = (_KIND_ORDER[expr.kind], isinstance(expr, Dot), text)
        _RANKS.put(expr.key, known)
    return known


def times(left: Monomial, right: Monomial) -> Monomial:
    """Product of two monomials."""
    if not left or not right:
        return left or right
    powers = dict(left)
    for atom, power in right:
        powers[atom] = powers.get(atom, 0) + power
        other = OPPOSITES.get(atom.key)
        if other is not None and powers.get(other, 0) > 0 and powers[atom] > 0:
            common = min(powers[atom], powers[other])
            powers[atom] -= common
            powers[other] -= common
    return tuple(sorted(((a, p) for a, p in powers.items() if p), key=lambda ap: rank(ap[0])))


def inverse(monomial: Monomial) -> Monomial:
    """1 / monomial."""
    return tuple((atom, -power) for atom, power in monomial)


def order(monomial: Monomial) -> tuple[tuple[Rank, int], ...]:
    """Sort key of a monomial."""
    return tuple((rank(atom), power) for atom, power in monomial)


@dataclass(frozen=True, slots=True)
class Poly:
    """A sum of terms, monomial -> coefficient, no coefficient zero. Use the constructors below."""

    terms: Mapping[Monomial, Fraction]

    def __hash__(self) -> int:
        return hash(frozenset(self.terms.items()))

    def __bool__(self) -> bool:
        return bool(self.terms)

    def __add__(self, other: Poly) -> Poly:
        terms = dict(self.terms)
        spend((len(terms) + len(other.terms)) // 8)
        for monomial, coefficient in other.terms.items():
            total = terms.pop(monomial, Fraction(0)) + coefficient
            if total:
                terms[monomial] = total
        return Poly(terms)

    def __neg__(self) -> Poly:
        return Poly({m: -c for m, c in self.terms.items()})

    def __sub__(self, other: Poly) -> Poly:
        return self + -other

    def __mul__(self, other: Poly) -> Poly:
        terms: dict[Monomial, Fraction] = {}
        spend(len(self.terms) * len(other.terms))
        for left, a in self.terms.items():
            for right, b in other.terms.items():
                monomial = times(left, right)
                total = terms.pop(monomial, Fraction(0)) + a * b
                if total:
                    terms[monomial] = total
        return Poly(terms)

    @property
    def value(self) -> Fraction | None:
        """The number this is, or None when it contains a term that is no number."""
        if not self.terms:
            return Fraction(0)
        return self.terms.get(()) if len(self.terms) == 1 else None

    @property
    def atoms(self) -> set[Expr]:
        """Every indivisible term that occurs."""
        return {atom for monomial in self.terms for atom, _ in monomial}

    @property
    def vectors(self) -> set[Kind]:
        """Kinds of the vectors that occur: empty for a scalar."""
        return {atom.kind for atom in self.atoms} - {Kind.HEAD}

    def ordered(self) -> list[tuple[Monomial, Fraction]]:
        """Terms in a reproducible order."""
        return sorted(self.terms.items(), key=lambda item: order(item[0]))

    def by_vectors(self, kind: Kind) -> dict[Monomial, Poly]:
        """Grouped by the factors of one vector kind: sum of group * rest gives the whole."""
        groups: dict[Monomial, dict[Monomial, Fraction]] = {}
        for monomial, coefficient in self.ordered():
            vector = tuple(ap for ap in monomial if ap[0].kind is kind)
            rest = tuple(ap for ap in monomial if ap[0].kind is not kind)
            groups.setdefault(vector, {})[rest] = coefficient
        return {vector: Poly(terms) for vector, terms in groups.items()}


ZERO = Poly({})


def constant(value: Fraction | int) -> Poly:
    """A number."""
    return Poly({(): Fraction(value)}) if value else ZERO


ONE = constant(1)


def atom(expr: Expr, power: int = 1) -> Poly:
    """An indivisible term to a power."""
    return Poly({((expr, power),): Fraction(1)})


def term(monomial: Monomial, coefficient: Fraction | int = 1) -> Poly:
    """A single term."""
    return Poly({monomial: Fraction(coefficient)}) if coefficient else ZERO


def total(parts: Iterable[Poly]) -> Poly:
    """Sum of any number of polynomials."""
    terms: dict[Monomial, Fraction] = {}
    for part in parts:
        spend(len(part.terms) // 8)
        for monomial, coefficient in part.terms.items():
            size = terms.pop(monomial, Fraction(0)) + coefficient
            if size:
                terms[monomial] = size
    return Poly(terms)


def content(poly: Poly) -> tuple[Poly, Poly]:
    """(single term, primitive rest): their product is `poly`, and the rest has whole coefficients
    without a common factor, no common monomial, and a positive first term. `poly` is not zero."""
    if len(poly.terms) == 1:
        return poly, ONE
    coefficients = list(poly.terms.values())
    size = Fraction(
        gcd(*(abs(c.numerator) for c in coefficients)), lcm(*(c.denominator for c in coefficients))
    )
    common = dict(next(iter(poly.terms)))
    for monomial in poly.terms:
        powers = dict(monomial)
        for factor in set(common) | set(powers):
            common[factor] = min(common.get(factor, 0), powers.get(factor, 0))
    shared = tuple(sorted(((a, p) for a, p in common.items() if p), key=lambda ap: rank(ap[0])))
    primitive = poly * term(inverse(shared), 1 / size)
    if primitive.ordered()[0][1] < 0:  # the sign belongs to the single term
        size, primitive = -size, -primitive
    return term(shared, size), primitive


def divide(poly: Poly, divisor: Poly) -> Poly | None:
    """The exact quotient, or None when there is none. `divisor` is not zero."""
    if not poly:
        return ZERO
    single, primitive = content(divisor)
    ((monomial, size),) = single.terms.items()
    scaled = poly * term(inverse(monomial), 1 / size)
    if primitive == ONE:
        # A quotient by symbols must cancel them: x / y is a quotient only when y divides x.
        return scaled if _no_new_inverse(scaled, poly) else None
    quotient = _long_division(scaled, primitive)
    return quotient if quotient is not None and _no_new_inverse(quotient, poly) else None


def _no_new_inverse(quotient: Poly, poly: Poly) -> bool:
    """Whether every negative power of the quotient was in the dividend already."""
    before = {ap for monomial in poly.terms for ap in monomial if ap[1] < 0}
    lowest = {a: min(p for b, p in before if b == a) for a, _ in before}
    return all(p >= lowest.get(a, 0) for monomial in quotient.terms for a, p in monomial if p < 0)


def _long_division(poly: Poly, divisor: Poly) -> Poly | None:
    """Exact division by a primitive sum: repeated division of the leading terms."""
    single, rest = content(poly)
    atoms = sorted(rest.atoms | divisor.atoms, key=rank)

    def leading(p: Poly) -> tuple[Monomial, Fraction]:
        return max(p.terms.items(), key=lambda item: [dict(item[0]).get(a, 0) for a in atoms])

    head, size = leading(divisor)
    quotient = ZERO
    while rest:
        monomial, coefficient = leading(rest)
        step = times(monomial, inverse(head))
        if any(power < 0 for _, power in step):
            return None
        part = term(step, coefficient / size)
        quotient = quotient + part
        rest = rest - part * divisor
    return quotient * single


def split_scalar(poly: Poly) -> tuple[Poly, Poly]:
    """(scalar, direction): the product is `poly`, and the direction has no scalar factor left.

    Two vectors that differ by a scalar factor have the same direction. `poly` is not zero.
    """
    single, primitive = content(poly)
    ((monomial, size),) = single.terms.items()
    scalar = term(tuple(ap for ap in monomial if ap[0].kind is Kind.HEAD), size)
    vector = term(tuple(ap for ap in monomial if ap[0].kind is not Kind.HEAD))
    common = _common_sum(primitive)
    if common != ONE:
        quotient = divide(primitive, common)
        if quotient is not None:
            return scalar * common, vector * quotient
    return scalar, vector * primitive


def _common_sum(primitive: Poly) -> Poly:
    """The sum of scalars that divides every vector term of a primitive polynomial, or 1."""
    groups: dict[Monomial, Poly] = {}
    for monomial, coefficient in primitive.terms.items():
        vector = tuple(ap for ap in monomial if ap[0].kind is not Kind.HEAD)
        scalars = tuple(ap for ap in monomial if ap[0].kind is Kind.HEAD)
        groups[vector] = groups.get(vector, ZERO) + term(scalars, coefficient)
    parts = list(groups.values())
    if any(len(part.terms) == 1 for part in parts):
        return ONE
    if len(parts) == 1:
        return content(parts[0])[1]
    return _gcd_of_sums(parts)


def _gcd_of_sums(parts: list[Poly]) -> Poly:
    """Greatest common divisor of sums of scalars, by sympy."""
    import sympy

    bridge = _Bridge([content(part)[1] for part in parts])
    common = bridge.sums[0]
    for other in bridge.sums[1:]:
        common = sympy.gcd(common, other)
    result = bridge.back(common)
    return content(result)[1] if result.value is None else ONE


def factors(primitive: Poly) -> list[tuple[Poly, int]]:
    """Irreducible factors of a primitive sum with their powers, by sympy; their product is the sum
    up to a number."""
    if max(sum(power for _, power in monomial) for monomial in primitive.terms) < 2:
        return [(primitive, 1)]
    import sympy

    bridge = _Bridge([primitive])
    _, found = sympy.factor_list(bridge.sums[0])
    return [(content(bridge.back(base))[1], int(power)) for base, power in found]


class _Bridge:
    """Polynomials as sympy expressions over one symbol per indivisible term, and back."""

    def __init__(self, polys: list[Poly]) -> None:
        import sympy

        self.atoms = sorted(set().union(*(poly.atoms for poly in polys)), key=rank)
        self.symbols = sympy.symbols(f"x0:{len(self.atoms)}")
        names = dict(zip(self.atoms, self.symbols, strict=True))
        self.sums = [
            sympy.Add(
                *(
                    sympy.Rational(size.numerator, size.denominator)
                    * sympy.Mul(*(names[a] ** power for a, power in monomial))
                    for monomial, size in poly.terms.items()
                )
            )
            for poly in polys
        ]

    def back(self, expr: Any) -> Poly:
        """The polynomial of a sympy expression."""
        import sympy

        result = ZERO
        for powers, size in sympy.Poly(expr, *self.symbols).terms():
            pairs = zip(self.atoms, powers, strict=True)
            monomial: Monomial = tuple((a, int(power)) for a, power in pairs if power)
            result = result + term(monomial, Fraction(int(size.p), int(size.q)))
        return result
