"""Packing and launching, against a driver that reads the same memory the real one reads."""

from __future__ import annotations

import ctypes
import struct
import threading
from dataclasses import replace

import pytest

from boleir.codegen.launch_spec import LaunchSpec
from boleir.errors import LaunchError
from boleir.runtime.driver import NO_CONTEXT, LaunchAttribute, LaunchConfig
from boleir.runtime.launcher import Launcher
from tests.runtime.fake_driver import FakeDriver, Launch

TYPES = (
    "*bf16",
    "*fp32",
    "i1",
    "i8",
    "u8",
    "i16",
    "u16",
    "i32",
    "u32",
    "i64",
    "u64",
    "fp32",
    "fp64",
)
VALUES = (2**63 + 16, 0, True, -8, 200, -300, 60000, -5, 2**32 - 1, -(2**40), 2**63, -1.5, 0.1)
SPEC = LaunchSpec(
    kernel="solve",
    entry="solve",
    arguments=tuple(f"a{at}" for at in range(len(TYPES))),
    types=TYPES,
    grid=("batch * 32", "cdiv(nodes, 16)", "1"),
    num_warps=4,
    shared=70000,
)
PARAMETERS = len(TYPES) + 2


@pytest.fixture
def driver() -> FakeDriver:
    return FakeDriver(PARAMETERS)


@pytest.fixture
def launcher(driver: FakeDriver) -> Launcher:
    return Launcher(SPEC, 77, driver, sizes=("batch", "nodes"), device=3)


def test_everything_the_driver_sees(driver: FakeDriver, launcher: Launcher) -> None:
    launcher((3, 33), 1234, *VALUES)
    (seen,) = driver.launches
    assert seen.function == 77
    assert seen.grid == (96, 3, 1)
    assert seen.block == (128, 1, 1)
    assert seen.shared == 70000
    assert seen.stream == 1234
    assert seen.attributes == ()
    codes = ("Q", "Q", "?", "b", "B", "h", "H", "i", "I", "q", "Q", "f", "d")
    for code, value, raw in zip(codes, VALUES, seen.parameters, strict=False):
        assert struct.unpack_from(code, raw)[0] == value


def test_scratch_pointers_are_null(driver: FakeDriver, launcher: Launcher) -> None:
    launcher((1, 1), 0, *VALUES)
    assert driver.launches[0].parameters[-2:] == (bytes(8), bytes(8))


def test_a_second_launch_sees_only_its_own_values(driver: FakeDriver, launcher: Launcher) -> None:
    launcher((1, 1), 1, *VALUES)
    launcher((2, 1), 2, *(0 for _ in VALUES))
    assert driver.launches[1].parameters == (bytes(8),) * PARAMETERS
    assert (driver.launches[1].grid[0], driver.launches[1].stream) == (64, 2)


def test_an_empty_grid_launches_nothing(driver: FakeDriver, launcher: Launcher) -> None:
    launcher((0, 16), 0, *VALUES)
    launcher((4, 0), 0, *VALUES)
    assert driver.launches == []


def test_programmatic_launch_is_an_attribute(driver: FakeDriver) -> None:
    Launcher(replace(SPEC, pdl=True), 1, driver, sizes=("batch", "nodes"))((1, 1), 0, *VALUES)
    assert driver.launches[0].attributes == ((6, 1),)


@pytest.mark.parametrize(
    ("at", "value", "name"),
    [(7, 2**31, "a7 is 2147483648, not a i32"), (0, -1, "a0"), (11, "x", "a11"), (9, 1.5, "a9")],
)
def test_a_value_that_does_not_fit_is_named(
    launcher: Launcher, driver: FakeDriver, at: int, value, name: str
) -> None:
    values = list(VALUES)
    values[at] = value
    with pytest.raises(LaunchError, match=f"kernel solve: {name}"):
        launcher((1, 1), 0, *values)
    assert driver.launches == []


def test_a_wrong_number_of_values_is_told(launcher: Launcher) -> None:
    with pytest.raises(LaunchError, match=r"12 values for 13 arguments \(a0, a1"):
        launcher((1, 1), 0, *VALUES[:-1])


def test_a_failing_launch_names_kernel_grid_and_error(
    driver: FakeDriver, launcher: Launcher
) -> None:
    driver.statuses = [700]
    with pytest.raises(LaunchError, match=r"kernel solve with grid 32 x 1 x 1: CUDA_ERROR_700$"):
        launcher((1, 1), 0, *VALUES)


def test_a_grid_beyond_the_limits_is_explained(driver: FakeDriver, launcher: Launcher) -> None:
    driver.statuses = [1]
    with pytest.raises(LaunchError, match="at most 2147483647 x 65535 x 65535"):
        launcher((1, 16 * 65536), 0, *VALUES)


def test_a_fresh_thread_gets_the_context_of_the_device(
    driver: FakeDriver, launcher: Launcher
) -> None:
    driver.statuses = [NO_CONTEXT]
    launcher((1, 1), 0, *VALUES)
    assert driver.used == [3]
    assert len(driver.launches) == 2
    driver.statuses = [NO_CONTEXT, NO_CONTEXT]
    with pytest.raises(LaunchError, match="CUDA_ERROR_201"):
        launcher((1, 1), 0, *VALUES)


def test_threads_do_not_mix_their_values() -> None:
    spec = LaunchSpec("k", "k", ("a", "b"), ("i64", "i64"), ("1", "1", "1"), 1, 0)
    driver = FakeDriver(4)
    launcher = Launcher(spec, 1, driver, sizes=())

    def work(number: int) -> None:
        for _ in range(500):
            launcher((), number, number, number)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(1, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(driver.launches) == 2000
    assert all(_consistent(seen) for seen in driver.launches)


def _consistent(seen: Launch) -> bool:
    first, second, *_ = (struct.unpack("q", raw)[0] for raw in seen.parameters)
    return first == second == seen.stream


def test_structures_have_the_drivers_sizes() -> None:
    # CUDA Driver API on 64-bit machines: CUlaunchConfig 56 bytes, CUlaunchAttribute 72 bytes.
    assert ctypes.sizeof(LaunchConfig) == 56
    assert ctypes.sizeof(LaunchAttribute) == 72
    assert LaunchConfig.stream.offset == 32
    assert LaunchAttribute.value.offset == 8
