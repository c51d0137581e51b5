"""Run in child processes under Triton's interpreter: several value heads in one factors program,
programs in another order."""

from __future__ import annotations

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

TREE = (-1, 0, 0, 1, 1, 2, 2, 3, 5, -1, 9, 7, 11)
SPOILED = 2


def rounded(cases: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """`variants` with bfloat16 as a GPU computes it."""
    install()
    return variants(cases)


def _harness(name: str, shape: list[int], **fields: Any) -> Harness:
    schedule = {"fusion": "split", "solver": "inverse", "precision": "ieee", "b_v": 16, "b_k": 16}
    return Harness(
        recurrence(name),
        Shape(*shape),
        max_nodes=20,
        max_depth=6,
        schedule={**schedule, "node_block": 32, **fields},
    )


def _batch(made: Harness) -> Batch:
    """A tree, an empty request, a padding row, a full request."""
    trees = [TREE, (), (-1, 0), shapes.random(20, seed=2, max_depth=6)]
    cases = [Case(keys="cosine", log_decay=-0.3)] * len(trees)
    return made.batch(trees, [3, 2, -1, 5], cases=cases)


def differing(cases: list[dict[str, Any]], plain: dict[str, Any]) -> list[dict[str, Any]]:
    """Those of the cases whose outputs are not, bit for bit, those with some fields as in
    `plain`."""
    found = []
    for case in cases:
        made = (_harness(**fields) for fields in (case, {**case, **plain}))
        one, other = (bits(x.verify(_batch(x))[0].clone()) for x in made)
        if not torch.equal(one, other):
            found.append(case)
    return found


def spoiled(name: str, shape: list[int], inputs: list[str], **fields: Any) -> list[str]:
    """What goes wrong when an input of one node and one value head is NaN: outputs of that head
    below the node are numbers, or bits of another node or of another head change."""
    made, found = _harness(name, shape, **fields), []
    batch = _batch(made)
    clean = made.verify(batch)[0].clone()
    below = torch.zeros(len(clean), dtype=torch.bool)
    below[: len(TREE)] = torch.tensor(at_or_below(TREE, SPOILED))
    heads = shape[1]
    for item in inputs:
        row = batch.inputs[item][SPOILED].view(heads, -1)
        for head in range(heads):
            before = row[head].clone()
            row[head, -1] = float("nan")
            out = made.verify(batch)[0].clone()
            row[head] = before
            hit = below[:, None] & (torch.arange(heads) == head)[None, :]
            out, expected = (x.view(len(clean), heads, -1) for x in (out, clean))
            if not torch.equal(bits(out[~hit]), bits(expected[~hit])):
                found.append(f"{item} of head {head} reaches others")
            if not bool(out[hit].isnan().all()):
                found.append(f"{item} of head {head} is not seen")
    return found


def mutants(name: str, shape: list[int], mutations: dict[str, Any], **fields: Any) -> Any:
    """Output errors after changes of the emitted text."""

    def error() -> float:
        made = _harness(name, shape, **fields)
        batch = _batch(made)
        return made.output_error(batch, made.verify(batch)[0])

    return errors_of(mutations, error)
