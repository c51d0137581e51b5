"""Run in child processes: a compiled folder served without a compiler, by a driver that records."""

from __future__ import annotations

import struct
import sys
from typing import Any

import torch

import boleir
from tests.runtime.fake_driver import FakeDriver, Launch


class Recorder(FakeDriver):
    """Knows how many parameters each kernel takes by the order in which kernels are loaded."""

    def __init__(self, counts: list[int]) -> None:
        super().__init__()
        self.counts = counts

    def launch(self, config: Any, function: int, parameters: Any, extra: None) -> int:
        """Read the parameters of the function that starts."""
        self.parameter_count = self.counts[function - 101]
        return super().launch(config, function, parameters, extra)


def serve(folder: str) -> dict[str, Any]:
    """Load, verify two layers, commit; what the driver saw, and which modules were imported."""
    from boleir.codegen.artifact_folder import read

    launches = read(folder, "sm_90").variant("sm_90").launches
    driver = Recorder([len(spec.arguments) for spec in launches])
    kernel = boleir.load_compiled(folder, target="sm_90", device=0, driver=driver)
    face = kernel.interface
    tree = kernel.tree_batch([-1, 0, 0, -1, 0], [0, 3, 5])
    inputs = {x.name: torch.zeros(5, *x.shape, dtype=torch.bfloat16) for x in face.inputs}
    inputs |= {x.name: torch.zeros(x.shape) for x in face.parameters}
    taps = (face.conv_channels, face.conv_width)
    inputs["conv_weight"] = torch.zeros(taps, dtype=getattr(torch, face.conv_dtype))
    pool, slots = kernel.pool(3, 2), torch.tensor([2, 0], dtype=torch.int32)
    space = kernel.workspace(2, 5, 2)
    factors = []
    for layer in range(2):
        out, kept = kernel.verify(
            tree, inputs, pool.layer(layer), slots, workspace=space, layer=layer
        )
        factors.append(kept)
    kernel.commit(factors, torch.tensor([1, -1], dtype=torch.int32), pool, slots)
    names = {101 + at: spec for at, spec in enumerate(launches)}
    known = {**inputs, "slots": slots, "state": pool.layer(1).state}
    known |= zip(face.outputs, out if len(face.outputs) > 1 else [out], strict=True)
    return {
        "started": [names[seen.function].kernel for seen in driver.launches],
        "grids": [list(seen.grid) for seen in driver.launches],
        "arguments": _wrong_arguments(driver.launches[-2], names, known),
        "imported": sorted({"triton", "sympy", "lark", "networkx"} & set(sys.modules)),
    }


def _wrong_arguments(
    seen: Launch, names: dict[int, Any], known: dict[str, torch.Tensor]
) -> list[str]:
    """Pointers of the last verify kernel that are not the tensors' addresses."""
    spec = names[seen.function]
    found = zip(spec.arguments, spec.types, seen.parameters, strict=True)
    return [
        name
        for name, kind, raw in found
        if name in known
        and kind.startswith("*")
        and struct.unpack("Q", raw)[0] != known[name].data_ptr()
    ]
