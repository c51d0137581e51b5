"""The walked schedule: decays per key channel on trees of several node blocks, with several
erase/write pairs, micro-steps and gains per value channel."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import torch

import boleir
from boleir.codegen.interface import interface_of
from boleir.codegen.kernel_spec import Job
from boleir.codegen.offline import CompilePool
from boleir.codegen.pipeline import Lowered, lower
from boleir.codegen.request import Shapes
from boleir.codegen.schedule import InvalidSchedule, Schedule
from boleir.codegen.targets import target
from boleir.runtime.workspace import Workspace
from boleir.trees.shapes import random
from tests.codegen.key_decays import WALKED

CHILD = "tests.codegen.interpreted_key_decay"
LIMIT = 2e-5
SPILLS = 1024
"""Bytes per thread that the verify kernel may spill: two blocks of 64 nodes fill the registers, as
they do where channels decay together."""
BASE: dict[str, Any] = {
    "fusion": "walked",
    "precision": "ieee",
    "b_v": 16,
    "b_k": 16,
    "node_block": 16,
    "factor_warps": 1,
}
"""Twenty nodes are two blocks; walks take 64 key channels at a time."""
ONE_BLOCK = {**BASE, "node_block": 32}
SPLIT = {**ONE_BLOCK, "fusion": "split", "solver": "inverse"}
TREE = random(28, seed=3, roots=2, max_depth=5)
"""Node 3 has descendants in both blocks, and there are others."""

CASES: list[list[Any]] = [
    ["two_pairs", [1, 2, 32, 24], ONE_BLOCK],
    ["micro_steps", [1, 1, 32, 16], {**ONE_BLOCK, "orientation": "nodes"}],
    ["value_strength", [1, 1, 32, 16], {**ONE_BLOCK, "gates": "inline"}],
    ["dplr", [1, 1, 32, 16], {**ONE_BLOCK, "gates": "inline", "commit": "factors"}],
    ["kda", [1, 1, 32, 16], {**BASE, "solver": "levels"}],
    ["convolved", [1, 1, 32, 16], BASE],
    ["two_pairs", [1, 1, 16, 16], SPLIT],
    ["micro_steps", [1, 1, 16, 16], {**SPLIT, "gates": "inline"}],
]
BLOCKS: list[list[Any]] = [
    *([name, [1, 2, 24, 16], BASE, 40] for name in WALKED),
    ["kda", [1, 1, 16, 16], {**BASE, "solver": "inverse"}, 40],
    ["rwkv7", [1, 1, 16, 16], {**BASE, "commit": "factors"}, 40],
    ["rwkv6", [1, 1, 80, 16], {**BASE, "node_block": 32}, 40],
    ["micro_steps", [1, 1, 16, 16], {**BASE, "orientation": "nodes"}, 40],
    ["kda", [1, 1, 16, 16], {**BASE, "node_block": 64}, 80],
    ["kda", [1, 1, 16, 16], {**BASE, "node_block": 64, "solver": "inverse"}, 200],
    ["two_pairs", [1, 1, 16, 16], {**BASE, "node_block": 32}, 140],
]


def test_every_class_agrees_with_the_walk(run_interpreted: Callable[..., Any]) -> None:
    reports = run_interpreted(f"{CHILD}:rounds_of_one", cases=CASES)
    for case, report in zip(CASES, reports, strict=True):
        assert report["output"] <= LIMIT, (case, report)
        assert report["states"] <= LIMIT, (case, report)
        assert report["windows"], (case, report)
        assert report["verify changed"] == report["commit changed"] == [], (case, report)


def test_trees_of_several_blocks_and_words(run_interpreted: Callable[..., Any]) -> None:
    """Identical keys in one request, decays of -20 in another, a padding row, an empty tree."""
    reports = run_interpreted(f"{CHILD}:many_blocks", cases=BLOCKS)
    for case, report in zip(BLOCKS, reports, strict=True):
        assert max(report.values()) <= LIMIT, (case, report)


@pytest.mark.parametrize(("name", "gate"), [("gla", "g"), ("logged", "g")])
def test_decays_between_blocks_cost_no_digits(
    name: str, gate: str, run_interpreted: Callable[..., Any]
) -> None:
    """Log decays from 0 to -100, mixed over nodes and channels, on paths through three blocks."""
    report = run_interpreted(f"{CHILD}:mixed_channels", name=name, schedule=BASE, gate=gate)
    assert report["output"] <= LIMIT


@pytest.mark.parametrize("name", ["kda", "micro_steps", "value_strength"])
def test_what_is_not_finite_reaches_descendants_only(
    name: str, run_interpreted: Callable[..., Any]
) -> None:
    report = run_interpreted(f"{CHILD}:spoiled", name=name, schedule=BASE, tree=TREE)
    assert all(report.values()), report


def test_siblings_change_no_bit(run_interpreted: Callable[..., Any]) -> None:
    assert run_interpreted(f"{CHILD}:siblings", name="micro_steps", schedule=BASE)


def test_static_trees(run_interpreted: Callable[..., Any]) -> None:
    schedule = {**BASE, "node_block": 16}
    assert run_interpreted(f"{CHILD}:static_tree", name="kda", schedule=schedule) <= LIMIT
    assert run_interpreted(f"{CHILD}:static_blocks", name="kda", schedule=schedule) <= LIMIT


def test_rounds_follow_sequential_decoding(run_interpreted: Callable[..., Any]) -> None:
    worst = run_interpreted(f"{CHILD}:rounds", name="micro_steps", schedule=BASE, count=2)
    assert worst["output"] <= LIMIT
    assert worst["state"] <= LIMIT


MUTATIONS = {
    "a step too few": (r"range\(0, deepest \+ 1\)", "range(0, deepest)"),
    "decays forgotten": (r"passed = passed \* gates_reached", "passed = passed"),
    "the wrong parent": (r"reached = parent", "reached = reached - 1"),
    "products of another block": (r"\[None, :\] \+ node_earlier", "[None, :] + node"),
    "another head": (r"decayed_0_rows = decayed \+ \(head", "decayed_0_rows = decayed + (0 * head"),
}  # fmt: skip


def test_changes_of_the_text_are_noticed(run_interpreted: Callable[..., Any]) -> None:
    errors = run_interpreted(
        f"{CHILD}:mutants", name="kda", schedule=BASE, mutations=MUTATIONS, trees=[TREE]
    )
    assert errors.pop("") <= LIMIT
    for label, error in errors.items():
        assert not -1.0 <= error <= 50 * LIMIT, (label, error)


# ---- schedules ---------------------------------------------------------------------------


def made(name: str, nodes: int = 16, **options: Any) -> Lowered:
    """A lowered kernel of small size."""
    text = WALKED.get(name)
    recurrence = boleir.load(name) if text is None else boleir.parse(text)
    return lower(recurrence, Shapes(1, 2, 32, 32, nodes, min(5, nodes - 1)), **options)


@pytest.mark.parametrize("nodes", [1, 16, 64, 65, 256])
def test_the_default_is_walked_where_no_inverse_is_shared(nodes: int) -> None:
    for name in WALKED:
        for batch in (1, 16):
            folds = name == "lasting_steps" and nodes <= 64
            few = "joined" if batch == 1 and nodes > 16 else "split"
            fusion = made(name, nodes, batch=batch).schedule.fusion
            assert fusion == (few if folds else "walked"), name
    many = made("kda", nodes, batch=16).schedule
    assert many.fusion == ("split" if nodes <= 64 else "walked")


def test_entangled_scalars_have_one_block() -> None:
    """k . p of two convolved keys is computed in place: at 64 nodes, too."""
    text = WALKED["micro_steps"].replace(
        "  k, p = l2norm", "  k, p = causal_conv(k, p, width=4)\n  k, p = l2norm"
    )
    found = lower(boleir.parse(text), Shapes(1, 2, 32, 32, 64, 5)).schedule
    assert (found.node_block, found.gates) == (64, "inline")


def test_kernels_and_their_order() -> None:
    one = ["prepare", "factors", "verify", "commit"]
    assert [kernel.name for kernel in made("micro_steps", 32).kernels] == one
    many = ["prepare", "decays", "factors", "verify", "commit"]
    assert [kernel.name for kernel in made("kda", 65).kernels] == many


def test_other_schedules_are_refused_with_a_reason() -> None:
    with pytest.raises(InvalidSchedule, match="two_pairs has 2"):
        made("two_pairs", schedule=Schedule(**{**BASE, "solver": "inverse"}))
    with pytest.raises(InvalidSchedule, match="path_sum must be select"):
        made("two_pairs", 20, schedule=Schedule(**{**SPLIT, "path_sum": "dot"}))
    with pytest.raises(InvalidSchedule, match="gated_delta_rule has none: fusion must be"):
        made("gated_delta_rule", schedule=Schedule(**BASE))


def test_the_workspace_holds_vectors_and_products() -> None:
    found = interface_of(made("kda", 200))
    assert (found.decayed, found.products, found.columns) == (2 + 1, 2, 256)
    pairs = interface_of(made("two_pairs", 16))
    assert pairs.products == 3 * 3  # k, p and q read what k, p and q have written
    cpu = torch.device("cpu")
    few, many = (Workspace(found, 2, nodes, 1, cpu).bytes for nodes in (100, 200))
    per_node = 4 * 2 * (3 * 32 + 2 * 256 + 8 + 32)  # vectors, products, row scalars, unknowns
    assert many - few == 100 * per_node


@pytest.mark.parametrize("name", ["kda", "micro_steps"])
def test_kernels_compile_without_a_gpu(name: str, pool: CompilePool) -> None:
    jobs = []
    for where in ("sm_80", "sm_90") if name == "kda" else ("sm_90",):
        lowered = made(name, 80, target=target(where))
        jobs += [Job(lowered.text, spec, target(where)) for spec in lowered.specs()]
    with ThreadPoolExecutor(2) as threads:
        for compiled in threads.map(pool.compile, jobs):
            assert compiled.spills <= SPILLS, compiled.facts
