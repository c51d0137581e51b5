"""The topology step: kernel (interpreted), plain torch and the host agree, on sound and broken
trees.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from boleir.runtime.topology_torch import derive_topology
from boleir.trees import Fault, Tree, check_trees, words_for
from tests.boleir.tree_samples import SIZES, shapes
from tests.runtime.interpreted_topology import FILL

Case = dict[str, Any]


def _case(rows: list[tuple[int, ...]], **bounds: Any) -> Case:
    largest = max([1, *map(len, rows)])
    settings = {"max_nodes": largest, "max_depth": 255, "width": 4, "words": words_for(largest)}
    return {
        "parents": [parent for row in rows for parent in row],
        "cu_nodes": np.cumsum([0, *map(len, rows)]).tolist(),
        **settings,
        **bounds,
    }


def _in_torch(case: Case) -> Case:
    total, requests = len(case["parents"]), len(case["cu_nodes"]) - 1
    ancestors = torch.full((total, case["words"]), FILL, dtype=torch.int64)
    depth = torch.full((total,), FILL, dtype=torch.int32)
    near = torch.full((total, case["width"] - 1), FILL, dtype=torch.int32)
    flags = torch.full((requests, 2), FILL, dtype=torch.int32)
    derive_topology(
        torch.tensor(case["parents"], dtype=torch.int32),
        torch.tensor(case["cu_nodes"], dtype=torch.int32),
        ancestors,
        depth,
        near,
        flags if case.get("checked", True) else None,
        max_nodes=case["max_nodes"],
        max_depth=case["max_depth"],
    )
    return {
        "ancestors": ancestors.tolist(),
        "depth": depth.tolist(),
        "near": near.tolist(),
        "flags": flags.tolist(),
        "guards": True,
    }


def _on_host(case: Case) -> Case:
    batch = check_trees(case["parents"], case["cu_nodes"])
    return {
        "ancestors": batch.ancestors(case["words"]).tolist(),
        "depth": batch.depth.tolist(),
        "near": batch.near(case["width"]).tolist(),
        "flags": [[0, 0]] * (len(case["cu_nodes"]) - 1),
        "guards": True,
    }


def _sound_cases() -> list[Case]:
    cases = []
    for nodes in SIZES:
        # The interpreter takes its time: of the large sizes only the shapes that differ most.
        kinds = shapes(nodes) if nodes <= 33 else ("chain", "caterpillar", "random 1", "shallow 2")
        cases.append(_case([shapes(nodes)[kind].parents for kind in kinds]))
    ragged = [Tree.random(n, seed=n, roots=min(n, 2)).parents for n in (0, 5, 64, 0, 1, 17, 0)]
    cases.append(_case(ragged))
    cases.append(_case(ragged, words=3, max_nodes=192, width=2))
    cases.append(_case(ragged, max_nodes=100, words=2, width=1))
    cases.append(_case([(), ()]))
    cases.append(_case([Tree.chain(9).parents], max_depth=8))
    return cases


def test_plain_torch_equals_the_host() -> None:
    for case in _sound_cases():
        assert _in_torch(case) == _on_host(case)


def test_the_kernel_equals_the_host(run_interpreted: Callable[..., Any]) -> None:
    cases = _sound_cases()
    results = run_interpreted("tests.runtime.interpreted_topology:run", cases=cases)
    for case, result in zip(cases, results, strict=True):
        assert result == _on_host(case)


def _broken_cases() -> list[Case]:
    rng = random.Random(5)
    cases = []
    for seed in range(40):
        rows = [list(Tree.random(n, seed=seed).parents) for n in (12, 0, 70, 1, 33)]
        for row in rows:
            for node in range(len(row)):
                if rng.random() < 0.1:
                    row[node] = rng.choice(
                        [-2, node, node + 1, len(row), 255, 10**9, -(10**9), 2**31 - 1, -(2**31)]
                    )
        cases.append(_case([tuple(row) for row in rows], max_depth=rng.choice([3, 6, 255])))
    chain = Tree.chain(40).parents
    cases.append(_case([chain, chain], max_depth=5))
    cases.append(_case([chain, Tree.star(8).parents], max_nodes=32, words=1))
    cases.append({**_case([chain]), "cu_nodes": [0, 30, 20, 40]})
    cases.append({**_case([chain], max_depth=5), "checked": False})
    return cases


def test_kernel_and_torch_agree_on_broken_trees(run_interpreted: Callable[..., Any]) -> None:
    cases = _broken_cases()
    results = run_interpreted("tests.runtime.interpreted_topology:run", cases=cases)
    faults = set()
    for case, result in zip(cases, results, strict=True):
        if case["cu_nodes"] != sorted(case["cu_nodes"]):
            # Overlapping requests write the same rows; only the report is defined.
            assert result["flags"] == _in_torch(case)["flags"]
        else:
            assert result == _in_torch(case)
        faults.update(code for code, _ in result["flags"])
    assert faults >= {int(fault) for fault in Fault}


def test_a_faulty_node_becomes_a_root_and_the_others_do_not_change() -> None:
    sound = _in_torch(_case([(-1, 0, 1, 1, 2, 0)]))
    broken = _in_torch(_case([(-1, 0, 7, 1, 2, 0)]))
    assert broken["flags"] == [[int(Fault.PARENT_RANGE), 2]]
    assert broken["depth"] == [0, 1, 0, 2, 1, 1]
    assert broken["ancestors"][4] == [0b010100]
    assert broken["near"][4] == [2, -1, -2]
    for node in (0, 1, 3, 5):
        assert broken["ancestors"][node] == sound["ancestors"][node]


def test_nodes_below_the_bound_stand_alone() -> None:
    result = _in_torch(_case([Tree.chain(5).parents], max_depth=2))
    assert result["flags"] == [[int(Fault.TOO_DEEP), 3]]
    assert result["depth"] == [0, 1, 2, 0, 0]
    assert result["ancestors"] == [[1], [3], [7], [8], [16]]
    assert result["near"][4] == [-1, -2, -3]


def test_nodes_beyond_the_bound_are_not_touched() -> None:
    result = _in_torch(_case([Tree.chain(5).parents, (-1, 0)], max_nodes=3))
    assert result["flags"] == [[int(Fault.TOO_LARGE), 0], [0, 0]]
    assert result["depth"] == [0, 1, 2, FILL, FILL, 0, 1]


@pytest.mark.parametrize("width", [1, 2, 3, 8])
def test_any_convolution_width(width: int) -> None:
    case = _case([Tree.random(40, seed=1, roots=2).parents], width=width)
    assert _in_torch(case) == _on_host(case)
