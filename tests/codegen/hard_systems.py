"""Systems in which much is written and erased again along a path: where two pieces of what nodes
see of each other leave too few digits. Shared by tests that interpret kernels and those on a
GPU."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import boleir
from boleir.check.inputs import Case, Shape
from boleir.codegen.defaults import default_schedule
from boleir.codegen.planner import make_plan
from boleir.codegen.request import Shapes
from boleir.codegen.schedule import padded
from boleir.derive.derive import derive
from boleir.trees import shapes
from tests.runtime.kernel_harness import Harness

GATED = """
recurrence gated(q: key, k: key, v: value, a: head, b: head; A_log: head, dt_bias: head)
  q, k = l2norm(q, k)
  gamma = exp(-exp(A_log) * softplus(a + dt_bias))
  S' = gamma * S
  S = S' + k (2 * sigmoid(b) * (v - S'^T k))^T
  out S^T q
"""
"""One pair, with write strengths up to 2 and decays."""

ON_ONE_LINE = """
recurrence on_one_line(q: key, k: key, a: head; t: value)
  S = exp(-exp(a)) * S + k t^T
  out S^T q
"""
"""Nothing erased, and all that is written along one vector: paths cancel as sums of numbers do."""

ON_ONE_LINE_BY_CHANNEL = """
recurrence on_one_line(q: key, k: key, g: key; t: value)
  S = diag(sigmoid(g)) * S + k t^T
  out S^T q
"""
"""The same with a decay per key channel."""

ALIKE = (
    Case("chain", "identical", 2.0, -0.03),
    Case("chain", "identical", 1.9, 0.0),
    Case("chain", "cosine", 1.9, 0.0),
)
MILD = (Case("chain", "identical", 1.0, -0.03), Case("chain", "identical", 1.0, -0.3))
OVERFLOWING = (Case("chain", "cosine", 2.0, -0.03),)
FUSED = {"fusion": "fused", "gates": "prepare"}


@dataclass(frozen=True)
class Hard:
    """A kernel, a tree of `roots` chains side by side, and the inputs it is given."""

    name: str
    nodes: int
    cases: tuple[Case, ...] = ALIKE
    roots: int = 1
    d_k: int = 32
    schedule: dict[str, Any] | None = field(default=None, hash=False)
    """None: the default one."""

    def __str__(self) -> str:
        how = "default" if self.schedule is None else "-".join(map(str, self.schedule.values()))
        return f"{self.name}-{self.nodes}-{self.depth}-{how}"

    @property
    def depth(self) -> int:
        """Edges of the longest path."""
        return (self.nodes - 1) // self.roots

    @property
    def tree(self) -> tuple[int, ...]:
        """Parents: chains whose nodes take turns, so that paths cross node blocks."""
        if self.roots == 1:
            return shapes.chain(self.nodes)
        return tuple(max(-1, at - self.roots) for at in range(self.nodes))

    def harness(self, d_v: int = 16) -> Harness:
        """Compiled for bfloat16 inputs and float32 outputs, in bfloat16 pieces even where kernels
        are interpreted."""
        recurrence = boleir.parse(GATED) if self.name == "gated" else boleir.load(self.name)
        tiles = {"b_v": 16, "b_k": min(32, self.d_k), "node_block": min(64, padded(self.nodes))}
        if self.schedule is None:
            dims = Shapes(1, 1, self.d_k, d_v, self.nodes, self.depth)
            plan = make_plan(derive(recurrence).normal, self.d_k, d_v, 1, 1)
            tiles = default_schedule(plan, dims).to_json()
        return Harness(
            recurrence, Shape(1, 1, self.d_k, d_v), max_nodes=self.nodes, max_depth=self.depth,
            schedule=tiles | (self.schedule or {}), dtype="bfloat16", out_dtype="float32",
        )  # fmt: skip

    def error(self, made: Harness) -> float:
        """The worst output error over all its inputs."""
        trees = [self.tree] * len(self.cases)
        batch = made.batch(trees, list(range(len(trees))), cases=self.cases)
        return made.output_error(batch, made.verify(batch)[0])


HARD = (
    Hard("gated_delta_rule", 128, MILD),
    Hard("gated", 128, roots=16),
    Hard("gated", 64, schedule=FUSED | {"solver": "horner"}),
    Hard("gated", 64, schedule=FUSED | {"solver": "inverse"}),
    Hard("gated", 6, schedule=FUSED | {"solver": "horner"}),
    Hard("gated_delta_product", 32, ALIKE),
    Hard("gated_delta_product", 64, ALIKE[1:2]),
    # sweeps of Horner's rule leave the range of float32 here
    Hard("gated_delta_product", 64, OVERFLOWING, schedule=FUSED | {"solver": "levels"}),
)
