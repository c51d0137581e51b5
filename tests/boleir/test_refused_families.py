"""The families of document 3.4 that have no closed form: refused from text and from Python alike.

Each case is one recurrence in both spellings, the class of its error, the term under the caret in
the text, the words on the line of Python that is pointed at, and a word of the reason.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

import boleir as bole
from boleir.derive import refusals
from boleir.language import errors
from tests.boleir.derive_support import form_of, used_inputs

INPUTS = "q: key, k: key, v: value, w: value, a: head"


@dataclass(frozen=True, slots=True)
class Refused:
    """One family. The body may use any of `INPUTS`."""

    body: str
    function: Callable[..., Any]
    error: type[bole.BoleirError]
    term: str
    python: str
    reason: str
    mend: str = ""
    """A part of the mend as a traced function has it."""


def lstm(S, q, k, v, w: bole.Value, a):  # type: ignore[no-untyped-def]
    hidden = S.T @ q
    forget = bole.sigmoid(a + w.T @ hidden)
    S = forget * S + k @ v.T
    return S, S.T @ q


def normed(S, q, k, v):  # type: ignore[no-untyped-def]
    S = S + k @ bole.l2norm(v - S.T @ k).T
    return S, S.T @ q


def clipped(S, q, k, v):  # type: ignore[no-untyped-def]
    S = S.clamp(-1, 1) + k @ v.T
    return S, S.T @ q


def softmaxed(S, q, k, v):  # type: ignore[no-untyped-def]
    u = (v - S.T @ k).softmax(-1)
    S = S + k @ u.T
    return S, S.T @ q


def slstm(S, q, k, v, w: bole.Value, a):  # type: ignore[no-untyped-def]
    S = bole.exp(a) * S + k @ v.T
    return S, (S.T @ q) / (w.T @ (S.T @ q))


def mlp(S, q, k, v):  # type: ignore[no-untyped-def]
    hidden = bole.silu(S.T @ k)
    S = S + k @ (v - hidden).T
    return S, S.T @ q


def muon(S, q, k, v):  # type: ignore[no-untyped-def]
    S = S + k @ v.T - S @ S.T @ S
    return S, S.T @ q


def twice(S, q, k, v):  # type: ignore[no-untyped-def]
    S = S - (S @ (S.T @ k)) @ v.T
    return S, S.T @ q


def rounded(S, q, k, v):  # type: ignore[no-untyped-def]
    S = S.bfloat16() + k @ v.T
    return S, S.T @ q


def elementwise(S, q, k, v, w: bole.Value):  # type: ignore[no-untyped-def]
    decay = k @ w.T
    S = decay * S + k @ v.T
    return S, S.T @ q


def both_channels(S, q, k, v, w: bole.Value):  # type: ignore[no-untyped-def]
    S = bole.diag(bole.exp(k)) @ S @ bole.diag(bole.exp(w)) + k @ v.T
    return S, S.T @ q


def both_sides(S, q, k, v, w: bole.Value):  # type: ignore[no-untyped-def]
    erased = S - k @ (S.T @ k).T
    S = erased - (S @ w) @ w.T + k @ v.T
    return S, S.T @ q


REFUSED = {
    "gate that reads the state (LSTM)": Refused(
        "h = S^T q\nf = sigmoid(a + w^T h)\nS = f * S + k v^T\nout S^T q",
        lstm,
        refusals.GateReadsState,
        "sigmoid(a + w^T h)",
        "bole.sigmoid(a + w.T @ hidden)",
        "a factor of the state depends on the state itself",
    ),
    "norm of a read": Refused(
        "S = S + k l2norm(v - S^T k)^T\nout S^T q",
        normed,
        refusals.FunctionOfState,
        "l2norm(v - S^T k)",
        "bole.l2norm(v - S.T @ k)",
        "a non-linear function of the state is not affine in it",
    ),
    "clipped state": Refused(
        "S = clamp(S, -1, 1) + k v^T\nout S^T q",
        clipped,
        errors.ClipOfState,
        "clamp",
        "S.clamp",
        "clipping is not affine",
    ),
    "softmax of a read": Refused(
        "u = softmax(v - S^T k)\nS = S + k u^T\nout S^T q",
        softmaxed,
        errors.SoftmaxOfState,
        "softmax",
        "(v - S.T @ k).softmax",
        "a softmax is not affine",
    ),
    "division by the state (sLSTM)": Refused(
        "S = exp(a) * S + k v^T\nout (S^T q) / (w^T (S^T q))",
        slstm,
        refusals.DivisionByState,
        "(S^T q) / (w^T (S^T q))",
        "(S.T @ q) / (w.T @ (S.T @ q))",
        "dividing by a term that reads the state",
    ),
    "hidden layer (TTT-MLP)": Refused(
        "h = silu(S^T k)\nS = S + k (v - h)^T\nout S^T q",
        mlp,
        refusals.FunctionOfState,
        "silu(S^T k)",
        "bole.silu(S.T @ k)",
        "non-linear function of the state",
    ),
    "orthogonalised state (Muon)": Refused(
        "S = S + k v^T - S S^T S\nout S^T q",
        muon,
        errors.ProductOfStateMatrices,
        "S S^T",
        "S @ S.T",
        "linearly only",
    ),
    "read by a read": Refused(
        "S = S - (S (S^T k)) v^T\nout S^T q",
        twice,
        refusals.ProductOfStates,
        "S (S^T k)",
        "S @ (S.T @ k)",
        "quadratic",
    ),
    "rounded state": Refused(
        "S = bfloat16(S) + k v^T\nout S^T q",
        rounded,
        errors.RoundedState,
        "bfloat16",
        "S.bfloat16",
        "rounding inside a recurrence",
    ),
    "a decay for every entry": Refused(
        "F = k w^T\nS = F * S + k v^T\nout S^T q",
        elementwise,
        errors.ElementwiseState,
        "F * S",
        "decay * S",
        "has no matrix form",
    ),
    "decays of both sides": Refused(
        "S = diag(exp(k)) * S * diag(exp(w)) + k v^T\nout S^T q",
        both_channels,
        refusals.ElementwiseDecay,
        "diag(exp(k)) * S * diag(exp(w))",
        "bole.diag(bole.exp(k)) @ S @ bole.diag(bole.exp(w))",
        "has no matrix form",
        "boleir.diag(g) @ S) or value channels (S @ boleir.diag(h)",
    ),
    "low rank on both sides": Refused(
        "S' = S - k (S^T k)^T\nS = S' - (S w) w^T + k v^T\nout S^T q",
        both_sides,
        refusals.TwoSided,
        "S w",
        "S @ w",
        "on the keys and on the values",
        "S.T @ k for a left-acting update, S @ v for a right-acting",
    ),
}


def _under_caret(error: bole.BoleirError) -> str:
    span = error.span
    assert span is not None
    return span.source.line(span.line)[span.column - 1 : span.end_column - 1]


@pytest.mark.parametrize("name", REFUSED)
def test_from_text(name: str) -> None:
    case = REFUSED[name]
    with pytest.raises(case.error) as caught:
        form_of(case.body, used_inputs(case.body, INPUTS))
    assert type(caught.value) is case.error
    assert _under_caret(caught.value) == case.term
    assert case.reason in str(caught.value)
    assert caught.value.mend


@pytest.mark.parametrize("name", REFUSED)
def test_from_python(name: str) -> None:
    case = REFUSED[name]
    with pytest.raises(case.error) as caught:
        bole.derive(bole.recurrence(case.function))
    assert type(caught.value) is case.error
    span = caught.value.span
    assert span is not None
    assert span.source.name.endswith("test_refused_families.py")
    assert span.line in range(*_lines(case.function))
    assert case.python in _under_caret(caught.value)
    assert case.reason in str(caught.value)
    assert case.mend in str(caught.value)
    assert "^T" not in str(caught.value).splitlines()[-1]


def _lines(function: Callable[..., Any]) -> tuple[int, int]:
    source, first = inspect.getsourcelines(function)
    return first, first + len(source)


def test_rank_that_is_not_small_is_refused_where_heads_are_known() -> None:
    from boleir.derive.structure import require_low_rank

    body = "S = S + k (v - S^T k)^T + q w^T\nout S^T q"
    form = form_of(body, used_inputs(body, INPUTS))
    with pytest.raises(refusals.RankTooLarge, match=r"rank 2 per token, .* against 3") as caught:
        require_low_rank(form, 3, 16)
    assert _under_caret(caught.value) == "S + k (v - S^T k)^T + q w^T"


def test_functions_that_the_package_does_not_have_say_why() -> None:
    with pytest.raises(AttributeError, match="a softmax is not affine in the state") as caught:
        bole.softmax  # type: ignore[attr-defined]  # noqa: B018
    assert isinstance(caught.value, bole.SpecError)
    assert "bole.softmax" in _under_caret(caught.value)
    assert not hasattr(bole, "clip")
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        bole.nothing  # type: ignore[attr-defined]  # noqa: B018
