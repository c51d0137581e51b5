"""Host time of the calls that serve a layer: `python -m benchmarks.host_time [--gpu]`.

With `--gpu` the calls enter the GPU's driver, as an engine's do, and the time ends when the last
launch is queued, not when it has run.

Without it the kernels are really compiled and really prepared for launching, and a stand-in takes
the driver's place, which is entered through ctypes as the real one is and returns at once. What is
measured is therefore boleir's own share. Tensors live on the CPU: reading their formats and
addresses costs the same there.
"""

from __future__ import annotations

import argparse
import ctypes
import gc
import platform
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

import boleir
from benchmarks.result_file import command_line, keep
from boleir.codegen.schedule import Schedule
from boleir.runtime.call_records import Factors
from boleir.runtime.kernel import Kernel

RESULT = Path(__file__).parent / "results" / "host-time.json"
GPU_RESULT = RESULT.with_name("h200-host-time.json")
FORMAT = 1
NODES, FEW = 64, 16
"""Of a request; in the small variant few."""
TILES: dict[str, Any] = {"b_v": 32, "b_k": 32}
"""Small enough for the heads of a test."""

VARIANTS = {
    "one launch": ("gated_delta_rule", Schedule(gates="inline", **TILES)),
    "one launch, no dependent launch": (
        "gated_delta_rule",
        Schedule(gates="inline", pdl=False, **TILES),
    ),
    "two launches": ("gdn", Schedule(gates="prepare", **TILES)),
    "three launches": ("gdn", Schedule(fusion="split", solver="inverse", **TILES)),
}
"""Recurrence and schedule by the number of launches that one layer's verification takes."""


class StandIn:
    """A driver that starts nothing."""

    def __init__(self) -> None:
        # Takes any arguments, looks at none of them, returns 0: what is timed is the way there.
        self.launch = ctypes.PyDLL(None).PyErr_Occurred
        self.launch.argtypes = (ctypes.c_void_p,) * 4
        self.launch.restype = ctypes.c_int

    def load(self, binary: bytes, device: int) -> int:
        """A module."""
        return 1

    def use(self, device: int) -> None:
        """Nothing to make current."""

    def function(self, module: int, entry: str) -> int:
        """A kernel."""
        return 2

    def allow_shared(self, function: int, size: int) -> None:
        """Nothing to allow."""

    def explain(self, status: int) -> str:
        """No status is ever returned."""
        return str(status)


class Served:
    """A model's recurrent layers as an engine would serve them."""

    def __init__(
        self, recurrence: str, schedule: Schedule, layers: int, batch: int, target: str | None,
        small: bool,
    ) -> None:  # fmt: skip
        """`small`: heads and trees of a test, which compile faster; the host's work is the same.
        `target`: architecture of kernels that nobody runs; None for the GPU here."""
        heads = (1, 2, 32, 32) if small else (16, 32, 128, 128)
        sizes = dict(zip(("key_heads", "value_heads", "d_k", "d_v"), heads, strict=True))
        self.nodes = FEW if small else NODES
        schedule = replace(schedule, node_block=self.nodes)
        made = boleir.compile(
            recurrence, target=target, max_nodes=self.nodes, max_depth=8, schedule=schedule, **sizes
        )
        self.kernel: Kernel = made
        self.device = "cuda"
        if target is not None:
            assert made.artifact is not None
            self.device = "cpu"
            self.kernel = boleir.load_compiled(
                made.artifact, target=target, device=0, driver=StandIn()
            )
        self.layers, self.batch = layers, batch
        nodes = batch * self.nodes
        parents = [i - 1 if i < 9 else i % 8 for i in range(self.nodes)] * batch
        self.parents, self.cu = parents, [self.nodes * i for i in range(batch + 1)]
        self.tree = self.kernel.tree_batch(parents, self.cu)
        self.space = self.kernel.workspace(batch, nodes, layers)
        self.pool = self.kernel.pool(batch, layers)
        self.slots = torch.arange(batch, dtype=torch.int32, device=self.device)
        self.accepted = torch.full((batch,), 8, dtype=torch.int32, device=self.device)
        face = self.kernel.interface
        self.parameters = [
            {x.name: torch.zeros(x.shape, device=self.device) for x in face.parameters}
            for _ in range(layers)
        ]
        for own in self.parameters:
            if face.conv_channels:
                taps = (face.conv_channels, face.conv_width)
                dtype = getattr(torch, face.conv_dtype)
                own["conv_weight"] = torch.zeros(taps, dtype=dtype, device=self.device)
        dtype = getattr(torch, face.out_dtype)
        self.out = [
            torch.empty(nodes, face.value_heads, face.d_v, dtype=dtype, device=self.device)
            for _ in range(layers)
        ]
        self.inputs = [self.fresh(layer) for layer in range(layers)]
        self.factors: list[Factors] = []
        self.verify(self.inputs)

    def fresh(self, layer: int) -> dict[str, torch.Tensor]:
        """New token tensors, as every round's projections are, beside the layer's parameters."""
        face, nodes = self.kernel.interface, self.batch * self.nodes
        # Empty: no GPU's data passes through the caches of the CPU.
        tokens = {
            x.name: torch.empty(nodes, *x.shape, dtype=torch.bfloat16, device=self.device)
            for x in face.inputs
        }
        return tokens | self.parameters[layer]

    def verify(self, inputs: Sequence[dict[str, torch.Tensor]], *, given: bool = True) -> None:
        """All layers; `given`: outputs are written into tensors that exist."""
        verify, pool, slots, tree, space = (
            self.kernel.verify, self.pool, self.slots, self.tree, self.space,
        )  # fmt: skip
        self.factors = [
            verify(
                tree, inputs[i], pool.layer(i), slots, workspace=space, layer=i,
                out=self.out[i] if given else None,
            )[1]
            for i in range(self.layers)
        ]  # fmt: skip

    def commit(self) -> None:
        """All layers in one launch."""
        self.kernel.commit(self.factors, self.accepted, self.pool, self.slots)


