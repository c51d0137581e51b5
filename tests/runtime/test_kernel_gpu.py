"""Kernels on a GPU: accuracy, hostile memory, invariance, graphs, no allocation and no waiting."""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import torch

import boleir
from boleir.check.inputs import Case, Shape
from boleir.codegen.offers import offered_schedules
from boleir.codegen.planner import make_plan
from boleir.codegen.request import Shapes
from boleir.derive.derive import derive
from boleir.runtime.kernel import Kernel
from boleir.runtime.pool import PoolLayer
from boleir.runtime.tree_batch import TreeBatch
from boleir.trees import shapes
from tests.codegen.several_outputs import TEXTS as OUTPUTS
from tests.codegen.staged_recurrences import TEXTS
from tests.runtime.gpu_schedules import SCHEDULES
from tests.runtime.kernel_harness import Batch, Harness, bits
from tests.runtime.kernel_rounds import play

pytestmark = pytest.mark.gpu

LIMIT = 2e-5
"""Per-node error of the default precision plan, outputs in float32."""


@dataclass(frozen=True)
class Variant:
    """A kernel and the trees it is fed."""

    recurrence: str
    shape: Shape
    nodes: int
    depth: int
    dtype: str = "bfloat16"
    batch: int = 1
    """What the default schedule is chosen for."""
    schedule: str = "default"
    """One of `SCHEDULES`, the default one, or `offered`: what tuners try beside that."""
    limit: float = LIMIT
    """Per-node error of outputs and states."""

    def __str__(self) -> str:
        s = self.shape
        heads = f"{s.key_heads}:{s.value_heads}"
        formats = "" if self.dtype == "bfloat16" else f"-{self.dtype}"
        tree = f"{self.nodes}-{self.depth}-b{self.batch}"
        tree += "" if self.schedule == "default" else f"-{self.schedule}"
        return f"{self.recurrence}-{heads}-{s.d_k}x{s.d_v}-{tree}{formats}"


