"""The logarithm of a decay, in closed form wherever there is one: log exp x = x, sigmoid, products.

Kernels sum log decays along paths and take exp of differences only, so they never see the decay
itself; log(sigmoid(x)) through -softplus(-x) keeps its digits where sigmoid underflows.
"""

from __future__ import annotations

from fractions import Fraction

from boleir.derive.algebra import ONE, ZERO, Poly, atom, constant, content
from boleir.derive.canonical import Canon, emit
from boleir.derive.refusals import NotPositive
from boleir.functions import FUNCTIONS
from boleir.ir import Call, Expr, Neg, Number


def log_of_decay(decay: Poly, canon: Canon, where: Expr) -> Expr:
    """log(decay); refuses a decay that cannot be positive. `where` is shown in the refusal."""
    single, primitive = content(decay)
    ((monomial, size),) = single.terms.items()
    result = ZERO
    unknown = ONE
    for factor, power in monomial:
        known = _log_of_factor(factor, canon)
        if known is None:
            unknown = unknown * atom(factor, power)
        else:
            result = result + known * constant(power)
    if primitive != ONE:
        known = _log_of_complement(primitive, canon)
        if known is None:
            unknown = unknown * primitive
        else:
            result = result + known
    return canon.expr(result + _log_of_rest(unknown, size, where))


def _log_of_rest(unknown: Poly, size: Fraction, where: Expr) -> Poly:
    """log(size * unknown) for factors without a rule."""
    if unknown == ONE:
        if size <= 0:
            raise NotPositive(where)
        return ZERO if size == 1 else _log(constant(size))
    if size < 0:
        return _log(unknown * constant(size))
    plain = ZERO if size == 1 else _log(constant(size))
    if len(unknown.terms) == 1:
        ((monomial, _),) = unknown.terms.items()
        return sum((_log(atom(a)) * constant(p) for a, p in monomial), plain)
    return plain + _log(unknown)


def _log(poly: Poly) -> Poly:
    shown = emit(poly)
    return atom(Call(shown.kind, "log", shown))


def _log_of_factor(factor: Expr, canon: Canon) -> Poly | None:
    """log of a function that is positive everywhere; None for a factor of unknown sign."""
    if not isinstance(factor, Call):
        return None
    if factor.fn == "exp":
        return canon.poly(factor.arg)
    if factor.fn == "sigmoid":
        return -_softplus(-canon.poly(factor.arg))
    if factor.fn == "sqrt":
        inner = _log_of_factor(factor.arg, canon)
        half = inner if inner is not None else _log(canon.poly(factor.arg))
        return half * constant(Fraction(1, 2))
    return _log(atom(factor)) if is_positive(factor) else None


def _log_of_complement(primitive: Poly, canon: Canon) -> Poly | None:
    """log(1 - sigmoid(x)) = -softplus(x)."""
    rest = ONE - primitive
    if len(rest.terms) == 1:
        ((monomial, size),) = rest.terms.items()
        if size == 1 and len(monomial) == 1 and monomial[0][1] == 1:
            factor = monomial[0][0]
            if isinstance(factor, Call) and factor.fn == "sigmoid":
                return -_softplus(canon.poly(factor.arg))
    return None


def _softplus(argument: Poly) -> Poly:
    shown = emit(argument)
    return atom(Call(shown.kind, "softplus", shown))


def is_positive(factor: Expr) -> bool:
    """Whether a term is at least 0 for all inputs, by the range of its function."""
    if isinstance(factor, Number):
        return factor.value > 0
    if isinstance(factor, Neg):
        return False
    return isinstance(factor, Call) and FUNCTIONS[factor.fn].low >= 0


def assumed_positive(decay: Poly) -> list[Expr]:
    """Factors of the decay whose sign only the user knows."""
    single, primitive = content(decay)
    ((monomial, _),) = single.terms.items()
    unknown = [a for a, power in monomial if power % 2 and not is_positive(a)]
    if primitive != ONE and not _is_complement(primitive):
        unknown.append(emit(primitive))
    return unknown


def _is_complement(primitive: Poly) -> bool:
    return _log_of_complement(primitive, Canon()) is not None
