"""Called where Triton interprets kernels: does a non-finite input reach other branches?"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import torch

import boleir
from boleir.codegen.schedule import Schedule
from boleir.runtime.kernel import Kernel

PARENTS = [-1, 0, 0, 1, 1, 2, 3, 5, 7]
BELOW = {1: {1, 3, 4, 6}, 5: {5, 7, 8}}
"""Nodes that are spoiled, with their descendants."""
VALUES = (float("inf"), float("-inf"), float("nan"))
SCHEDULES = (
    {},
    {"gates": "inline"},
    {"fusion": "split", "solver": "inverse"},
    {"fusion": "split", "solver": "inverse", "gates": "inline"},
    {"fusion": "joined", "solver": "inverse", "gates": "inline"},
)


def spread(name: str) -> list[str]:
    """A line for every input, value and schedule that changes a bit of a node that does not
    descend from the spoiled one."""
    found = []
    for choice in SCHEDULES:
        schedule = Schedule(precision="ieee", b_v=16, b_k=32, node_block=16, **choice)
        kernel = boleir.compile(
            name,
            key_heads=1,
            value_heads=2,
            d_k=32,
            d_v=24,
            max_nodes=9,
            max_depth=5,
            schedule=schedule,
        )
        found += _try(kernel, f"{name} {schedule.label}")
    return found


def _try(kernel: Kernel, label: str) -> Iterator[str]:
    face = kernel.interface
    torch.manual_seed(0)
    inputs = {x.name: torch.randn(len(PARENTS), *x.shape) for x in face.inputs}
    inputs |= {x.name: torch.randn(x.shape) for x in face.parameters}
    if face.conv_channels:
        inputs["conv_weight"] = torch.randn(face.conv_channels, face.conv_width)
    tree, pool = kernel.tree_batch(PARENTS), kernel.pool(1, 1)
    pool.layer(0).state.normal_()
    slots = torch.zeros(1, dtype=torch.int32)

    def run(given: dict[str, torch.Tensor]) -> torch.Tensor:
        return kernel.verify(tree, given, pool.layer(0), slots)[0].clone()

    clean = run(inputs)
    for item, value, node in itertools.product(face.inputs, VALUES, BELOW):
        spoiled = inputs[item.name].clone()
        spoiled[node].reshape(-1)[-1] = value
        out = run(inputs | {item.name: spoiled})
        others = [n for n in range(len(PARENTS)) if n not in BELOW[node]]
        if not torch.equal(out[others], clean[others]):
            yield f"{label}: {item.name} of node {node} is {value}"
