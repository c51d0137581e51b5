"""A known fault of the assembler, found in the binary: registers that are read but never set.

ptxas 12.8 loses the register with the shared address of a tensor-core operand on sm_90 when an
operand of another swizzle has used the same address before. What it emits then adds the offset to a
register that nothing has written, or takes it from the stack pointer: wrong numbers, or an illegal
access. All of this can be read off the instructions.

Disassembling takes half a second whatever the size of the kernel. The assembly says which swizzles
operands have: where all have the same, nothing can be lost.
"""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

_INSTRUCTION = re.compile(
    r"^\s*/\*[0-9a-f]+\*/\s+(?:@!?U?P\w+\s+)?(?P<name>[A-Z]\S*)\s+(?P<operands>[^;]*);",
    re.MULTILINE,
)
_REGISTER = re.compile(r"\b(U?R)(\d+)\b")
_PREDICATE = re.compile(r"U?P[\dT]")
_PRODUCT = re.compile(r"^\s*wgmma\.mma_async\S*\s([^;]*);", re.MULTILINE)
_WIDE = re.compile(r"%rd\d+")
_SUM = re.compile(
    r"^\s*(?:or\.b64|add\.[su]64)\s+(%rd\d+), (%rd\d+), (-?\d+|0x[0-9a-fA-F]+);", re.MULTILINE
)
_ADDRESS_BITS = 32
"""Addresses and offsets of a descriptor stay below; its swizzle is in the two highest bits."""
_STACK_POINTER = "R1"
_WHOLE_TILE = 128
"""Registers that a product of warp groups may write."""


def unset_register(listing: str) -> str | None:
    """The first register of a disassembled kernel that an address of a product is made from and
    that is not set by then, or is the stack pointer; None in a sound kernel.

    Instructions are taken in the order of their addresses: a loop reads nothing on its first turn
    that was not set above. Of vector registers only those are looked at that offsets are added to:
    single bits are put into unset ones on purpose. Descriptors (`gdesc[UR8]`) name four registers
    of which two may not matter; where the others come from is seen where they are set.
    """
    known: set[str] = set()
    for found in _INSTRUCTION.finditer(listing):
        name, operands = found["name"], [x.strip() for x in found["operands"].split(",")]
        if _PREDICATE.fullmatch(operands[0]) and len(operands) > 1:
            operands = operands[1:]  # a shuffle sets a predicate, too
        target = _REGISTER.fullmatch(operands[0].removesuffix(".reuse"))
        for kind, number in _read(operands[1:] if target else operands):
            looked_at = kind == "UR" or name.startswith("IADD3")
            if looked_at and kind + number not in known:
                return kind + number
        if target is None:
            continue
        kind, first = target[1], int(target[2])
        if name.startswith("R2UR") and operands[-1] == _STACK_POINTER:
            return kind + str(first)
        known.update(f"{kind}{at}" for at in range(first, first + _width(name)))
    return None


def swizzles(assembly: str) -> set[int | None]:
    """How operands that products of warp groups read from shared memory are swizzled, as their
    descriptors have it; None among them for a descriptor whose origin is not plain."""
    parts = {made: (start, int(added, 0)) for made, start, added in _SUM.findall(assembly)}
    operands = {x for text in _PRODUCT.findall(assembly) for x in _WIDE.findall(text)}
    return {_swizzle(operand, parts) for operand in operands}


def _swizzle(descriptor: str, parts: dict[str, tuple[str, int]]) -> int | None:
    while descriptor in parts:
        descriptor, added = parts[descriptor]
        if abs(added) >> _ADDRESS_BITS:
            return (added & (1 << 64) - 1) >> 62
    return None


def may_have_unset(assembly: str) -> bool:
    """Whether a kernel has to be looked at: its operands are swizzled in several ways."""
    found = swizzles(assembly)
    return len(found) > 1 or None in found


def _read(operands: list[str]) -> list[tuple[str, str]]:
    """Kind and number of every register in some operands."""
    return [x for text in operands if "gdesc" not in text for x in _REGISTER.findall(text)]


def _width(name: str) -> int:
    """Registers that an instruction writes, at most."""
    if "MMA" in name:
        return _WHOLE_TILE
    if ".128" in name or "LDSM" in name:
        return 4
    return 2 if ".64" in name or ".WIDE" in name or name.startswith("CS2R") else 1


def unset_in(binary: bytes, disassembler: str, scratch: Path) -> str | None:
    """The same for a binary; None too where it cannot be disassembled."""
    path = scratch / "checked.cubin"
    path.write_bytes(binary)
    done = subprocess.run([disassembler, "-c", "-ndf", str(path)], capture_output=True, text=True)
    return unset_register(done.stdout) if done.returncode == 0 else None
