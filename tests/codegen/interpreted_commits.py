"""Run in child processes under Triton's interpreter: rounds of two layers that share a workspace,
bfloat16 rounded as a GPU does."""

from __future__ import annotations

from typing import Any

from boleir.check.inputs import Shape
from tests.codegen.convolved_recurrences import recurrence
from tests.runtime.kernel_harness import Harness
from tests.runtime.kernel_rounds import play
from tests.runtime.rounding_interpreter import install

NODES, DEPTH = 9, 4


def rounds(cases: list[dict[str, Any]], count: int) -> list[dict[str, float]]:
    """The worst errors of `count` rounds for each case: `name`, `shape` [key heads, value heads,
    d_k, d_v] and fields of a schedule."""
    install()
    return [_played(**case, count=count) for case in cases]


def _played(name: str, shape: list[int], count: int, **fields: Any) -> dict[str, float]:
    schedule = {"precision": "ieee", "b_v": 16, "b_k": 16, "node_block": 16, **fields}
    made = Harness(
        recurrence(name), Shape(*shape), max_nodes=NODES, max_depth=DEPTH, schedule=schedule
    )
    worst: dict[str, float] = play(made, count, nodes=NODES)
    return worst
