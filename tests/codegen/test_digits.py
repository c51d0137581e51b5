"""Which systems keep all digits, and that those which need them do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import boleir
from boleir.codegen.digits import MILD, STRONG, is_mild, keeps_digits
from boleir.codegen.pipeline import lower
from boleir.codegen.planner import make_plan
from boleir.codegen.request import Shapes
from boleir.codegen.schedule import Schedule
from boleir.derive.derive import derive
from tests.codegen.hard_systems import GATED, ON_ONE_LINE, ON_ONE_LINE_BY_CHANNEL
from tests.runtime.kernel_harness import LIMIT

BLOCKED = Schedule(fusion="split", solver="inverse")


def plan_of(recurrence: Any) -> Any:
    return make_plan(derive(recurrence).normal, 32, 16, 1, 1)


def kept(recurrence: Any, depth: int, schedule: Schedule, nodes: int = 64) -> bool:
    shapes = Shapes(1, 1, 32, 16, nodes, depth)
    return keeps_digits(plan_of(recurrence), shapes, schedule)


@pytest.mark.parametrize("name", ["delta_rule", "gated_delta_rule", "gdn", "kda"])
def test_one_step_along_a_vector_of_length_one_is_mild(name: str) -> None:
    plan = plan_of(boleir.load(name))
    assert is_mild(plan, plan.pairs[0])


@pytest.mark.parametrize("name", ["comba", "iplr", "dplr", "rwkv7", "gated_delta_product"])
def test_what_may_erase_more_is_not(name: str) -> None:
    plan = plan_of(boleir.load(name))
    assert not is_mild(plan, plan.pairs[0])


def test_twice_a_gate_is_not() -> None:
    plan = plan_of(boleir.parse(GATED))
    assert not is_mild(plan, plan.pairs[0])


@pytest.mark.parametrize("nodes", [64, 128])
def test_the_longer_the_path_and_the_stronger_the_sooner(nodes: int) -> None:
    schedule = Schedule() if nodes == 64 else BLOCKED
    mild, strong = boleir.load("gated_delta_rule"), boleir.parse(GATED)
    assert not kept(mild, MILD, schedule, nodes)
    assert kept(mild, MILD + 1, schedule, nodes)
    assert not kept(strong, STRONG, schedule, nodes)
    assert kept(strong, STRONG + 1, schedule, nodes)


def test_one_folded_inverse_needs_none_of_it_and_two_do() -> None:
    assert not kept(boleir.load("gated_delta_rule"), 63, BLOCKED)
    assert not kept(boleir.load("gated_delta_product"), MILD, BLOCKED)
    assert kept(boleir.load("gated_delta_product"), MILD + 1, BLOCKED)


def test_other_precisions_and_systems_without_a_solve_have_none_to_keep() -> None:
    assert not kept(boleir.load("gated_delta_rule"), 63, Schedule(precision="tf32"))
    assert not kept(boleir.load("mamba2"), 63, Schedule())


def test_writes_along_one_vector_keep_all_digits() -> None:
    """A path of them cancels as a sum of numbers; scaled by tokens they still lie on one line."""
    assert kept(boleir.parse(ON_ONE_LINE), 5, Schedule())
    scaled = ON_ONE_LINE.replace("k t^T", "k (sigmoid(a) * t)^T")
    assert kept(boleir.parse(scaled), 5, BLOCKED)
    of_tokens = ON_ONE_LINE.replace("a: head; t", "a: head, t")
    assert not kept(boleir.parse(of_tokens), 5, Schedule())
    assert not kept(boleir.parse(ON_ONE_LINE), 5, Schedule(precision="tf32"))


def test_writes_along_one_vector_are_as_good_as_any(run_interpreted: Callable[..., Any]) -> None:
    folded = {"fusion": "split", "solver": "inverse"}
    schedules: list[dict[str, Any]] = [
        {"fusion": "fused"},
        folded | {"gates": "inline"},
        folded | {"fusion": "joined", "gates": "inline", "orientation": "nodes"},
        folded | {"node_block": 16},
    ]
    found = run_interpreted("tests.codegen.interpreted_digits:on_one_line", schedules=schedules)
    assert max(found) <= LIMIT / 2, found


def test_hard_systems_are_as_good_as_any(run_interpreted: Callable[..., Any]) -> None:
    errors = run_interpreted("tests.codegen.interpreted_digits:errors")
    assert max(errors.values()) <= LIMIT, errors


def test_decays_per_key_channel_do_not_cost_them(run_interpreted: Callable[..., Any]) -> None:
    folded = {"fusion": "split", "solver": "inverse", "factor_warps": 1}
    rows = {"fusion": "joined", "prepare": "joined", "walk_nodes": 8, "gates": "inline"}
    schedules: list[dict[str, Any]] = [
        folded,
        folded | {"path_sum": "dot"},
        folded | rows | {"prefetch": True},
        {"fusion": "walked", "solver": "horner"},
    ]
    found = run_interpreted(
        "tests.codegen.interpreted_digits:on_one_line",
        schedules=schedules, text=ON_ONE_LINE_BY_CHANNEL,
    )  # fmt: skip
    sums = found.pop(1)  # sums themselves are rounded
    assert max(found) <= LIMIT / 2 and sums <= LIMIT, (found, sums)


def test_defaults_walk_where_no_digit_is_to_spare() -> None:
    shapes = Shapes(2, 2, 128, 128, 64, 8)
    by_channel = boleir.parse(ON_ONE_LINE_BY_CHANNEL)
    assert not lower(by_channel, shapes, batch=16).context.key_sums
    assert lower(boleir.load("gla"), shapes, batch=16).context.key_sums
