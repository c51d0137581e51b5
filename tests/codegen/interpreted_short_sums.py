"""Run in child processes under Triton's interpreter: sums of decays whose inputs are float16."""

from __future__ import annotations

from typing import Any

import torch

from boleir.check.inputs import Case, Shape
from tests.codegen.interpreted_key_decay import recurrence
from tests.codegen.mutated_text import errors_of
from tests.paths import at_or_below
from tests.runtime.kernel_harness import Harness, bits

TREE = (-1, 0, 1, 0, 3, 4, 1)
BAD = 3
VALUES = ("nan", "inf", "-inf", "65504", "-65504")


def _harness(name: str, schedule: dict[str, Any]) -> Harness:
    return Harness(
        recurrence(name), Shape(1, 1, 32, 16), max_nodes=20, max_depth=4, schedule=schedule,
        dtype="float16", out_dtype="float32",
    )  # fmt: skip


def error_and_spoilt(name: str, schedule: dict[str, Any]) -> dict[str, Any]:
    """Worst output error, and what changes a bit of nodes that are not below the spoilt one."""
    made = _harness(name, schedule)
    samples = made.samples([TREE], [Case(keys="cosine", log_decay=-0.3)], 7)
    batch = made.batch([TREE], [2], samples=samples)
    out = made.verify(batch)[0].clone()
    beside = ~torch.tensor(at_or_below(TREE, BAD))
    spoilt = []
    for item in made.kernel.interface.inputs:
        for value in VALUES:
            other = made.batch([TREE], [2], samples=samples)
            other.inputs[item.name][BAD].view(-1)[-1:] = float(value)
            seen = made.verify(other)[0]
            spared = torch.equal(bits(seen[beside]), bits(out[beside]))
            told = value != "nan" or bool(seen[~beside].isnan().any(dim=(1, 2)).all())
            if not (spared and told):
                spoilt.append(f"{item.name} {value}")
    return {"output": made.output_error(batch, out), "spoilt": spoilt}


def mutants(
    name: str, schedule: dict[str, Any], mutations: dict[str, tuple[str, str]]
) -> dict[str, float]:
    """Output errors after changes of the emitted text."""

    def error() -> float:
        made = _harness(name, schedule)
        batch = made.batch([TREE], [2], cases=[Case(keys="cosine", log_decay=-0.3)])
        return made.output_error(batch, made.verify(batch)[0])

    return errors_of(mutations, error)
