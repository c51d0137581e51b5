"""The oracles themselves, against loops written out by hand."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import boleir as bole
from boleir.derive.derive import derive
from boleir.errors import CheckError
from boleir.ir import Call, Dot, Expr, Input, Kind, Mul, Per, number
from boleir.oracle import Exact, closed_form, evaluate, sequential
from boleir.oracle.values import Array

PARENTS = (-1, 0, 0, 1, -1, 4, 3)
H, HV, D_K, D_V = 2, 4, 5, 3


def gdn_inputs(rng: np.random.Generator) -> tuple[dict[str, Array], dict[str, Array], dict]:  # type: ignore[type-arg]
    count = len(PARENTS)
    inputs = {
        "q": rng.normal(size=(count, H, D_K)),
        "k": rng.normal(size=(count, H, D_K)),
        "v": rng.normal(size=(count, HV, D_V)),
        "a": rng.normal(size=(count, HV)),
        "b": rng.normal(size=(count, HV)),
        "A_log": rng.normal(size=HV),
        "dt_bias": rng.normal(size=HV),
    }
    channels = {"q": H * D_K, "k": H * D_K, "v": HV * D_V}
    weights = {name: rng.normal(size=(size, 4)) for name, size in channels.items()}
    windows = {name: rng.normal(size=(size, 3)) for name, size in channels.items()}
    return inputs, weights, windows


def path(node: int) -> list[int]:
    found = []
    while node >= 0:
        found.append(node)
        node = PARENTS[node]
    return found[::-1]


def test_walk_is_gdn_written_out() -> None:
    """Gated DeltaNet with its convolution, one root path at a time, plain loops."""
    inputs, weights, windows = gdn_inputs(np.random.default_rng(0))
    start = np.random.default_rng(1).normal(size=(HV, D_K, D_V))
    walk = sequential(bole.load("gdn"), inputs, PARENTS, start, weights=weights, windows=windows)

    def convolved(name: str, node: int) -> Array:
        history = [*windows[name].T, *(inputs[name][n].reshape(-1) for n in path(node))]
        taps = sum(history[-1 - back] * weights[name][:, 3 - back] for back in range(4))
        return (taps / (1 + np.exp(-taps))).reshape(inputs[name].shape[1:])

    for node in range(len(PARENTS)):
        for head in range(HV):
            state = start[head]
            for step in path(node):
                key = convolved("k", step)[head // (HV // H)]
                key = key / np.sqrt(key @ key + 1e-6)
                query = convolved("q", step)[head // (HV // H)]
                query = query / np.sqrt(query @ query + 1e-6) / np.sqrt(D_K)
                rate = np.log1p(np.exp(inputs["a"][step, head] + inputs["dt_bias"][head]))
                state = np.exp(-np.exp(inputs["A_log"][head]) * rate) * state
                beta = 1 / (1 + np.exp(-inputs["b"][step, head]))
                update = beta * (convolved("v", step)[head] - state.T @ key)
                state = state + np.outer(key, update)
            assert np.allclose(walk.states[node][head], state, rtol=1e-12, atol=1e-12)
            assert np.allclose(walk.output[node, head], state.T @ query, rtol=1e-12, atol=1e-12)


def test_closed_form_solvers_agree() -> None:
    inputs, weights, windows = gdn_inputs(np.random.default_rng(2))
    start = np.random.default_rng(3).normal(size=(HV, D_K, D_V))
    form = derive(bole.load("gdn"))
    series, substitution = (
        closed_form(form, inputs, PARENTS, start, weights=weights, windows=windows, solver=solver)
        for solver in ("series", "substitution")
    )
    assert np.allclose(series.output, substitution.output, rtol=1e-12, atol=1e-13)
    assert np.array_equal(series.commit(-1), start)
    with pytest.raises(ValueError, match="unknown solver"):
        closed_form(form, inputs, PARENTS, start, weights=weights, windows=windows, solver="magic")


def test_only_wanted_states_are_kept() -> None:
    inputs, weights, windows = gdn_inputs(np.random.default_rng(0))
    walk = sequential(
        bole.load("gdn"),
        inputs,
        PARENTS,
        np.zeros((HV, D_K, D_V)),
        weights=weights,
        windows=windows,
        keep=(3,),
    )
    assert list(walk.states) == [3]


def test_an_empty_tree() -> None:
    recurrence = bole.load("gated_delta_rule")
    empty = {"q": np.zeros((0, 1, 4)), "k": np.zeros((0, 1, 4)), "v": np.zeros((0, 2, 3))}
    empty |= {"a": np.zeros((0, 2)), "b": np.zeros((0, 2))}
    empty |= {"A_log": np.zeros(2), "dt_bias": np.zeros(2)}
    state = np.ones((2, 4, 3))
    assert sequential(recurrence, empty, (), state).output.shape == (0, 2, 3)
    solution = closed_form(derive(recurrence), empty, (), state)
    assert solution.output.shape == (0, 2, 3)
    assert np.array_equal(solution.commit(-1), state)


K = Input(Kind.KEY, "k")
B = Input(Kind.HEAD, "b")
A = Input(Kind.HEAD, "A", Per.HEAD)


def test_evaluate_shapes_and_grouped_heads() -> None:
    keys = np.arange(12.0).reshape(2, 2, 3)
    scale = np.array([[1.0, 2, 3, 4], [5, 6, 7, 8]])
    scaled = evaluate(Mul(Kind.KEY, B, K), {"k": keys, "b": scale})
    assert scaled.shape == (2, 4, 3)
    assert np.array_equal(scaled[1, 3], 8 * keys[1, 1])  # value head 3 uses key head 3 // 2
    dots = evaluate(Dot(Kind.HEAD, K, K), {"k": keys})
    assert np.allclose(dots, (keys**2).sum(-1))
    assert evaluate(A, {"A": np.ones(4)}).shape == (1, 4)


def test_evaluate_names_what_is_missing() -> None:
    with pytest.raises(CheckError, match="no array for input 'b'"):
        evaluate(B, {}, parents=[-1])
    inputs = gdn_inputs(np.random.default_rng(0))[0]
    with pytest.raises(CheckError, match="convolution weights"):
        sequential(bole.load("gdn"), inputs, PARENTS, np.zeros((HV, D_K, D_V)))
    with pytest.raises(CheckError, match="no multiple"):
        evaluate(Mul(Kind.KEY, B, K), {"k": np.ones((1, 2, 3)), "b": np.ones((1, 3))})


def call(fn: str, argument: Expr) -> Expr:
    return Call(argument.kind, fn, argument)


def test_exact_functions_are_tables_of_their_arguments() -> None:
    field = Exact(0)
    same = field.call("exp", field.array([[1, 1, 2]]))
    assert same[0, 0] == same[0, 1]
    assert field.call("exp", field.array([[0]]))[0, 0] == 1
    assert field.call("rsqrt", field.array([[3]])) == 1 / field.call("sqrt", field.array([[3]]))
    assert field.call("sum", field.array([[1, 2, 4]]))[0, 0] == 7
    vectors = field.call("l2norm", field.array([[1, 2], [1, 2], [2, 1]]))
    assert (vectors[0] == vectors[1]).all()


def test_exact_arithmetic_does_not_overflow() -> None:
    """numpy's whole numbers must not survive inside the fractions."""
    field = Exact()
    values = field.array(np.array([2**31], dtype=np.int64))
    for _ in range(5):
        values = values * values
    assert values[0] == Fraction(2) ** (31 * 32)


def test_exact_and_float_walks_agree_on_rational_recurrences() -> None:
    recurrence = bole.parse(
        "recurrence r(q: key, k: key, v: value, b: head)\n"
        "  S = S / 2 + k (b * (v - S^T k))^T\n  out S^T q\n"
    )
    rng = np.random.default_rng(4)
    inputs = {
        "q": rng.integers(-3, 4, (7, 1, 3)),
        "k": rng.integers(-3, 4, (7, 1, 3)),
        "v": rng.integers(-3, 4, (7, 2, 2)),
        "b": rng.integers(1, 3, (7, 2)),
    }
    state = rng.integers(-3, 4, (2, 3, 2))
    exact = sequential(recurrence, inputs, PARENTS, state, field=Exact()).output
    floats = sequential(recurrence, inputs, PARENTS, state).output
    assert np.allclose(exact.astype(float), floats, rtol=1e-12)
    assert isinstance(exact[0, 0, 0], Fraction)


def test_constant_vectors_sum_over_the_dimension() -> None:
    ones = Mul(Kind.KEY, number(1), call("exp", Mul(Kind.KEY, number(0), K)))
    assert evaluate(Dot(Kind.HEAD, ones, ones), {"k": np.ones((1, 1, 6))})[0, 0] == 6
