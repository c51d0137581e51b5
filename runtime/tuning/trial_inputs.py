"""What a candidate must compute correctly before it is timed: hard inputs, with exact results."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from boleir.check.check import KERNEL_FLOOR, KERNEL_LIMIT, KernelRun, node_errors
from boleir.check.inputs import Case, Sample, Shape, round_bf16, sample
from boleir.derive.derive import derive
from boleir.ir import Recurrence
from boleir.oracle import evaluate, sequential, stored_expressions
from boleir.oracle.values import Array
from boleir.runtime.tuning.keys import TuningKey

CASES = (
    Case("chain", "identical", 1.0, -0.03),
    Case("random", "cosine", None, None),
    Case("permuted", "zero", 2.0, "mixed"),
    Case("star", "random", 1.0, -20.0),
)
"""Trees and inputs that unstable solvers and wrong masks fail on."""

CONVOLVED_LIMIT = 3e-3
"""Bound behind a convolution, whose results are stored in 16 bits: one that lies between two
numbers may be rounded either way, and the exact result is that of one of them."""

EPSILON = {"bfloat16": 2.0**-8, "float16": 2.0**-11, "float32": 2.0**-24}
"""Half a unit in the last place of each format, relative."""


@dataclass(frozen=True, slots=True)
class Trial:
    """One request and what it must give."""

    sample: Sample
    outputs: tuple[Array, ...]
    """Every output [T, HV, d_v], float64."""
    state: Array
    """After committing `sample.accepted`, [HV, d_k, d_v]."""
    limit: float


def bounded_parents(nodes: int, depth: int, seed: int) -> tuple[int, ...]:
    """A random tree of `nodes` nodes whose deepest one is exactly `depth` edges below the root."""
    rng = random.Random(seed)
    parents, level = [-1], [0]
    while len(parents) < nodes:
        if len(parents) <= depth:
            parent = len(parents) - 1
        else:
            parent = rng.randrange(len(parents))
            if level[parent] >= depth:
                continue
        parents.append(parent)
        level.append(level[parent] + 1)
    return tuple(parents)


def trials(recurrence: Recurrence, key: TuningKey, count: int) -> list[Trial]:
    """The first `count` cases at the key's sizes, with the float64 walk's results."""
    form = derive(recurrence)
    shape = Shape(key.key_heads, key.value_heads, key.d_k, key.d_v)
    rounding = rounded_to(key.dtype)
    found = []
    for seed, case in enumerate(CASES[:count]):
        parents = key.parents or bounded_parents(key.nodes, key.depth, seed)
        drawn = sample(form, case, shape, seed=seed, rounding=rounding, parents=parents)
        arguments = {name: x for name, x in drawn.arguments.items() if name != "state"}
        stored = {
            expr: rounding(evaluate(expr, **arguments))
            for expr in stored_expressions(recurrence).values()
        }
        walks = [
            sequential(
                recurrence.with_output(number), **drawn.arguments, keep=(drawn.accepted,),
                stored=stored,
            )
            for number in range(len(recurrence.outputs))
        ]  # fmt: skip
        outputs = tuple(walk.output for walk in walks)
        limit = CONVOLVED_LIMIT if stored and key.dtype != "float32" else KERNEL_LIMIT
        found.append(Trial(drawn, outputs, walks[0].states[drawn.accepted], limit))
    return found


def rounded_to(dtype: str) -> Callable[[Array], Array]:
    """Nearest values of a format, as float64."""
    if dtype == "bfloat16":
        return round_bf16
    kind = np.float16 if dtype == "float16" else np.float32
    return lambda values: np.asarray(values).astype(kind).astype(np.float64)


def excess_error(found: Array, exact: Array, dtype: str) -> float:
    """Worst relative error of a node beyond what rounding the exact result to `dtype` explains.

    Zero for a correctly rounded result; at most the true error of what was rounded.
    """
    allowed = EPSILON[dtype] * np.abs(exact) if dtype != "float32" else 0.0
    difference = np.asarray(found, dtype=np.float64) - exact
    beyond = np.sign(difference) * np.maximum(np.abs(difference) - allowed, 0.0)
    beyond = np.where(np.isnan(difference), np.nan, beyond)
    return float(node_errors(exact + beyond, exact, KERNEL_FLOOR).max(initial=0.0))


def judge(trial: Trial, run: KernelRun, key: TuningKey) -> tuple[float, str | None]:
    """The worst error of a run, and what is wrong with it, if anything is."""
    pairs = zip(run.outputs, trial.outputs, strict=True)
    errors = {"output": max(excess_error(out, exact, key.out_dtype) for out, exact in pairs)}
    if run.state is not None:
        errors["commit"] = excess_error(run.state[None], trial.state[None], key.state_dtype)
    what = max(errors, key=lambda name: errors[name])
    if errors[what] <= trial.limit:
        return errors[what], None
    case = trial.sample.case.name
    return errors[what], f"wrong {what}: error {errors[what]:.1e} for {case}"
