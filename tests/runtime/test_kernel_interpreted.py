"""Verification and commit, interpreted: every schedule and recurrence against the float64 walk.

Each test is one child process in which several kernels run; see `interpreted_kernels` for the
batch: ragged, with an empty request, a padding row, slots out of order, several roots.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import boleir
from boleir.codegen.pipeline import lower
from boleir.codegen.request import Shapes

CHILD = "tests.runtime.interpreted_kernels"
LIMIT = 2e-5
"""Per-node error of the default accuracy; float32 throughout here."""

BASE = {"precision": "ieee", "b_v": 16, "b_k": 16, "node_block": 32}
SCHEDULES: dict[str, dict[str, Any]] = {
    "horner": {},
    "horner, nodes on rows": {"orientation": "nodes"},
    "horner, inline gates": {"gates": "inline"},
    "horner, stored unknowns": {"commit": "factors"},
    "horner, two blocks": {"node_block": 16},
    "levels": {"solver": "levels"},
    "levels, nodes on rows": {"solver": "levels", "orientation": "nodes"},
    "levels, two blocks": {"solver": "levels", "node_block": 16},
    "inverse": {"solver": "inverse"},
    "inverse, two blocks, stored": {"solver": "inverse", "node_block": 16, "commit": "factors"},
    "inverse, nodes on rows": {"solver": "inverse", "orientation": "nodes", "gates": "inline"},
    "product": {"solver": "product"},
    "split inverse": {"fusion": "split", "solver": "inverse"},
    "split inverse, inline": {"fusion": "split", "solver": "inverse", "gates": "inline"},
    "split, nodes on rows": {"fusion": "split", "solver": "inverse", "orientation": "nodes"},
    "split, programs stay": {"fusion": "split", "solver": "inverse", "persistent": 3},
    "horner, programs stay": {"persistent": 2},
    "split product": {"fusion": "split", "solver": "product"},
    "joined": {"fusion": "joined", "solver": "inverse"},
    "joined, preparing": {"fusion": "joined", "solver": "inverse", "prepare": "joined"},
    "joined, inline": {"fusion": "joined", "solver": "inverse", "gates": "inline"},
    "joined, inline, nodes on rows": {
        "fusion": "joined",
        "solver": "inverse",
        "gates": "inline",
        "orientation": "nodes",
        "lead": 1,
    },
}
RECURRENCES: dict[str, tuple[list[int], list[str]]] = {
    "gated_delta_rule": ([1, 2, 24, 24], list(SCHEDULES)),
    "gdn": (
        [1, 3, 32, 16],
        [
            "horner",
            "horner, inline gates",
            "split inverse",
            "joined",
            "joined, preparing",
            "inverse, two blocks, stored",
            "split, programs stay",
        ],
    ),
}
"""Shapes and schedules: all of them once, and with a convolution those that differ by it."""


def _schedules(names: list[str]) -> list[dict[str, Any]]:
    return [{**BASE, **SCHEDULES[name]} for name in names]


def _require_good(report: dict[str, Any]) -> None:
    assert report["output"] <= LIMIT, report
    assert report["states"] <= LIMIT, report
    assert report["windows"], report
    assert report["verify changed"] == report["commit changed"] == [], report


@pytest.mark.parametrize("recurrence", RECURRENCES)
def test_every_schedule_agrees_with_the_walk(
    recurrence: str, run_interpreted: Callable[..., Any]
) -> None:
    shape, names = RECURRENCES[recurrence]
    reports = run_interpreted(
        f"{CHILD}:verify_and_commit",
        recurrence=recurrence,
        schedules=_schedules(names),
        shape=shape,
    )
    for report in reports:
        _require_good(report)


def test_every_recurrence_with_head_decays_agrees_with_the_walk(
    run_interpreted: Callable[..., Any],
) -> None:
    names = [name for name in boleir.names() if name not in RECURRENCES and _decays_by_head(name)]
    assert len(names) >= 8
    for report in run_interpreted(f"{CHILD}:library", names=names, schedules=_for_all()):
        _require_good(report)


def _decays_by_head(name: str) -> bool:
    """The others, and updates from the right, have schedules and tests of their own."""
    plan = lower(boleir.load(name), Shapes(1, 1, 16, 16, 4, 2)).plan
    return plan.key_decay is None and not plan.staged


def _for_all() -> list[dict[str, Any]]:
    """Schedules that any of these can have."""
    return [{**BASE, "gates": "inline"}, {**BASE, "node_block": 16, "commit": "factors"}]


def test_more_nodes_than_a_word_has_bits(run_interpreted: Callable[..., Any]) -> None:
    schedules = [
        {"precision": "ieee", "b_v": 16, "b_k": 32, "node_block": size, **more}
        for size, more in ((64, {}), (16, {"solver": "inverse"}), (32, {"commit": "factors"}))
    ]
    for report in run_interpreted(
        f"{CHILD}:many_nodes", recurrence="gated_delta_rule", schedules=schedules
    ):
        assert report["output"] <= LIMIT, report
        assert report["states"] <= LIMIT, report


def test_strong_decays_cost_the_others_no_digits(run_interpreted: Callable[..., Any]) -> None:
    """Behind log decays of -100 a path sum in one float32 would leave 5e-5."""
    report = run_interpreted(f"{CHILD}:far_decays", shape=[1, 2, 32, 16])
    assert report["output"] <= 5e-6


def test_a_series_cut_short_is_noticed(run_interpreted: Callable[..., Any]) -> None:
    report = run_interpreted(f"{CHILD}:too_shallow", shape=[1, 2, 32, 16])
    assert report["exact"] <= LIMIT
    assert report["cut"] > 1e-3


@pytest.mark.parametrize("shape", [[3, 3, 48, 48], [3, 3, 48, 20]])
def test_windows_of_several_programs(shape: list[int], run_interpreted: Callable[..., Any]) -> None:
    """The last program of an input has channels to spare, and the next input follows it."""
    (report,) = run_interpreted(
        f"{CHILD}:verify_and_commit", recurrence="gdn", schedules=[BASE], shape=shape
    )
    _require_good(report)


def test_nothing_accepted_changes_nothing(run_interpreted: Callable[..., Any]) -> None:
    report = run_interpreted(f"{CHILD}:nothing_accepted", recurrence="gdn", shape=[2, 2, 32, 20])
    assert report == {"changed": []}


@pytest.mark.parametrize("recurrence", RECURRENCES)
def test_outputs_depend_on_nothing_but_ancestors(
    recurrence: str, run_interpreted: Callable[..., Any]
) -> None:
    names = ["horner, two blocks", "split inverse", "joined"]
    reports = run_interpreted(
        f"{CHILD}:invariance",
        recurrence=recurrence,
        schedules=_schedules(names),
        shape=[1, 1, 32, 20],
    )
    for report in reports:
        assert all(report.values()), report


@pytest.mark.parametrize("schedule", ["horner, inline gates", "split inverse", "joined, inline"])
def test_rounds_follow_sequential_decoding(
    schedule: str, run_interpreted: Callable[..., Any]
) -> None:
    worst = run_interpreted(
        f"{CHILD}:rounds",
        recurrence="gdn",
        schedule={**BASE, **SCHEDULES[schedule]},
        shape=[1, 2, 32, 16],
        count=4,
    )
    assert worst["output"] <= LIMIT
    assert worst["state"] <= LIMIT
    assert worst["windows"] == 0.0


def test_inputs_come_as_engines_have_them(run_interpreted: Callable[..., Any]) -> None:
    report = run_interpreted(f"{CHILD}:surroundings", shape=[1, 2, 32, 48])
    assert report == {"leading shape": [1, 31, 2, 48], "leading": True, "flat": True}


def test_a_static_tree_is_verified_and_guarded(run_interpreted: Callable[..., Any]) -> None:
    report = run_interpreted(f"{CHILD}:static_tree", shape=[1, 2, 32, 16])
    assert report["output"] <= LIMIT
    assert "request 1 is not the tree that the kernel was compiled for" in report["refused"]


def test_states_in_sixteen_bits(run_interpreted: Callable[..., Any]) -> None:
    report = run_interpreted(f"{CHILD}:half_states", shape=[1, 2, 32, 16])
    assert report["output"] <= LIMIT
    assert report["states"] <= 1e-3  # rounded once, when they are stored


def test_a_compiled_region_gives_the_same_bits(run_interpreted: Callable[..., Any]) -> None:
    report = run_interpreted(f"{CHILD}:compiled_region", shape=[1, 2, 32, 16])
    assert report["equal"]
    assert all(report["equal"].values()), report
