"""Symbolic values: what the parameters of a traced Python function are, and the functions it may
call on them.

Operators build the same IR as the text language does, through the same checked constructors. `@` is
the matrix product (`S.T @ k` reads, `k @ u.T` is the outer product, `k.T @ q` the dot product), `*`
is elementwise.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from math import isfinite
from typing import Annotated, Any, NoReturn, overload

from boleir.errors import SpecError
from boleir.functions import FUNCTIONS
from boleir.ir import Kind
from boleir.language import build
from boleir.language.errors import BadArguments, BadConstant, ControlFlow, UnsupportedOperation
from boleir.language.foreign import foreign
from boleir.language.frames import span_of, target_names, user_frame
from boleir.language.operators import IDENTITY, Meaning
from boleir.language.terms import Term

_POWERS = {2: "square", -1: "reciprocal", Fraction(1, 2): "sqrt", Fraction(-1, 2): "rsqrt"}


_OPERATIONS = "recurrences have + - * / @ .T and the functions of boleir"


class UnknownAttribute(UnsupportedOperation, AttributeError):
    """A traced value was asked for an attribute that recurrences do not have."""


class Traced:
    """A value of the recurrence while its Python function runs: known by kind, not by number."""

    __slots__ = ("_value",)
    __hash__ = object.__hash__

    def __init__(self, value: Meaning) -> None:
        self._value = value

    def __repr__(self) -> str:
        if not isinstance(self._value, Term):
            return f"<{self._value.describe()}>"
        return f"<{self._value.describe()}: {self._value.expr}>"

    @property
    def T(self) -> Traced:
        """The transpose."""
        return Traced(build.transpose(self._value))

    def __neg__(self) -> Traced:
        frame = user_frame()
        return _named(build.negate(self._value, span_of(frame)), target_names(frame))

    def __pos__(self) -> Traced:
        return self

    def __abs__(self) -> Traced:
        return _apply_one("abs", self)

    def __add__(self, other: Operand) -> Traced:
        return _binary(build.add, self, other)

    def __radd__(self, other: Operand) -> Traced:
        if type(other) is int and other == 0:
            return self  # where Python's own sum() starts, whatever the kind of the terms
        return _binary(build.add, other, self)

    def __sub__(self, other: Operand) -> Traced:
        return _binary(build.subtract, self, other)

    def __rsub__(self, other: Operand) -> Traced:
        return _binary(build.subtract, other, self)

    def __mul__(self, other: Operand) -> Traced:
        return _binary(build.multiply, self, other)

    def __rmul__(self, other: Operand) -> Traced:
        return _binary(build.multiply, other, self)

    def __truediv__(self, other: Operand) -> Traced:
        return _binary(build.divide, self, other)

    def __rtruediv__(self, other: Operand) -> Traced:
        return _binary(build.divide, other, self)

    def __matmul__(self, other: Operand) -> Traced:
        return _binary(build.juxtapose, self, other)

    def __rmatmul__(self, other: Operand) -> Traced:
        return _binary(build.juxtapose, other, self)

    def __pow__(self, exponent: object) -> Traced:
        known = exponent if isinstance(exponent, (int, float, Fraction)) else None
        name = _POWERS.get(Fraction(known)) if known is not None and isfinite(known) else None
        if name is None:
            raise UnsupportedOperation(
                "only the powers 2, -1, 0.5 and -0.5 exist",
                span=span_of(user_frame()),
                mend="exp(y * log(x)) is x to the power y",
            )
        return _apply_one(name, self)

    def __bool__(self) -> NoReturn:
        raise _control_flow(
            "a traced value has no truth: 'if', 'while', 'and', 'or' and 'not' cannot use it"
        )

    def __iter__(self) -> NoReturn:
        raise _control_flow("a traced value cannot be unpacked or looped over")

    def __len__(self) -> NoReturn:
        raise _control_flow(
            "a traced value has no length while it is traced; d_k and d_v are the dimensions"
        )

    def _compare(self, other: object) -> NoReturn:
        raise _control_flow("traced values cannot be compared")

    __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = _compare

    def _to_number(self) -> NoReturn:
        raise UnsupportedOperation(
            "a traced value is no number",
            span=span_of(user_frame()),
            mend="use the functions of boleir (boleir.exp, ...), not those of math or numpy",
        )

    __float__ = __int__ = __index__ = __complex__ = __trunc__ = _to_number

    def __round__(self, digits: object = None) -> NoReturn:
        refusal = foreign("round", span_of(user_frame()))
        assert refusal is not None
        raise refusal

    def _unsupported(self, *_: object) -> NoReturn:
        raise _no_operation("recurrences have no such operation")

    __floordiv__ = __rfloordiv__ = __mod__ = __rmod__ = __divmod__ = __rdivmod__ = _unsupported
    __and__ = __rand__ = __or__ = __ror__ = __xor__ = __rxor__ = __invert__ = _unsupported
    __lshift__ = __rlshift__ = __rshift__ = __rrshift__ = __rpow__ = _unsupported
    __getitem__ = __setitem__ = __delitem__ = __contains__ = __call__ = _unsupported

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("__"):
            raise AttributeError(name)
        refusal = foreign(name, span_of(user_frame()))
        if refusal is not None:
            raise refusal
        mend = "the transpose is x.T" if name in ("t", "mT", "transpose") else f"boleir.{name}(x)"
        known = name in FUNCTIONS or name in ("t", "mT", "transpose")
        raise UnknownAttribute(
            f"a traced value has no attribute '{name}'",
            span=span_of(user_frame()),
            mend=mend if known else _OPERATIONS,
        )

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **_: Any) -> Traced:
        rule = _UFUNCS.get(ufunc.__name__) if method == "__call__" and len(inputs) == 2 else None
        if rule is None:
            raise _foreign("numpy", ufunc.__name__)
        return _binary(rule, *inputs)

    def __array_function__(self, function: Any, *_: Any, **__: Any) -> NoReturn:
        # Else numpy takes the value for a number of its own: numpy.dot would multiply elementwise.
        raise _foreign("numpy", getattr(function, "__name__", "function"))

    @classmethod
    def __torch_function__(cls, function: Any, *_: Any, **__: Any) -> NoReturn:
        raise _foreign("torch", getattr(function, "__name__", "function"))


Number = int | float | Fraction
Operand = Traced | Number

Head = Annotated[Traced, Kind.HEAD]
"""Annotation of a head scalar: one number per token and value head (per value head for a
parameter).
"""
Key = Annotated[Traced, Kind.KEY]
"""Annotation of a key vector: d_k numbers."""
Value = Annotated[Traced, Kind.VALUE]
"""Annotation of a value vector: d_v numbers. Exported as `boleir.Value`."""
State = Annotated[Traced, Kind.STATE]
"""Annotation of the state: d_k x d_v numbers."""

d_k = Traced(build.dimension("d_k", None))
"""The key dimension of a head, as a number of the recurrence."""
d_v = Traced(build.dimension("d_v", None))
"""The value dimension of a head."""
I = Traced(IDENTITY)  # noqa: E741
"""The identity matrix, as in `(I - beta * k @ k.T) @ S`."""

_UFUNCS = {
    "add": build.add,
    "subtract": build.subtract,
    "multiply": build.multiply,
    "divide": build.divide,
    "true_divide": build.divide,
    "matmul": build.juxtapose,
}


def value_of(operand: object) -> Meaning:
    """The front-end value of an operand. Raises `UnsupportedOperation`, `BadConstant`."""
    if isinstance(operand, Traced):
        return operand._value
    span = span_of(user_frame())
    if isinstance(operand, bool) or not isinstance(operand, (int, float, Fraction)):
        raise UnsupportedOperation(
            f"a {type(operand).__name__} cannot take part in a recurrence",
            span=span,
            mend="use numbers, or declare it as an input or a parameter",
        )
    if isinstance(operand, float):
        if not isfinite(operand):
            raise BadConstant(f"{operand} is no constant of a recurrence", span=span)
        # The shortest decimal that is this float: what the programmer typed, as the text language
        # reads it.
        return build.constant(Fraction(repr(float(operand))), span)
    return build.constant(Fraction(operand), span)


class TracedFunction:
    """A function of the table, callable on traced values; several arguments, or a tuple, are
    mapped.
    """

    def __init__(self, name: str) -> None:
        self.__name__ = name
        self.__doc__ = f"{name}(x): {FUNCTIONS[name].says}."

    def __repr__(self) -> str:
        return f"<boleir function {self.__name__}>"

    @overload
    def __call__(self, argument: Operand, /) -> Traced: ...
    @overload
    def __call__(self, argument: tuple[Operand, ...], /) -> tuple[Traced, ...]: ...
    @overload
    def __call__(
        self, first: Operand, second: Operand, /, *others: Operand
    ) -> tuple[Traced, ...]: ...
    def __call__(self, *arguments: Any) -> Any:
        """Apply to one argument, to several, or to a tuple of them."""
        return _apply(self.__name__, *arguments)


exp = TracedFunction("exp")
log = TracedFunction("log")
sqrt = TracedFunction("sqrt")
rsqrt = TracedFunction("rsqrt")
reciprocal = TracedFunction("reciprocal")
square = TracedFunction("square")
abs = TracedFunction("abs")
sigmoid = TracedFunction("sigmoid")
softplus = TracedFunction("softplus")
silu = TracedFunction("silu")
tanh = TracedFunction("tanh")
relu = TracedFunction("relu")
l2norm = TracedFunction("l2norm")
sum = TracedFunction("sum")


@overload
def causal_conv(argument: Traced, /, *, width: int) -> Traced: ...
@overload
def causal_conv(argument: tuple[Traced, ...], /, *, width: int) -> tuple[Traced, ...]: ...
@overload
def causal_conv(
    first: Traced, second: Traced, /, *others: Traced, width: int
) -> tuple[Traced, ...]: ...
def causal_conv(*arguments: Any, width: int) -> Any:
    """Causal depthwise convolution of token inputs along the root path, `width` taps; several
    inputs are mapped.
    """
    return _mapped(
        lambda value, span: build.causal_conv(value, width, span), "causal_conv", arguments
    )


def diag(vector: Traced) -> Traced:
    """The diagonal matrix of a key or value vector: `diag(g) @ S`."""
    return Traced(build.diagonal(value_of(vector), span_of(user_frame())))


def dot(left: Traced, right: Traced) -> Traced:
    """x^T y of two vectors of one kind."""
    return _binary(build.dot, left, right)


def outer(key: Traced, value: Traced) -> Traced:
    """k v^T."""
    return _binary(build.outer, key, value)


def _binary(
    rule: Callable[[Meaning, Meaning, Any], Meaning], left: Operand, right: Operand
) -> Traced:
    frame = user_frame()
    return _named(rule(value_of(left), value_of(right), span_of(frame)), target_names(frame))


def _apply(name: str, *arguments: Any) -> Any:
    return _mapped(lambda value, span: build.call(name, value, span), name, arguments)


def _apply_one(name: str, argument: Traced) -> Traced:
    frame = user_frame()
    return _named(build.call(name, argument._value, span_of(frame)), target_names(frame))


def _mapped(rule: Callable[[Meaning, Any], Meaning], name: str, arguments: tuple[Any, ...]) -> Any:
    frame = user_frame()
    span, targets = span_of(frame), target_names(frame)
    given = (
        arguments[0]
        if len(arguments) == 1 and isinstance(arguments[0], (tuple, list))
        else arguments
    )
    if not given:
        raise BadArguments(f"{name} needs an argument", span=span)
    results = [rule(value_of(item), span) for item in given]
    if given is arguments and len(given) == 1:
        return _named(results[0], targets)
    if len(targets) != len(results):
        return tuple(map(Traced, results))
    return tuple(_named(result, (target,)) for result, target in zip(results, targets, strict=True))


def _named(value: Meaning, targets: tuple[str, ...]) -> Traced:
    return Traced(build.named(value, targets[0]) if len(targets) == 1 else value)


def _control_flow(message: str) -> ControlFlow:
    return ControlFlow(
        message,
        span=span_of(user_frame()),
        mend="a recurrence does the same for every token; branch on Python values only",
    )


def _no_operation(message: str) -> UnsupportedOperation:
    return UnsupportedOperation(
        message,
        span=span_of(user_frame()),
        mend=_OPERATIONS,
    )


def _foreign(library: str, name: str) -> SpecError:
    known = {"absolute": "abs", "reciprocal": "reciprocal"}.get(name, name)
    refusal = foreign(name, span_of(user_frame()))
    if refusal is not None:
        return refusal
    return UnsupportedOperation(
        f"{library}.{name} cannot work on a traced value",
        span=span_of(user_frame()),
        mend=f"boleir.{known}" if known in FUNCTIONS else "use the functions of boleir",
    )
