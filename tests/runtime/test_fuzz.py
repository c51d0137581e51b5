"""Any valid point of the schedule space is correct: a small sample of the random trials, and the
shapes of what longer runs have found. `python -m tests.runtime.fuzz` runs as many as wanted."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from boleir.codegen.schedule import Schedule
from tests.runtime import fuzz_cases
from tests.runtime.fuzz import Worker, shrunk
from tests.runtime.fuzz_limits import LIMIT, ROUNDED, allowed

SAMPLE = range(5000, 5003)

FOUND = {
    "one convolution behind two functions": """
recurrence two_functions(q: key, k: key, w: value, b: head)
  w = silu(causal_conv(w, width=3))
  k = l2norm(k)
  S = S + k (tanh(w) - sigmoid(b) * (S^T k))^T
  out w * (S^T l2norm(q))
""",
    "a decay that may be zero": """
recurrence zero_decay(q: key, k: key, v: value, a: head)
  k = l2norm(k)
  S' = relu(a) * S
  u = v / 2 - S'^T k / 2
  S = S' + k u^T
  out S^T l2norm(q)
""",
    "a decay of nothing": """
recurrence no_rest(q: key, k: key, v: value, a: head)
  k = l2norm(k)
  u = v / 2 - S^T k / 2
  S = exp(-exp(20 * a)) * S + k u^T
  out S^T l2norm(q)
""",
    "values that only the output reads": """
recurrence aside(q: key, k: key, v: value, w: value, a: head)
  S = sigmoid(a) * S + l2norm(k) w^T
  out S^T l2norm(q) + sigmoid(a) * v
""",
    "a convolved scalar of composed vectors": """
recurrence composed(q: key, k: key, v: value, b: head)
  q, k = silu(causal_conv(q, k, width=2))
  k = l2norm(k * l2norm(k) + 1)
  S = S + k (sigmoid(b) * (v - S^T k))^T
  out S^T l2norm(q)
""",
    "names that kernels have for something else": """
