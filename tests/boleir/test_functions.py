"""The table of functions: values, kinds, bounds and spellings of every row."""

from __future__ import annotations

import ast

import numpy as np
import pytest
import sympy

from boleir.functions import FUNCTIONS, L2_EPSILON, NAMES, STRUCTURAL, Function
from boleir.ir import Kind

ELEMENTWISE = sorted(name for name, row in FUNCTIONS.items() if row.elementwise)
POSITIVE = np.array([1e-3, 0.25, 1.0, 3.0, 19.9, 20.1, 50.0])
ANY = np.concatenate([-POSITIVE[::-1], [0.0], POSITIVE])
NEEDS_POSITIVE = {"log", "sqrt", "rsqrt", "reciprocal"}

REFERENCE = {
    "exp": sympy.exp,
    "log": sympy.log,
    "sqrt": sympy.sqrt,
    "rsqrt": lambda x: 1 / sympy.sqrt(x),
    "reciprocal": lambda x: 1 / x,
    "square": lambda x: x * x,
    "abs": sympy.Abs,
    "sigmoid": lambda x: 1 / (1 + sympy.exp(-x)),
    "softplus": lambda x: sympy.log(1 + sympy.exp(x)) if x <= 20 else x,
    "silu": lambda x: x / (1 + sympy.exp(-x)),
    "tanh": sympy.tanh,
    "relu": lambda x: sympy.Max(x, 0),
}


def arguments(name: str) -> np.ndarray:
    """Where the function is defined."""
    return POSITIVE if name in NEEDS_POSITIVE else ANY


@pytest.mark.parametrize("name", ELEMENTWISE)
def test_values_against_high_precision(name: str) -> None:
    values = FUNCTIONS[name].numpy(arguments(name))
    for x, y in zip(arguments(name), values, strict=True):
        exact = float(sympy.N(REFERENCE[name](sympy.Rational(float(x))), 40))
        assert y == pytest.approx(exact, rel=4e-16 if name != "softplus" else 1e-15, abs=0)


@pytest.mark.parametrize("name", ELEMENTWISE)
def test_values_stay_within_the_stated_bounds(name: str) -> None:
    values = FUNCTIONS[name].numpy(arguments(name))
    assert np.all(values >= FUNCTIONS[name].low)
    assert np.all(values <= FUNCTIONS[name].high)


@pytest.mark.parametrize("name", ["sigmoid", "softplus", "silu", "tanh", "exp"])
def test_extreme_arguments_raise_no_warning(name: str) -> None:
    with np.errstate(over="raise", invalid="raise", divide="raise"):
        values = FUNCTIONS[name].numpy(np.array([-700.0, 700.0]))
    assert np.all(np.isfinite(values))


def test_vector_functions_work_along_the_last_axis() -> None:
    x = np.random.default_rng(0).normal(size=(3, 2, 5))
    norm = FUNCTIONS["l2norm"].numpy(x)
    assert norm.shape == x.shape
    np.testing.assert_allclose(norm, x / np.sqrt((x**2).sum(-1, keepdims=True) + L2_EPSILON))
    assert np.all(FUNCTIONS["l2norm"].numpy(np.zeros(4)) == 0)
    np.testing.assert_array_equal(FUNCTIONS["sum"].numpy(x), x.sum(-1))


def test_kinds() -> None:
    assert FUNCTIONS["exp"].result(Kind.KEY) is Kind.KEY
    assert FUNCTIONS["sum"].result(Kind.VALUE) is Kind.HEAD
    assert FUNCTIONS["l2norm"].takes == {Kind.KEY, Kind.VALUE}
    for row in FUNCTIONS.values():
        assert Kind.STATE not in row.takes  # the state may enter linearly only


@pytest.mark.parametrize("row", FUNCTIONS.values(), ids=lambda row: row.name)
def test_spellings(row: Function) -> None:
    triton = row.to_triton("x", axis=1)
    ast.parse(triton, mode="eval")
    assert "@" not in triton
    assert "AXIS" not in triton
    assert "@" not in row.to_latex("x_i")
    assert "x_i" in row.to_latex("x_i")
    assert row.says
    if row.elementwise:
        symbol = sympy.Symbol("x")
        assert row.to_sympy(symbol).has(symbol)


@pytest.mark.parametrize("name", ELEMENTWISE)
def test_triton_spellings_are_accurate_in_float32(name: str) -> None:
    class Language:
        """What the spellings use of `triton.language`, on numpy arrays."""

        exp, exp2, log, sqrt, abs = np.exp, np.exp2, np.log, np.sqrt, np.abs
        where, minimum, maximum = np.where, np.minimum, np.maximum

        @staticmethod
        def rsqrt(x: np.ndarray) -> np.ndarray:
            return np.float32(1) / np.sqrt(x)

    fine = np.concatenate([np.linspace(0.001, 30, 3000), [1e-5, 50.0]])
    x = (fine if name in NEEDS_POSITIVE else np.concatenate([-fine, fine])).astype(np.float32)
    with np.errstate(over="ignore"):
        value = eval(FUNCTIONS[name].to_triton("x"), {"tl": Language, "x": x})
    assert value.dtype == np.float32
    exact = FUNCTIONS[name].numpy(x.astype(np.float64))
    np.testing.assert_allclose(value, exact, rtol=4e-6, atol=1e-30)


def test_every_name_is_known_once() -> None:
    assert frozenset(FUNCTIONS) | frozenset(STRUCTURAL) == NAMES
    assert not set(FUNCTIONS) & set(STRUCTURAL)
    assert all(name == row.name for name, row in FUNCTIONS.items())
