"""Walks that leave finished rows where nothing is solved: against the float64 walk, with what is
not finite, deeper than they go at a time; no program comes between them and value tiles."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import boleir
from boleir.codegen.interface import interface_of
from boleir.codegen.kernel_spec import Job
from boleir.codegen.offline import CompilePool
from boleir.codegen.pipeline import Lowered, lower
from boleir.codegen.request import Shapes
from boleir.codegen.schedule import Schedule
from boleir.codegen.targets import target
from boleir.runtime.tuning.work import works

CHILD = "tests.codegen.interpreted_key_decay"
LIMIT = 2e-5
ROWS: dict[str, Any] = {
    "fusion": "joined",
    "solver": "inverse",
    "precision": "ieee",
    "b_v": 16,
    "b_k": 16,
    "node_block": 32,
    "walk_nodes": 8,
    "prepare": "joined",
    "gates": "inline",
}
WORDS = {**ROWS, "precision": "fp32", "b_k": 32, "prefetch": True}
CASES: list[list[Any]] = [
    ["gla", [1, 2, 32, 16], ROWS],
    ["rwkv6", [1, 1, 60, 16], {**ROWS, "walk_nodes": 32, "orientation": "nodes"}],
    ["between", [2, 2, 16, 16], {**ROWS, "gates": "prepare", "walk_nodes": 16}],
    ["two_writes", [1, 1, 16, 16], ROWS],
    ["bonus", [1, 2, 16, 20], {**ROWS, "order": "heads"}],
    ["no_write", [1, 1, 16, 16], {**ROWS, "walk_nodes": 4}],
]


def test_outputs_agree_with_the_walk(run_interpreted: Callable[..., Any]) -> None:
    reports = run_interpreted(f"{CHILD}:rounds_of_one", cases=CASES)
    for case, report in zip(CASES, reports, strict=True):
        assert report["output"] <= LIMIT, (case, report)
        assert report["states"] <= LIMIT, (case, report)
        assert report["verify changed"] == report["commit changed"] == [], (case, report)


def test_two_pieces_in_a_word(run_interpreted: Callable[..., Any]) -> None:
    """And each by itself, as products of a GPU take them."""
    apart = {**WORDS, "prefetch": False, "orientation": "nodes"}
    cases = [["gla", [1, 2, 32, 16], WORDS], ["rwkv6", [1, 1, 24, 16], apart]]
    for report in run_interpreted(f"{CHILD}:rounded", cases=cases):
        assert report["output"] <= LIMIT, report


def test_paths_longer_than_walks_go_at_a_time(run_interpreted: Callable[..., Any]) -> None:
    """A chain of 64 nodes; the last bit of a word; roots that have nothing above."""
    schedule = {**ROWS, "node_block": 64, "walk_nodes": 32}
    report = run_interpreted(f"{CHILD}:all_bits_of_a_word", name="gla", schedule=schedule)
    assert max(report.values()) <= LIMIT, report


def test_decays_mixed_over_channels_cost_no_digits(run_interpreted: Callable[..., Any]) -> None:
    schedule = {**ROWS, "node_block": 64, "walk_nodes": 16}
    report = run_interpreted(f"{CHILD}:mixed_channels", name="gla", schedule=schedule, gate="g")
    assert report["output"] <= LIMIT


@pytest.mark.parametrize(
    ("name", "schedule"),
    [("rwkv6", ROWS), ("bonus", {**ROWS, "gates": "prepare"})],
)
def test_what_is_not_finite_reaches_descendants_only(
    name: str, schedule: dict[str, Any], run_interpreted: Callable[..., Any]
) -> None:
    report = run_interpreted(f"{CHILD}:spoiled", name=name, schedule=schedule)
    assert all(report.values()), report


def test_words_keep_what_is_not_finite(run_interpreted: Callable[..., Any]) -> None:
    report = run_interpreted(f"{CHILD}:rounded_spoiled", name="gla", schedule=WORDS)
    assert all(report.values()), report


def test_counters_go_on_with_every_launch(run_interpreted: Callable[..., Any]) -> None:
    """Three programs walk for the head whose four value tiles wait for them."""
    report = run_interpreted(f"{CHILD}:launches", name="gla", schedule=ROWS)
    assert report["output"] <= LIMIT
    assert report["counters"] == [[9, 3, 3, 3, 3], [6, 2, 2, 2, 2], [0] * 5]


def test_siblings_change_no_bit(run_interpreted: Callable[..., Any]) -> None:
    assert run_interpreted(f"{CHILD}:siblings", name="rwkv6", schedule=ROWS)


MUTATIONS = {
    "decays forgotten": (r"q_decayed = q_decayed \* decay_up2", "q_decayed = q_decayed"),
    "the node's own decay": (r"(q_decayed = \w+) \* decay\n", r"\1\n"),
    "nothing of itself": (r"turn == 0, node_reached\[:, None\]", "turn == 0, -1"),
    "columns of the node before": (r"turn == 3, node_up3", "turn == 3, node_up2"),
    "not the nearest": (r"(node_up1 = tl.where\(left_0 != 0), highest", r"\1, 0"),
    "rows as they were": (r"(tl.store\(place \+ cell), nothing", r"\1, 1.0 + nothing"),
}


def test_changes_of_the_text_are_noticed(run_interpreted: Callable[..., Any]) -> None:
    errors = run_interpreted(f"{CHILD}:mutants", name="gla", schedule=ROWS, mutations=MUTATIONS)
    assert errors.pop("") <= LIMIT
    for label, error in errors.items():
        assert not -1.0 <= error <= 50 * LIMIT, (label, error)


# ---- schedules ---------------------------------------------------------------------------

SHAPES = Shapes(16, 32, 128, 128, 64, 8)


def made(name: str, where: str = "sm_90", **options: Any) -> Lowered:
    """Lowered for one request, under the default schedule if nothing is said."""
    recurrence, goal = boleir.load(name), target(where)
    schedule = Schedule(**options) if options else None
    return lower(recurrence, SHAPES, schedule=schedule, target=goal)


@pytest.mark.parametrize("name", ["gla", "rwkv6"])
def test_no_program_comes_between(name: str) -> None:
    """Eight programs walk for a key head, whose four value tiles wait for these alone."""
    lowered = made(name)
    assert [kernel.name for kernel in lowered.kernels] == ["verify", "commit"]
    assert lowered.kernels[0].grid[0] == f"{16 * 8 + 32 * 2} * batch"
    assert "one_system" not in lowered.text
    assert "launch * WALKING" in lowered.text
    found = interface_of(lowered)
    assert (found.products, found.decayed, found.signals) == (0, 0, 16 * (1 + 4))
    assert found.folded == 16 * (64 * 64 + 64 * 128)


@pytest.mark.parametrize("channels", [60, 64, 96, 128, 256])
def test_defaults_take_any_channels(channels: int) -> None:
    for batch in (1, 2, 4):
        shapes = Shapes(1, 2, channels, channels, 64, 8)
        lowered = lower(boleir.load("gla"), shapes, batch=batch, target=target("sm_90"))
        assert lowered.context.leaves_rows


def test_a_solve_has_programs_of_its_own() -> None:
    lowered = made("kda")
    assert lowered.context.spread_walks
    assert "one_system" in lowered.text


def test_work_without_factors() -> None:
    lowered = made("gla")
    found = works(lowered.schedule, lowered.plan, SHAPES, 1)
    assert [work.kernel for work in found] == ["prepare", "values"]


def test_rows_compile_without_a_gpu(pool: CompilePool) -> None:
    lowered = made("rwkv6")
    spec = next(spec for spec in lowered.specs() if spec.name == "verify")
    assert not pool.compile(Job(lowered.text, spec, target("sm_90"))).spills
