"""Load a compiled folder: read, verify, hand the binaries to the driver. No compiler is involved.

Nothing here imports Triton, sympy or the language; a serving process needs the folder, this package
and the driver.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from boleir.codegen.artifact import Artifact, Variant
from boleir.codegen.artifact_folder import read
from boleir.codegen.launch_spec import LaunchSpec
from boleir.codegen.targets import Target, target_of
from boleir.codegen.targets import target as find_target
from boleir.errors import LaunchError
from boleir.runtime.driver import Driver, cuda_driver
from boleir.runtime.launcher import Launcher


@dataclass(frozen=True, slots=True)
class LoadedKernels:
    """The kernels of one variant, ready to be started on one device."""

    artifact: Artifact
    variant: Variant
    device: int
    launchers: Mapping[str, Launcher]

    def __getitem__(self, kernel: str) -> Launcher:
        """The launcher of `kernel`. Raises `LaunchError` naming the ones there are."""
        found = self.launchers.get(kernel)
        if found is None:
            raise LaunchError(
                f"no kernel {kernel!r}", mend=f"there are: {', '.join(self.launchers)}"
            )
        return found


def load(
    source: str | Path | Artifact,
    sizes: Mapping[str, tuple[str, ...]] | tuple[str, ...],
    *,
    device: int = 0,
    target: str | Target | None = None,
    driver: Driver | None = None,
) -> LoadedKernels:
    """Load the kernels of a compiled folder (or of an `Artifact` in memory) on `device`.

    `sizes` names the integers that grids are computed from, in the order launches pass them: one
    tuple for all kernels, or one for each. `target` defaults to what the device can run. Raises
    `CacheError` for a bad folder or a target that was not compiled, `LaunchError` for the driver.
    """
    chosen = find_target(target) if target is not None else device_target(device)
    if chosen.backend != "cuda":
        raise LaunchError(f"binaries for {chosen.name} cannot be loaded: only CUDA devices can")
    artifact = source if isinstance(source, Artifact) else read(source, chosen.name)
    variant = artifact.variant(chosen.name)
    launchers = {}
    for spec in variant.launches:
        names = sizes if isinstance(sizes, tuple) else sizes[spec.kernel]
        binary = artifact.files[variant.binaries[spec.kernel]]
        launchers[spec.kernel] = load_kernel(spec, binary, names, device=device, driver=driver)
    return LoadedKernels(replace(artifact, files={}), variant, device, launchers)


def load_kernel(
    spec: LaunchSpec,
    binary: bytes,
    sizes: tuple[str, ...],
    *,
    device: int = 0,
    driver: Driver | None = None,
) -> Launcher:
    """One binary, loaded on `device` and ready to be started. Raises `LaunchError`."""
    used = cuda_driver() if driver is None else driver
    function = used.function(used.load(binary, device), spec.entry)
    used.allow_shared(function, spec.shared)
    return Launcher(spec, function, used, sizes=sizes, device=device)


def device_target(device: int = 0) -> Target:
    """The target whose binaries run on `device`. Raises `LaunchError` without a GPU."""
    import torch

    if not torch.cuda.is_available():
        raise LaunchError("no GPU is available", mend="name the target to load for")
    return target_of(torch.cuda.get_device_capability(device))
