"""Checked constructors: the only way in which either front end makes an IR node.

Operations between two numbers fold, so that `1/3`, `-1` and `2 * 0.5` are the same constant whoever
writes them. Every function takes the span to blame and raises a `KindMismatch` or a relative of it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction

from boleir.errors import Span
from boleir.functions import FUNCTIONS
from boleir.ir import Add, Call, Conv, Dim, Div, Input, Kind, Mul, Neg, Number, Per, Sub
from boleir.language import operators
from boleir.language.errors import (
    BadArguments,
    BadConstant,
    ElementwiseState,
    FunctionOfStateMatrix,
    KindMismatch,
    NoSuchProduct,
    NotATokenInput,
    ProductOfStateMatrices,
)
from boleir.language.kinds import (
    MATRIX,
    NOUN,
    PRODUCT,
    PRODUCTS_THAT_EXIST,
    QUOTIENT,
    RECIPROCAL,
    SUM,
)
from boleir.language.operators import Meaning, Operator
from boleir.language.terms import Term

MAX_CONSTANT_BITS = 1024
"""Size limit of the numerator and denominator of a constant; covers every float64."""
MAX_CONV_WIDTH = 32
"""Widest causal convolution."""


def constant(value: Fraction, span: Span | None) -> Term:
    """A number. Raises `BadConstant` when it is absurdly large or fine."""
    if max(value.numerator.bit_length(), value.denominator.bit_length()) > MAX_CONSTANT_BITS + 64:
        raise BadConstant(
            "the constant is too large or has too many digits",
            span=span,
            mend="stay within 1e-300 .. 1e300",
        )
    return Term(Number(Kind.HEAD, value, span=span))


def dimension(name: str, span: Span | None) -> Term:
    """`d_k` or `d_v`."""
    return Term(Dim(Kind.HEAD, name, span=span))


def named(value: Meaning, name: str) -> Meaning:
    """`value` carrying `name` as the hint for printing; leaves and transposed terms keep their own
    spelling.
    """
    if isinstance(value, Operator) or value.transposed or not value.expr.children:
        return value
    return Term(replace(value.expr, hint=name))


def transpose(value: Meaning) -> Meaning:
    """`x^T`; a head scalar is its own transpose."""
    if isinstance(value, Operator):
        return value.transpose()
    return value if value.expr.kind is Kind.HEAD else Term(value.expr, not value.transposed)


def negate(value: Meaning, span: Span | None) -> Meaning:
    """`-x`."""
    if isinstance(value, Operator):
        return value.negate()
    if isinstance(value.expr, Number):
        return constant(-value.expr.value, span)
    return Term(Neg(value.expr.kind, value.expr, span=span), value.transposed)


def add(left: Meaning, right: Meaning, span: Span | None) -> Meaning:
    """`x + y`."""
    return _sum("+", Add, left, right, span)


def subtract(left: Meaning, right: Meaning, span: Span | None) -> Meaning:
    """`x - y`."""
    return _sum("-", Sub, left, right, span)


def _sum(
    sign: str, node: type[Add] | type[Sub], left: Meaning, right: Meaning, span: Span | None
) -> Meaning:
    if isinstance(left, Operator) and isinstance(right, Operator):
        combined = left.plus(right if sign == "+" else right.negate())
        if combined is not None:
            return combined
    if isinstance(left, Operator) or isinstance(right, Operator):
        raise _mismatch(sign, left, right, span, _mend_operator(left, right))
    folded = _fold(sign, left, right, span)
    if folded is not None:
        return folded
    kind = SUM.get((left.expr.kind, right.expr.kind))
    if kind is None or not _aligned(left, right):
        raise _mismatch(sign, left, right, span, _mend_sum(left, right))
    return Term(node(kind, left.expr, right.expr, span=span), left.transposed or right.transposed)


def multiply(left: Meaning, right: Meaning, span: Span | None) -> Meaning:
    """`x * y`, elementwise; `diag(g) * S` is the matrix product."""
    if isinstance(left, Operator) or isinstance(right, Operator):
        one_term = isinstance(left, Term) or isinstance(right, Term)
        diagonal = operators.is_diagonal(left) or operators.is_diagonal(right)
        if _is_head(left) or _is_head(right) or (one_term and diagonal):
            return juxtapose(left, right, span)
        raise _mismatch("*", left, right, span, "write the matrix product without '*'")
    folded = _fold("*", left, right, span)
    if folded is not None:
        return folded
    kinds = (left.expr.kind, right.expr.kind)
    if kinds == (Kind.STATE, Kind.STATE):
        raise ElementwiseState(
            f"'*' has no meaning between {left.describe()} and {right.describe()}: "
            "a decay with a number of its own for every entry has no matrix form",
            span=span,
            mend="decay by a scalar, by key channels (diag(g) * S) or value channels (S * diag(h))",
        )
    kind = PRODUCT.get(kinds)
    if kind is None or not _aligned(left, right):
        raise _mismatch("*", left, right, span, _mend_product(left, right))
    if kind is Kind.STATE and Kind.STATE in kinds:
        transposed = left.transposed if kinds[0] is Kind.STATE else right.transposed
    else:
        transposed = left.transposed or right.transposed
    return Term(Mul(kind, left.expr, right.expr, span=span), transposed)


def divide(left: Meaning, right: Meaning, span: Span | None) -> Meaning:
    """`x / y`, elementwise."""
    if isinstance(left, Operator) and isinstance(right, Term) and right.expr.kind is Kind.HEAD:
        return left.scale(call("reciprocal", right, span).expr)
    if isinstance(left, Operator) or isinstance(right, Operator):
        raise _mismatch("/", left, right, span, None)
    folded = _fold("/", left, right, span)
    if folded is not None:
        return folded
    kinds = (left.expr.kind, right.expr.kind)
    if _aligned(left, right) and kinds in RECIPROCAL:
        return multiply(left, call("reciprocal", right, span), span)
    if kinds not in QUOTIENT or not _aligned(left, right):
        mend = (
            "a state may be divided by a head scalar or a vector"
            if kinds[1] is Kind.STATE
            else None
        )
        raise _mismatch("/", left, right, span, mend)
    return Term(Div(QUOTIENT[kinds], left.expr, right.expr, span=span), left.transposed)


def juxtapose(left: Meaning, right: Meaning, span: Span | None) -> Meaning:
    """`x y` and `x @ y`: the matrix product; a head scalar multiplies."""
    if _is_head(left) and _is_head(right):
        return multiply(left, right, span)
    if isinstance(left, Term) and isinstance(right, Term):
        if left.expr.kind is Kind.HEAD or right.expr.kind is Kind.HEAD:
            return multiply(left, right, span)
        rule = MATRIX.get((left.shape, right.shape))
        if rule is not None:
            node, swapped, transposed, kind = rule
            first, second = (right, left) if swapped else (left, right)
            return Term(node(kind, first.expr, second.expr, span=span), transposed)
    product = operators.product(left, right, span)
    if product is None:
        raise _no_product(left, right, span)
    return product


def dot(left: Meaning, right: Meaning, span: Span | None) -> Meaning:
    """`dot(x, y)`: x^T y."""
    return juxtapose(transpose(left), right, span)


def outer(left: Meaning, right: Meaning, span: Span | None) -> Meaning:
    """`outer(k, v)`: k v^T."""
    return juxtapose(left, transpose(right), span)


def diagonal(value: Meaning, span: Span | None) -> Meaning:
    """`diag(g)` of a key or value vector."""
    if (
        isinstance(value, Operator)
        or value.transposed
        or value.expr.kind not in (Kind.KEY, Kind.VALUE)
    ):
        raise KindMismatch(
            f"diag takes a key or value vector, not {value.describe()}",
            span=span,
            mend="a head scalar needs no diag: g * S",
        )
    return Operator(value.expr.kind, value.expr, ())


def call(name: str, value: Meaning, span: Span | None) -> Term:
    """`name(value)` for a function of the table."""
    function = FUNCTIONS[name]
    nouns = [NOUN[kind] for kind in Kind if kind in function.takes]
    takes = " or ".join([", ".join(nouns[:-1]), nouns[-1]])
    if isinstance(value, Operator) or value.expr.kind not in function.takes:
        if isinstance(value, Term) and value.expr.kind is Kind.STATE:
            raise FunctionOfStateMatrix(
                f"{name} takes {takes}, not {value.describe()} (the state may enter linearly only)",
                span=span,
                mend=f"apply {name} to inputs of the token, or to the output outside",
            )
        raise KindMismatch(f"{name} takes {takes}, not {value.describe()}", span=span)
    kind = function.result(value.expr.kind)
    return Term(Call(kind, name, value.expr, span=span), value.transposed and kind is not Kind.HEAD)


def causal_conv(value: Meaning, width: object, span: Span | None) -> Term:
    """`causal_conv(x, width=w)`: x must be a token input as declared, a key or value vector."""
    if not isinstance(value, Term) or value.transposed or not isinstance(value.expr, Input):
        raise NotATokenInput(
            "causal_conv takes a token input as it was declared, not a computed value",
            span=span,
            mend="convolve first, then compute",
        )
    source = value.expr
    if source.per is not Per.TOKEN or source.kind not in (Kind.KEY, Kind.VALUE):
        found = (
            f"{NOUN[source.kind]} per token"
            if source.per is Per.TOKEN
            else "a parameter of the layer"
        )
        raise NotATokenInput(
            f"causal_conv takes key and value vectors of the token; '{source.name}' is {found}",
            span=span,
        )
    if not isinstance(width, int) or isinstance(width, bool) or not 2 <= width <= MAX_CONV_WIDTH:
        raise BadArguments(
            f"causal_conv needs width= a whole number from 2 to {MAX_CONV_WIDTH}",
            span=span,
            mend="width=4",
        )
    return Term(Conv(source.kind, source, width, span=span))


_FOLDS: dict[str, Callable[[Fraction, Fraction], Fraction]] = {
    "+": lambda x, y: x + y,
    "-": lambda x, y: x - y,
    "*": lambda x, y: x * y,
    "/": lambda x, y: x / y,
}


def _fold(sign: str, left: Term, right: Term, span: Span | None) -> Term | None:
    if sign == "/" and isinstance(right.expr, Number) and right.expr.value == 0:
        raise BadConstant("division by zero", span=span)
    if isinstance(left.expr, Number) and isinstance(right.expr, Number):
        return constant(_FOLDS[sign](left.expr.value, right.expr.value), span)
    return None


def _is_head(value: Meaning) -> bool:
    return isinstance(value, Term) and value.expr.kind is Kind.HEAD


def _aligned(left: Term, right: Term) -> bool:
    """Whether two operands of an elementwise operation lie the same way (scalars, and vectors
    scaling a state, do).
    """
    kinds = {left.expr.kind, right.expr.kind}
    if Kind.HEAD in kinds:
        return True
    if Kind.STATE in kinds and len(kinds) == 2:
        vector = left if left.expr.kind is not Kind.STATE else right
        return not vector.transposed
    return left.transposed == right.transposed


def _mismatch(
    sign: str, left: Meaning, right: Meaning, span: Span | None, mend: str | None
) -> KindMismatch:
    return KindMismatch(
        f"'{sign}' has no meaning between {left.describe()} and {right.describe()}",
        span=span,
        mend=mend,
    )


def _mend_operator(left: Meaning, right: Meaning) -> str | None:
    term = left if isinstance(left, Term) else right
    if not isinstance(term, Term):
        return None
    if term.expr.kind is Kind.HEAD:
        return "the identity is written I: I - beta * k k^T"
    return "square matrices act on the state: (I - beta * k k^T) S, or S (I - v v^T)"


def _mend_sum(left: Term, right: Term) -> str | None:
    kinds = {left.expr.kind, right.expr.kind}
    if left.transposed != right.transposed and len(kinds) == 1:
        return "transpose one of them"
    if kinds == {Kind.HEAD, Kind.STATE}:
        return "a scalar may multiply a state, not be added to it"
    if Kind.STATE in kinds:
        return "make the other operand a state with an outer product: k v^T"
    if kinds == {Kind.KEY, Kind.VALUE}:
        return "vectors of different kinds meet in products: k v^T is a state"
    return None


def _mend_product(left: Term, right: Term) -> str | None:
    kinds = (left.expr.kind, right.expr.kind)
    if (left.shape, right.shape) in MATRIX:
        return "write the matrix product without '*'"
    if set(kinds) == {Kind.KEY, Kind.VALUE}:
        return "an outer product is written k v^T"
    return None


def _no_product(left: Meaning, right: Meaning, span: Span | None) -> NoSuchProduct:
    mend = f"products are {PRODUCTS_THAT_EXIST}"
    if isinstance(left, Term) and isinstance(right, Term):
        if left.expr.kind is right.expr.kind is Kind.STATE:
            return ProductOfStateMatrices(
                f"no product of {left.describe()} and {right.describe()}: "
                "the state may enter linearly only",
                span=span,
                mend="read it by vectors of the token: S^T k, S v",
            )
        shapes = [f"{term.expr.kind}{mark}" for term in (left, right) for mark in ("", "^T")]
        options = [f"{a} {b}" for a in shapes[:2] for b in shapes[2:] if (a, b) in MATRIX]
        if options:
            mend = f"transposed, these exist: {', '.join(options)}; {mend}"
    return NoSuchProduct(
        f"no product of {left.describe()} and {right.describe()}", span=span, mend=mend
    )
