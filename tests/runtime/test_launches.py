"""Kernels prepared to be started in a row, against a driver that reads their memory."""

from __future__ import annotations

import struct
from dataclasses import replace

import pytest

from boleir.codegen.launch_spec import LaunchSpec
from boleir.errors import LaunchError
from boleir.runtime.driver import NO_CONTEXT
from boleir.runtime.launcher import Launcher
from boleir.runtime.launches import KernelSequence
from tests.runtime.fake_driver import FakeDriver

NAMES = ("a", "b", "state", "stride", "batch_stride")
FIRST = LaunchSpec(
    "first", "first", ("state", "a", "stride"), ("*fp32", "*bf16", "i32"), ("batch", "1", "1"), 4, 0
)
SECOND = replace(
    FIRST, kernel="second", arguments=("b", "state", "batch_stride"),
    types=("*bf16", "*fp32", "i64"),
    grid=("batch * 2", "layers", "1"), pdl=True, shared=64,
)  # fmt: skip
VALUES = [2**63 + 16, 32, 48, -5, -(2**40)]


class Made:
    """The two kernels, their driver, and a stream that can be changed."""

    def __init__(self) -> None:
        self.driver = FakeDriver(5)
        self.stream = 7
        launchers = [
            Launcher(spec, 70 + at, self.driver, sizes=("batch", "layers"), device=3)
            for at, spec in enumerate((FIRST, SECOND))
        ]
        self.row = KernelSequence(launchers, NAMES, 2, lambda: self.stream)

    def seen(self) -> list[tuple[int, ...]]:
        """The values of each launch since the last call of this."""
        codes = {70: "QQi", 71: "QQq"}
        found = [
            tuple(
                struct.unpack_from(code, raw)[0]
                for code, raw in zip(codes[x.function], x.parameters, strict=False)
            )
            for x in self.driver.launches
        ]
        assert all(x.parameters[3:] == (bytes(8), bytes(8)) for x in self.driver.launches)
        self.driver.launches.clear()
        return found


def test_every_kernel_reads_its_own_values() -> None:
    made = Made()
    made.row.fill(VALUES, 3, 5)
    made.row.start()
    first, second = made.driver.launches
    assert (first.grid, second.grid) == ((3, 1, 1), (6, 5, 1))
    assert (first.attributes, second.attributes) == ((), ((6, 1),))
    assert (first.shared, second.shared, first.stream) == (0, 64, 7)
    assert made.seen() == [(48, 2**63 + 16, -5), (32, 48, -(2**40))]


def test_new_addresses_and_streams_reach_the_kernels() -> None:
    made = Made()
    made.row.fill(VALUES, 1, 1)
    made.row.start()
    made.row.readdress((160, 320))
    made.stream = 9
    made.row.start()
    assert [x.stream for x in made.driver.launches] == [7, 7, 9, 9]
    assert made.seen()[2:] == [(48, 160, -5), (320, 48, -(2**40))]


def test_a_value_that_does_not_fit_is_named_and_nothing_starts() -> None:
    made = Made()
    made.row.fill(VALUES, 1, 1)
    with pytest.raises(LaunchError, match="kernel first: stride is 2147483648, not a i32"):
        made.row.fill([*VALUES[:3], 2**31, 0], 1, 1)
    with pytest.raises(struct.error):
        made.row.readdress((1, 2, 3))
    assert made.driver.launches == []


def test_an_empty_grid_starts_nothing() -> None:
    made = Made()
    made.row.fill(VALUES, 2, 0)
    made.row.start()
    assert [x.function for x in made.driver.launches] == [70]
    made.row.fill(VALUES, 0, 1)
    made.row.start()
    assert len(made.driver.launches) == 1


def test_a_fresh_thread_gets_the_context_and_other_errors_are_told() -> None:
    made = Made()
    made.row.fill(VALUES, 1, 1)
    made.driver.statuses = [0, NO_CONTEXT]
    made.row.start()
    assert made.driver.used == [3]
    assert [x.function for x in made.driver.launches] == [70, 71, 71]
    made.driver.statuses = [700]
    with pytest.raises(LaunchError, match="kernel first with grid 1 x 1 x 1: CUDA_ERROR_700"):
        made.row.start()


def test_what_cannot_share_a_place_is_refused() -> None:
    driver = FakeDriver(5)
    odd = Launcher(replace(FIRST, types=("*fp32", "*bf16", "fp32")), 1, driver, sizes=("batch",))
    with pytest.raises(LaunchError, match="kernel first: stride is a fp32"):
        KernelSequence([odd], NAMES, 2, lambda: 0)
    known = Launcher(FIRST, 1, driver, sizes=("batch",))
    with pytest.raises(LaunchError, match="takes 'stride', which no call provides"):
        KernelSequence([known], NAMES[:3], 2, lambda: 0)