QWEN = Shape(2, 4, 128, 128)
SMALL = Variant("gdn", QWEN, 16, 5)
LARGE = Variant("gdn", QWEN, 64, 8)
MANY = Variant("gdn", Shape(2, 6, 128, 128), 256, 12)
QWEN_9B, QWEN_27B = Shape(16, 32, 128, 128), Shape(16, 48, 128, 128)
VARIANTS = (
    SMALL,
    LARGE,
    MANY,
    Variant("gated_delta_rule", QWEN, 16, 5),
    Variant("gated_delta_rule", QWEN, 32, 8, batch=16),
    Variant("gated_delta_rule", QWEN, 64, 24),
    Variant("gated_delta_rule", QWEN, 64, 24, batch=16),
    Variant("gated_delta_rule", QWEN_9B, 64, 8),
    Variant("gated_delta_rule", QWEN_27B, 256, 12, batch=16),
    Variant("gdn", QWEN_9B, 64, 8, batch=16),
    Variant("gdn", QWEN_27B, 16, 5),
    Variant("gdn", QWEN_9B, 256, 12),
    Variant("gated_delta_rule", QWEN_27B, 64, 8, batch=16),
    Variant("gated_delta_rule", Shape(1, 2, 96, 60), 33, 24),
    Variant("gated_delta_rule", Shape(1, 2, 256, 100), 65, 9),
    Variant("gated_delta_rule", QWEN, 128, 24, batch=16),
    Variant("gated_delta_rule", Shape(1, 3, 60, 32), 9, 8),
    Variant("gdn", Shape(1, 2, 64, 128), 17, 5, dtype="float32"),
    Variant("mamba2", Shape(1, 4, 64, 96), 17, 7),
    Variant("mamba2", Shape(1, 4, 64, 96), 100, 7),
    Variant("comba", Shape(1, 2, 64, 64), 31, 7),
    Variant("iplr", Shape(1, 2, 64, 64), 16, 6),
    Variant("gated_delta_product", Shape(1, 2, 64, 64), 16, 6),
    Variant("linear_attention", Shape(1, 2, 128, 64), 60, 8),
    Variant("kda", Shape(4, 4, 128, 128), 64, 8),
    Variant("kda", Shape(4, 4, 128, 128), 64, 24, batch=16),
    Variant("kda", Shape(1, 2, 60, 32), 16, 5),
    Variant("kda", Shape(1, 2, 64, 96), 200, 9),
    Variant("kda", QWEN, 64, 8, schedule="joined"),
    Variant("kda", Shape(4, 4, 128, 128), 64, 24, batch=16, schedule="offered"),
    Variant("gla", Shape(2, 4, 128, 128), 64, 8, batch=16, schedule="offered"),
    Variant("rwkv6", Shape(2, 2, 128, 96), 33, 9, batch=16, schedule="offered"),
    Variant("kda", Shape(1, 2, 96, 32), 64, 63, schedule="offered"),
    Variant("gated_delta_rule", QWEN_9B, 64, 8, schedule="joined"),
    Variant("gated_delta_rule", QWEN, 64, 24, batch=16, schedule="joined"),
    Variant("gated_delta_rule", QWEN, 64, 24, batch=16, schedule="key loop"),
    Variant("gated_delta_rule", Shape(1, 2, 96, 60), 40, 9, schedule="key loop"),
    Variant("gdn", QWEN, 64, 8, batch=16, schedule="key loop"),
    Variant("gated_delta_rule", QWEN, 33, 24, batch=16, schedule="key loop, two warps"),
    Variant("gated_delta_rule", QWEN_9B, 64, 8, batch=16, schedule="turns"),
    Variant("mamba2", Shape(1, 4, 64, 96), 60, 7, schedule="key loop"),
    Variant("gated_delta_rule", QWEN, 64, 24, batch=16, schedule="grouped"),
    Variant("gated_delta_rule", Shape(2, 8, 96, 60), 40, 9, schedule="grouped, inline"),
    Variant("gdn", QWEN, 64, 8, batch=16, schedule="grouped"),
    Variant("mamba2", Shape(1, 4, 64, 96), 60, 7, schedule="grouped"),
    Variant("gated_delta_rule", QWEN, 64, 8, batch=16, schedule="heads first"),
    Variant("gated_delta_rule", QWEN, 64, 8, schedule="joined, heads first"),
    Variant("gdn", QWEN, 64, 8, batch=16, schedule="no dependent launch"),
    Variant("gated_delta_rule", QWEN, 64, 8, batch=16, schedule="stay"),
    Variant("gdn", QWEN, 32, 8, batch=16, schedule="stay, fused"),
    Variant("gdn", QWEN, 16, 5, schedule="joined, preparing"),
    Variant("gdn", QWEN_9B, 64, 8, schedule="joined, preparing 64"),
    Variant("gdn", QWEN_9B, 64, 8, batch=16, schedule="joined, preparing, turns"),
    Variant("gdn", QWEN_9B, 16, 5, schedule="fused, joined preparing"),
    Variant("gated_delta_rule", QWEN, 64, 8, schedule="joined, preparing 64"),
    Variant("gdn", QWEN_9B, 64, 8, schedule="joined, overlapped"),
    Variant("gated_delta_rule", QWEN, 64, 8, schedule="joined, overlapped"),
    Variant("gdn", QWEN_9B, 64, 8, batch=16, schedule="prepared by two warps"),
    Variant("gdn", QWEN, 64, 8, schedule="prepared by eight warps"),
    Variant("gdn", Shape(1, 2, 256, 100), 64, 8, schedule="prepared by eight warps"),
    Variant("gla", Shape(2, 2, 128, 96), 33, 9),
    Variant("rwkv7", Shape(2, 2, 64, 64), 32, 8),
    *(Variant(name, QWEN, 64, 8, schedule="spread") for name in ("kda", "dplr")),
    Variant("kda", Shape(2, 4, 60, 96), 50, 24, schedule="spread, split"),
    *(Variant(name, QWEN, 64, 8, schedule="spread, one launch") for name in ("kda", "rwkv7")),
    *(Variant(name, QWEN, 64, 8, schedule="spread, inline") for name in ("kda", "dplr", "gla")),
    *(Variant(name, QWEN, 64, 8, schedule="spread, rows") for name in ("gla", "rwkv6")),
    *(Variant(name, QWEN, 64, 8, schedule="spread, rows of nodes") for name in ("gla", "rwkv6")),
    Variant("gla", Shape(2, 4, 96, 64), 60, 40, schedule="spread, rows"),
    Variant("rwkv7", Shape(1, 2, 96, 64), 150, 11, schedule="spread, walked"),
    Variant("kda", QWEN, 64, 8, schedule="one reader, sums"),
    Variant("kda", QWEN, 64, 8, schedule="one reader, spread"),
    Variant("kda", Shape(2, 4, 96, 60), 50, 24, schedule="one reader"),
    *(Variant(n, QWEN, 64, 8, schedule="one reader, turns") for n in ("gated_delta_rule", "comba")),
    Variant("gdn", QWEN_9B, 64, 8, batch=16, schedule="one reader"),
    Variant("two_queries", QWEN, 64, 8, schedule="one reader"),
    Variant("gated_oja", Shape(2, 4, 128, 128), 64, 8),
    Variant("gated_oja", Shape(1, 2, 60, 32), 16, 5, batch=16),
    # Values are not normalised: states grow 10^15-fold along nine tokens, and inputs that are off
    # by 2^-23 alone give outputs that are off by 4e-5.
    Variant("gated_oja", Shape(1, 2, 64, 96), 200, 9, limit=8e-5),
    *(Variant(name, Shape(1, 2, 64, 96), 33, 8) for name in TEXTS if "convolved" not in name),
    Variant("value_convolved", Shape(1, 2, 96, 60), 17, 5, dtype="float32"),
    Variant("right_convolved", Shape(1, 2, 60, 96), 17, 5, dtype="float32"),
    Variant("two_queries", QWEN, 64, 8, batch=16),
    Variant("two_queries", QWEN, 16, 5),
    Variant("surprised", QWEN, 64, 8),
    Variant("surprised", Shape(1, 2, 96, 60), 200, 9, batch=16),
    *(Variant(name, Shape(1, 2, 64, 96), 33, 8) for name in OUTPUTS),
)
DECODING = (
    Variant("gated_delta_rule", QWEN, 16, 5),
    Variant("gdn", Shape(1, 2, 64, 128), 17, 5, dtype="float32"),
    Variant("gdn", QWEN, 16, 5, schedule="joined, preparing"),
)
_MADE: dict[Variant, Harness] = {}


