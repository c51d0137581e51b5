"""Refusals: each names its term, points at it, and says why."""

from __future__ import annotations

import re
import time

import pytest

from boleir.derive import refusals
from boleir.derive.assemble import assemble
from boleir.derive.notation import plain
from boleir.derive.structure import require_low_rank
from boleir.derive.work import TooComplicated
from boleir.errors import DerivationError
from boleir.ir import (
    Add,
    Call,
    Dot,
    Expr,
    Input,
    Kind,
    Mul,
    Outer,
    Previous,
    Read,
    Recurrence,
)
from tests.boleir.derive_support import form_of

INPUTS = "q: key, k: key, v: value"
A, K, V = Input(Kind.HEAD, "a"), Input(Kind.KEY, "k"), Input(Kind.VALUE, "v")
STATE = Previous(Kind.STATE)

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
        "`-exp(k^T q) * S`",
    ),
    "output without the state": (
        "S = S + k v^T\nout (q^T k) * v",
        refusals.OutputWithoutState,
        "",
    ),
    "channels of a read mixed by the output": (
        "S = S + k v^T\nout (v^T (S^T q)) * v",
        refusals.MixedChannels,
        "v^T (S^T q)",
    ),
    "a state in between, right acting": (
        "T = S + (k - S v) v^T\nS = exp(k^T q) * T\nout T^T q",
        refusals.ReadInBetween,
        "T^T q",
    ),
    "two reads, right acting": (
        "T = S\nS = T + (k - T v) v^T\nout S^T q + T^T k",
        refusals.SeveralReads,
        "S^T q + S^T k",
    ),
    "read along the values": (
        "S = S + k (v - S^T k)^T\nout (q^T (S v)) * v",
        refusals.ReadFromTheWrongSide,
        "S v",
    ),
    "functions of reads multiplied": (
        "h = silu(S^T k)\nS = S + k ((h - v) * h)^T\nout S^T q",
        refusals.FunctionOfState,
        "silu(S^T k)",
    ),
    "division by zero": (
        "S = S + k (v / (v - v))^T\nout S^T q",
        refusals.DivisionByZero,
        "v / (v - v)",
    ),
    "a state divided by zero": (
        "S = S / (k^T q - q^T k) + k v^T\nout S^T q",
        refusals.DivisionByZero,
        "S / (k^T q - q^T k)",
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
    classes = refusals.Refusal.__subclasses__() + refusals.ReadoutNotSupported.__subclasses__()
    reasons = {cls.REASON for cls in classes}
    assert len(reasons) == len(classes) >= 14
    assert {error for _, error, _ in REFUSED.values()} <= set(classes)
    assert all(cls.MEND for cls in classes if cls is not refusals.StateOutsideProducts)


def test_an_input_put_out_is_blamed_where_it_is_put_out() -> None:
    with pytest.raises(refusals.ReadoutNotSupported) as caught:
        form_of("S = S + k v^T\nout v", "k: key, v: value")
    assert caught.value.span is not None
    assert caught.value.span.line == 3


def test_rank_must_be_small_against_the_heads() -> None:
    form = form_of("S = S + k (v - S^T k)^T + q v^T\nout S^T q", INPUTS)
    require_low_rank(form, 32, 32)
    with pytest.raises(refusals.RankTooLarge, match="rank 2"):
        require_low_rank(form, 3, 32)


def micro_steps(count: int) -> str:
    """So many delta steps along sums of vectors, each reading what those before it have written."""
    steps = "\n".join(
        f"S{n + 1} = S{n} + (k + {n + 1} * q) (b * (v - S{n}^T (k + {n + 1} * q)))^T"
        for n in range(count)
    )
    return f"S0 = exp(g) * S\n{steps}\nS = S{count}\nout S^T q"


def test_a_recurrence_that_grows_beyond_reason_is_refused_in_seconds() -> None:
    start = time.process_time()
    with pytest.raises(TooComplicated, match="the recurrence expands to too many terms") as caught:
        form_of(micro_steps(24))
    assert time.process_time() - start < 40
    assert caught.value.span is not None


def test_many_micro_steps_are_within_the_bound() -> None:
    assert form_of(micro_steps(12)).micro_steps == 12


def test_sums_of_more_terms_than_expressions_nest() -> None:
    names = [f"x{n}" for n in range(230)]
    inputs = ", ".join(["q: key, k: key, v: value", *(f"{name}: head" for name in names)])
    groups = [" + ".join(names[n : n + 46]) for n in range(0, 230, 46)]
    total = " + ".join(f"({group})" for group in groups)
    form = form_of(f"S = S + k (({total}) * v)^T\nout S^T q", inputs)
    assert all(re.search(rf"\b{name}\b", plain(form.writes[0].value)) for name in names)


def test_shared_terms_are_not_written_out_in_a_refusal() -> None:
    """Spelled out, the gate would have 2^40 leaves."""
    shared: Expr = A
    for _ in range(40):
        shared = Call(Kind.HEAD, "exp", Mul(Kind.HEAD, shared, shared))
    read = Dot(Kind.HEAD, V, Read(Kind.VALUE, STATE, K))
    gate = Call(Kind.HEAD, "sigmoid", Mul(Kind.HEAD, shared, read))
    update = Add(Kind.STATE, Mul(Kind.STATE, gate, STATE), Outer(Kind.STATE, K, V))
    recurrence = Recurrence("r", (K, V, A), update, Read(Kind.VALUE, update, K))
    with pytest.raises(refusals.GateReadsState) as caught:
        assemble(recurrence)
    assert "..." in caught.value.message
    assert len(caught.value.message) < 400


def test_deep_quotients_are_refused_before_they_are_expanded() -> None:
    nested = "g"
    for _ in range(29):
        nested = f"b / (1 + {nested})"
    start = time.process_time()
    with pytest.raises(TooComplicated, match="the recurrence nests too deep"):
        form_of(f"S = exp({nested}) * S + k v^T\nout S^T q")
    assert time.process_time() - start < 10
