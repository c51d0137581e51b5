"""The GPUs boleir compiles for, and the limits that decide what can run on them.

A plain table: nothing here asks a driver, so a variant can be judged and compiled for a GPU that is
not present. Names outside the table are refused early, because a compiler that meets an unknown
architecture may abort its whole process.

Sources of the numbers: NVIDIA, CUDA C++ Programming Guide, "Technical Specifications per Compute
Capability", and the tuning guides of each architecture (one kilobyte of shared memory per resident
block is taken by the system); AMD, "Instinct MI300 (CDNA 3) Instruction Set Architecture" and the
MI300X data sheet.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from boleir.errors import CompileError

KIB = 1024


class UnknownTarget(CompileError):
    """A target name that is not in the table."""


@dataclass(frozen=True, slots=True)
class Target:
    """One GPU architecture. Memory in bytes, registers of 32 bits; "sm" is one multiprocessor."""

    name: str
    """As users write it: `sm_90`, `gfx942`."""
    backend: str
    """`cuda` or `hip`."""
    arch: int | str
    """What Triton calls it: 90, or `gfx942`."""
    warp_size: int
    shared_per_block: int
    """The most shared memory one block can opt in to."""
    shared_per_sm: int
    shared_reserved: int
    """Shared memory the system takes for itself from every resident block."""
    registers_per_sm: int
    registers_per_thread: int
    threads_per_block: int
    threads_per_sm: int
    blocks_per_sm: int
    wgmma: bool
    """Has Hopper's warp-group matrix instructions (operands from shared memory)."""
    tensor_memory: int
    """Bytes of Blackwell's accumulator memory per multiprocessor; 0 where there is none."""
    pdl: bool
    """Supports programmatic dependent launch."""
    example: str
    """A GPU of this architecture and its number of multiprocessors, for estimates only."""
    multiprocessors: int

    @property
    def triple(self) -> tuple[str, int | str, int]:
        """The arguments of Triton's `GPUTarget`: backend, architecture, warp size."""
        return self.backend, self.arch, self.warp_size

    @property
    def wide_products(self) -> bool:
        """Whether matrix instructions take operands from shared memory, not from registers."""
        return self.wgmma or self.tensor_memory > 0

    @property
    def binary_kind(self) -> str:
        """File suffix of a compiled kernel: `cubin` or `hsaco`."""
        return "cubin" if self.backend == "cuda" else "hsaco"

    def runs_on(self, capability: tuple[int, int]) -> bool:
        """Whether a binary for this target runs on an NVIDIA device of `capability` (major, minor).

        Binaries up to 8.x run on later minors of the same major; from 9.0 on Triton compiles for
        the architecture-specific feature set (`sm_90a`), which runs on exactly that capability.
        """
        if self.backend != "cuda" or not isinstance(self.arch, int):
            return False
        major, minor = divmod(self.arch, 10)
        if self.arch >= 90:
            return (major, minor) == tuple(capability)
        return major == capability[0] and minor <= capability[1]

    def __str__(self) -> str:
        return self.name


def _nvidia(
    arch: int,
    shared_kib: int,
    threads_per_sm: int,
    blocks_per_sm: int,
    example: str,
    multiprocessors: int,
    tensor_memory: int = 0,
) -> Target:
    """A row for NVIDIA: what all these architectures share is filled in here."""
    return Target(
        name=f"sm_{arch}",
        backend="cuda",
        arch=arch,
        warp_size=32,
        shared_per_block=(shared_kib - 1) * KIB,
        shared_per_sm=shared_kib * KIB,
        shared_reserved=KIB,
        registers_per_sm=64 * KIB,
        registers_per_thread=255,
        threads_per_block=1024,
        threads_per_sm=threads_per_sm,
        blocks_per_sm=blocks_per_sm,
        wgmma=arch == 90,
        tensor_memory=tensor_memory,
        pdl=arch >= 90,
        example=example,
        multiprocessors=multiprocessors,
    )


_ROWS = (
    _nvidia(80, 164, 2048, 32, "A100", 108),
    _nvidia(86, 100, 1536, 16, "RTX 3090", 82),
    _nvidia(89, 100, 1536, 24, "L40S", 142),
    _nvidia(90, 228, 2048, 32, "H200", 132),
    _nvidia(100, 228, 2048, 32, "B200", 148, tensor_memory=256 * KIB),
    _nvidia(120, 100, 1536, 24, "RTX 5090", 170),
    _nvidia(121, 100, 1536, 24, "GB10", 48),
    Target(
        name="gfx942",
        backend="hip",
        arch="gfx942",
        warp_size=64,
        shared_per_block=64 * KIB,
        shared_per_sm=64 * KIB,
        shared_reserved=0,
        registers_per_sm=128 * KIB,
        registers_per_thread=512,
        threads_per_block=1024,
        threads_per_sm=2048,
        blocks_per_sm=32,
        wgmma=False,
        tensor_memory=0,
        pdl=False,
        example="MI300X",
        multiprocessors=304,
    ),
)

TARGETS: dict[str, Target] = {row.name: row for row in _ROWS}
"""Every supported target by name, oldest first."""


def target(name: str | int | Target) -> Target:
    """The target called `name`; `sm90`, `sm_90a` and `90`, text or number, mean `sm_90`.

    Raises `UnknownTarget`, naming the ones there are.
    """
    if isinstance(name, Target):
        return name
    spelled = str(name).strip().lower()
    match = re.fullmatch(r"(?:sm_?)?(\d{2,3})a?", spelled)
    found = TARGETS.get(f"sm_{match.group(1)}" if match else spelled)
    if found is None:
        raise UnknownTarget(f"unknown target {name!r}", mend=f"one of {', '.join(TARGETS)}")
    return found


def targets(names: str) -> tuple[Target, ...]:
    """Targets from comma-separated names, in that order, without repeats."""
    wanted = [part for part in names.split(",") if part.strip()]
    if not wanted:
        raise UnknownTarget("no target given", mend=f"one or more of {', '.join(TARGETS)}")
    return tuple(dict.fromkeys(target(part) for part in wanted))


def target_of(capability: tuple[int, int]) -> Target:
    """The best target whose binaries run on an NVIDIA device of `capability`."""
    fitting = [row for row in TARGETS.values() if row.runs_on(capability)]
    if not fitting:
        major, minor = capability
        raise UnknownTarget(
            f"no target produces binaries for compute capability {major}.{minor}",
            mend=f"supported: {', '.join(TARGETS)}",
        )
    return fitting[-1]
