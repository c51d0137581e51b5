"""Decays per value channel and updates from the right: against the float64 walk, with decays that
overflow when divided, with what is not finite; compiled for GPUs that are not there."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

import boleir
from boleir.codegen.interface import interface_of
from boleir.codegen.kernel_spec import Job
from boleir.codegen.offline import CompilePool
from boleir.codegen.pipeline import Lowered, lower
from boleir.codegen.plan import NoKernel
from boleir.codegen.request import Shapes
from boleir.codegen.schedule import InvalidSchedule, Schedule
from boleir.codegen.targets import target
from tests.codegen.staged_recurrences import TEXTS

CHILD = "tests.codegen.interpreted_staged"
LIMIT = 2e-5
BASE: dict[str, Any] = {
    "fusion": "staged",
    "gates": "prepare",
    "precision": "ieee",
    "b_v": 16,
    "b_k": 16,
    "node_block": 32,
}


def for_each(run: Callable[..., Any], function: str, names: list[str], **arguments: Any) -> Any:
    """One report for each name."""
    return run(f"{CHILD}:for_each", function=function, names=names, **arguments)


def test_every_recurrence_agrees_with_the_walk(run_interpreted: Callable[..., Any]) -> None:
    wide = {**BASE, "b_v": 32, "b_k": 32}
    cases = [[name, [1, 1, 32, 24], wide] for name in ("gated_oja", *TEXTS)]
    odd = ("value_coupled", "right_key_before")
    cases += [[name, [1, 2, 20, 40], BASE] for name in odd]
    reports = run_interpreted(f"{CHILD}:rounds_of_one", cases=cases)
    for case, report in zip(cases, reports, strict=True):
        assert report["output"] <= LIMIT, (case, report)
        assert report["states"] <= LIMIT, (case, report)
        assert report["windows"] and report["changed"] == [], (case, report)


def test_states_go_to_targets_and_tracks(run_interpreted: Callable[..., Any]) -> None:
    report = run_interpreted(f"{CHILD}:targets_and_tracks", name="right_convolved", schedule=BASE)
    assert report["output"] <= LIMIT and report["states"] <= LIMIT, report
    assert report["windows"] and report["verify changed"] == report["commit changed"] == [], report


def test_strong_decays_cost_no_digits(run_interpreted: Callable[..., Any]) -> None:
    """exp(c_i) / exp(c_j) would be 0 / 0 here."""
    schedule = {**BASE, "node_block": 64, "b_k": 32, "b_v": 32}
    names = ["right_value", "value_delta", "right_key"]
    reports = for_each(run_interpreted, "strong_decays", names, schedule=schedule, gate="g")
    for name, report in zip(names, reports, strict=True):
        assert max(report.values()) <= LIMIT, (name, report)


def test_channels_that_grow_apart_keep_their_digits(run_interpreted: Callable[..., Any]) -> None:
    """With two pieces of the state, 2^-17 of a channel that outgrows all others would be lost."""
    errors = run_interpreted(f"{CHILD}:grown_apart", names=["value_decay", "value_before"])
    assert max(errors.values()) <= LIMIT / 5, errors


def test_more_nodes_than_a_word_holds(run_interpreted: Callable[..., Any]) -> None:
    names = ["value_before", "right_between"]
    for report in run_interpreted(f"{CHILD}:many_nodes", names=names, schedule=BASE):
        assert max(report.values()) <= LIMIT, report


def test_static_trees(run_interpreted: Callable[..., Any]) -> None:
    names, schedule = ["gated_oja", "value_micro_steps"], {**BASE, "node_block": 16}
    reports = for_each(run_interpreted, "static_tree", names, schedule=schedule)
    assert max(reports) <= LIMIT, reports


def test_what_is_not_finite_reaches_descendants_only(run_interpreted: Callable[..., Any]) -> None:
    names = ["gated_oja", "value_delta", "right_between"]
    for report in for_each(run_interpreted, "spoiled", names, schedule=BASE):
        assert all(report.values()), report


def test_siblings_change_no_bit(run_interpreted: Callable[..., Any]) -> None:
    names = ["gated_oja", "value_delta"]
    assert for_each(run_interpreted, "siblings", names, schedule=BASE) == [True, True]
    found = for_each(run_interpreted, "overflowing", names, schedule=BASE, gate="g")
    assert found == [True, True]


def test_rounds_follow_sequential_decoding(run_interpreted: Callable[..., Any]) -> None:
    names = ["gated_oja", "value_convolved"]
    for worst in for_each(run_interpreted, "rounds", names, schedule=BASE, count=2):
        assert worst["output"] <= LIMIT
        assert worst["state"] <= LIMIT


def test_nothing_accepted_changes_nothing(run_interpreted: Callable[..., Any]) -> None:
    found = run_interpreted(f"{CHILD}:nothing_accepted", name="gated_oja", schedule=BASE)
    assert found == []


MUTATIONS = {
    "a step too few": (r"step < length", "step < length - 1"),
    "decays forgotten": (r"passed = passed \* decay_reached", "passed = passed"),
    "its own unknowns": (r"first \+ node_reached\) \* \(VALUE", "first + node) * (VALUE"),
    "a node without its turn": (r"for j in range\(0, count\)", "for j in range(0, count - 1)"),
    "always the first ancestor": (
        r"other=0\.0\)\.to\(tl\.int32\)",
        "other=0.0).to(tl.int32) * 0",
    ),
    "the wrong sign": (r"- seen\b", "+ seen"),
    "another head": (r"vector_rows = vectors \+ ", "vector_rows = vectors + 0 * "),
}


@pytest.mark.parametrize("name", ["gated_oja", "value_delta"])
def test_changes_of_the_text_are_noticed(name: str, run_interpreted: Callable[..., Any]) -> None:
    mutations = dict(MUTATIONS)
    if name == "value_delta":  # most of the text is the same
        mutations = {label: MUTATIONS[label] for label in ("decays forgotten", "a step too few")}
        mutations["no decay between unknowns"] = (r"tl\.exp2\(\(c_now", "tl.exp2(0.0 * (c_now")
        mutations["no decay of the state"] = (r"tl\.exp2\(c \+ c_rest\) \* ", "")
    schedule = {**BASE, "node_block": 16}
    errors = run_interpreted(f"{CHILD}:mutants", name=name, schedule=schedule, mutations=mutations)
    assert errors.pop("") <= LIMIT
    for label, error in errors.items():
        assert not error <= 20 * LIMIT, (label, error)
        assert error != -1.0, label


# ---- schedules ---------------------------------------------------------------------------


def made(name: str, nodes: int = 16, **options: Any) -> Lowered:
    """A lowered kernel of small size."""
    recurrence = boleir.parse(TEXTS[name]) if name in TEXTS else boleir.load(name)
    return lower(recurrence, Shapes(1, 2, 32, 48, nodes, min(5, nodes - 1)), **options)


def stages(name: str) -> list[str]:
    """Names of the kernels of a layer."""
    return [kernel.name for kernel in made(name).kernels]


def test_stages_follow_from_what_there_is_to_solve() -> None:
    assert stages("gated_oja") == ["prepare", "factors", "unknowns", "values", "commit"]
    assert stages("value_decay") == ["prepare", "values", "commit"]


def test_the_default_is_the_staged_schedule() -> None:
    for nodes in (4, 17, 64, 256):
        for batch in (1, 16):
            assert made("gated_oja", nodes, batch=batch).schedule.fusion == "staged"


@pytest.mark.parametrize(
    ("field", "value", "match"),
    [
        ("fusion", "fused", "acts from the right: fusion must be staged, not fused"),
        ("gates", "inline", "gates must be prepare"),
        ("solver", "inverse", "solver must be horner"),
        ("commit", "factors", "commit must be replay"),
        ("b_v", 128, "b_v 128 is above the padded size 64"),
    ],
)
def test_other_schedules_are_refused_with_a_reason(field: str, value: Any, match: str) -> None:
    schedule = {**BASE, "node_block": 16, field: value}
    with pytest.raises(InvalidSchedule, match=match):
        made("gated_oja", schedule=Schedule(**schedule))


def test_scalars_of_several_convolved_inputs_are_refused() -> None:
    text = """
