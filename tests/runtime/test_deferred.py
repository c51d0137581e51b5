"""Deferred commits beside ordinary ones, interpreted: the same outputs and states, whoever is in
the batch and whenever something is flushed; and refusals of what would lose an update."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

CHILD = "tests.runtime.interpreted_deferred"
LIMIT = 2e-5
BASE = {"precision": "ieee", "b_v": 16, "b_k": 32, "node_block": 16}
FUSED = {**BASE, "fusion": "fused"}
SPLIT = {**BASE, "fusion": "split", "solver": "inverse"}
JOINED = {**SPLIT, "fusion": "joined"}
CHUNKS = {**SPLIT, "b_k": 16}


@pytest.mark.parametrize(
    ("recurrence", "schedules", "shape"),
    [
        ("gdn", [SPLIT], [1, 2, 32, 24]),
        ("gated_delta_rule", [{**FUSED, "gates": "inline"}, {**SPLIT, "b_v": 32}], [1, 1, 24, 40]),
        ("gated_delta_rule", [{**JOINED, "gates": "inline"}, CHUNKS], [1, 1, 32, 24]),
        ("kda", [CHUNKS], [1, 1, 32, 16]),
        ("gated_delta_product", [SPLIT], [1, 1, 32, 16]),
        ("mamba2", [SPLIT], [1, 1, 32, 16]),
    ],
)
def test_rounds_give_what_ordinary_commits_give(
    recurrence: str,
    schedules: list[dict[str, Any]],
    shape: list[int],
    run_interpreted: Callable[..., Any],
) -> None:
    arguments = {"recurrence": recurrence, "schedules": schedules, "shape": shape}
    for report in run_interpreted(f"{CHILD}:rounds", count=5, **arguments):
        assert report == {"output": True, "state": True, "window": True}


def test_rounds_follow_sequential_decoding(run_interpreted: Callable[..., Any]) -> None:
    worst = run_interpreted(
        "tests.runtime.interpreted_kernels:rounds",
        recurrence="gdn",
        schedule={**SPLIT, "node_block": 32, "commit": "deferred"},
        shape=[1, 2, 32, 16],
        count=7,
    )
    assert worst["output"] <= LIMIT and worst["state"] <= LIMIT, worst
    assert worst["windows"] == 0.0


def test_states_of_sixteen_bits_are_rounded_where_a_commit_rounds_them(
    run_interpreted: Callable[..., Any],
) -> None:
    report = run_interpreted(f"{CHILD}:half_states", schedule=SPLIT, shape=[1, 2, 32, 16])
    assert report == {"output": True, "state": True, "window": True}


def test_a_commit_may_happen_at_once(run_interpreted: Callable[..., Any]) -> None:
    report = run_interpreted(f"{CHILD}:now", schedule=SPLIT, shape=[1, 2, 32, 16])
    assert report == {"output": True, "state": True, "window": True}


def test_what_would_lose_an_update_is_refused(run_interpreted: Callable[..., Any]) -> None:
    said = run_interpreted(f"{CHILD}:misuse", schedule=SPLIT, shape=[1, 2, 32, 16])
    expected = [
        "target_slots cannot be deferred",
        "track_slots cannot be deferred",
        "stays in the slots that were verified",
        "slot 1 holds a state that accepted tokens still wait for",
        "the pool holds a state that accepted tokens still wait for",
        "keeps up to 5 accepted tokens per slot, the kernel takes paths of 6",
    ]
    assert len(said) == len(expected)
    for text, part in zip(said, expected, strict=True):
        assert part in text


def test_a_slot_that_begins_anew_forgets_what_waited(run_interpreted: Callable[..., Any]) -> None:
    report = run_interpreted(f"{CHILD}:adopted", schedule=SPLIT, shape=[1, 2, 32, 16])
    assert report == {"cleared": True, "kept": True}
