"""Run in child processes under Triton's interpreter: node blocks under the split schedule."""

from __future__ import annotations

import re
from typing import Any

import torch

from boleir.check.inputs import Case, Shape
from boleir.trees import shapes
from tests.codegen.interpreted_variants import variants
from tests.codegen.mutated_text import errors_of
from tests.codegen.recurrences import recurrence
from tests.paths import at_or_below
from tests.runtime.kernel_harness import Batch, Harness, bits
from tests.runtime.rounding_interpreter import install

SHAPE = Shape(1, 2, 32, 16)
SCHEDULE = {
    "fusion": "split", "solver": "inverse", "gates": "prepare", "b_v": 16, "b_k": 32,
    "node_block": 16,
}  # fmt: skip
TREE = (-1, 0, 0, 1, 2, 3, 3, 4, 5, 6, 7, 1, 2, 3, 9, 10, 11, 12, 14, 0, 15, 16, 18, 19, -1, 24, 25)
TREE += (26, 24, 28, 29, 27, -1, 32, 32, 33, 34, 22, 20, 36)
"""Forty nodes in three blocks, each with nodes below those before it and with roots."""
SPOILED = 7
"""A node of the first block with nodes of all blocks below it."""
APART = (-1, *[0] * 15, -1, 16, 16, 17)
"""Two trees, one in each block."""


def rounded(cases: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """`variants` with bfloat16 as a GPU computes it."""
    install()
    return variants(cases)


def _harness(name: str, **fields: Any) -> Harness:
    schedule = {**SCHEDULE, "precision": "ieee", **fields}
    return Harness(recurrence(name), SHAPE, max_nodes=len(TREE), max_depth=9, schedule=schedule)


def _batch(made: Harness) -> Batch:
    """A full request, an empty one, one that ends inside its second block, a padding row, and one
    of two trees."""
    trees = [TREE, (), shapes.random(21, seed=2, max_depth=5), (-1, 0), APART]
    cases = [Case(keys="cosine", log_decay=-0.3)] * len(trees)
    return made.batch(trees, [3, 2, 1, -1, 5], cases=cases)


def ragged(name: str) -> float:
    """Worst error of requests of different sizes."""
    made = _harness(name)
    batch = _batch(made)
    error = made.output_error(batch, made.verify(batch)[0])
    changed = [what for what, kept in batch.intact().items() if not kept and what != "out"]
    return float("inf") if changed else error


def spoiled(name: str) -> list[str]:
    """What goes wrong when inputs of one node become other numbers, or one of them NaN: bits of
    nodes that do not descend from it, finite outputs of those that do."""
    made, found = _harness(name), []
    batch = _batch(made)
    clean = made.verify(batch)[0].clone()
    below = torch.tensor(at_or_below(TREE, SPOILED))
    rows = {
        name: batch.inputs[name][SPOILED] for name in (x.name for x in made.kernel.interface.inputs)
    }
    before = {name: row.clone() for name, row in rows.items()}
    others = torch.ones(len(clean), dtype=torch.bool)
    others[: len(TREE)] = ~below
    for what in ("all", *rows):
        for item, row in rows.items():
            row.copy_(before[item] * (2.0 if what == "all" else 1.0))
        if what != "all":
            rows[what].reshape(-1)[-1] = float("nan")
        out = made.verify(batch)[0].clone()
        if not torch.equal(bits(out[others]), bits(clean[others])):
            found.append(f"{what}: another branch changes")
        lost = torch.isnan(out[: len(TREE)][below]).flatten(1).any(1)
        if what != "all" and not bool(lost.all()):
            found.append(f"{what}: an output below it is a number")
    return found


def mutants(name: str, mutations: dict[str, tuple[str, str]]) -> dict[str, float]:
    """Output errors after changes of the emitted text."""
    return errors_of(mutations, lambda: ragged(name), re.DOTALL)
