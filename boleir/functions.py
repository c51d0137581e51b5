"""The functions a recurrence may call, in one table.

Whatever a part of boleir needs to know about a function is a field of its row: the kinds it takes
and gives, its value in float64, its spelling in sympy, LaTeX and Triton, and bounds of its range.
Adding a row adds the function to the text language, to traced Python, to the oracle and to the
emitter.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import inf
from types import MappingProxyType, ModuleType
from typing import Any

from boleir.ir import Kind

L2_EPSILON = 1e-6
"""Added to the sum of squares inside the root of `l2norm`."""
SOFTPLUS_LINEAR = 20.0
"""Above this, softplus(x) is x: the convention of the published kernels."""

SCALAR_OR_VECTOR = frozenset({Kind.HEAD, Kind.KEY, Kind.VALUE})
VECTOR = frozenset({Kind.KEY, Kind.VALUE})


def _np() -> ModuleType:
    """numpy, imported when a value is first computed: the table alone must not cost its import."""
    import numpy

    return numpy


@dataclass(frozen=True, slots=True)
class Function:
    """One row. In the spellings `@` stands for the argument and `AXIS` for the axis that a vector
    runs along.
    """

    name: str
    says: str
    """What it computes, for help texts and emitted glossaries."""
    numpy: Callable[[Any], Any]
    """Value for a float64 array; a vector function works along the last axis, and `sum` drops it.
    """
    latex: str
    triton: str
    sympy: str | None = None
    """Name in the sympy namespace; None stands for an undefined function of the same name."""
    takes: frozenset[Kind] = SCALAR_OR_VECTOR
    gives: Kind | None = None
    """Kind of the result; None: that of the argument."""
    part: str = ""
    """What stands in `triton` several times as `#`: emitters give it a name."""
    low: float = -inf
    high: float = inf
    """Bounds of the range over the reals (elementwise functions)."""

    @property
    def elementwise(self) -> bool:
        """Whether each entry of the result depends on one entry of the argument."""
        return Kind.HEAD in self.takes

    def result(self, argument: Kind) -> Kind:
        """Kind of the result for an argument of kind `argument`, which must be in `takes`."""
        return argument if self.gives is None else self.gives

    def to_latex(self, argument: str) -> str:
        """LaTeX of the call, `argument` being LaTeX already."""
        return self.latex.replace("@", argument)

    def to_triton(self, argument: str, axis: int = 0, part: str = "") -> str:
        """Triton expression for the call; give an atom (a name) as `argument`, since it may occur
        several times, and one for `part`, or none.
        """
        text = self.triton.replace("#", part or f"({self.part})")
        return text.replace("@", argument).replace("AXIS", str(axis))

    def to_sympy(self, argument: Any) -> Any:
        """The sympy expression for the call (elementwise functions of a scalar)."""
        import sympy

        spelled = getattr(sympy, self.sympy) if self.sympy else sympy.Function(self.name)
        return spelled(argument)


def _sigmoid(x: Any) -> Any:
    np = _np()
    small = np.exp(-np.abs(x))  # never overflows, whatever the sign
    return np.where(x >= 0, 1.0, small) / (1.0 + small)


def _softplus(x: Any) -> Any:
    np = _np()
    return np.where(x > SOFTPLUS_LINEAR, x, np.log1p(np.exp(np.minimum(x, SOFTPLUS_LINEAR))))


def _horner(variable: str, coefficients: tuple[float, ...]) -> str:
    """The text of `variable` times a polynomial of it, lowest coefficient first."""
    text = repr(coefficients[-1])
    for coefficient in reversed(coefficients[:-1]):
        text = f"({coefficient!r} + {variable} * {text})"
    return f"{variable} * {text}"


def _l2norm(x: Any) -> Any:
    np = _np()
    return x / np.sqrt(np.sum(x * x, axis=-1, keepdims=True) + L2_EPSILON)


# log(1 + e) with e = exp(-|x|) is e times a polynomial, within 2e-7 for all e up to one. In float32
# 1 + e has lost the digits of a small e, and the library's logarithm takes three times as long.
_LOG1P = (
    0.99999994, -0.49999493, 0.33319086, -0.24842922, 0.19105825, -0.13662934, 0.07822299,
    -0.029503778, 0.0052324063,
)  # fmt: skip
_SOFTPLUS = f"(tl.maximum(@, 0.0) + {_horner('#', _LOG1P)})"
# The square of an inverse root takes fewer instructions than a division that holds for all numbers.
_SILU = "(@ * tl.rsqrt(@E) * tl.rsqrt(@E))".replace("@E", "1.0 + tl.exp2(@ * -1.4426950408889634)")
_TANH = (
    "tl.where(tl.abs(@) > 0.1, 1.0 - 2.0 / (1.0 + tl.exp(2.0 * @)), "
    "@ * (1.0 - @ * @ * (0.3333333333 - 0.1333333333 * @ * @)))"
)

_ROWS = (
    Function(
        "exp",
        "natural exponential",
        lambda x: _np().exp(x),
        r"\exp(@)",
        "tl.exp(@)",
        "exp",
        low=0.0,
    ),
    Function("log", "natural logarithm", lambda x: _np().log(x), r"\log(@)", "tl.log(@)", "log"),
    Function(
        "sqrt", "square root", lambda x: _np().sqrt(x), r"\sqrt{@}", "tl.sqrt(@)", "sqrt", low=0.0
    ),
    Function(
        "rsqrt",
        "1 / sqrt(x)",
        lambda x: 1.0 / _np().sqrt(x),
        r"\left(@\right)^{-1/2}",
        "tl.rsqrt(@)",
        low=0.0,
    ),
    Function("reciprocal", "1 / x", lambda x: 1.0 / x, r"\frac{1}{@}", "(1.0 / @)"),
    Function("square", "x * x", lambda x: x * x, r"\left(@\right)^{2}", "(@ * @)", low=0.0),
    Function(
        "abs",
        "absolute value",
        lambda x: _np().abs(x),
        r"\left|@\right|",
        "tl.abs(@)",
        "Abs",
        low=0.0,
    ),
    Function(
        "sigmoid",
        "1 / (1 + exp(-x))",
        _sigmoid,
        r"\sigma(@)",
        "(1.0 / (1.0 + tl.exp(-@)))",
        low=0.0,
        high=1.0,
    ),
    Function(
        "softplus",
        "log(1 + exp(x)), and x itself above 20",
        _softplus,
        r"\operatorname{softplus}(@)",
        _SOFTPLUS,
        # a power of two costs two instructions, tl.exp six: it keeps subnormal results
        part="tl.exp2(tl.abs(@) * -1.4426950408889634)",
        low=0.0,
    ),
    Function(
        "silu",
        "x * sigmoid(x)",
        lambda x: x * _sigmoid(x),
        r"\operatorname{silu}(@)",
        _SILU,
        low=-0.2784645427610738,
    ),
    Function(
        "tanh",
        "hyperbolic tangent",
        lambda x: _np().tanh(x),
        r"\tanh(@)",
        _TANH,
        "tanh",
        low=-1.0,
        high=1.0,
    ),
    Function(
        "relu",
        "max(x, 0)",
        lambda x: _np().maximum(x, 0.0),
        r"\operatorname{relu}(@)",
        "tl.where(@ < 0.0, 0.0, @)",
        low=0.0,
    ),
    Function(
        "l2norm",
        "x / sqrt(sum(x^2) + 1e-6)",
        _l2norm,
        r"\operatorname{l2norm}(@)",
        "(@ * tl.rsqrt(tl.sum(@ * @, axis=AXIS, keep_dims=True) + 1e-6))",
        takes=VECTOR,
    ),
    Function(
        "sum",
        "sum of the entries of a vector",
        lambda x: _np().sum(x, axis=-1),
        r"\textstyle\sum @",
        "tl.sum(@, axis=AXIS)",
        takes=VECTOR,
        gives=Kind.HEAD,
    ),
)

FUNCTIONS: Mapping[str, Function] = MappingProxyType({row.name: row for row in _ROWS})
"""Every function by name."""

STRUCTURAL: Mapping[str, str] = MappingProxyType(
    {
        "causal_conv": "causal_conv(x, width=4): depthwise convolution along the root path",
        "diag": "diag(g): the diagonal matrix of a key or value vector",
        "dot": "dot(x, y): x^T y",
        "outer": "outer(k, v): k v^T",
    }
)
"""Names that are called like functions but are constructors of the IR, with their help."""

NAMES = frozenset(FUNCTIONS) | frozenset(STRUCTURAL)
"""All names that the language reads as functions."""
