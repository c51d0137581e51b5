"""Several value heads of a key head in one factors program: values, bits, branches and heads that
do not touch each other, changes of the text, refusals."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

import boleir
from boleir.codegen.pipeline import Lowered, lower
from boleir.codegen.request import Shapes
from boleir.codegen.schedule import InvalidSchedule, Schedule
from tests.codegen.recurrences import TEXTS

CHILD = "tests.codegen.interpreted_groups"
LIMIT = 2e-5
SHAPES = Shapes(2, 8, 64, 64, 64, 7)
GROUPED = Schedule(fusion="split", solver="inverse", b_k=64, factor_heads=2)


def made(name: str, shapes: Shapes = SHAPES, **fields: Any) -> Lowered:
    recurrence = boleir.parse(TEXTS[name]) if name in TEXTS else boleir.load(name)
    return lower(recurrence, shapes, schedule=replace(GROUPED, **fields))


def case(name: str, shape: list[int], nodes: int = 12, **fields: Any) -> dict[str, Any]:
    block = 64 if nodes > 32 else 32 if nodes > 16 else 16
    schedule = {"fusion": "split", "solver": "inverse", "precision": "ieee", "b_v": 16, "b_k": 16}
    return {
        "name": name, "shape": shape, "nodes": nodes, "depth": min(nodes - 1, 6), "seed": 3,
        "schedule": {**schedule, "node_block": block, **fields},
    }  # fmt: skip


SOME = [
    case("gated_delta_rule", [1, 3, 16, 16], precision="fp32", factor_heads=3),
    case("gdn", [1, 2, 20, 16], factor_heads=2, gates="inline", path_sum="dot"),
    case("read_before", [2, 4, 16, 16], factor_heads=2),
]
MORE = [
    case("gated_delta_rule", [1, 2, 60, 96], 64, b_k=64, factor_heads=2),
    case("gated_delta_rule", [2, 8, 16, 16], factor_heads=2, gates="inline"),
    case("gdn", [2, 4, 16, 16], factor_heads=2, commit="deferred"),
    case("mamba2", [1, 4, 16, 16], factor_heads=4, orientation="nodes"),
    case("gated_delta_rule", [1, 2, 32, 16], factor_heads=2, stages=2),
    case("computed", [1, 2, 20, 24], factor_heads=2, prefetch=True),
    case("hostile_names", [1, 2, 16, 16], factor_heads=2),
    case("pairs_and_writes", [1, 2, 16, 16], factor_heads=2),
]


@pytest.mark.parametrize("cases", [SOME, MORE], ids=["some", "more"])
def test_groups_agree_with_the_walk(
    cases: list[dict[str, Any]], run_interpreted: Callable[..., Any]
) -> None:
    reports = run_interpreted(f"{CHILD}:rounded", cases=cases)
    for which, report in zip(cases, reports, strict=True):
        assert "refused" not in report, (which, report)
        assert report["output"] <= LIMIT, (which, report)
        assert report["state"] <= LIMIT, (which, report)


def test_a_group_gives_the_bits_of_a_program_per_head(run_interpreted: Callable[..., Any]) -> None:
    cases = [
        {"name": "gated_delta_rule", "shape": [1, 3, 16, 16], "factor_heads": 3, "gates": "inline"},
        {"name": "comba", "shape": [1, 4, 16, 16], "factor_heads": 2},
    ]
    plain = {"factor_heads": 1}
    assert run_interpreted(f"{CHILD}:differing", cases=cases, plain=plain) == []


@pytest.mark.parametrize("gates", ["prepare", "inline"])
def test_branches_and_heads_do_not_touch_each_other(
    gates: str, run_interpreted: Callable[..., Any]
) -> None:
    given = {"name": "gated_delta_rule", "shape": [1, 2, 16, 16], "inputs": ["v", "a"]}
    assert run_interpreted(f"{CHILD}:spoiled", **given, gates=gates, factor_heads=2) == []


MUTATIONS = {
    "the first head each time": (r"head = first_head \+ member", "head = first_head"),
    "folds of another head": (r"\(request \* VALUE_HEADS \+ head\)", "(request * VALUE_HEADS)"),
    "one head left out": (r"range\(FACTOR_HEADS\)", "range(FACTOR_HEADS - 1)"),
    "another key head": ("key_head = first_head // GROUP", "key_head = 0"),
}


def test_changes_of_the_text_are_noticed(run_interpreted: Callable[..., Any]) -> None:
    errors = run_interpreted(
        f"{CHILD}:mutants",
        name="gated_delta_rule",
        shape=[2, 4, 16, 16],
        mutations=MUTATIONS,
        factor_heads=2,
    )
    assert errors.pop("") <= LIMIT
    for label, error in errors.items():
        assert not error <= 50 * LIMIT and error != -1.0, (label, error)


def test_vectors_are_multiplied_once_for_all_heads() -> None:
    for name in ("gated_delta_rule", "gdn", "read_before", "computed"):
        for gates in ("inline", "prepare"):
            before, loop = made(name, gates=gates).kernel("factors").text.split("for member in")
            assert "gram_" in before and "_tile = tl.load(" in before
            assert "gram_" not in "".join(x for x in loop.splitlines() if "dot(" in x), name
            assert "_tile = tl.load(" not in loop, name


@pytest.mark.parametrize(
    ("name", "fields", "message"),
    [
        ("gdn", {"factor_heads": 3}, "factor_heads 3 does not divide the 4 value heads"),
        ("gdn", {"factor_heads": 0}, "factor_heads 0 does not divide"),
        ("gdn", {"fusion": "joined"}, "not joined schedules"),
        ("gdn", {"fusion": "fused"}, "not fused schedules"),
        ("gdn", {"node_block": 32}, "not 64 nodes in blocks of 32"),
        ("kda", {}, "not kda, whose products of vectors differ between them"),
        ("weighted_inside", {}, "not weighted_inside, whose products of vectors differ"),
        ("gated_delta_product", {}, "whose 2 pairs of 64 nodes fill up the registers"),
        ("gated_oja", {"fusion": "staged", "solver": "horner"}, "factor_heads must be 1, not 2"),
    ],
)
def test_what_has_no_products_in_common_is_refused(
    name: str, fields: dict[str, Any], message: str
) -> None:
    with pytest.raises(InvalidSchedule, match=message) as refused:
        made(name, **fields)
    assert name == "gated_oja" or refused.value.mend == "factor_heads 1"
