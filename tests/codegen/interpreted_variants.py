"""Run in child processes under Triton's interpreter: emitted variants against the float64 walk."""

from __future__ import annotations

import re
from typing import Any

import boleir
from boleir.check.inputs import Case, Shape
from boleir.errors import ScheduleError
from boleir.trees import shapes
from tests.codegen.mutated_text import errors_of
from tests.codegen.recurrences import recurrence
from tests.runtime.kernel_harness import Batch, Harness


def _round(made: Harness, batch: Batch, ends: list[int]) -> dict[str, float]:
    out, factors = made.verify(batch)
    report = {"output": made.output_error(batch, out)}
    made.kernel.commit(factors, batch.slot_tensor(ends), batch.pool, batch.slot_tensor())
    made.kernel.flush(batch.pool)  # where commits are deferred
    found = zip(batch.samples, batch.slots, ends, strict=True)
    errors = [made.state_error(batch, slot, drawn, end) for drawn, slot, end in found if drawn]
    return report | {"state": max(errors)}


def variants(cases: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """One round of two requests for each case, or the reason why there is no such kernel.

    A case has `name`, `shape` [key heads, value heads, d_k, d_v], `nodes`, `depth`, `seed`,
    `schedule`, and may have a static `tree` (its parents).
    """
    return [_variant(**case) for case in cases]


def _variant(
    name: str,
    shape: list[int],
    nodes: int,
    depth: int,
    seed: int,
    schedule: dict[str, Any] | None,
    tree: list[int] | None = None,
) -> dict[str, Any]:
    options: dict[str, Any] = {}
    fewer = max(1, nodes - 3)
    roots = (nodes, fewer) if not depth else (1, 2 if fewer > 1 else 1)
    trees: list[Any] = [
        shapes.random(nodes, seed=seed, roots=roots[0], max_depth=depth),
        shapes.random(fewer, seed=seed + 1, roots=roots[1], max_depth=depth),
    ]
    if tree is not None:
        options, trees = {"tree": boleir.parents(*tree)}, [tuple(tree), tuple(tree)]
    try:
        made = Harness(
            recurrence(name),
            Shape(*shape),
            max_nodes=nodes,
            max_depth=depth,
            schedule=schedule,
            **options,
        )
    except ScheduleError as refused:
        return {"refused": str(refused)}
    cases = [Case(), Case(keys="cosine", log_decay=-0.03)]
    batch = made.batch(trees, [3, 1], cases=cases, seed=seed)
    return _round(made, batch, [len(tree) - 1 for tree in trees])


def mutants(
    name: str,
    schedule: dict[str, Any],
    mutations: dict[str, tuple[str, str]],
    nodes: int = 20,
) -> dict[str, float]:
    """Output errors after changes of the emitted text."""

    def error() -> float:
        made = Harness(
            recurrence(name), Shape(2, 4, 32, 16), max_nodes=nodes, max_depth=5, schedule=schedule
        )
        trees = [(-1, 0, 1, 2, 3, 4, 0, 1), shapes.random(nodes, seed=3, roots=2, max_depth=5)]
        # identical keys show a depth that is too small, and hide what gates do
        cases = [Case(keys="identical", strength=1.0), Case(keys="cosine", log_decay=-0.3)]
        batch = made.batch(trees, [3, 1], cases=cases)
        return made.output_error(batch, made.verify(batch)[0])

    return errors_of(mutations, error, re.DOTALL)
