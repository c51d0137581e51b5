"""Readers of the state folded into one: against the float64 walk, in pieces as a GPU takes them,
with what is not finite; compiled without a GPU."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from boleir.codegen.kernel_spec import Job
from boleir.codegen.offline import CompilePool
from boleir.codegen.pipeline import Lowered, lower
from boleir.codegen.request import Shapes
from boleir.codegen.schedule import InvalidSchedule, Schedule
from boleir.codegen.targets import target
from tests.codegen.recurrences import recurrence

KEY_DECAYS = "tests.codegen.interpreted_key_decay"
VARIANTS = "tests.codegen.interpreted_variants"
OUTPUTS = "tests.runtime.interpreted_outputs:errors"
DIGITS = "tests.codegen.interpreted_digits"
LIMIT = 2e-5
SPLIT: dict[str, Any] = {
    "fusion": "split", "solver": "inverse", "gates": "inline", "precision": "ieee", "b_v": 16,
    "b_k": 16, "node_block": 32, "factor_warps": 1, "readers": "folded",
}  # fmt: skip
JOINED = {**SPLIT, "fusion": "joined", "orientation": "nodes"}
SUMS = {**SPLIT, "path_sum": "dot"}
SPREAD = {**JOINED, "gates": "prepare", "walk_nodes": 8}
CASES: list[list[Any]] = [
    ["kda", [1, 2, 80, 16], {**SUMS, "b_k": 32, "node_block": 64, "factor_warps": 4}, 40],
    ["kda", [1, 2, 20, 24], {**JOINED, "path_sum": "dot", "gates": "prepare"}],
    ["kda", [1, 2, 32, 16], SPLIT],
    ["kda", [1, 2, 60, 16], {**SPREAD, "prepare": "joined"}],
    ["dplr", [1, 1, 32, 16], {**SPLIT, "gates": "prepare", "walk_nodes": 16}],
    ["rwkv7", [1, 2, 16, 24], {**JOINED, "path_sum": "dot"}],
]
"""Decays per key channel: sums, walks, shared walks; pairs that add nothing of their own."""


def test_decays_per_key_channel(run_interpreted: Callable[..., Any]) -> None:
    reports = run_interpreted(f"{KEY_DECAYS}:rounds_of_one", cases=CASES)
    for case, report in zip(CASES, reports, strict=True):
        assert report["output"] <= LIMIT, (case, report)
        assert report["verify changed"] == report["commit changed"] == [], (case, report)


HEADS: list[tuple[str, dict[str, Any]]] = [
    ("gated_delta_rule", JOINED),
    ("gated_delta_rule", {**SPLIT, "factor_heads": 2, "persistent": 1}),
    ("gdn", {**JOINED, "gates": "prepare", "prepare": "joined"}),
    ("comba", {**SPLIT, "gates": "prepare"}),
    ("iplr", {**SPLIT, "commit": "deferred"}),
]


def test_decays_per_head(run_interpreted: Callable[..., Any]) -> None:
    cases = [
        {
            "name": name, "shape": [1, 2, 40, 24], "nodes": 20, "depth": 3 if name == "iplr" else 7,
            "seed": 1, "schedule": schedule,
        }
        for name, schedule in HEADS
    ]  # fmt: skip
    reports = run_interpreted(f"{VARIANTS}:variants", cases=cases)
    for case, report in zip(cases, reports, strict=True):
        assert "refused" not in report, (case, report)
        assert report["output"] <= LIMIT, (case, report)
        assert report["state"] <= LIMIT, (case, report)


def test_several_outputs(run_interpreted: Callable[..., Any]) -> None:
    """Of which some read the state by the same query, or by none."""
    for name, schedule in (("two_queries", {**JOINED, "gates": "prepare"}), ("surprised", SPLIT)):
        (report,) = run_interpreted(OUTPUTS, names=[name], nodes=20, schedule=schedule).values()
        assert max(*report["outputs"], report["state"]) <= LIMIT, (name, report)
    for schedule in (SUMS, SPREAD):
        (report,) = run_interpreted(
            OUTPUTS, names=["channel_decays"], nodes=20, schedule=schedule
        ).values()
        assert max(*report["outputs"], report["state"]) <= LIMIT, (schedule, report)


def test_pieces_keep_the_digits_of_hard_systems(run_interpreted: Callable[..., Any]) -> None:
    """Much is written and erased again: keys alike, strengths up to two, strong decays."""
    errors = run_interpreted(f"{DIGITS}:folded_readers")
    assert len(errors) == 2
    assert max(errors.values()) <= LIMIT, errors


@pytest.mark.parametrize(
    ("name", "schedule"),
    [
        ("gated_delta_rule", JOINED),
        ("comba", {**SPLIT, "gates": "prepare"}),
        ("kda", SUMS),
        ("kda", SPREAD),
    ],
)
def test_what_is_not_finite_reaches_descendants_only(
    name: str, schedule: dict[str, Any], run_interpreted: Callable[..., Any]
) -> None:
    report = run_interpreted(f"{KEY_DECAYS}:spoiled", name=name, schedule=schedule)
    assert all(report.values()), report


def test_siblings_change_no_bit(run_interpreted: Callable[..., Any]) -> None:
    assert run_interpreted(f"{KEY_DECAYS}:siblings", name="kda", schedule=SUMS)
    assert run_interpreted(f"{KEY_DECAYS}:siblings", name="gated_delta_rule", schedule=JOINED)


MUTATIONS = {
    "nothing is erased": (r"tl\.dot\(erased_fold, ", "tl.dot(0.0 * erased_fold, "),
    "the wrong sign": (r"erased_fold = fold \* -", "erased_fold = fold * "),
    "no decay of what is erased": (r"fold \* -erase_row\[None, :\]", "-fold"),
    "rows of other nodes": (
        r"(reader_c0_0 = tl\.load\(place \+ \d+ \+ )\(node",
        r"\1((node ^ 1)",
    ),
    "no right side": (r"v_finite = tl\.where\(", "v_finite = 0.0 * tl.where("),
}


def test_changes_of_the_text_are_noticed(run_interpreted: Callable[..., Any]) -> None:
    schedule = {**SPLIT, "b_k": 32}
    errors = run_interpreted(
        f"{KEY_DECAYS}:mutants", name="gated_delta_rule", schedule=schedule, mutations=MUTATIONS
    )
    assert errors.pop("") <= LIMIT
    for label, error in errors.items():
        assert error > 50 * LIMIT, (label, error)


# ---- schedules ---------------------------------------------------------------------------


def made(name: str, shapes: Shapes, where: str = "sm_90", **options: Any) -> Lowered:
    """Lowered under a split schedule."""
    fields = {"fusion": "split", "solver": "inverse", "b_k": 64, "readers": "folded", **options}
    return lower(recurrence(name), shapes, schedule=Schedule(**fields), target=target(where))


@pytest.mark.parametrize(
    ("name", "options", "why"),
    [
        ("gated_delta_rule", {"fusion": "fused"}, "fused schedules, whose value tiles solve"),
        ("mamba2", {}, "mamba2, which has no pairs"),
        ("gated_delta_product", {}, "gated_delta_product, which has 2 pairs"),
        ("gated_delta_rule", {"node_block": 32, "gates": "prepare"}, "64 nodes in blocks of 32"),
        (
            "gated_delta_rule",
            {"b_k": 32, "stages": 2, "orientation": "nodes"},
            "loops over key chunks",
        ),
        ("gated_delta_rule", {"readers": "none"}, "readers must be one of apart, folded"),
    ],
)
def test_what_has_no_single_reader_is_refused(name: str, options: Any, why: str) -> None:
    with pytest.raises(InvalidSchedule, match=why):
        made(name, Shapes(4, 8, 64, 64, 64, 8), **options)


def test_narrow_products_of_warp_groups_are_refused() -> None:
    with pytest.raises(InvalidSchedule, match="d_k 32"):
        made("gated_delta_rule", Shapes(4, 8, 32, 64, 64, 8), b_k=32)
    made("gated_delta_rule", Shapes(4, 8, 32, 64, 64, 8), "sm_80", b_k=32)


def test_value_tiles_read_no_vectors_of_tokens() -> None:
    """Nor row scalars, nor the state more than once."""
    lowered = made("gated_delta_rule", Shapes(4, 8, 64, 64, 64, 8))
    values = next(kernel for kernel in lowered.kernels if kernel.name == "values")
    assert not {"q", "k", "rows"} & set(dict(values.arguments))
    assert values.text.count("tl.load(place + ") == 4


@pytest.mark.parametrize("where", ["sm_80", "sm_90", "sm_120"])
def test_kernels_compile_without_a_gpu(where: str, pool: CompilePool) -> None:
    """On sm_90 as many requests with decays per key channel would take them."""
    wide = {"path_sum": "dot", "gates": "inline", "orientation": "nodes"}
    if where == "sm_90":
        lowered = made("kda", Shapes(4, 8, 128, 64, 64, 8), where, **wide)
    else:
        lowered = made("delta_rule", Shapes(4, 8, 64, 64, 16, 8), where, b_v=32, node_block=16)
    for spec in lowered.specs():
        if spec.name != "commit":
            assert not pool.compile(Job(lowered.text, spec, target(where))).spills
