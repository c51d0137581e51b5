"""Run in child processes under Triton's interpreter: commits by the closed form, bfloat16 rounded
as a GPU does."""

from __future__ import annotations

from typing import Any

import boleir
from boleir.check.inputs import Case, Shape
from boleir.trees import shapes
from tests.codegen.hard_systems import GATED
from tests.runtime.kernel_harness import Batch, Harness
from tests.runtime.rounding_interpreter import install

BASE = {"b_v": 16, "b_k": 16, "node_block": 16, "solver": "levels", "commit": "closed"}
SLOTS = (3, 1)


def chains(cases: list[dict[str, Any]]) -> list[dict[str, float]]:
    """Worst relative error of the committed states and of a tracked one: `name`, `shape` [key
    heads, value heads, d_k, d_v], `nodes` of a chain, `inputs` as arguments of two `Case`s, and
    options of a kernel."""
    install()
    return [_chain(**case) for case in cases]


def scattered(sizes: list[list[int]]) -> list[dict[str, float]]:
    """The same for paths whose nodes are spread over trees of so many nodes and so deep."""
    install()
    return [_scattered(*size) for size in sizes]


def _scattered(nodes: int, depth: int) -> dict[str, float]:
    made = _made("gated_delta_rule", [1, 1, 16, 16], nodes, depth)
    if depth == nodes - 1:
        trees = [shapes.chain(nodes), shapes.chain(1)]
    else:
        trees = [shapes.random(nodes, seed=seed, max_depth=depth) for seed in (1, 2)]
    batch = made.batch(trees, SLOTS, cases=[Case(log_decay=-0.03)] * 2)
    ends = [len(tree) - 1 for tree in trees]
    return _committed(made, batch, ends, trees[0][-1])


def _made(
    name: str, shape: list[int], nodes: int, depth: int | None = None, **options: Any
) -> Harness:
    given = boleir.parse(GATED) if name == "gated" else name
    options = {"dtype": "bfloat16", "out_dtype": "float32"} | options
    deepest = nodes - 1 if depth is None else depth
    return Harness(
        given, Shape(*shape), max_nodes=nodes, max_depth=deepest, schedule=BASE, **options
    )


def _chain(
    name: str, shape: list[int], nodes: int, inputs: list[list[Any]], **options: Any
) -> dict[str, float]:
    made = _made(name, shape, nodes, **options)
    trees = [shapes.chain(nodes), shapes.chain(max(1, nodes - 2))]
    batch = made.batch(trees, SLOTS, cases=[Case("chain", *given) for given in inputs])
    return _committed(made, batch, [len(tree) - 1 for tree in trees], nodes // 2)


def _committed(made: Harness, batch: Batch, ends: list[int], track: int) -> dict[str, float]:
    """The first request's state is tracked, too."""
    _, factors = made.verify(batch)
    made.kernel.commit(
        factors,
        batch.slot_tensor(ends),
        batch.pool,
        batch.slot_tensor(),
        track_nodes=batch.slot_tensor([track, 0]),
        track_slots=batch.slot_tensor([5, -1]),
    )
    found = list(zip(batch.samples, batch.slots, ends, strict=True))
    states = [made.state_error(batch, slot, drawn, end) for drawn, slot, end in found if drawn]
    assert batch.samples[0] is not None
    return {"state": max(states), "tracked": made.state_error(batch, 5, batch.samples[0], track)}


def behind_the_track_node(names: list[str], nodes: int) -> list[dict[str, Any]]:
    """NaN in the last token of a path: in its state, and what it does to that at an earlier one."""
    install()
    reports = []
    for name in names:
        made = _made(name, [1, 1, 32, 16], nodes)
        batch = made.batch([shapes.chain(nodes), (-1, 0)], SLOTS)
        for item in made.kernel.interface.inputs:
            batch.inputs[item.name][nodes - 1] = float("nan")
        report = _committed(made, batch, [nodes - 1, 1], nodes - 2)
        lost = bool(batch.pool.state[SLOTS[0]].isnan().all())
        reports.append({"lost": lost, "tracked": report["tracked"]})
    return reports
