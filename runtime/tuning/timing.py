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
    from boleir.runtime.call_records import Factors
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
    rounds = Rounds(kernel, batch, policy.working_set)
    return rounds.layer_us(rounds.whole, policy.replays)


def stage_us(kernel: Kernel, batch: int, policy: Policy) -> dict[str, float]:
    """Median microseconds per layer of `verify`, of `commit`, and of the `whole` in one graph."""
    rounds = Rounds(kernel, batch, policy.working_set)
    stages = {"verify": rounds.verify, "commit": rounds.commit, "whole": rounds.whole}
    return {name: rounds.layer_us(run, policy.replays) for name, run in stages.items()}


class Rounds:
    """Buffers of many layers, and the calls of one round on them."""

    def __init__(self, kernel: Kernel, batch: int, working_set: int) -> None:
        face = kernel.interface
        self.kernel, self.count = kernel, layers_for(face, batch, working_set)
        self._trees = _trees(kernel, batch)
        nodes = self._trees.num_nodes
        self._pool = kernel.pool(batch, self.count)
        for layer in range(self.count):
            self._pool.layer(layer).state.normal_(std=0.3)
        self._inputs = [_inputs(face, nodes, kernel.device) for _ in range(self.count)]
        self._slots = torch.arange(batch, dtype=torch.int32, device=kernel.device)
        self._slots = self._slots.flip(0).contiguous()
        self._space = kernel.workspace(batch, nodes, self.count)
        self._accepted = torch.full_like(self._slots, face.max_depth // 2)
        shape = (nodes, face.value_heads, face.d_v)
        like = {"dtype": getattr(torch, face.out_dtype), "device": kernel.device}
        outs = [torch.empty(shape, **like) for _ in face.outputs]
        self._out = outs if len(outs) > 1 else outs[0]
        self._factors: list[Factors] = []
        self.verify()

    def verify(self) -> None:
        """All layers."""
        self._factors = [
            self.kernel.verify(
                self._trees, given, self._pool.layer(at), self._slots,
                workspace=self._space, layer=at, out=self._out,
            )[1]
            for at, given in enumerate(self._inputs)
        ]  # fmt: skip

    def commit(self) -> None:
        """All layers in one launch."""
        self.kernel.commit(self._factors, self._accepted, self._pool, self._slots)

    def whole(self) -> None:
        """Verification, then commit."""
        self.verify()
        self.commit()

    def layer_us(self, run: Callable[[], None], replays: int) -> float:
        """Median microseconds per layer of `run`."""
        clock = _graph_clock(run) if self.kernel.device.type == "cuda" else _host_clock(run)
        return median(clock() for _ in range(replays)) / self.count


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
