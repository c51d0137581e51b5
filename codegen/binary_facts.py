"""What can be read off a compiled kernel: registers, spills, parameters, the tools that made it.

Used inside the compiling process only; Triton is imported where it is asked.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from boleir.codegen.unset_registers import may_have_unset, unset_in

PTXAS = "TRITON_PTXAS_PATH"


def nvidia_usage(binary: bytes, scratch: Path) -> tuple[int | None, int | None]:
    """Registers per thread and stack bytes (spills) of a cubin, by the toolkit's own reader."""
    tool = _tool("cuobjdump")
    if tool is None:
        return None, None
    path = scratch / "usage.cubin"
    path.write_bytes(binary)
    done = subprocess.run([tool, "-res-usage", str(path)], capture_output=True, text=True)
    match = re.search(r"REG:(\d+)\s+STACK:(\d+)", done.stdout)
    return (int(match.group(1)), int(match.group(2))) if match else (None, None)


def never_returns(assembly: str) -> bool:
    """Whether a kernel in PTX has no end but a trap: what the compiler leaves of code that it takes
    for impossible. Triton 3.6 does so with some loops over products in sm_100's tensor memory."""
    return re.search(r"^\s*ret;", assembly, re.MULTILINE) is None


def amd_usage(assembly: str) -> tuple[int | None, int | None]:
    """Vector registers and private bytes (spills) from the metadata at the end of the listing."""
    registers = re.search(r"\.vgpr_count:\s*(\d+)", assembly)
    private = re.search(r"\.private_segment_fixed_size:\s*(\d+)", assembly)
    return (
        int(registers.group(1)) if registers else None,
        int(private.group(1)) if private else None,
    )


def _tool(name: str) -> str | None:
    from triton import knobs

    try:
        return str(getattr(knobs.nvidia, name).path)
    except Exception:
        return None


def assembler_version(backend: str, arch: int | str) -> str:
    """Version of the assembler that made the binary, or "" where there is none of its own."""
    if backend != "cuda":
        return ""
    from triton.backends.nvidia.compiler import get_ptxas_version

    match = re.search(r"V(\d+[\d.]*)", get_ptxas_version(arch))
    return match.group(1) if match else ""


def unset_register_of(compiled: Any, scratch: Path) -> str | None:
    """The uniform register that a kernel with tensor-core products of sm_90 reads without having
    set it; None for a sound kernel, and where the disassembler is missing."""
    tool = _tool("nvdisasm") if may_have_unset(compiled.asm["ptx"]) else None
    return None if tool is None else unset_in(compiled.asm["cubin"], tool, scratch)


@contextmanager
def other_assembler(arch: int) -> Iterator[bool]:
    """Within: the other assembler of Triton's own is used, the one it has for newer GPUs. Gives
    whether there is one; what the user has chosen stays."""
    from triton.backends.nvidia.compiler import get_ptxas, get_ptxas_version

    newer = _tool("ptxas_blackwell")
    if newer is None or PTXAS in os.environ or str(get_ptxas(arch).path) == newer:
        yield False
        return
    os.environ[PTXAS] = newer
    get_ptxas_version.cache_clear()
    try:
        yield True
    finally:
        del os.environ[PTXAS]
        get_ptxas_version.cache_clear()


def parameter_count(assembly: str, backend: str) -> int:
    """Parameters of the kernel's entry, the compiler's own trailing scratch pointers included."""
    if backend == "cuda":
        header = re.search(r"\.entry\s+\S+?\((.*?)\)", assembly, re.DOTALL)
        return len(re.findall(r"\.param\b", header.group(1))) if header else 0
    return len(re.findall(r"\.value_kind:\s*(?:global_buffer|by_value)", assembly))


def scratch_sizes(facts: Any) -> list[int]:
    """Bytes of global and of profiling scratch; older versions do not report them for AMD."""
    names = ("global_scratch_size", "profile_scratch_size")
    return [getattr(facts, name, None) or 0 for name in names]