def schedule_of(variant: Variant) -> dict[str, Any] | None:
    """The schedule that a variant names; None for the default one."""
    if variant.schedule != "offered":
        return SCHEDULES.get(variant.schedule)
    s = variant.shape
    dims = (s.d_k, s.d_v, s.key_heads, s.value_heads)
    plan = make_plan(derive(boleir.load(variant.recurrence)).normal, *dims)
    sizes = Shapes(s.key_heads, s.value_heads, s.d_k, s.d_v, variant.nodes, variant.depth)
    return offered_schedules(plan, sizes)[0].to_json()


def harness(variant: Variant) -> Harness:
    """Compiled once per session; outputs in float32."""
    if variant not in _MADE:
        name, texts = variant.recurrence, TEXTS | OUTPUTS
        _MADE[variant] = Harness(
            boleir.parse(texts[name]) if name in texts else name,
            variant.shape,
            max_nodes=variant.nodes,
            max_depth=variant.depth,
            dtype=variant.dtype,
            batch=variant.batch,
            schedule=schedule_of(variant),
            out_dtype="float32",
        )
    return _MADE[variant]


@pytest.fixture(scope="module", autouse=True)
def _compiled_side_by_side() -> None:
    """Compile all variants at once: one after the other they take minutes. Several processes of
    pytest compile side by side anyway, each what it meets."""
    if "PYTEST_XDIST_WORKER" in os.environ:
        return
    with ThreadPoolExecutor(max_workers=8) as pool:
        wanted = dict.fromkeys((*VARIANTS, *DECODING))
        for future in [pool.submit(harness, variant) for variant in wanted]:
            future.result()


