"""Refusals: each names its term, points at it, and says why."""

from __future__ import annotations

import time

import pytest

from boleir.derive import refusals
from boleir.derive.algebra import TooComplicated
from boleir.derive.structure import require_low_rank
from boleir.errors import DerivationError, SpecError
from tests.boleir.derive_support import form_of

INPUTS = "q: key, k: key, v: value"

REFUSED: dict[str, tuple[str, type[refusals.Refusal], str]] = {
    "gate of a read": (
        "g = sigmoid(v^T (S^T k))\nS = g * S + k v^T\nout S^T q",
        refusals.GateReadsState,
        "sigmoid(v^T (S^T k))",
    ),
    "gate without a function": (
        "S = (v^T (S^T k)) * S + k v^T\nout S^T q",
        refusals.GateReadsState,
        "v^T (S^T k)",
    ),
    "vector gate": (
        "S = S * (S^T k) + k v^T\nout S^T q",
        refusals.GateReadsState,
        "S^T k",
    ),
    "product of reads": (
        "S = S + k ((S^T k) * (S^T q) + v)^T\nout S^T q",
        refusals.ProductOfStates,
        "S^T k * S^T q",
    ),
    "read by a read": (
        "S = S + k (v - S^T (S v))^T\nout S^T q",
        refusals.ProductOfStates,
        "S^T (S v)",
    ),
    "function of a read": (
        "S = S + k tanh(v - S^T k)^T\nout S^T q",
        refusals.FunctionOfState,
        "tanh(v - S^T k)",
    ),
    "norm in the output": (
        "S = S + k v^T\nout l2norm(S^T q)",
        refusals.FunctionOfState,
        "l2norm(S^T q)",
    ),
    "division by a read": (
        "S = S + k (v / (S^T k))^T\nout S^T q",
        refusals.DivisionByState,
        "v / (S^T k)",
    ),
    "decay over keys and values": (
        "S = exp(k) * S * exp(v)\nout S^T q",
        refusals.ElementwiseDecay,
        "exp(k) * S * exp(v)",
    ),
    "elementwise matrix": (
        "S = exp(k) * S + exp(v) * S\nout S^T q",
        refusals.ElementwiseDecay,
        "exp(k) * S",
    ),
    "both sides": (
        "S = S + k (v - S^T k)^T + (S v) v^T\nout S^T q",
        refusals.TwoSided,
        "S v",
    ),
    "scalar read times a write": (
        "S = S + (v^T (S^T k)) * (k v^T)\nout S^T q",
        refusals.TwoSided,
        "v^T (S^T k)",
    ),
    "nothing kept": ("S = k v^T\nout S^T q", refusals.ForgetsParent, "k v^T"),
    "negative decay": (
        "S = -exp(k^T q) * S + k v^T\nout S^T q",
        refusals.NotPositive,
        "S",
    ),
    "output without the state": (
        "S = S + k v^T\nout (q^T k) * v",
        refusals.ReadoutNotSupported,
        "",
    ),
    "two gains in the output": (
        "S = S + k v^T\nout v * (S^T q) + S^T k",
        refusals.ReadoutNotSupported,
        "",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str) -> None:
    body, error, shown = REFUSED[name]
    with pytest.raises(error) as caught:
        form_of(body, INPUTS)
    text = str(caught.value)
    assert shown in caught.value.message
    assert "^" in text.splitlines()[2], "a caret under the term"
    assert isinstance(caught.value, DerivationError)


def test_every_refusal_says_why_and_has_a_class_of_its_own() -> None:
    classes = refusals.Refusal.__subclasses__()
    reasons = {cls.REASON for cls in classes}
    assert len(reasons) == len(classes) >= 9
    assert {error for _, error, _ in REFUSED.values()} <= set(classes)


def test_an_input_put_out_is_blamed_where_it_is_put_out() -> None:
    with pytest.raises(refusals.ReadoutNotSupported) as caught:
        form_of("S = S + k v^T\nout v", "k: key, v: value")
    assert caught.value.span is not None
    assert caught.value.span.line == 3


def test_division_by_zero() -> None:
    with pytest.raises(DerivationError, match="division by zero"):
        form_of("S = S + k (v / (g - g))^T\nout S^T q", "q: key, k: key, v: value, g: head")


def test_rank_must_be_small_against_the_heads() -> None:
    form = form_of("S = S + k (v - S^T k)^T + q v^T\nout S^T q", INPUTS)
    require_low_rank(form, 32, 32)
    with pytest.raises(refusals.RankTooLarge, match="rank 2"):
        require_low_rank(form, 3, 32)


def test_a_recurrence_that_grows_beyond_reason_is_refused_in_seconds() -> None:
    steps = "\n".join(
        f"S{n + 1} = S{n} + (k + {n + 1} * q) (b * (v - S{n}^T (k + {n + 1} * q)))^T"
        for n in range(16)
    )
    body = f"S0 = exp(g) * S\n{steps}\nS = S16\nout S^T q"
    start = time.process_time()
    with pytest.raises(TooComplicated, match="too many terms") as caught:
        form_of(body, "q: key, k: key, v: value, g: head, b: head")
    assert time.process_time() - start < 60
    assert caught.value.span is not None


def test_deep_quotients_are_refused_before_they_are_expanded() -> None:
    nested = "g"
    for _ in range(29):
        nested = f"b / (1 + {nested})"
    start = time.process_time()
    with pytest.raises(SpecError, match="nests deeper"):
        form_of(f"S = exp({nested}) * S + k v^T\nout S^T q")
    assert time.process_time() - start < 10
