"""Deferred commits on a GPU: replays of one captured round against ordinary commits."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch

import boleir
from boleir.check.check import node_errors
from boleir.codegen.defaults import default_schedule
from boleir.codegen.planner import make_plan
from boleir.codegen.request import Shapes
from boleir.derive.derive import derive
from boleir.runtime.kernel import Kernel
from boleir.trees import shapes

pytestmark = pytest.mark.gpu

NODES, DEPTH, BATCH, SLOTS, LAYERS, ROUNDS = 64, 8, 6, 9, 2, 6
LIMIT = 4e-5
"""Two kernels with errors of up to 2e-5 each."""

CASES: list[tuple[str, dict[str, Any]]] = [
    ("gdn", {}),
    ("gated_delta_rule", {"fusion": "joined", "gates": "inline"}),
    ("gated_delta_rule", {"b_k": 32, "pdl": False}),
    ("kda", {}),
    ("gated_delta_product", {}),
]


def _kernel(name: str, **fields: Any) -> Kernel:
    recurrence = boleir.load(name)
    sizes = Shapes(2, 4, 128, 128, NODES, DEPTH)
    plan = make_plan(derive(recurrence).normal, 128, 128, 2, 4)
    schedule = replace(default_schedule(plan, sizes, 16), **fields)
    return boleir.compile(
        name, key_heads=2, value_heads=4, d_k=128, d_v=128, max_nodes=NODES, max_depth=DEPTH,
        out_dtype="float32", schedule=schedule,
    )  # fmt: skip


class _Captured:
    """A round of all layers in a graph, on buffers that rounds write anew."""

    def __init__(self, kernel: Kernel, inputs: list[dict[str, torch.Tensor]]) -> None:
        self.kernel, self.pool = kernel, kernel.pool(SLOTS, LAYERS)
        self.tree = kernel.tree_buffers(BATCH, BATCH * NODES)
        self.slots = torch.full((BATCH,), -1, dtype=torch.int32, device="cuda")
        self.ends = torch.full((BATCH,), -1, dtype=torch.int32, device="cuda")
        self.inputs = inputs
        self.space = kernel.workspace(BATCH, BATCH * NODES, LAYERS)
        face = kernel.interface
        shape = (BATCH * NODES, face.value_heads, face.d_v)
        self.outs = [torch.zeros(shape, device="cuda") for _ in range(LAYERS)]
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        self.tree.update([-1] * BATCH, list(range(BATCH + 1)))
        with torch.cuda.stream(side):
            self.round()  # of padding rows
        torch.cuda.current_stream().wait_stream(side)
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph):
            self.round()

    def round(self) -> None:
        factors = [
            self.kernel.verify(
                self.tree, given, self.pool.layer(layer), self.slots,
                workspace=self.space, layer=layer, out=self.outs[layer],
            )[1]
            for layer, given in enumerate(self.inputs)
        ]  # fmt: skip
        self.kernel.commit(factors, self.ends, self.pool, self.slots)


def _inputs(kernel: Kernel, seed: int) -> dict[str, torch.Tensor]:
    face, made = kernel.interface, torch.Generator("cuda").manual_seed(seed)

    def random(*shape: int, scale: float) -> torch.Tensor:
        return torch.randn(*shape, device="cuda", generator=made) * scale

    rows = BATCH * NODES
    found = {
        x.name: random(rows, *x.shape, scale=1.0 if x.kind == "head" else x.width**-0.5).to(
            getattr(torch, face.dtype)
        )
        for x in face.inputs
    }
    found |= {x.name: random(*x.shape, scale=0.5) for x in face.parameters}
    if face.conv_channels:
        taps = random(face.conv_channels, face.conv_width, scale=0.5)
        found["conv_weight"] = taps.to(getattr(torch, face.conv_dtype))
    return found


def _require_equal(found: torch.Tensor, exact: torch.Tensor) -> None:
    errors = node_errors(found.double().cpu().numpy(), exact.double().cpu().numpy())
    assert errors.max() <= LIMIT


@pytest.mark.parametrize(("name", "fields"), CASES)
def test_replays_of_a_graph_defer_like_ordinary_commits(name: str, fields: dict[str, Any]) -> None:
    kernels = [_kernel(name, commit=commit, **fields) for commit in ("replay", "deferred")]
    inputs = [_inputs(kernels[0], layer) for layer in range(LAYERS)]
    ours, theirs = (_Captured(kernel, inputs) for kernel in kernels)
    made = torch.Generator().manual_seed(7)
    for turn in range(ROUNDS):
        trees = [shapes.random(NODES, seed=10 * turn + b, max_depth=DEPTH) for b in range(BATCH)]
        flat = [parent for tree in trees for parent in tree]
        slots = torch.randperm(SLOTS, generator=made)[:BATCH].int()
        slots[turn % BATCH] = -1
        ends = torch.randint(-1, NODES, (BATCH,), generator=made).int()
        for layer, given in enumerate(inputs):
            fresh = _inputs(kernels[0], 100 * turn + layer)
            for item in kernels[0].interface.inputs:
                given[item.name].copy_(fresh[item.name])
        for side in (ours, theirs):
            side.tree.update(flat, [NODES * b for b in range(BATCH + 1)])
            side.slots.copy_(slots)
            side.ends.copy_(ends)
            side.graph.replay()
        for found, exact in zip(theirs.outs, ours.outs, strict=True):
            _require_equal(found, exact)
    waiting = [bool(theirs.pool.layer(1).pending[slot].any()) for slot in range(SLOTS)]
    assert any(waiting)
    with pytest.raises(boleir.BoleirError, match="still wait for"):
        theirs.pool.read(waiting.index(True))
    theirs.kernel.flush(theirs.pool)
    for slot in range(SLOTS):
        exact, found = ours.pool.read(slot), theirs.pool.read(slot)
        _require_equal(found.states, exact.states)
        assert found.windows is None or torch.equal(found.windows, exact.windows)
