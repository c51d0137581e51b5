"""What a measurement depends on besides the shape: the GPU and the tools that made the kernels."""

from __future__ import annotations

import functools
import re
from dataclasses import asdict, dataclass
from importlib import metadata
from typing import Any

from boleir.codegen.targets import Target

FORMAT = 1
"""Version of the files of the store; another one is another folder."""


@dataclass(frozen=True, slots=True)
class Environment:
    """Measurements of one environment lie in one folder and are never compared with another's."""

    gpu: str
    """Name of the GPU, normalised: `h200`, `geforce-rtx-5090`."""
    arch: str
    """Name of the target: `sm_90`."""
    triton: str
    ptxas: str
    """Version of the assembler, or `none` where there is none of its own."""
    format: int = FORMAT

    @property
    def folder(self) -> str:
        """Name of the folder: readable, and safe on any file system."""
        parts = (
            self.gpu, self.arch, f"triton-{self.triton}", f"ptxas-{self.ptxas}", f"v{self.format}",
        )  # fmt: skip
        return "_".join(re.sub(r"[^A-Za-z0-9_.+-]+", "-", part) for part in parts)

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return asdict(self)


def normalised(name: str) -> str:
    """A GPU's name without maker, trade marks and spelling: `NVIDIA H200` is `h200`."""
    plain = re.sub(r"\((r|tm|c)\)", " ", name.lower())
    words = re.findall(r"[a-z0-9.]+", plain)
    kept = [word for word in words if word not in ("nvidia", "amd", "graphics", "corporation")]
    return "-".join(kept) or "unknown"


def environment(gpu: str, target: Target) -> Environment:
    """The environment of a GPU called `gpu` with the tools of this process."""
    return Environment(normalised(gpu), target.name, triton_version(), ptxas_version(target))


def present(device: int, target: Target) -> Environment:
    """The environment of GPU number `device`."""
    import torch

    return environment(torch.cuda.get_device_name(device), target)


def triton_version() -> str:
    """Version of Triton, without importing it."""
    try:
        return metadata.version("triton")
    except metadata.PackageNotFoundError:
        return "none"


@functools.cache
def ptxas_version(target: Target) -> str:
    """Version of the assembler that Triton uses for `target`, or `none`."""
    try:
        from boleir.codegen.binary_facts import assembler_version

        return assembler_version(target.backend, target.arch) or "none"
    except Exception:  # no Triton, or one without an assembler for this target
        return "none"
