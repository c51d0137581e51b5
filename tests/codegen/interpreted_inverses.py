"""Run in child processes under the rounding interpreter: chains, where errors of a solve grow most,
and products of vectors that nearly vanish."""

from __future__ import annotations

from typing import Any

import boleir
from boleir.check.inputs import Case, Shape
from boleir.codegen.schedule import padded
from boleir.trees import shapes
from tests.runtime.kernel_harness import Harness
from tests.runtime.rounding_interpreter import install

DOUBLED = """
recurrence doubled(q: key, k: key, v: value, b: head)
  q, k = l2norm(q, k)
  S = S + k (2 * sigmoid(b) * (v - S^T k))^T
  out S^T q
"""
"""One pair, with write strengths up to 2."""
PART = 1 / 8


def chains(cases: list[dict[str, Any]]) -> list[float]:
    """Worst output error of each case."""
    install()
    return [_chain(**case) for case in cases]


def _chain(name: str, nodes: int, keys: str, strength: float, **fields: Any) -> float:
    recurrence = boleir.parse(DOUBLED) if name == "doubled" else boleir.load(name)
    schedule = {
        "fusion": "split", "solver": "inverse", "b_v": 16, "b_k": 32,
        "node_block": min(64, padded(nodes)),
    } | fields  # fmt: skip
    made = Harness(
        recurrence, Shape(1, 1, 32, 16), max_nodes=nodes, max_depth=nodes - 1, schedule=schedule,
        dtype="bfloat16", out_dtype="float32",
    )  # fmt: skip
    drawn = [Case(keys=keys, strength=strength, log_decay=0.0)]
    batch = made.batch([shapes.chain(nodes)], [1], cases=drawn)
    return made.output_error(batch, made.verify(batch)[0])


def vanishing() -> list[float]:
    """Output errors where q^T k is a small rest of its terms and all that is read, by schedule:
    float32 inputs, everything before a node has decayed."""
    install()
    split = {"fusion": "split", "solver": "inverse"}
    return [_vanishing(**fields) for fields in (split, {"solver": "horner"})]


def _vanishing(**fields: Any) -> float:
    made = Harness(
        "gated_delta_rule", Shape(1, 1, 16, 16), max_nodes=16, max_depth=2,
        schedule={"b_v": 16, "b_k": 16, "node_block": 16} | fields,
        dtype="float32", out_dtype="float32",
    )  # fmt: skip
    tree = [(-1,) * 16]
    drawn = made.samples(tree, [Case(log_decay=-100.0)], 0)
    (request,) = drawn
    assert request is not None
    q, k = request.inputs["q"][:, 0], request.inputs["k"][:, 0]
    # all but a small part of what q has in common with k goes
    q -= (1 - PART) * ((q * k).sum(-1) / (k * k).sum(-1))[:, None] * k
    q[...] = q.astype("float32")
    batch = made.batch(tree, [1], samples=drawn)
    return made.output_error(batch, made.verify(batch)[0])
