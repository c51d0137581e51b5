"""Square matrices on the key or the value side, as papers write them: `(I - beta k k^T) S`,
`diag(w) + b a^T`.

They exist only while an expression is read. An operator is a diagonal plus signed dyads, and
applying it to a state or a vector expands into the products of the IR, so that a recurrence may be
typed the way its paper prints it.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from boleir.errors import Span
from boleir.ir import Add as AddNode
from boleir.ir import Dot, Expr, Kind, Mul, Neg, Number, Outer, Read, ReadKey
from boleir.ir import Sub as SubNode
from boleir.language.errors import NoSuchProduct
from boleir.language.terms import Term

MAX_DYADS = 16
"""Most dyads an operator may hold; a product of sums multiplies their number."""

_ONE = Number(Kind.HEAD, Fraction(1))
_NAME = {Kind.KEY: "a d_k x d_k matrix", Kind.VALUE: "a d_v x d_v matrix"}


@dataclass(frozen=True, slots=True)
class Dyad:
    """`left right^T`, added or subtracted."""

    left: Expr
    right: Expr
    negative: bool = False


@dataclass(frozen=True, slots=True)
class Operator:
    """`diagonal` (a head scalar times the identity, a vector's diagonal matrix, or None for 0) plus
    dyads.

    `side` is KEY, VALUE, or None for a multiple of the identity that may serve either.
    """

    side: Kind | None
    diagonal: Expr | None
    dyads: tuple[Dyad, ...]

    def describe(self) -> str:
        """What it is, for messages."""
        return "a multiple of the identity" if self.side is None else _NAME[self.side]

    def transpose(self) -> Operator:
        """The transposed operator."""
        return Operator(
            self.side, self.diagonal, tuple(Dyad(d.right, d.left, d.negative) for d in self.dyads)
        )

    def negate(self) -> Operator:
        """Minus the operator."""
        diagonal = None if self.diagonal is None else _negated(self.diagonal)
        return Operator(
            self.side, diagonal, tuple(Dyad(d.left, d.right, not d.negative) for d in self.dyads)
        )

    def scale(self, factor: Expr) -> Operator:
        """The operator times a head scalar."""
        dyads = tuple(Dyad(_times(factor, d.left), d.right, d.negative) for d in self.dyads)
        return Operator(
            self.side, None if self.diagonal is None else _times(factor, self.diagonal), dyads
        )

    def plus(self, other: Operator) -> Operator | None:
        """The sum, or None when the sides differ."""
        if self.side is not None and other.side is not None and self.side is not other.side:
            return None
        return Operator(
            self.side or other.side, _plus(self.diagonal, other.diagonal), self.dyads + other.dyads
        )

    def compose(self, other: Operator, span: Span | None) -> Operator | None:
        """The matrix product, or None when the sides differ. Raises `NoSuchProduct` when it would
        grow too large.
        """
        if self.side is not None and other.side is not None and self.side is not other.side:
            return None
        dyads = [
            Dyad(_scaled(self.diagonal, d.left), d.right, d.negative)
            for d in other.dyads
            if self.diagonal is not None
        ]
        dyads += [
            Dyad(d.left, _scaled(other.diagonal, d.right), d.negative)
            for d in self.dyads
            if other.diagonal is not None
        ]
        for a in self.dyads:
            for b in other.dyads:
                weight = Dot(Kind.HEAD, a.right, b.left, span=span)
                dyads.append(Dyad(_times(weight, a.left), b.right, a.negative != b.negative))
        if len(dyads) > MAX_DYADS:
            raise NoSuchProduct(
                f"the matrix product has more than {MAX_DYADS} terms",
                span=span,
                mend="apply one factor at a time",
            )
        diagonal = None
        if self.diagonal is not None and other.diagonal is not None:
            diagonal = _scaled(self.diagonal, other.diagonal)
        return Operator(self.side or other.side, diagonal, tuple(dyads))

    def apply(self, operand: Expr, span: Span | None) -> Expr | None:
        """The operator times a state (key side) or a vector of its side; None where that has no
        meaning.
        """
        if self.side is not None and operand.kind not in (self.side, Kind.STATE):
            return None
        if operand.kind is Kind.STATE and self.side is Kind.VALUE:
            return None
        total = None if self.diagonal is None else _scaled(self.diagonal, operand, span)
        for dyad in self.dyads:
            if operand.kind is Kind.STATE:
                part: Expr = Outer(
                    Kind.STATE,
                    dyad.left,
                    Read(Kind.VALUE, operand, dyad.right, span=span),
                    span=span,
                )
            else:
                part = _times(Dot(Kind.HEAD, dyad.right, operand, span=span), dyad.left, span)
            total = _accumulate(total, part, dyad.negative, span)
        return total

    def apply_right(self, state: Expr, span: Span | None) -> Expr | None:
        """A state times the operator (value side); None where that has no meaning."""
        if self.side is Kind.KEY or state.kind is not Kind.STATE:
            return None
        total = None if self.diagonal is None else _scaled(self.diagonal, state, span)
        for dyad in self.dyads:
            part = Outer(
                Kind.STATE, ReadKey(Kind.KEY, state, dyad.left, span=span), dyad.right, span=span
            )
            total = _accumulate(total, part, dyad.negative, span)
        return total


Meaning = Term | Operator
"""Whatever an expression of a front end can denote."""

IDENTITY = Operator(None, _ONE, ())
"""`I`, of whichever size fits."""


def is_diagonal(value: Meaning) -> bool:
    """Whether `value` is an operator without dyads."""
    return isinstance(value, Operator) and not value.dyads


def product(left: Meaning, right: Meaning, span: Span | None) -> Meaning | None:
    """The matrix product where an operator is involved or comes out; None when there is none."""
    if isinstance(left, Operator) and isinstance(right, Operator):
        return left.compose(right, span)
    if isinstance(left, Operator) and isinstance(right, Term):
        return _left_product(left, right, span)
    if isinstance(left, Term) and isinstance(right, Operator):
        flipped = _left_product(right.transpose(), Term(left.expr, not left.transposed), span)
        return (
            flipped
            if flipped is None or isinstance(flipped, Operator)
            else Term(flipped.expr, not flipped.transposed)
        )
    if isinstance(left, Term) and isinstance(right, Term):
        kind = left.expr.kind
        if kind in _NAME and kind is right.expr.kind and right.transposed and not left.transposed:
            return Operator(kind, None, (Dyad(left.expr, right.expr),))
    return None


def _left_product(operator: Operator, term: Term, span: Span | None) -> Meaning | None:
    """operator times term."""
    if term.expr.kind is Kind.HEAD:
        return operator.scale(term.expr)
    if term.expr.kind is Kind.STATE and term.transposed:
        # A S^T = (S A^T)^T
        result = operator.transpose().apply_right(term.expr, span)
        return None if result is None else Term(result, True)
    if term.transposed:
        return None
    result = operator.apply(term.expr, span)
    return None if result is None else Term(result)


def _accumulate(total: Expr | None, part: Expr, negative: bool, span: Span | None) -> Expr:
    if total is None:
        return Neg(part.kind, part, span=span) if negative else part
    node = SubNode if negative else AddNode
    return node(total.kind, total, part, span=span)


def _negated(expr: Expr) -> Expr:
    return Number(Kind.HEAD, -expr.value) if isinstance(expr, Number) else Neg(expr.kind, expr)


def _is_one(expr: Expr) -> bool:
    return isinstance(expr, Number) and expr.value == 1


def _times(factor: Expr, operand: Expr, span: Span | None = None) -> Expr:
    """A head scalar times anything, without the trivial cases."""
    if isinstance(factor, Number) and isinstance(operand, Number):
        return Number(Kind.HEAD, factor.value * operand.value)
    if _is_one(factor):
        return operand
    return factor if _is_one(operand) else Mul(operand.kind, factor, operand, span=span)


def _scaled(diagonal: Expr | None, operand: Expr, span: Span | None = None) -> Expr:
    """A diagonal matrix times a vector, a state or another diagonal."""
    if diagonal is None or _is_one(diagonal):
        return operand
    if diagonal.kind is Kind.HEAD or operand.kind is not Kind.HEAD:
        return (
            _times(diagonal, operand, span)
            if diagonal.kind is Kind.HEAD
            else Mul(operand.kind, diagonal, operand, span=span)
        )
    return _times(operand, diagonal, span)


def _plus(left: Expr | None, right: Expr | None) -> Expr | None:
    if left is None or right is None:
        return left if right is None else right
    if isinstance(left, Number) and isinstance(right, Number):
        return Number(Kind.HEAD, left.value + right.value)
    kind = right.kind if left.kind is Kind.HEAD else left.kind
    return AddNode(kind, left, right)
