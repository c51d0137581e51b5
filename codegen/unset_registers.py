"""A known fault of the assembler, found in the binary: registers that are read but never set.

ptxas 12.8 loses the register with the shared address of a tensor-core operand on sm_90 when an
operand of another swizzle has used the same address before. What it emits then adds the offset to a
register that nothing has written, or takes it from the stack pointer: wrong numbers, or an illegal
access. All of this can be read off the instructions.
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
    done = subprocess.run([disassembler, "-c", str(path)], capture_output=True, text=True)
    return unset_register(done.stdout) if done.returncode == 0 else None
