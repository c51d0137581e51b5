"""Whether a block fits on a GPU."""

from __future__ import annotations

import pytest

from boleir.codegen.resources import (
    FIXED_REGISTERS,
    Footprint,
    RegisterLimit,
    ResourceLimit,
    SharedMemoryLimit,
    TensorMemoryLimit,
    ThreadLimit,
    check,
    check_compiled,
    occupancy,
    registers_available,
)
from boleir.codegen.targets import TARGETS
from boleir.errors import ScheduleError

A100, H200, B200, GEFORCE = (TARGETS[n] for n in ("sm_80", "sm_90", "sm_100", "sm_120"))
MI300 = TARGETS["gfx942"]


def test_shared_memory_limit_names_both_numbers() -> None:
    block = Footprint(shared=200 * 1024, live=0, warps=4)
    assert check(block, H200).blocks == 1
    with pytest.raises(SharedMemoryLimit, match=r"204,800 bytes needed, sm_80 allows 166,912"):
        check(block, A100)


def test_the_limit_itself_is_allowed() -> None:
    most = H200.shared_per_block
    assert check(Footprint(most, 0, 4), H200).limited_by == "shared"
    with pytest.raises(SharedMemoryLimit):
        check(Footprint(most + 1, 0, 4), H200)


def test_registers_are_estimated_from_live_values() -> None:
    block = Footprint(shared=0, live=64 * 128, warps=4)
    assert block.registers(H200) == FIXED_REGISTERS + 64
    assert block.registers(MI300) == FIXED_REGISTERS + 32


def test_register_limit_and_tolerance() -> None:
    block = Footprint(shared=0, live=240 * 128, warps=4)
    with pytest.raises(RegisterLimit, match="272 needed, sm_90 allows 255"):
        check(block, H200)
    assert check(block, H200, spill=1.25).registers == 255


def test_many_warps_have_fewer_registers_each() -> None:
    assert registers_available(4, H200) == 255
    assert registers_available(16, H200) == 128
    assert registers_available(8, MI300) == 256
    with pytest.raises(RegisterLimit):
        check(Footprint(0, 100 * 1024, 32), H200)


def test_accumulators_live_in_tensor_memory_where_there_is_one() -> None:
    block = Footprint(shared=0, live=0, warps=4, accumulators=128 * 128)
    assert block.registers(B200) == FIXED_REGISTERS
    assert block.registers(GEFORCE) == FIXED_REGISTERS + 128
    assert check(block, B200).limited_by == "tensor memory"
    with pytest.raises(TensorMemoryLimit):
        check(Footprint(0, 0, 4, accumulators=128 * 513), B200)


def test_threads() -> None:
    with pytest.raises(ThreadLimit, match="2,048 needed, sm_80 allows 1,024"):
        check(Footprint(0, 0, 64), A100)
    with pytest.raises(ThreadLimit):
        check(Footprint(0, 0, 32), MI300)


@pytest.mark.parametrize("warps", [0, 3, 12, -4])
def test_warps_must_be_a_power_of_two(warps: int) -> None:
    with pytest.raises(ScheduleError, match="power of two"):
        check(Footprint(0, 0, warps), H200)


@pytest.mark.parametrize(
    ("block", "target", "blocks", "limited_by"),
    [
        (Footprint(0, 0, 4), H200, 16, "registers"),
        (Footprint(0, 0, 1), H200, 32, "blocks"),
        (Footprint(0, 0, 4), GEFORCE, 12, "threads"),
        (Footprint(0, 96 * 128, 4), H200, 4, "registers"),
        (Footprint(50 * 1024, 0, 4), H200, 4, "shared"),
        (Footprint(50 * 1024, 0, 4), GEFORCE, 1, "shared"),
    ],
)
def test_occupancy(block: Footprint, target, blocks: int, limited_by: str) -> None:
    found = occupancy(block, target)
    assert (found.blocks, found.limited_by) == (blocks, limited_by)
    assert found.warps(block) == blocks * block.warps


def test_known_registers_replace_the_estimate() -> None:
    block = Footprint(0, 0, 4)
    assert occupancy(block, H200, registers=250).blocks == 2
    assert occupancy(block, H200, registers=249).blocks == 2


def test_compiled_kernels_are_checked_without_an_estimate() -> None:
    check_compiled(H200.shared_per_block, 12, H200)
    with pytest.raises(SharedMemoryLimit):
        check_compiled(H200.shared_per_block + 1, 4, H200)
    with pytest.raises(ThreadLimit):
        check_compiled(0, 36, H200)


def test_limits_carry_numbers_for_programs() -> None:
    with pytest.raises(ResourceLimit) as caught:
        check(Footprint(10**6, 0, 4), H200)
    assert (caught.value.needed, caught.value.limit) == (10**6, H200.shared_per_block)
