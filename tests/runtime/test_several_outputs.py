"""Kernels of recurrences with several outputs, interpreted: one verification, one commit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.codegen.several_outputs import TEXTS

CHILD = "tests.runtime.interpreted_kernels"
ERRORS = "tests.runtime.interpreted_outputs:errors"
LIMIT = 2e-5
SHAPE = [1, 2, 32, 20]

BASE = {"precision": "ieee", "b_v": 16, "b_k": 16, "node_block": 32}
SPLIT = {**BASE, "fusion": "split", "solver": "inverse"}
SCHEDULES: dict[str, list[dict[str, Any]]] = {
    "two_queries": [
        {**BASE, "gates": "inline"},
        SPLIT,
        {**SPLIT, "stages": 2, "orientation": "nodes", "factor_heads": 2},
    ],
    "surprised": [
        {**BASE, "solver": "levels", "commit": "factors"},
        {**SPLIT, "gates": "inline", "orientation": "nodes"},
        {**SPLIT, "fusion": "joined"},
    ],
    "written_only": [BASE, SPLIT],
    "two_steps": [BASE, SPLIT],
    "channel_decays": [
        SPLIT,
        {**SPLIT, "path_sum": "dot"},
        {**BASE, "fusion": "walked"},
    ],
    "channel_writes": [{**SPLIT, "gates": "inline"}, {**SPLIT, "path_sum": "dot"}],
    "value_strength": [BASE],
    "watching": [BASE],
    "value_decays": [{**BASE, "fusion": "staged"}],
    "from_the_right": [{**BASE, "fusion": "staged"}],
}
assert set(SCHEDULES) == set(TEXTS)
BLOCKED: dict[str, tuple[str, int, dict[str, Any]]] = {
    "folded": ("surprised", 20, {**SPLIT, "prefetch": True}),
    "folded, in loops": ("surprised", 40, SPLIT),
    "folded, pure writes": ("written_only", 40, SPLIT),
    "folded, several pairs": ("two_steps", 20, SPLIT),
    "fused": ("two_queries", 20, BASE),
    "fused, several pairs": ("two_steps", 40, BASE),
    "fused, watching": ("watching", 40, BASE),
    "walked": ("channel_decays", 20, {**BASE, "fusion": "walked"}),
    "staged": ("from_the_right", 40, {**BASE, "fusion": "staged"}),
}


def _agree(recurrence: str, schedules: Any, run_interpreted: Callable[..., Any]) -> None:
    reports = run_interpreted(
        f"{CHILD}:verify_and_commit", recurrence=recurrence, schedules=schedules, shape=SHAPE
    )
    for report in reports:
        assert report["output"] <= LIMIT, report
        assert report["states"] <= LIMIT, report
        assert report["windows"], report
        assert report["verify changed"] == report["commit changed"] == [], report


def test_every_output_agrees_with_its_walk(run_interpreted: Callable[..., Any]) -> None:
    """Default schedules, one tree each."""
    _right(run_interpreted(ERRORS, names=list(TEXTS)))


@pytest.mark.parametrize("name", BLOCKED)
def test_outputs_of_several_node_blocks(name: str, run_interpreted: Callable[..., Any]) -> None:
    recurrence, nodes, schedule = BLOCKED[name]
    schedule = {**schedule, "node_block": 16}
    _right(run_interpreted(ERRORS, names=[recurrence], nodes=nodes, schedule=schedule))


def _right(reports: dict[str, Any]) -> None:
    for name, report in reports.items():
        assert len(report["outputs"]) == TEXTS[name].count("\n  out "), name
        assert max(*report["outputs"], report["state"]) <= LIMIT, (name, report)


def test_outputs_of_a_ragged_batch(run_interpreted: Callable[..., Any]) -> None:
    _agree("written_only", [{**SPLIT, "factor_heads": 2, "order": "heads"}], run_interpreted)


@pytest.mark.parametrize("recurrence", SCHEDULES)
def test_every_schedule(recurrence: str, run_interpreted: Callable[..., Any]) -> None:
    _agree(recurrence, SCHEDULES[recurrence], run_interpreted)


@pytest.mark.parametrize(
    "recurrence", ["value_strength", "channel_writes", "two_queries", "channel_decays"]
)
def test_outputs_depend_on_nothing_but_ancestors(
    recurrence: str, run_interpreted: Callable[..., Any]
) -> None:
    (report,) = run_interpreted(
        f"{CHILD}:invariance",
        recurrence=recurrence,
        schedules=SCHEDULES[recurrence][-1:],
        shape=SHAPE,
    )
    assert all(report.values()), report


def test_rounds_with_deferred_commits_follow_sequential_decoding(
    run_interpreted: Callable[..., Any],
) -> None:
    """The state is walked once for all outputs, where the first verification reads it."""
    worst = run_interpreted(
        f"{CHILD}:rounds",
        recurrence="surprised",
        schedule={**SPLIT, "commit": "deferred"},
        shape=SHAPE,
        count=2,
    )
    assert worst["output"] <= LIMIT
    assert worst["state"] <= LIMIT


def test_a_compiled_region_gives_the_same_bits(run_interpreted: Callable[..., Any]) -> None:
    report = run_interpreted(
        f"{CHILD}:compiled_region", shape=[1, 1, 32, 16], recurrence="channel_writes"
    )
    assert "output 3" in report["equal"]  # two of either layer
    assert all(report["equal"].values()), report