def trees(variant: Variant, seed: int) -> list[tuple[int, ...]]:
    """Full, small, empty, single, chain, bushy, several roots."""
    full, depth = variant.nodes, variant.depth
    chain = shapes.chain(min(full, depth + 1))
    forest = shapes.random(full - 1, seed=seed + 1, roots=3, max_depth=depth)
    return [
        shapes.random(full, seed=seed, max_depth=depth),
        (-1, 0, 0),
        (),
        (-1,),
        chain,
        shapes.star(full),
        forest,
    ]


SLOTS = (5, -1, 3, 0, 2, 9, 7)


def hostile(made: Harness, variant: Variant, seed: int, case: Case) -> Batch:
    """A batch of all trees in NaN-filled memory."""
    given = trees(variant, seed)
    return made.batch(given, SLOTS, cases=[case] * len(given), seed=seed, pool_slots=11)


@pytest.mark.parametrize("variant", VARIANTS, ids=str)
@pytest.mark.parametrize(
    "case",
    [Case(), Case(keys="identical", strength=1.0), Case(keys="cosine", log_decay=-0.03)],
    ids=lambda case: case.name,
)
def test_outputs_and_states_agree_with_the_walk(variant: Variant, case: Case) -> None:
    made = harness(variant)
    batch = hostile(made, variant, 1, case)
    out, factors = made.verify(batch)
    assert made.stored_error(batch) <= 1.01
    assert made.output_error(batch, out) <= variant.limit
    batch.out.expect(out)
    assert all(batch.intact().values())
    ends = [len(x.parents) - 1 if x is not None else 0 for x in batch.samples]
    made.kernel.commit(factors, batch.slot_tensor(ends), batch.pool, batch.slot_tensor())
    for request, slot, end in zip(batch.samples, SLOTS, ends, strict=True):
        if request is not None and slot >= 0:
            assert made.state_error(batch, slot, request, end) <= variant.limit
            assert made.window_is(batch, slot, request, end)


TOGETHER = tuple(variant for variant in VARIANTS if variant.schedule != "default")
PER_CHANNEL = (
    Variant("kda", Shape(4, 4, 128, 128), 64, 8),
    Variant("gated_oja", Shape(2, 4, 128, 128), 64, 8),
    Variant("value_delta", Shape(1, 2, 64, 96), 33, 8),
)


SOME = (SMALL, LARGE, MANY, VARIANTS[3], *PER_CHANNEL, *TOGETHER)


@pytest.mark.parametrize("variant", SOME, ids=str)
def test_bits_depend_on_ancestors_alone(variant: Variant) -> None:
    made = harness(variant)
    whole = hostile(made, variant, 2, Case())
    out = made.verify(whole)[0].clone()
    assert torch.equal(bits(made.verify(whole)[0]), bits(out))
    rows = slice(whole.cu[6], whole.cu[7])
    alone = made.batch([trees(variant, 2)[6]], [1], samples=[whole.samples[6]], pool_slots=2)
    assert torch.equal(bits(made.verify(alone)[0]), bits(out[rows]))
    tree = trees(variant, 2)[6]
    bad = 2
    for item in made.kernel.interface.inputs:
        spoiled = made.batch(trees(variant, 2), SLOTS, samples=whole.samples, pool_slots=11)
        spoiled.inputs[item.name][spoiled.cu[6] + bad] = float("nan")
        seen = made.verify(spoiled)[0][rows]
        below = np.zeros(len(tree), dtype=bool)
        for node, parent in enumerate(tree):
            below[node] = node == bad or (parent >= 0 and below[parent])
        hit = torch.from_numpy(below)
        assert seen[hit].isnan().all()
        assert torch.equal(bits(seen[~hit]), bits(out[rows][~hit]))


@pytest.mark.parametrize("variant", DECODING, ids=str)
def test_a_thousand_rounds_follow_sequential_decoding(variant: Variant) -> None:
    worst = play(harness(variant), 1000, nodes=min(12, variant.nodes))
    assert worst["output"] <= 2e-4
    assert worst["state"] <= 2e-4
    assert worst["windows"] == 0.0