def microseconds(call: Callable[[], None], rounds: int, before: Callable[[], None]) -> float:
    """Median wall time of one call, `before` not counted."""
    times = []
    for _ in range(rounds + 2):
        before()
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return sorted(times[2:])[rounds // 2] * 1e6


def measure(served: Served, rounds: int) -> dict[str, float]:
    """Microseconds per layer of each way to call."""
    layers = served.layers
    kept: list[list[dict[str, torch.Tensor]]] = []

    def nothing() -> None:
        """The tensors of the round before; the queue of launches is empty."""
        if served.device == "cuda":
            torch.cuda.synchronize()

    def renew() -> None:
        nothing()
        kept.append([served.fresh(layer) for layer in range(layers)])
        del kept[:-2]  # two rounds live at a time: addresses change from round to round

    def new_tree() -> None:
        renew()
        served.tree = served.kernel.tree_batch(served.parents, served.cu)

    gc.collect()
    gc.disable()
    try:
        cases = {
            "same tensors": (lambda: served.verify(served.inputs), nothing),
            "new tensors": (lambda: served.verify(kept[-1]), renew),
            "new tensors, new trees": (lambda: served.verify(kept[-1]), new_tree),
            "commit": (served.commit, nothing),
        }
        return {
            name: round(microseconds(call, rounds, before) / layers, 2)
            for name, (call, before) in cases.items()
        }
    finally:
        gc.enable()


def processor() -> str:
    """The CPU's name."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor()


def report(options: argparse.Namespace) -> dict[str, Any]:
    """Measure all variants."""
    rows = []
    for name, (recurrence, schedule) in VARIANTS.items():
        target = None if options.gpu else options.target
        served = Served(recurrence, schedule, options.layers, options.batch, target, options.small)
        launches = len(served.kernel.interface.verifying)
        found = measure(served, options.rounds)
        rows.append({"variant": name, "launches": launches, "us_per_layer": found})
    return {
        "format": FORMAT,
        "what": "host time per layer until its last launch is queued"
        if options.gpu
        else "host time per layer with a stand-in for the driver, whose own time is not in it",
        "command": options.command,
        "processor": processor(),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "gpu": torch.cuda.get_device_name() if options.gpu else None,
        "layers": options.layers,
        "batch": options.batch,
        "rows": rows,
    }


def markdown(found: dict[str, Any]) -> str:
    """One line per variant."""
    columns = list(found["rows"][0]["us_per_layer"])
    lines = [["variant", *columns], ["---"] * (1 + len(columns))]
    for row in found["rows"]:
        lines.append([row["variant"], *(f"{row['us_per_layer'][name]:.1f}" for name in columns)])
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print, keep."""
    arguments = sys.argv[1:] if arguments is None else arguments
    command = argparse.ArgumentParser(description=(__doc__ or "").split(":")[0])
    command.add_argument("--layers", type=int, default=24)
    command.add_argument("--batch", type=int, default=16)
    command.add_argument("--rounds", type=int, default=200)
    command.add_argument("--target", default="sm_90")
    command.add_argument("--small", action="store_true", help="heads of a test: compiles faster")
    command.add_argument("--gpu", action="store_true", help="with the driver of the GPU here")
    command.add_argument("--out", type=Path)
    options = command.parse_args(arguments)
    options.command = command_line(arguments, "benchmarks.host_time")
    found = report(options)
    keep(found, options.out or (GPU_RESULT if options.gpu else RESULT))
    print(markdown(found))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
