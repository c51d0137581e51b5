"""A fault of the assembler is read off the binary, and such a binary is never used."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from boleir.codegen import compile_worker
from boleir.codegen.unset_registers import may_have_unset, unset_register

SOUND = """
        /*0000*/                   MOV R1, c[0x0][0x28] ;
        /*0010*/                   ULDC.64 UR6, c[0x0][0x208] ;
        /*0020*/                   S2UR UR5, SR_CgaCtaId ;
        /*0030*/                   UIADD3 UR8, UP0, UR5, 0x40, URZ ;
        /*0040*/                   UIADD3.X UR9, URZ, 0x40000040, URZ, UP0, !UPT ;
        /*0050*/              @!P3 LDG.E R144, desc[UR6][R38.64+0x24] ;
        /*0060*/                   HGMMA.64x32x16.F32.BF16 R24, R40, gdesc[UR44].tnspB, R24 ;
        /*0070*/                   R2UR UR12, R44 ;
"""


def test_sound_kernels_are_recognised() -> None:
    assert unset_register(SOUND) is None
    assert unset_register("") is None
    wide = "/*00*/ UIADD3.64 UR20, URZ, 0x2, URZ ;\n/*10*/ UMOV UR4, UR21 ;"
    assert unset_register(wide) is None


@pytest.mark.parametrize(
    ("line", "register"),
    [
        ("UIADD3 UR22, UP0, UR60, 0x40, URZ ;", "UR60"),
        ("UIADD3.X UR23, UR60, -0x7fffffe0, URZ, UP0, !UPT ;", "UR60"),
        ("@P0 STS.64 [R25+UR4+0xc000], R26 ;", "UR4"),
        ("R2UR UR45, R1 ;", "UR45"),
        ("IADD3 R242, P6, R242, 0x40, RZ ;", "R242"),
    ],
)
def test_unset_registers_are_found(line: str, register: str) -> None:
    assert unset_register(f"{SOUND}        /*0080*/    {line}\n") == register


def test_bits_may_be_put_into_an_unset_register() -> None:
    assert (
        unset_register(f"{SOUND}  /*0080*/  LOP3.LUT R5, R5, 0xfbffffff, RZ, 0xc0, !PT ;") is None
    )
    four = "/*00*/ LDG.E.128 R240, desc[UR6][R2.64] ;\n/*10*/ IADD3 R4, P0, R243, 0x1, RZ ;"
    assert unset_register(SOUND + four) is None
    shuffled = "/*00*/ SHFL.BFLY PT, R226, R229, 0x1, 0x1f ;\n/*10*/ IADD3 R4, P0, R226, R226, RZ ;"
    assert unset_register(SOUND + shuffled) is None


def test_a_later_write_does_not_help() -> None:
    early = "        /*0000*/   UMOV UR4, UR14 ;\n        /*0010*/   UMOV UR14, URZ ;\n"
    assert unset_register(early) == "UR14"


def worker(monkeypatch: pytest.MonkeyPatch, *, other: bool, faults: dict[str, str | None]) -> Any:
    """`compile_worker.sound` with an assembler for which a kernel is whatever `faults` says."""
    used = ["12.8"]

    @contextmanager
    def other_assembler(arch: int) -> Iterator[bool]:
        if other:
            used.append("12.9")
        yield other

    monkeypatch.setattr(compile_worker, "other_assembler", other_assembler)
    monkeypatch.setattr(compile_worker, "assembler_version", lambda backend, arch: used[-1])
    monkeypatch.setattr(compile_worker, "unset_register_of", lambda made, scratch: faults[made.by])
    first = SimpleNamespace(by="12.8")
    return compile_worker.sound(first, "12.8", 90, lambda: SimpleNamespace(by=used[-1]), Path())


def test_the_other_assembler_is_taken_where_the_first_fails(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made, version = worker(monkeypatch, other=True, faults={"12.8": None})
    assert (made.by, version) == ("12.8", "12.8")
    made, version = worker(monkeypatch, other=True, faults={"12.8": "UR60", "12.9": None})
    assert (made.by, version) == ("12.9", "12.9")


@pytest.mark.parametrize("other", [True, False])
def test_a_faulty_kernel_is_refused(monkeypatch: pytest.MonkeyPatch, other: bool) -> None:
    with pytest.raises(compile_worker.Rejected, match=r"ptxas 12.8 leaves .* UR60 unset"):
        worker(monkeypatch, other=other, faults={"12.8": "UR60", "12.9": "UR4"})


def products(*lines: str) -> str:
    """Assembly with products of one operand each; a line makes the operand, number 9."""
    product = "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 {%r1,%r2}, %rd9, %p1, 1, 1;"
    return "".join(
        f"\t{line}\n\t{product.replace('9', str(9 + n))}\n" for n, line in enumerate(lines)
    )


@pytest.mark.parametrize(
    ("assembly", "looked_at"),
    [
        ("ld.global.b32 %r1, [%rd1];", False),
        (products("or.b64 \t%rd9, %rd3, 4611686293305294848;"), False),
        (products("or.b64 %rd9, %rd3, 4611686293305294848;", "add.s64 %rd10, %rd9, 2;"), False),
        (
            products(
                "or.b64 %rd9, %rd3, 4611686293305294848;",
                "or.b64 %rd10, %rd3, -9223371899415822336;",
            ),
            True,
        ),
        (products("mov.b64 %rd9, {%r1, %r2};"), True),
    ],
)
def test_kernels_with_one_swizzle_are_not_looked_at(assembly: str, looked_at: bool) -> None:
    assert may_have_unset(assembly) == looked_at
