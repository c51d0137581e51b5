"""Programs that prepare in the launch of those that wait for them: outputs, counters, refusals."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

import boleir
from boleir.codegen.launch_spec import evaluate_grid
from boleir.codegen.pipeline import Lowered, lower
from boleir.codegen.request import Shapes
from boleir.codegen.schedule import InvalidSchedule, Schedule
from boleir.codegen.targets import target

CHILD = "tests.codegen.interpreted_preparations"
LIMIT = 2e-5
BASE = {"precision": "ieee", "b_v": 16, "b_k": 16, "node_block": 16, "prepare": "joined"}
JOINED = {**BASE, "fusion": "joined", "solver": "inverse"}
CASES: list[tuple[str, list[int], int, dict[str, Any]]] = [
    ("gdn", [1, 2, 16, 32], 12, {**JOINED, "lead": 1}),
    ("gdn", [2, 6, 20, 24], 17, {**JOINED, "node_block": 32, "gates": "inline", "prefetch": True}),
    ("gdn", [1, 2, 32, 16], 9, {**JOINED, "stages": 2, "order": "heads"}),
    ("gdn", [1, 2, 16, 32], 9, {**JOINED, "commit": "deferred"}),
    ("gdn", [1, 2, 16, 32], 9, {**BASE, "commit": "deferred", "order": "heads"}),
    ("gdn", [1, 2, 16, 16], 40, {**BASE, "solver": "levels", "prepare_nodes": 32}),
    ("gated_delta_rule", [1, 2, 16, 16], 9, JOINED),
    ("gated_delta_product", [1, 1, 16, 16], 9, JOINED),
    ("kda", [1, 1, 16, 16], 9, JOINED),
    ("kda", [1, 1, 16, 16], 9, {**JOINED, "path_sum": "dot"}),
]


def test_outputs_agree_with_the_walk(run_interpreted: Callable[..., Any]) -> None:
    """Two requests, several value tiles of a head; chunks and blocks in loops; commits too."""
    cases = [
        {"name": name, "shape": shape, "nodes": nodes, "depth": 4, "seed": 1, "schedule": schedule}
        for name, shape, nodes, schedule in CASES
    ]
    reports = run_interpreted("tests.codegen.interpreted_variants:variants", cases=cases)
    for case, report in zip(cases, reports, strict=True):
        assert "refused" not in report, (case, report)
        assert report["output"] <= LIMIT, (case, report)
        assert report["state"] <= LIMIT, (case, report)


def test_every_launch_waits_for_what_it_prepares(run_interpreted: Callable[..., Any]) -> None:
    """Counters are never reset, and those of a request count its programs alone."""
    reports = run_interpreted(f"{CHILD}:launches", schedules=[JOINED, BASE])
    programs = 4 + 1  # heads of q, k and v, and row scalars
    for report, factors in zip(reports, (1, 0), strict=True):
        assert report["kernels"] == ["verify"]
        assert report["error"] <= LIMIT
        for number, counters in enumerate(report["counters"], 1):
            head = [factors * number, number, number]
            assert counters == [*([[programs * number, *head, *head]] * 3), [0] * 7]
        assert report["waits"] == [True] * 3


def made(name: str = "gdn", **fields: Any) -> Lowered:
    schedule = {"b_k": 64, "b_v": 32, "prepare": "joined", **fields}
    if schedule.get("fusion") == "joined":
        schedule["solver"] = "inverse"
    return lower(
        boleir.load(name), Shapes(2, 4, 64, 64, 64, 7), schedule=Schedule(**schedule),
        target=target("sm_90"),
    )  # fmt: skip


@pytest.mark.parametrize(("fusion", "others"), [("joined", 4 + 8), ("fused", 8)])
def test_there_is_one_launch(fusion: str, others: int) -> None:
    lowered = made(fusion=fusion)
    assert [kernel.name for kernel in lowered.kernels] == ["verify", "commit"]
    preparing = (2 + 2 + 4) * 4 + 4 // 2
    grid = evaluate_grid(lowered.kernel("verify").grid, {"batch": 3})
    assert grid == (3 * (preparing + others), 1, 1)
    assert f"PREPARING = tl.constexpr({preparing})" in lowered.text
    assert f"SIGNALS = tl.constexpr({1 + 4 * 3})" in lowered.text


def test_programs_may_take_more_nodes() -> None:
    for nodes, blocks in ((32, 2), (64, 1)):
        for prepare in ("launch", "joined"):
            lowered = made(prepare=prepare, prepare_nodes=nodes)
            total = (2 + 2 + 4) * blocks + 4 // 2
            first = evaluate_grid(lowered.kernels[0].grid, {"batch": 1})[0]
            assert first == total + (8 if prepare == "joined" else 0)


@pytest.mark.parametrize(
    ("warps", "nodes", "d_v", "expected"),
    [
        (0, 16, 64, (4, 80)),
        (0, 16, 160, (8, 80)),
        (0, 32, 64, (4, 0)),
        (2, 16, 64, (2, 80)),
        (2, 32, 64, (2, 128)),
        (2, 64, 64, (2, 0)),
        (8, 64, 64, (8, 80)),
        (8, 64, 160, (8, 0)),
    ],
)
def test_a_thread_has_registers_for_its_entries(
    warps: int, nodes: int, d_v: int, expected: tuple[int, int]
) -> None:
    schedule = Schedule(b_k=64, prepare_nodes=nodes, prepare_warps=warps)
    lowered = lower(boleir.load("gdn"), Shapes(2, 4, 64, d_v, 64, 7), schedule=schedule)
    kernel = lowered.kernel("prepare")
    assert (kernel.warps, kernel.registers) == expected


@pytest.mark.parametrize("fusion", ["joined", "fused"])
def test_loads_that_are_not_prepared_come_before_the_wait(fusion: str) -> None:
    text = made(fusion=fusion).kernel("verify").text
    parts = {re.findall(r"def (\w+)\(", x)[0]: x for x in re.split(r"(?m)^(?=@triton)", text) if x}
    assert "one_preparation" in parts
    for name in parts.keys() - {"one_preparation", "verify"}:
        early, late = re.split(r"while [^\n]* - prepared < 0:", parts[name])
        assert ("load(state_rows" in early) == (name == "one_tile")
        assert ("load(ancestors" in early) == (name == "one_system" or fusion == "fused")
        for prepared in ("mixed", "passing", "rows +"):
            assert not re.search(rf"\b{re.escape(prepared)}", early.split('"""')[-1])
            assert re.search(rf"\b{re.escape(prepared)}", late)
    waits = [name for name, part in parts.items() if "- prepared < 0" in part]
    assert sorted(waits) == sorted(parts.keys() - {"one_preparation", "verify"})
    assert parts["verify"].count("gdc_wait()") == text.count("gdc_wait()") == 1


