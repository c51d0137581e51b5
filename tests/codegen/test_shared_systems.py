"""One system for all value heads of a key head, where nothing in it belongs to one of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

import boleir
from boleir.codegen.pipeline import Lowered, lower
from boleir.codegen.request import Shapes
from boleir.codegen.schedule import InvalidSchedule, Schedule
from tests.codegen.test_head_groups import CHILD, LIMIT, case

SHAPES = Shapes(2, 6, 64, 64, 64, 7)
SPLIT = Schedule(fusion="split", solver="inverse", b_k=64, b_v=32, gates="inline")
SHARED = ("dplr", "gla", "iplr", "linear_attention", "rwkv6", "rwkv7")
OWN = ("comba", "delta_rule", "gated_delta_rule", "kda", "mamba2", "retention", "simple_gla")


def made(name: str, shapes: Shapes = SHAPES, **fields: Any) -> Lowered:
    return lower(boleir.load(name), shapes, schedule=replace(SPLIT, **fields))


@pytest.mark.parametrize("name", SHARED + OWN)
def test_what_depends_on_key_vectors_alone_is_solved_once_per_key_head(name: str) -> None:
    for fusion in ("split", "joined"):
        lowered = made(name, fusion=fusion)
        shared = name in SHARED
        assert lowered.context.systems == (2 if shared else 6)
        assert lowered.context.tiles_per_system == (6 if shared else 2)
        grid = lowered.kernel("factors" if fusion == "split" else "verify").grid[0]
        systems = lowered.context.systems
        assert grid == f"{systems if fusion == 'split' else systems + 12} * batch"


def test_prepared_guards_of_values_keep_systems_apart() -> None:
    assert not made("gla", gates="prepare").context.shares_systems
    assert not made("gla", Shapes(6, 6, 64, 64, 64, 7)).context.shares_systems


def test_gates_are_inline_by_default_where_systems_are_shared() -> None:
    for nodes in (16, 32, 64):
        shapes = replace(SHAPES, max_nodes=nodes)
        for batch in (4, 16):
            for name in SHARED:
                assert lower(boleir.load(name), shapes, batch=batch).context.shares_systems, name


SOME = [
    case("gla", [2, 4, 16, 32], gates="inline"),
    case("linear_attention", [1, 3, 16, 32], gates="inline", fusion="joined", lead=1),
    case("iplr", [2, 4, 16, 16], gates="inline", order="heads"),
]
MORE = [
    case("gla", [1, 2, 64, 16], 40, gates="inline", path_sum="dot", orientation="nodes"),
    case("rwkv6", [2, 4, 16, 16], gates="inline", fusion="joined"),
    case("dplr", [1, 2, 16, 16], gates="inline", fusion="joined", order="heads"),
    case("rwkv7", [2, 4, 20, 16], gates="inline"),
    case("linear_attention", [2, 4, 32, 16], gates="inline", stages=2),
    case("iplr", [1, 2, 16, 32], gates="inline", persistent=3),
]


@pytest.mark.parametrize("cases", [SOME, MORE], ids=["some", "more"])
def test_shared_systems_agree_with_the_walk(
    cases: list[dict[str, Any]], run_interpreted: Callable[..., Any]
) -> None:
    reports = run_interpreted(f"{CHILD}:rounded", cases=cases)
    for which, report in zip(cases, reports, strict=True):
        assert "refused" not in report, (which, report)
        assert report["output"] <= LIMIT, (which, report)
        assert report["state"] <= LIMIT, (which, report)


def test_a_value_that_is_not_finite_stays_in_its_head(run_interpreted: Callable[..., Any]) -> None:
    given = {"name": "gla", "shape": [1, 2, 16, 16], "inputs": ["v"]}
    assert run_interpreted(f"{CHILD}:spoiled", **given, gates="inline") == []


MUTATIONS = {
    "the first system each time": (r"request \* KEY_HEADS \+ key_head", "request * KEY_HEADS"),
    "rows of another head": (r"VALUE_HEADS \+ key_head\)", "VALUE_HEADS)"),
    "one system for all": (r"head = program % KEY_HEADS", "head = 0"),
}


def test_changes_of_the_text_are_noticed(run_interpreted: Callable[..., Any]) -> None:
    errors = run_interpreted(
        f"{CHILD}:mutants", name="rwkv7", shape=[2, 4, 16, 16], mutations=MUTATIONS, gates="inline"
    )
    assert errors.pop("") <= LIMIT
    for label, error in errors.items():
        assert not error <= 50 * LIMIT and error != -1.0, (label, error)


def test_several_heads_in_turn_have_nothing_left_to_share() -> None:
    with pytest.raises(InvalidSchedule, match="whose value heads share one system anyway"):
        made("linear_attention", factor_heads=3)