def test_states_in_sixteen_bits_do_not_overflow_silently() -> None:
    for dtype in ("float16", "bfloat16"):
        made = Harness(
            "gdn", QWEN, max_nodes=16, max_depth=5, state_dtype=dtype, out_dtype="float32"
        )
        batch = hostile(made, SMALL, 3, Case())
        out, _ = made.verify(batch)
        assert made.output_error(batch, out) <= LIMIT


# ---- the hot path ------------------------------------------------------------------------


@contextmanager
def no_waiting() -> Iterator[None]:
    """Any synchronisation with the GPU that torch notices is an error."""
    torch.cuda.set_sync_debug_mode("error")
    try:
        yield
    finally:
        torch.cuda.set_sync_debug_mode("default")


class Serving:
    """A server's buffers: two layers, trees that change, a pool."""

    def __init__(self, variant: Variant) -> None:
        self.kernel: Kernel = harness(variant).kernel
        face, device = self.kernel.interface, self.kernel.device
        self.requests, self.tokens = 3, 3 * face.max_nodes
        self.tree = TreeBatch.empty(
            self.requests,
            face.max_nodes,
            device,
            face.conv_width,
            max_depth=face.max_depth,
        )
        self.layers = [self._inputs(seed) for seed in range(2)]
        self.pool = self.kernel.pool(5, 2)
        for slot in range(5):
            states = torch.randn_like(self.pool.read(slot).states)
            self.pool.write(slot, states, torch.randn_like(self.pool.read(slot).windows))
        self.space = self.kernel.workspace(self.requests, self.tokens, 2)
        shape = (self.tokens, face.value_heads, face.d_v)
        self.outs = [torch.zeros(shape, device=device) for _ in range(2)]
        self.slots = torch.tensor([4, 0, 2], dtype=torch.int32, device=device)
        self.accepted = torch.tensor([1, 0, -1], dtype=torch.int32, device=device)

    def _inputs(self, seed: int) -> dict[str, torch.Tensor]:
        face, device = self.kernel.interface, self.kernel.device
        torch.manual_seed(seed)
        found = {
            x.name: torch.randn(self.tokens, *x.shape, device=device, dtype=torch.bfloat16)
            for x in face.inputs
        }
        found |= {x.name: torch.randn(x.shape, device=device) for x in face.parameters}
        taps = torch.randn(face.conv_channels, face.conv_width, device=device)
        found["conv_weight"] = taps.to(getattr(torch, face.conv_dtype))
        return found

    def plant(self, seed: int) -> None:
        """Other trees, of other sizes."""
        face = self.kernel.interface
        rng = np.random.default_rng(seed)
        sizes = [int(rng.integers(2, face.max_nodes + 1)), 1, int(rng.integers(0, 5))]
        made = [shapes.random(n, seed=seed, max_depth=face.max_depth) if n else () for n in sizes]
        self.tree.update([p for one in made for p in one], np.cumsum([0, *sizes]).tolist())

    def step(self, pools: list[PoolLayer] | None = None) -> None:
        """Verify both layers, commit once."""
        pools = [self.pool.layer(0), self.pool.layer(1)] if pools is None else pools
        factors = []
        for layer in range(2):
            _, kept = self.kernel.verify(
                self.tree,
                self.layers[layer],
                pools[layer],
                self.slots,
                workspace=self.space,
                layer=layer,
                out=self.outs[layer],
            )
            factors.append(kept)
        self.kernel.commit(factors, self.accepted, pools, self.slots)

    def clone(self) -> list[PoolLayer]:
        """Another pool of the same content."""
        return [
            PoolLayer(x.state.clone(), None if x.window is None else x.window.clone())
            for x in (self.pool.layer(0), self.pool.layer(1))
        ]

    def content(self, pools: list[PoolLayer]) -> list[torch.Tensor]:
        """Everything a step writes."""
        torch.cuda.synchronize()
        return [*(o.clone() for o in self.outs), *(t.clone() for x in pools for t in x.tensors)]


