"""What commits read of convolved inputs: that is kept until then, and nothing else."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
import torch

from boleir.codegen.emit.commit_inputs import keep_for_commit
from boleir.codegen.interface import Interface, interface_of
from boleir.codegen.pipeline import Lowered, lower
from boleir.codegen.request import Shapes
from boleir.codegen.schedule import COMMITS, STORED_ERROR, Schedule
from boleir.runtime.workspace import Workspace
from tests.codegen.convolved_recurrences import recurrence

CHILD = "tests.codegen.interpreted_commits"
LIMIT = 2e-5
CPU = torch.device("cpu")
SHAPES = Shapes(2, 4, 32, 48, 16, 5)
STORING = ("factors", "factors16")


def made(name: str, commit: str) -> Lowered:
    fused = name != "gated_by_keys"
    other = "walked" if commit in STORING else "split"
    fusion, solver = ("fused" if fused else other), ("horner" if fused else "inverse")
    gates = "inline" if "_in_" in name else "prepare"
    schedule = Schedule(fusion, solver, b_v=16, b_k=32, node_block=16, commit=commit, gates=gates)
    return lower(recurrence(name), SHAPES, schedule=schedule)


def face(name: str, commit: str) -> Interface:
    return interface_of(made(name, commit))


KEPT = {
    "gdn": (["k", "v"], ["k"]),
    "all_but_one_key": (["k", "v", "w"], ["k", "w"]),
    "value_alone": (["v"], []),
    "gains_before": (["k", "v"], ["k", "v"]),
    "normed_in_scalars": (["k", "p", "v"], ["k", "p"]),
    "convolved_in_decays": (["k"], ["k"]),
    "gated_by_keys": (["k", "g", "v"], ["k", "g"]),
}
"""By recurrence: what a commit that reads states needs, and one that has the unknowns."""


@pytest.mark.parametrize("commit", COMMITS)
@pytest.mark.parametrize("name", KEPT)
def test_a_commit_loads_what_is_kept_and_nothing_else(name: str, commit: str) -> None:
    lowered = made(name, commit)
    found = interface_of(lowered)
    assert list(found.kept) == KEPT[name][commit in STORING]
    last = lowered.kernels[-1] if commit != "deferred" else lowered.kernel("record")
    at = r"row(?:\[:, None\])? \* KEPT_CHANNELS(?: \+ (\d+))?"
    columns = {int(column or 0) for column in re.findall(at, last.text)}
    assert columns == {x.column for x in lowered.plan.mixed if x.kept}
    assert "PASSING_CHANNELS" not in last.text


def test_the_channels_of_a_buffer_lie_behind_each_other() -> None:
    plan = made("all_but_one_key", "replay").plan
    whole = keep_for_commit(plan, Schedule(commit="deferred"))
    assert [(m.buffer, m.column) for m in whole.mixed] == [
        ("passing", 0), ("mixed", 0), ("mixed", 64), ("mixed", 256)
    ]  # fmt: skip
    some = keep_for_commit(whole, Schedule(commit="factors16"))
    assert [(m.buffer, m.column) for m in some.mixed] == [
        ("passing", 0), ("mixed", 0), ("passing", 64), ("mixed", 64)
    ]  # fmt: skip
    assert [m.offset for m in some.mixed] == [m.offset for m in plan.mixed]
    assert keep_for_commit(some, Schedule()) == plan


def test_a_workspace_shrinks_by_the_values_of_every_layer_but_one() -> None:
    layers, nodes, values = 3, 40, 4 * 48 * 2
    spaces = {x: Workspace(face("gdn", x), 2, nodes, layers, CPU) for x in ("replay", *STORING)}
    unknowns = {"replay": 0, "factors": 4 * 48 * 4, "factors16": 4 * 48 * 2}
    for commit in STORING:
        saved = spaces["replay"].bytes - (spaces[commit].bytes - layers * nodes * unknowns[commit])
        assert saved == (layers - 1) * nodes * values
        assert spaces[commit].bytes_per_node() == 2 * 32 * 2 + unknowns[commit]
        assert spaces[commit].convolved(0).shape == spaces["replay"].convolved(0).shape
    nothing = Workspace(face("value_alone", "factors"), 2, nodes, layers, CPU)
    assert nothing.layer(0).tensors[0].shape == (nodes, 0)


CASES = [
    {"name": "gdn", "shape": [1, 2, 16, 16], "commit": "factors"},
    {"name": "gdn", "shape": [1, 2, 20, 24], "commit": "factors16", "gates": "inline"},
    {"name": "all_but_one_key", "shape": [1, 2, 16, 16], "commit": "factors"},
    {"name": "value_alone", "shape": [1, 1, 16, 16], "commit": "factors", "solver": "levels"},
    {"name": "convolved_in_decays", "shape": [1, 2, 16, 16], "commit": "replay", "gates": "inline"},
    {"name": "gains_before", "shape": [1, 1, 16, 16], "commit": "deferred"},
]


def test_rounds_of_layers_that_share_what_passes(run_interpreted: Callable[..., Any]) -> None:
    reports = run_interpreted(f"{CHILD}:rounds", cases=CASES, count=4)
    for case, report in zip(CASES, reports, strict=True):
        rounded = 4 * STORED_ERROR if case["commit"] == "factors16" else LIMIT
        assert report["output"] <= max(LIMIT, rounded), (case, report)
        assert report["state"] <= rounded, (case, report)
        assert report["windows"] == 0.0, (case, report)