@pytest.mark.parametrize("name", ["gdn", "gated_delta_rule"])
def test_a_joined_kernel_begins_while_an_earlier_one_prepares(name: str) -> None:
    """Every program waits once, where what has been prepared is read, as far as it is."""
    lowered = made(name, fusion="joined", prepare="overlapped")
    assert [kernel.name for kernel in lowered.kernels] == ["prepare", "verify", "commit"]
    system, tile, verify = re.split(r"(?m)^(?=@triton)", lowered.kernel("verify").text)[1:]
    assert "gdc" not in verify
    for part in (system, tile):
        early, late = part.split("tl.extra.cuda.gdc_wait()\n")
        assert late.lstrip().startswith(("tl.extra.cuda.gdc_launch_dependents()", "# after the"))
        assert ("load(state_rows" in early) == (part is tile)
        vectors = ("load(v_rows", "load(k_rows", "load(q_rows")
        expected = name == "gated_delta_rule"
        assert any(load in early for load in vectors) == expected
        assert "load(beta_at" not in early
    plain = made(name, fusion="joined", prepare="launch").kernel("verify").text
    assert plain.count("gdc_wait()") == 1


def test_tiles_do_not_wait_for_row_scalars() -> None:
    """Their vectors come as they are, and what they multiply rows by comes from the factors."""
    text = made("gated_delta_rule", fusion="joined").kernel("verify").text
    assert text.count("- prepared < 0") == 1
    assert text.count("- launch < 0") == 1


@pytest.mark.parametrize(
    ("name", "fields", "message"),
    [
        ("gdn", {"prepare": "later"}, "prepare must be one of launch, overlapped, joined"),
        ("gdn", {"prepare": "overlapped"}, "prepare overlapped is for joined kernels"),
        ("gdn", {"fusion": "split", "solver": "inverse"}, "but split schedules have several"),
        ("kda", {"fusion": "walked"}, "but walked schedules have several"),
        ("gdn", {"persistent": 8}, "persistent 8: programs that prepare in the same launch"),
        ("gated_delta_rule", {"gates": "inline"}, "nothing to prepare for gated_delta_rule with"),
        (
            "gated_delta_rule",
            {"gates": "inline", "prepare": "launch", "prepare_nodes": 32},
            "^prepare_nodes 32: there is nothing to prepare",
        ),
        ("gdn", {"prepare_nodes": 24}, "prepare_nodes must be a power of two from 16"),
        ("gdn", {"prepare_nodes": 128}, "prepare_nodes 128 is above the padded size 64"),
        ("gated_oja", {"fusion": "staged"}, "prepare must be launch, not joined"),
        ("gdn", {"prepare_warps": 3}, "prepare_warps must be one of 0, 1, 2, 4, 8, 16, not 3"),
        ("gdn", {"prepare_warps": 2}, "prepare_warps 2: programs that prepare in the launch of"),
        (
            "gated_delta_rule",
            {"gates": "inline", "prepare": "launch", "prepare_warps": 2},
            "^prepare_warps 2: there is nothing to prepare",
        ),
        (
            "kda",
            {
                "fusion": "split",
                "prepare": "launch",
                "solver": "inverse",
                "walk_nodes": 8,
                "prepare_warps": 2,
            },
            "^prepare_warps 2: a prepare kernel of walks has factor_warps",
        ),
    ],
)
def test_refusals(name: str, fields: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidSchedule, match=message):
        made(name, **fields)


def test_the_schedule_goes_there_and_back() -> None:
    some = Schedule(prepare="joined")
    assert some.label == "prepare=joined"
    assert Schedule.from_json(some.to_json()) == some
    old = {name: value for name, value in some.to_json().items() if name != "prepare"}
    assert Schedule.from_json(old) == replace(some, prepare="launch")
