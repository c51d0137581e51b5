"""What a kernel compilation is asked, and what it answers: specifications, results, failures.

Plain values without the compiler, so that a schedule, a tuner and a test can build and read them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from boleir.codegen.targets import Target
from boleir.errors import CompileError

SCRATCH_POINTERS = 2
"""Trailing pointers the compiler adds to a kernel's parameters (global and profiling scratch)."""

ARGUMENT_TYPES = frozenset(
    {"i1", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64", "fp32", "fp64"}
)
ELEMENT_TYPES = ARGUMENT_TYPES | {"bf16", "fp16"}


class KernelError(CompileError):
    """A kernel that did not compile: `kernel`, `target`, `reason` (one line), source `line`."""

    def __init__(self, job: Job, reason: str, line: int | None = None) -> None:
        spec = job.spec
        schedule = f" ({spec.label})" if spec.label else ""
        place = f" at line {line} of the emitted module" if line else ""
        super().__init__(f"{spec.name} for {job.target}{schedule}{place}: {reason}")
        self.kernel = spec.name
        self.target = job.target.name
        self.reason = reason
        self.line = line


class CompilerCrash(KernelError):
    """The compiler process died."""


class CompilerTimeout(KernelError):
    """The compiler did not finish within the time limit."""


@dataclass(frozen=True, slots=True)
class KernelSpec:
    """One specialisation of one kernel function of an emitted module."""

    name: str
    """The `@triton.jit` function."""
    signature: Mapping[str, str]
    """Type of every run-time argument: `*bf16`, `*fp32`, `i32`, `i64`, `fp32`, ..."""
    constants: Mapping[str, Any] = field(default_factory=dict)
    """Value of every compile-time argument."""
    aligned: tuple[str, ...] = ()
    """Pointers (or integers) known to be multiples of 16."""
    num_warps: int = 4
    num_stages: int = 1
    max_registers: int | None = None
    """Cap on registers per thread, or None for the assembler's choice."""
    fp_fusion: bool = True
    """Whether a multiplication and an addition may become one operation; stated explicitly because
    its default differs between compiler versions."""
    pdl: bool = False
    """Compiled for programmatic dependent launch."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """Further compiler options; an unknown name is refused."""
    label: str = ""
    """The schedule, in a few words, for messages."""

    def __post_init__(self) -> None:
        for name, spelled in self.signature.items():
            known = ELEMENT_TYPES if spelled.startswith("*") else ARGUMENT_TYPES
            if spelled.removeprefix("*") not in known:
                raise CompileError(f"kernel {self.name}: argument {name} has type {spelled!r}")
        stray = [name for name in self.aligned if name not in self.signature]
        if stray:
            raise CompileError(f"kernel {self.name}: aligned names no argument: {stray[0]}")


@dataclass(frozen=True, slots=True)
class Job:
    """One kernel of one module for one target."""

    source: str
    spec: KernelSpec
    target: Target


@dataclass(frozen=True, slots=True)
class CompiledKernel:
    """A binary and what is known about it."""

    name: str
    target: str
    binary: bytes
    """cubin or hsaco."""
    assembly: str
    """PTX or AMD assembly, for reading."""
    entry: str
    """Symbol of the kernel in the binary."""
    num_warps: int
    """As launched; warp specialisation may have added some."""
    shared: int
    """Dynamic shared memory per block, bytes."""
    registers: int | None
    """Per thread; None where the tool that reads it is missing."""
    spills: int | None
    """Stack bytes per thread; more than 0 means registers were spilled."""
    seconds: float
    """Compilation time of this kernel alone."""
    triton: str
    assembler: str
    """Version of ptxas, or "" for AMD."""
    pdl: bool = False

    @property
    def size(self) -> int:
        """Bytes of the binary."""
        return len(self.binary)

    @property
    def facts(self) -> dict[str, Any]:
        """Everything but the binary and the listing, ready for JSON."""
        fields = asdict(self)
        del fields["binary"], fields["assembly"]
        return {**fields, "seconds": round(self.seconds, 3), "size": self.size}