recurrence entangled(q: key, k: key, v: value, g: value)
  q, k = silu(causal_conv(q, k, width=4))
  S = S * exp(g) + (k^T q) * k v^T
  out S^T q
"""
    with pytest.raises(NoKernel, match="entangled decays per value channel: all row scalars are"):
        lower(boleir.parse(text), Shapes(1, 2, 32, 48, 16, 5))


def test_staged_is_for_its_classes() -> None:
    with pytest.raises(InvalidSchedule, match="delta_rule has neither"):
        made("delta_rule", schedule=Schedule(**{**BASE, "node_block": 16}))


def test_the_workspace_holds_what_kernels_hand_on() -> None:
    found = interface_of(made("gated_oja"))
    assert (found.unknowns, found.unknown_width) == (1, 32)
    assert found.folded == 2 * 2 * 16 * 16  # G and the numbers of ancestors
    assert found.vectors == 2 * 16 * 48  # erase vectors are value vectors
    found = interface_of(made("value_micro_steps"))
    assert (found.unknowns, found.unknown_width) == (2, 48)
    assert found.folded == 2 * 5 * 16 * 16
    assert found.vectors == 2 * 16 * (2 * 32 + 4 * 48)  # sums with and without the own decay
    assert interface_of(made("value_decay")).vectors == 0


def test_the_header_explains_what_is_handed_on() -> None:
    text = " ".join(made("value_delta").text.split())
    assert "fp32 [B, 2, 1 + 1, 16, 16]: G by pair and source, last the numbers of ancestors" in text
    assert "[16, 32] k times the decays of its path, [16, 48] log-decays of its path" in text
    assert "node_reached the node that each walk has reached" in text


@pytest.mark.parametrize("name", ["gated_oja", "value_coupled", "right_key_before"])
def test_kernels_compile_without_a_gpu(name: str, pool: CompilePool) -> None:
    jobs = []
    for where, nodes in (("sm_80", 64), ("sm_90", 128))[name != "gated_oja" :]:
        lowered = made(name, nodes, target=target(where))
        jobs += [Job(lowered.text, spec, target(where)) for spec in lowered.specs()]
    with ThreadPoolExecutor(2) as threads:
        for compiled in threads.map(pool.compile, jobs):
            assert not compiled.spills, compiled.facts
