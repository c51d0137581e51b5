"""How a stage is run and timed: graph replays on a GPU, plain calls on a CPU (for tests only)."""

from __future__ import annotations

import platform
import shutil
import subprocess
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch

Replay = Callable[[], None]
COPY_BYTES = 1 << 30
HEAD_START_CYCLES = 400_000
"""Clock cycles that the GPU waits before a timed replay, so that no launch latency is timed."""


@dataclass(slots=True)
class CudaClock:
    """Captures work into CUDA graphs and times their replays with events."""

    device: str = "cuda"
    _graphs: list[torch.cuda.CUDAGraph] = field(default_factory=list)

    def capture(self, work: Callable[[], None], warm_ups: int = 2) -> Replay:
        """Run `work` `warm_ups` times to compile and tune, then record it once into a graph."""
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(warm_ups):
                work()
        torch.cuda.current_stream().wait_stream(stream)
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            work()
        self._graphs.append(graph)
        return graph.replay

    def microseconds(self, replay: Replay) -> float:
        """Device time of one replay, which is already queued when the device starts the clock."""
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        torch.cuda._sleep(HEAD_START_CYCLES)
        start.record()
        replay()
        end.record()
        end.synchronize()
        return float(start.elapsed_time(end)) * 1e3

    def synchronise(self) -> None:
        """Wait for the device; errors of earlier kernels surface here."""
        torch.cuda.synchronize()

    def l2_bytes(self) -> int:
        """Size of the L2 cache."""
        return int(torch.cuda.get_device_properties(0).L2_cache_size)


@dataclass(slots=True)
class HostClock:
    """Runs work directly. Its times say nothing about a GPU; it exists to test the harness."""

    device: str = "cpu"

    def capture(self, work: Callable[[], None], warm_ups: int = 1) -> Replay:
        """Run `work` and hand it back."""
        for _ in range(warm_ups):
            work()
        return work

    def microseconds(self, replay: Replay) -> float:
        """Wall time of one call."""
        start = time.perf_counter()
        replay()
        return (time.perf_counter() - start) * 1e6

    def synchronise(self) -> None:
        """Nothing to wait for."""

    def l2_bytes(self) -> int:
        """No cache to exceed."""
        return 0


Clock = CudaClock | HostClock


@dataclass(frozen=True, slots=True)
class Timing:
    """Replay times in microseconds, divided by the layers that one replay covers."""

    median: float
    fastest: float
    slowest: float
    samples: int

    @classmethod
    def of(cls, samples: list[float], layers: int) -> Timing:
        """Summarise raw replay times."""
        ordered = sorted(sample / layers for sample in samples)
        middle = len(ordered) // 2
        median = ordered[middle] if len(ordered) % 2 else sum(ordered[middle - 1 : middle + 1]) / 2
        return cls(median, ordered[0], ordered[-1], len(ordered))


def interleaved(
    clock: Clock, replays: Mapping[Any, tuple[Replay, int]], rounds: int
) -> dict[Any, Timing]:
    """Time all replays in turn, `rounds` times, so that clock drift touches all of them alike.

    Each value of `replays` is a replay and the number of layers it covers.
    """
    samples: dict[Any, list[float]] = {key: [] for key in replays}
    for index in range(rounds + 1):
        for key, (replay, _) in replays.items():
            elapsed = clock.microseconds(replay)
            if index:  # the first pass only warms up
                samples[key].append(elapsed)
    return {key: Timing.of(samples[key], layers) for key, (_, layers) in replays.items()}


def copy_bandwidth(clock: Clock, bytes_to_copy: int = COPY_BYTES, rounds: int = 20) -> float:
    """Measured device copy bandwidth in bytes per second, reads and writes counted."""
    source = torch.ones(bytes_to_copy // 4, device=clock.device)
    target = torch.empty_like(source)

    def copy() -> None:
        # a kernel that reads and writes; a captured memcpy may run on a slower copy engine
        torch.neg(source, out=target)

    timing = interleaved(clock, {"copy": (clock.capture(copy), 1)}, rounds)["copy"]
    return 2 * bytes_to_copy / (timing.median * 1e-6)


def environment(clock: Clock) -> dict[str, str | int]:
    """What a reader needs to judge a result."""
    facts: dict[str, str | int] = {
        "date": time.strftime("%Y-%m-%d", time.gmtime()),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "triton": _triton_version(),
        "device": platform.machine(),
    }
    if clock.device != "cpu":
        properties = torch.cuda.get_device_properties(0)
        facts |= {
            "device": properties.name,
            "driver": _driver_version(),
            "cuda": torch.version.cuda or "",
            "processors": properties.multi_processor_count,
            "l2_bytes": clock.l2_bytes(),
        }
    return facts


def _triton_version() -> str:
    try:
        import triton
    except ImportError:
        return "absent"
    return str(triton.__version__)


def _driver_version() -> str:
    if shutil.which("nvidia-smi") is None:
        return "unknown"
    query = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
    answer = subprocess.run(query, capture_output=True, text=True, timeout=30, check=False)
    return answer.stdout.split("\n")[0].strip() or "unknown"
