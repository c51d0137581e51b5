"""Time of one layer, on buffers of the tuner's own.

Layers have states and inputs of their own, more than the caches hold, and run from a CUDA graph,
as in serving. Without a GPU (interpreted kernels, in tests) the calls are made one by one.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from statistics import median
from typing import TYPE_CHECKING

import torch

from boleir.runtime.tuning.entry import Policy
from boleir.runtime.tuning.trial_inputs import bounded_parents

if TYPE_CHECKING:
    from boleir.codegen.interface import Interface, Operand
    from boleir.runtime.kernel import Kernel
    from boleir.runtime.tree_batch import TreeBatch

WARM_UPS = 3
HEAD_START_CYCLES = 400_000
"""The GPU waits this many cycles before the clock starts, so that no launch latency is timed."""


def layers_for(face: Interface, batch: int, working_set: int) -> int:
    """Layers whose states together take `working_set` bytes; at least two."""
    size: int = getattr(torch, face.state_dtype).itemsize
    states = batch * face.value_heads * face.d_k * face.d_v * size
    return max(2, -(-working_set // states))


def layer_us(kernel: Kernel, batch: int, policy: Policy) -> float:
    """Median microseconds of one layer's verification and its share of the commit, which is one
    launch for all layers, for `batch` full requests that accept half of the deepest path."""
    face = kernel.interface
    count = layers_for(face, batch, policy.working_set)
    trees = _trees(kernel, batch)
    pool = kernel.pool(batch, count)
    for layer in range(count):
        pool.layer(layer).state.normal_(std=0.3)
    inputs = [_inputs(face, trees.num_nodes, kernel.device) for _ in range(count)]
    slots = torch.arange(batch, dtype=torch.int32, device=kernel.device).flip(0).contiguous()
    space = kernel.workspace(batch, trees.num_nodes, count)
    accepted = torch.full_like(slots, face.max_depth // 2)
    shape = (trees.num_nodes, face.value_heads, face.d_v)
    out = torch.empty(shape, dtype=getattr(torch, face.out_dtype), device=kernel.device)

    def run() -> None:
        factors = [
            kernel.verify(trees, given, pool.layer(at), slots, workspace=space, layer=at, out=out)[
                1
            ]
            for at, given in enumerate(inputs)
        ]
        kernel.commit(factors, accepted, pool, slots)

    clock = _graph_clock(run) if kernel.device.type == "cuda" else _host_clock(run)
    return median(clock() for _ in range(policy.replays)) / count


def _trees(kernel: Kernel, batch: int) -> TreeBatch:
    face = kernel.interface
    if face.parents is not None:
        return kernel.tree_batch(requests=batch)
    parents: list[int] = []
    for request in range(batch):
        parents += bounded_parents(face.max_nodes, face.max_depth, request)
    return kernel.tree_batch(parents, [face.max_nodes * at for at in range(batch + 1)])


def _inputs(face: Interface, nodes: int, device: torch.device) -> dict[str, torch.Tensor]:
    """Random inputs; vectors are about as long as 1, so that no recurrence runs away."""
    dtype = getattr(torch, face.dtype)

    def random(*shape: int, like: torch.dtype, scale: float) -> torch.Tensor:
        return (torch.randn(*shape, device=device) * scale).to(like)

    def scale(item: Operand) -> float:
        return 1.0 if item.kind == "head" else item.width**-0.5

    found = {x.name: random(nodes, *x.shape, like=dtype, scale=scale(x)) for x in face.inputs}
    for item in face.parameters:
        found[item.name] = random(*item.shape, like=torch.float32, scale=0.5)
    if face.conv_channels:
        weights = getattr(torch, face.conv_dtype)
        shape = (face.conv_channels, face.conv_width)
        found["conv_weight"] = random(*shape, like=weights, scale=0.5)
    return found


def _graph_clock(run: Callable[[], None]) -> Callable[[], float]:
    """Microseconds of one replay of what `run` launches."""
    stream = torch.cuda.Stream()  # type: ignore[no-untyped-call]
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        run()
    torch.cuda.current_stream().wait_stream(stream)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        run()
    for _ in range(WARM_UPS):
        graph.replay()

    def clock() -> float:
        start = torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]
        end = torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]
        torch.cuda._sleep(HEAD_START_CYCLES)  # type: ignore[no-untyped-call]
        start.record()
        graph.replay()
        end.record()
        end.synchronize()
        return float(start.elapsed_time(end)) * 1e3

    return clock


def _host_clock(run: Callable[[], None]) -> Callable[[], float]:
    def clock() -> float:
        start = time.perf_counter()
        run()
        return (time.perf_counter() - start) * 1e6

    return clock