recurrence named(q: key, k: key, values: value, a: head, b: head; factors: head, turns: head)
  k = l2norm(k)
  owed = sigmoid(b + factors)
  paid = sigmoid(b + turns)
  S' = exp(-softplus(a)) * S
  u = owed * (values - S'^T k)
  S = S' + (paid * k) u^T
  out S^T l2norm(q)
""",
}

CANCELS = """
recurrence cancels(q: key, k: key, p: key, v: value, w: value, a: head, b: head; A: head, t: value)
  a = a - exp(A)
  v = v + t
  q, k, p = l2norm(q, k, p)
  a = -softplus(a)
  u0 = (0.5) * (w - (S^T (k * p)) - (S^T (b * k)))
  T0 = S + (l2norm(k)) (b * u0)^T
  u1 = w - (T0^T (l2norm(k)))
  T1 = T0 + ((k + a * p)) (u1)^T
  S = T1
  out b * (S^T q) + a * v
"""
"""With scalars of 80 the first step writes 3200 times what stands along a key, and the second
erases it: float64 walks of inputs that are moved by 2^-22 agree within 5e-7 of an output, and walks
in float32 are off by 4e-5 to 1.3e-4."""


def _case(text: str, seed: int, **schedule: Any) -> dict[str, Any]:
    case = {
        "recurrence": text,
        "shape": [1, 2, 20, 24],
        "nodes": 12,
        "depth": 5,
        "static": None,
        "dtype": "bfloat16",
        "state_dtype": "float32",
        "out_dtype": "float32",
        "schedule": Schedule(b_v=16, b_k=16, node_block=16, pdl=False, **schedule).to_json(),
    }
    assert fuzz_cases.accepted(case)
    return {"seed": seed} | case | fuzz_cases._round(random.Random(seed), case) | {"spoil": True}


def test_a_sample_of_random_trials(run_interpreted: Callable[..., Any]) -> None:
    cases = [fuzz_cases.draw(seed) for seed in SAMPLE]
    for case, faults in zip(
        cases, run_interpreted("tests.runtime.fuzz_trial:trials", cases=cases), strict=True
    ):
        assert not faults, (case, faults)


def test_what_longer_runs_have_found(run_interpreted: Callable[..., Any]) -> None:
    schedules: tuple[dict[str, Any], ...] = (
        {"gates": "inline"},
        {"precision": "ieee"},
        {"fusion": "split", "solver": "inverse", "gates": "inline"},
        {"fusion": "joined", "solver": "inverse", "gates": "inline"},
    )
    cases = [
        _case(text, seed, **fields)
        for text in FOUND.values()
        for seed, fields in enumerate(schedules)
    ]
    for case, faults in zip(
        cases, run_interpreted("tests.runtime.fuzz_trial:trials", cases=cases), strict=True
    ):
        assert not faults, (case, faults)


def test_earlier_launches_of_programs_that_walk(run_interpreted: Callable[..., Any]) -> None:
    """Every head counts its own, two for each launch: a trial with other counters would hang."""
    walking = {"fusion": "joined", "solver": "inverse", "prepare": "joined", "walk_nodes": 8}
    case = _case("gla", 1, **walking)
    (faults,) = run_interpreted("tests.runtime.fuzz_trial:trials", cases=[case])
    assert not faults, (case, faults)


def test_what_cancels_in_any_walk_is_no_fault(run_interpreted: Callable[..., Any]) -> None:
    case = _case(CANCELS, 7022, fusion="split", solver="inverse", gates="inline", precision="ieee")
    request = case["requests"][0] | {"parents": [-1], "keys": "random", "strength": None}
    request |= {"log_decay": None, "twist": "scalars", "accepted": 0, "slot": 8, "target": 8}
    case |= {"shape": [2, 4, 64, 17], "dtype": "float32", "requests": [request]}
    (faults,) = run_interpreted("tests.runtime.fuzz_trial:trials", cases=[case])
    assert not faults, (case, faults)


def test_what_is_rounded_counts_only_where_it_is_much() -> None:
    reference, limit = np.ones((1, 4)), 2 * (LIMIT["ieee"] + 2.0**-23)
    usual = allowed(reference, [reference], [reference + 1e-6], "float32", "ieee")
    assert usual == pytest.approx(limit)
    lost = allowed(reference, [reference], [reference + 1e-3], "float32", "ieee")
    assert lost == pytest.approx(ROUNDED * 2e-3)
    overflowed = allowed(reference, [reference], [reference + np.inf], "float32", "ieee")
    assert overflowed == pytest.approx(limit)


def test_infinite_inputs_that_a_function_makes_finite_are_not_lost(
    run_interpreted: Callable[..., Any],
) -> None:
    """Here sigmoid(v) for v = -inf: what is left is the norm of zeros."""
    case = _case("computed", 10, gates="inline", precision="ieee")
    (faults,) = run_interpreted("tests.runtime.fuzz_trial:trials", cases=[case])
    assert not faults, (case, faults)


def test_draws_repeat() -> None:
    assert fuzz_cases.draw(11) == fuzz_cases.draw(11)


class _Picky(Worker):
    """Fails whatever holds two nodes or more in bfloat16."""

    def __init__(self) -> None:
        self.tried = 0

    def __call__(self, case: dict[str, Any]) -> list[str]:
        self.tried += 1
        long = any(len(request["parents"]) >= 2 for request in case["requests"])
        return ["wrong"] if long and case["dtype"] == "bfloat16" else []


def test_failures_shrink_to_what_makes_them() -> None:
    worker = _Picky()
    case = shrunk(_case(FOUND["a decay that may be zero"], 3, gates="prepare"), worker)
    assert [len(request["parents"]) for request in case["requests"]] == [2]
    assert case["dtype"] == "bfloat16" and case["shape"] == [1, 1, 16, 16]
    assert case["schedule"]["gates"] == "inline" and worker.tried < 100


@pytest.mark.parametrize(("mutation", "seed"), [("mask", 5), ("scale", 5), ("guard", 2)])
def test_trials_notice_wrong_kernels(
    mutation: str, seed: int, run_interpreted: Callable[..., Any]
) -> None:
    case = _case(FOUND["values that only the output reads"], seed, precision="ieee")
    assert run_interpreted("tests.runtime.fuzz_trial:mutant", case=case, mutation=mutation)
