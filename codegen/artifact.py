"""The content of a compiled folder, as values: what was compiled, for which targets, how it is run.

`boleir.codegen.artifact_folder` writes it to disk and reads it back.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from boleir.codegen.kernel_spec import CompiledKernel
from boleir.codegen.launch_spec import LaunchSpec
from boleir.codegen.targets import target as find_target
from boleir.errors import CacheError


@dataclass(frozen=True, slots=True)
class Variant:
    """The kernels of one target."""

    target: str
    source: str
    """File of the emitted module in the folder."""
    schedule: Mapping[str, Any]
    launches: tuple[LaunchSpec, ...]
    binaries: Mapping[str, str]
    """File of each kernel's binary in the folder."""
    report: Mapping[str, Mapping[str, Any]]
    """Registers, spills, shared memory, size and seconds of each kernel."""

    def launch(self, kernel: str) -> LaunchSpec:
        """The launch of `kernel`. Raises `KeyError`."""
        return next(spec for spec in self.launches if spec.kernel == kernel)


@dataclass(frozen=True, slots=True)
class Artifact:
    """The content of a compiled folder."""

    name: str
    """Name of the recurrence."""
    recurrence: str
    """Its canonical text."""
    closed_form: str
    shapes: Mapping[str, int]
    dtypes: Mapping[str, str]
    variants: tuple[Variant, ...]
    toolchain: Mapping[str, str]
    extra: Mapping[str, Any] = field(default_factory=dict)
    """Whatever else the runtime needs, as plain JSON values."""
    files: Mapping[str, bytes] = field(default_factory=dict, repr=False)
    """Content of every file but the manifest, by path in the folder."""

    def variant(self, target: str) -> Variant:
        """The kernels for `target`. Raises `CacheError` naming the targets there are."""
        for found in self.variants:
            if found.target == target:
                return found
        there = ", ".join(found.target for found in self.variants)
        raise CacheError(
            f"{self.name} was not compiled for {target}", mend=f"compiled for: {there}"
        )

    def binary(self, target: str, kernel: str) -> bytes:
        """The binary of one kernel."""
        return self.files[self.variant(target).binaries[kernel]]

    def source(self, target: str) -> str:
        """The emitted module of one target."""
        return self.files[self.variant(target).source].decode()


@dataclass(frozen=True, slots=True)
class TargetBuild:
    """What the compiler has for one target, before it is laid out as a folder."""

    target: str
    source: str
    schedule: Mapping[str, Any]
    kernels: Sequence[tuple[LaunchSpec, CompiledKernel]]


def collect(
    builds: Sequence[TargetBuild],
    *,
    name: str,
    recurrence: str,
    closed_form: str,
    shapes: Mapping[str, int],
    dtypes: Mapping[str, str],
    extra: Mapping[str, Any] | None = None,
    assembly: bool = False,
    more: Mapping[str, bytes] | None = None,
) -> Artifact:
    """Lay the builds of all targets out as one folder.

    `assembly` adds the listings (PTX), `more` further files for reading, by path.
    """
    sources = _source_files(builds)
    files: dict[str, bytes] = dict(more or {})
    variants = []
    toolchain: dict[str, str] = {}
    for build in builds:
        source = sources[build.source]
        files[source] = build.source.encode()
        binaries, report = {}, {}
        for launch, kernel in build.kernels:
            stem = f"kernels/{launch.kernel}.{build.target}"
            path = f"{stem}.{find_target(build.target).binary_kind}"
            files[path] = kernel.binary
            files[f"{stem}.json"] = dump({"launch": launch.to_json(), "report": kernel.facts})
            if assembly:
                files[f"{stem}.ptx" if path.endswith("cubin") else f"{stem}.s"] = (
                    kernel.assembly.encode()
                )
            binaries[launch.kernel] = path
            report[launch.kernel] = kernel.facts
            toolchain["triton"] = kernel.triton
            if kernel.assembler:
                toolchain[f"ptxas {build.target}"] = kernel.assembler
        launches = tuple(launch for launch, _ in build.kernels)
        variants.append(
            Variant(build.target, source, dict(build.schedule), launches, binaries, report)
        )
    return Artifact(
        name=name,
        recurrence=recurrence,
        closed_form=closed_form,
        shapes=dict(shapes),
        dtypes=dict(dtypes),
        variants=tuple(variants),
        toolchain=toolchain,
        extra=dict(extra or {}),
        files=files,
    )


def _source_files(builds: Sequence[TargetBuild]) -> dict[str, str]:
    """File of each distinct module: `kernels.py`, or named after the first target that has it."""
    first: dict[str, str] = {}
    for build in builds:
        first.setdefault(build.source, f"kernels.{build.target}.py")
    return first if len(first) > 1 else dict.fromkeys(first, "kernels.py")


def dump(content: Any) -> bytes:
    """JSON with sorted keys, so that equal values give equal bytes."""
    return (json.dumps(content, indent=1, sort_keys=True, ensure_ascii=False) + "\n").encode()
