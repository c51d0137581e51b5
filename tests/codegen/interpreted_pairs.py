"""Run in child processes under Triton's interpreter: several pairs per token, the solve folded."""

from __future__ import annotations

import re
from typing import Any

import torch

from boleir.check.inputs import Case, Shape
from tests.codegen.interpreted_blocked import SCHEDULE
from tests.codegen.mutated_text import errors_of
from tests.codegen.recurrences import recurrence
from tests.paths import at_or_below
from tests.runtime.kernel_harness import Batch, Harness, bits

TREE = (-1, 0, 0, 1, 2, 3, 3, 4, 5, 6, 7, 1, 2, 3, 9, 10, 6, 11, 12, 16, 17)
"""Two blocks of sixteen nodes, the second one with nodes below those of the first."""
SPOILED = 3


def _harness(name: str, **fields: Any) -> Harness:
    schedule = {**SCHEDULE, "precision": "ieee", "b_k": 16, **fields}
    shape = Shape(1, 1, 16, 16)
    return Harness(recurrence(name), shape, max_nodes=len(TREE), max_depth=7, schedule=schedule)


def _batch(made: Harness) -> Batch:
    return made.batch([TREE], [1], cases=[Case(keys="cosine", log_decay=-0.3)])


def spoiled(name: str, inputs: list[str], **fields: Any) -> list[str]:
    """What goes wrong when one input of a node is another number, then NaN: bits of nodes that do
    not descend from it, finite outputs of those that do."""
    made, found = _harness(name, **fields), []
    batch = _batch(made)
    clean = made.verify(batch)[0].clone()
    below = torch.tensor(at_or_below(TREE, SPOILED))
    for item in inputs:
        row = batch.inputs[item][SPOILED]
        before = row.clone()
        for value in (2.0, float("nan")):
            row.reshape(-1)[-1] = value
            out = made.verify(batch)[0].clone()
            row.copy_(before)
            if not torch.equal(bits(out[~below]), bits(clean[~below])):
                found.append(f"{item} {value}: another branch changes")
            lost = torch.isnan(out[below]).flatten(1).any(1)
            if bool(lost.all()) != (value != 2.0):
                found.append(f"{item} {value}: outputs below it are numbers, or none")
    return found


def mutants(name: str, mutations: dict[str, tuple[str, str]], **fields: Any) -> dict[str, float]:
    """Output errors after changes of the emitted text."""

    def error() -> float:
        made = _harness(name, **fields)
        batch = _batch(made)
        return made.output_error(batch, made.verify(batch)[0])

    return errors_of(mutations, error, re.DOTALL)
