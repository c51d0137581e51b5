"""Run in child processes under the rounding interpreter: systems that need all digits."""

from __future__ import annotations

from typing import Any

import numpy as np

import boleir
from boleir.check.check import node_errors
from boleir.check.inputs import Case, Shape
from boleir.trees import shapes
from tests.codegen.hard_systems import ALIKE, HARD, ON_ONE_LINE, Hard
from tests.runtime.kernel_harness import Batch, Harness
from tests.runtime.rounding_interpreter import install


def errors() -> dict[str, float]:
    """Worst output error of each system."""
    install()
    return {str(hard): hard.error(hard.harness()) for hard in HARD}


def folded_readers() -> dict[str, float]:
    """The same where one vector stands for all that reads the state, strong decays among them."""
    install()
    cases = (
        *ALIKE,
        *(Case("chain", "identical", 1.0, decay) for decay in (-20.0, -100.0, "mixed")),
    )
    schedule = {"fusion": "split", "solver": "inverse", "gates": "inline", "readers": "folded"}
    systems = (
        Hard("gated", 60, cases, 6, schedule=schedule),
        Hard("kda", 32, cases, 3, schedule=schedule | {"path_sum": "dot"}),
    )
    return {str(system): system.error(system.harness()) for system in systems}


def on_one_line(schedules: list[dict[str, Any]], text: str = ON_ONE_LINE) -> list[float]:
    """Worst error per node of writes along one vector, for every schedule."""
    install()
    recurrence = boleir.parse(text)
    trees = [shapes.random(20, seed=seed, max_depth=5) for seed in range(8)]
    found = []
    for schedule in schedules:
        made = Harness(
            recurrence, Shape(1, 2, 32, 24), max_nodes=20, max_depth=5, dtype="float32",
            out_dtype="float32", schedule={"b_v": 32, "b_k": 32, "node_block": 32} | schedule,
        )  # fmt: skip
        batch = made.batch(trees, range(len(trees)), pool_slots=len(trees))
        out = made.verify(batch)[0].double().numpy()
        found.append(float(node_errors(out, _walked(made, batch)).max()))
    return found


def _walked(made: Harness, batch: Batch) -> Any:
    """Outputs of the walks of all requests, one behind the other."""
    return np.concatenate([made.walk(batch, b).output for b in range(len(batch.samples))])
