"""Walks that programs of the prepare kernel share, a few nodes each: against the float64 walk, with
what is not finite, with the last bit of a word; compiled without a GPU."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import boleir
from boleir.codegen.interface import interface_of
from boleir.codegen.kernel_spec import Job
from boleir.codegen.offers import offered_schedules
from boleir.codegen.offline import CompilePool
from boleir.codegen.pipeline import Lowered, lower
from boleir.codegen.request import Shapes
from boleir.codegen.schedule import InvalidSchedule, Schedule
from boleir.codegen.targets import target
from boleir.runtime.tuning.space import Space
from boleir.runtime.tuning.work import works

CHILD = "tests.codegen.interpreted_key_decay"
LIMIT = 2e-5
SPLIT: dict[str, Any] = {
    "fusion": "split",
    "solver": "inverse",
    "precision": "ieee",
    "b_v": 16,
    "b_k": 16,
    "node_block": 32,
    "walk_nodes": 8,
}
JOINED = {**SPLIT, "fusion": "joined", "walk_nodes": 16}
FIRST = {**JOINED, "prepare": "joined"}
WALKED = {**SPLIT, "fusion": "walked", "solver": "horner", "node_block": 16}
CASES: list[list[Any]] = [
    ["kda", [1, 2, 32, 16], JOINED],
    ["dplr", [1, 2, 32, 16], {**SPLIT, "walk_nodes": 4}],
    ["gla", [1, 2, 32, 16], FIRST],
    ["kda", [1, 2, 32, 16], {**FIRST, "gates": "inline", "walk_nodes": 8}],
    ["rwkv7", [1, 2, 32, 16], {**JOINED, "gates": "inline"}],
    ["squashed", [1, 1, 16, 16], {**SPLIT, "gates": "inline"}],
    ["value_strength", [1, 1, 16, 16], {**WALKED, "gates": "inline", "node_block": 32}],
    ["rwkv7", [2, 4, 20, 16], JOINED],
    ["rwkv6", [1, 1, 60, 16], {**SPLIT, "walk_nodes": 32}],
    ["one_vector", [1, 1, 16, 16], SPLIT],
    ["kda_bounded", [1, 2, 16, 32], {**FIRST, "orientation": "nodes", "order": "heads"}],
    ["squashed", [1, 2, 16, 16], JOINED],
    ["lasting_steps", [1, 1, 16, 16], SPLIT],
    ["two_pairs", [1, 1, 16, 16], SPLIT],
    ["micro_steps", [1, 1, 16, 16], WALKED],
    ["value_strength", [1, 1, 16, 16], WALKED],
    ["of_parameters", [1, 2, 16, 16], JOINED],
]


def test_recurrences_agree_with_the_walk(run_interpreted: Callable[..., Any]) -> None:
    reports = run_interpreted(f"{CHILD}:rounds_of_one", cases=CASES)
    for case, report in zip(CASES, reports, strict=True):
        assert report["output"] <= LIMIT, (case, report)
        assert report["states"] <= LIMIT, (case, report)
        assert report["verify changed"] == report["commit changed"] == [], (case, report)


def test_vectors_in_pieces(run_interpreted: Callable[..., Any]) -> None:
    """As a GPU takes them, behind the folded tiles of a head."""
    case = ["kda", [1, 2, 32, 16], {**FIRST, "precision": "fp32"}]
    (report,) = run_interpreted(f"{CHILD}:rounded", cases=[case])
    assert report["output"] <= LIMIT, report


def test_trees_of_several_words(run_interpreted: Callable[..., Any]) -> None:
    case = ["kda", [1, 1, 16, 16], {**WALKED, "node_block": 64, "walk_nodes": 16}, 140]
    (report,) = run_interpreted(f"{CHILD}:many_blocks", cases=[case])
    assert max(report.values()) <= LIMIT, report


def test_trees_fill_a_word(run_interpreted: Callable[..., Any]) -> None:
    schedule = {**SPLIT, "node_block": 64, "walk_nodes": 32}
    report = run_interpreted(f"{CHILD}:all_bits_of_a_word", name="kda", schedule=schedule)
    assert max(report.values()) <= LIMIT, report


def test_decays_mixed_over_channels_cost_no_digits(run_interpreted: Callable[..., Any]) -> None:
    schedule = {**JOINED, "node_block": 64}
    report = run_interpreted(f"{CHILD}:mixed_channels", name="gla", schedule=schedule, gate="g")
    assert report["output"] <= LIMIT


@pytest.mark.parametrize(
    ("name", "schedule"),
    [
        ("kda", FIRST),
        ("squashed", SPLIT),
        ("dplr", {**FIRST, "gates": "inline"}),
        ("squashed", {**JOINED, "gates": "inline"}),
    ],
)
def test_what_is_not_finite_reaches_descendants_only(
    name: str, schedule: dict[str, Any], run_interpreted: Callable[..., Any]
) -> None:
    report = run_interpreted(f"{CHILD}:spoiled", name=name, schedule=schedule)
    assert all(report.values()), report


def test_siblings_change_no_bit(run_interpreted: Callable[..., Any]) -> None:
    assert run_interpreted(f"{CHILD}:siblings", name="kda", schedule=SPLIT)


MUTATIONS = {
    "a step too few": (r"range\(0, deepest \+ 1\)", "range(0, deepest)"),
    "decays forgotten": (r"passed = passed \* decay_reached", "passed = passed"),
    "vectors of the node itself": (r"k_tile_reached = k_tile_next", "k_tile_reached = k_tile"),
    "inputs of the node before": (
        r"node_reached = node_next\n",
        "node_reached = tl.where(node_next == 0, 0, node_next - 1)\n",
    ),
    "columns of the step": (r"\[:, None\] \+ path", "[:, None] + tl.where(path < 0, path, turn)"),
    "another head": (r"products \+ \(\(VALUE_HEADS \+ head\)", "products + (VALUE_HEADS"),
    "rows of another vector": (r"(tl.load\(place \+ \d+ \+ )\(node \*", r"\1((node ^ 1) *"),
}  # fmt: skip


def test_changes_of_the_text_are_noticed(run_interpreted: Callable[..., Any]) -> None:
    errors = run_interpreted(f"{CHILD}:mutants", name="kda", schedule=SPLIT, mutations=MUTATIONS)
    assert errors.pop("") <= LIMIT
    for label, error in errors.items():
        assert not -1.0 <= error <= 50 * LIMIT, (label, error)


# ---- schedules ---------------------------------------------------------------------------


def made(name: str, shapes: Shapes, where: str = "sm_90", **options: Any) -> Lowered:
    """Lowered under the plain split schedule with walks of 16 nodes."""
    fields = {"fusion": "split", "solver": "inverse", "b_k": 64, "walk_nodes": 16, **options}
    schedule = Schedule(**fields)
    return lower(boleir.load(name), shapes, schedule=schedule, target=target(where))


SHAPES = Shapes(4, 8, 64, 64, 64, 8)


@pytest.mark.parametrize(
    ("name", "options", "why"),
    [
        ("gated_delta_rule", {}, "has no decays per key channel"),
        ("kda", {"path_sum": "dot"}, "path_sum must be select, not dot"),
        ("kda", {"walk_nodes": 64}, "walk_nodes must be one of 0, 4, 8, 16, 32"),
    ],
)
def test_what_no_walk_is_shared_for_is_refused(name: str, options: Any, why: str) -> None:
    with pytest.raises(InvalidSchedule, match=why):
        made(name, SHAPES, **options)


def test_programs_share_the_nodes_of_a_head() -> None:
    """And no kernel but theirs knows parents or keeps decays."""
    lowered = made("kda", SHAPES)
    kernels = {kernel.name: kernel for kernel in lowered.kernels}
    assert list(kernels) == ["prepare", "factors", "values", "commit"]
    assert kernels["prepare"].grid[0] == f"{8 * 4} * batch"
    assert "k" not in dict(kernels["factors"].arguments)
    found = interface_of(lowered)
    assert (found.decayed, found.products, found.columns) == (0, 2, 64)
    walked = made("kda", Shapes(4, 8, 64, 64, 130, 8), fusion="walked")
    assert [kernel.name for kernel in walked.kernels] == ["prepare", "verify", "commit"]
    assert walked.kernels[0].grid[0] == f"{8 * 9} * batch"


def test_tuners_try_shared_walks_for_few_requests() -> None:
    """As an offer, and around any schedule that they may come with."""
    plan, shapes = made("kda", SHAPES).plan, SHAPES
    few, many = (offered_schedules(plan, shapes, batch) for batch in (1, 16))
    assert any(schedule.walk_nodes for schedule in few)
    assert not any(schedule.walk_nodes for schedule in many)
    space = Space(plan, shapes, target("sm_90"))
    base = Schedule(fusion="split", solver="inverse", b_k=64)
    assert {x.walk_nodes for x in space.neighbours(base)} == {0, 4, 8, 16, 32}


def test_work_is_counted_where_it_is_done() -> None:
    plan = made("kda", SHAPES).plan
    fields: dict[str, Any] = {"fusion": "split", "solver": "inverse", "b_k": 64, "factor_warps": 8}
    whole, spread = (
        {work.kernel: work for work in works(Schedule(**fields, walk_nodes=n), plan, SHAPES, 1)}
        for n in (0, 16)
    )
    assert spread["prepare"].programs == 8 * 4
    assert spread["prepare"].steps == 9
    assert spread["factors"].steps == whole["factors"].steps - 9
    assert spread["factors"].operations < whole["factors"].operations


@pytest.mark.parametrize("name", ["kda", "dplr"])
@pytest.mark.parametrize("where", ["sm_80", "sm_90", "sm_120"])
def test_walks_compile_without_a_gpu(name: str, where: str, pool: CompilePool) -> None:
    lowered = made(name, Shapes(4, 8, 128, 64, 64, 8), where, factor_warps=8)
    spec = next(spec for spec in lowered.specs() if spec.name == "prepare")
    assert not pool.compile(Job(lowered.text, spec, target(where))).spills
