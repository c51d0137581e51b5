"""The commit by the closed form against the float64 walk of the path, and how it is compiled."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

import boleir
from boleir.codegen.kernel_spec import CompiledKernel, Job
from boleir.codegen.offline import CompilePool
from boleir.codegen.pipeline import Lowered, lower
from boleir.codegen.request import Shapes
from boleir.codegen.schedule import InvalidSchedule, Schedule
from boleir.codegen.targets import target

CHILD = "tests.codegen.interpreted_closed"
LIMIT = 2e-5


def made(name: str, d_k: int = 128, d_v: int = 128, nodes: int = 16, depth: int = 8) -> Lowered:
    schedule = Schedule(b_v=32, b_k=32, node_block=16, commit="closed")
    return lower(boleir.load(name), Shapes(16, 32, d_k, d_v, nodes, depth), schedule=schedule)


ROUNDS = ["gdn", "comba", "mamba2", "delta_rule", "iplr"]
"""Behind a convolution; read before the decay; pure writes; no decay; a pair and a pure write."""


def test_rounds_with_targets_track_nodes_and_padding(run_interpreted: Callable[..., Any]) -> None:
    schedule = {"precision": "ieee", "b_v": 16, "b_k": 16, "node_block": 16, "commit": "closed"}
    reports = run_interpreted(
        "tests.runtime.interpreted_kernels:library",
        names=ROUNDS,
        schedules=[{**schedule, "solver": "levels"}],
    )
    for report in reports:
        assert report["states"] <= LIMIT, report
        assert report["windows"], report
        assert not report["commit changed"], report


ALIKE = [["identical", 2.0, -0.03], ["identical", 2.0, 0.0]]
CHAINS = [
    {"name": "gated", "shape": [1, 1, 32, 16], "nodes": 16, "inputs": ALIKE},
    {"name": "gated", "shape": [1, 1, 16, 16], "nodes": 40, "inputs": ALIKE},
    {
        "name": "gated_delta_rule",
        "shape": [1, 2, 20, 24],
        "nodes": 9,
        "inputs": [["identical", 1.0, "mixed"], ["cosine", 1.0, -20.0]],
    },
    {
        "name": "mamba2",
        "shape": [1, 1, 60, 16],
        "nodes": 19,
        "inputs": [["cosine", None, -0.3]] * 2,
    },
    {
        "name": "gated_delta_rule",
        "shape": [1, 1, 32, 16],
        "nodes": 5,
        "inputs": ALIKE,
        "dtype": "float32",
    },
]
"""Write strengths up to 2; several blocks; decays that leave nothing; channels that are none."""


def test_paths_in_pieces_of_bfloat16(run_interpreted: Callable[..., Any]) -> None:
    for case, report in zip(CHAINS, run_interpreted(f"{CHILD}:chains", cases=CHAINS), strict=True):
        assert report["state"] <= LIMIT, (case, report)
        assert report["tracked"] <= LIMIT, (case, report)


def test_what_lies_behind_the_track_node_may_be_anything(
    run_interpreted: Callable[..., Any],
) -> None:
    for nodes in (4, 18):
        reports = run_interpreted(
            f"{CHILD}:behind_the_track_node", names=["gated", "iplr"], nodes=nodes
        )
        for report in reports:
            assert report["lost"] and report["tracked"] <= LIMIT, report


def test_paths_are_found_in_trees_of_every_size(run_interpreted: Callable[..., Any]) -> None:
    """One half word and both, all bits of them, and several words, which are searched in a loop."""
    sizes = [[32, 9], [33, 9], [64, 20], [64, 63], [70, 9]]
    for size, report in zip(sizes, run_interpreted(f"{CHILD}:scattered", sizes=sizes), strict=True):
        assert report["state"] <= LIMIT, (size, report)
        assert report["tracked"] <= LIMIT, (size, report)


@pytest.mark.parametrize(
    ("name", "d_k", "reason"),
    [
        ("kda", 128, "decays per key channel"),
        ("gated_delta_product", 128, "which has 2 of them"),
        ("gated_delta_rule", 256, "256 key channels"),
    ],
)
def test_what_has_no_such_form_is_refused(name: str, d_k: int, reason: str) -> None:
    with pytest.raises(InvalidSchedule, match=reason):
        made(name, d_k=d_k)


@pytest.mark.parametrize("name", ["gated_delta_rule", "gdn"])
def test_the_state_stays_in_registers(name: str, pool: CompilePool) -> None:
    """Loaded in the layout of the products and stored in it, two neighbours at a time; less shared
    memory than the tile."""
    lowered = made(name)
    (spec,) = (spec for spec in lowered.specs() if spec.name == "commit")
    (result,) = pool.run([Job(lowered.text, spec, target("sm_90"))])
    assert isinstance(result, CompiledKernel), result
    assert result.shared < 16 * 128 * 4
    assert len(re.findall(r"ld\.global\S*evict_first\S*\.v2\.b32", result.assembly)) == 32
    assert len(re.findall(r"st\.global\S*evict_first\S*\.v2\.b32", result.assembly)) == 2 * 32


def test_the_state_is_read_and_written_once() -> None:
    """Track nodes aside; of a path of several blocks, too."""
    for depth in (8, 40):
        text = next(
            k.text for k in made("gdn", depth=depth, nodes=64).kernels if k.name == "commit"
        )
        assert text.count("state_at + slot.") == text.count("state_at + target_slot.") == 4
        assert ("for begin in" in text) == (depth > 15)