@pytest.mark.parametrize("variant", [SMALL, LARGE], ids=str)
def test_a_warm_step_neither_allocates_nor_waits(variant: Variant) -> None:
    serving = Serving(variant)
    serving.plant(1)
    serving.step()
    torch.cuda.synchronize()
    count = torch.cuda.memory_stats()["allocation.all.allocated"]
    with no_waiting():
        for _ in range(3):
            serving.step()
    assert torch.cuda.memory_stats()["allocation.all.allocated"] == count


@pytest.mark.parametrize("warm", [True, False], ids=["known pointers", "new pointers"])
@pytest.mark.parametrize("variant", [SMALL, LARGE, DECODING[-1]], ids=str)
def test_a_graph_replays_with_changed_trees(variant: Variant, warm: bool) -> None:
    serving = Serving(variant)
    serving.plant(1)
    serving.step(serving.clone())
    captured = serving.clone()
    if warm:
        serving.step(captured)
    start = [t.clone() for x in captured for t in x.tensors]
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        serving.tree.derive()
        serving.step(captured)
    for seed in (2, 3):
        serving.plant(seed)
        _restore(captured, start)
        for out in serving.outs:
            out.fill_(float("nan"))
        graph.replay()
        replayed = serving.content(captured)
        _restore(captured, start)
        for out in serving.outs:
            out.fill_(float("nan"))
        serving.step(captured)
        eager = serving.content(captured)
        assert all(torch.equal(bits(x), bits(y)) for x, y in zip(replayed, eager, strict=True))
        # Commits between replays use other tables; they must leave the graph's alone.
        for _ in range(10):
            serving.step(serving.clone())


def _restore(pools: list[PoolLayer], start: list[torch.Tensor]) -> None:
    for tensor, before in zip([t for x in pools for t in x.tensors], start, strict=True):
        tensor.copy_(before)


def test_slots_may_lie_more_than_two_to_the_31_elements_apart() -> None:
    variant = Variant("gated_delta_rule", Shape(1, 2, 32, 32), 8, 3)
    made = Harness(
        variant.recurrence,
        variant.shape,
        max_nodes=8,
        max_depth=3,
        state_dtype="float16",
        out_dtype="float32",
    )
    batch = made.batch([(-1, 0, 0, 1)], [1], pool_slots=2)
    far = (1 << 31) + 16
    size = batch.pool.state[0].numel()
    if torch.cuda.mem_get_info()[0] < 2 * (far + size) + (1 << 30):
        pytest.skip("needs 5 GiB of GPU memory")
    memory = torch.empty(far + size, dtype=torch.float16, device=made.device)
    state = memory.as_strided(
        (2, *batch.pool.state.shape[1:]), (far, *batch.pool.state.stride()[1:])
    )
    state.copy_(batch.pool.state)
    batch.pool = PoolLayer(state)
    out, factors = made.verify(batch)
    assert made.output_error(batch, out) <= LIMIT
    ends = batch.slot_tensor([3])
    made.kernel.commit(factors, ends, batch.pool, batch.slot_tensor())
    drawn = batch.samples[0]
    assert drawn is not None
    assert made.state_error(batch, 1, drawn, 3) <= 1e-3


def test_more_programs_than_a_grid_has_in_y() -> None:
    kernel = harness(SMALL).kernel
    face, device = kernel.interface, kernel.device
    requests = 20_000
    tree = kernel.tree_batch([-1] * requests, list(range(requests + 1)))
    torch.manual_seed(0)
    one = {
        x.name: torch.randn(1, *x.shape, device=device, dtype=torch.bfloat16) for x in face.inputs
    }
    rows = {name: x.expand(requests, *x.shape[1:]).contiguous() for name, x in one.items()}
    rest: dict[str, Any] = {x.name: torch.randn(x.shape, device=device) for x in face.parameters}
    rest["conv_weight"] = torch.randn(face.conv_channels, face.conv_width, device=device).to(
        getattr(torch, face.conv_dtype)
    )
    pool = kernel.pool(1, 1)
    slots = torch.zeros(requests, dtype=torch.int32, device=device)
    out, _ = kernel.verify(tree, rows | rest, pool.layer(0), slots)
    assert torch.equal(bits(out), bits(out[:1].expand_as(out)))
    assert out.any()
