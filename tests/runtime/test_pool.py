"""State pools: layout, adoption of foreign memory, reading and writing slots."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
import torch

import boleir
from boleir.errors import LaunchError
from boleir.runtime.pool import PoolLayer, SlotFormat, StatePool

SLOT = SlotFormat((4, 6, 5), (10, 3))


def test_a_pool_is_value_first_and_zero() -> None:
    pool = StatePool(7, 2, SLOT)
    assert (len(pool), pool.slots) == (2, 7)
    layer = pool.layer(1)
    assert list(layer.state.shape) == [7, 4, 6, 5]
    assert layer.window is not None
    assert list(layer.window.shape) == [7, 10, 3]
    assert (layer.state.dtype, layer.window.dtype) == (torch.float32, torch.bfloat16)
    assert not layer.state.any()
    assert pool.bytes_per_request() == 2 * (4 * 6 * 5 * 4 + 10 * 3 * 2)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_slots_follow_the_recurrence(dtype: torch.dtype) -> None:
    heads = {"key_heads": 2, "value_heads": 4, "d_k": 32, "d_v": 48}
    slot = SlotFormat.of_recurrence(boleir.load("gdn"), dtype=dtype, **heads)
    assert slot == SlotFormat((4, 48, 32), (2 * 2 * 32 + 4 * 48, 3), dtype)
    assert SlotFormat.of_recurrence(boleir.load("gated_delta_rule"), **heads).window is None


def test_what_is_written_is_read() -> None:
    pool = StatePool(3, 2, SLOT)
    states, windows = torch.randn(2, 4, 6, 5), torch.randn(2, 10, 3).bfloat16()
    pool.write(1, states, windows)
    found = pool.read(1)
    assert torch.equal(found.states, states)
    assert found.windows is not None
    assert torch.equal(found.windows, windows)
    assert not pool.read(0).states.any()
    assert not pool.read(2).states.any()
    pool.write(1, states)
    assert not pool.read(1).windows.any()  # type: ignore[union-attr]
    pool.clear(1)
    assert not pool.read(1).states.any()


def test_reading_copies() -> None:
    pool = StatePool(1, 1, SLOT)
    pool.read(0).states.fill_(1)
    assert not pool.layer(0).state.any()


def test_a_pool_adopts_views_with_slots_far_apart() -> None:
    engine = torch.zeros(7, 3, 4, 6, 5)  # slots outermost: one layer is a strided view
    pool = StatePool.adopt(engine.transpose(0, 1))
    layer = pool.layer(2)
    assert layer.strides == (3 * 4 * 6 * 5, 0, 0)
    assert layer.window is None
    pool.write(6, torch.ones(3, 4, 6, 5))
    assert engine[6].all()
    assert not engine[:6].any()
    assert pool.read(6).windows is None
    assert pool.bytes_per_request() == 3 * 4 * 6 * 5 * 4


def test_layers_of_equal_format_share_a_kind() -> None:
    first, second = StatePool(2, 2, SLOT), StatePool(3, 1, SLOT)
    assert first.layer(0).kind == first.layer(1).kind != second.layer(0).kind


def test_layers_of_odd_sizes_are_aligned() -> None:
    pool = StatePool(3, 5, SlotFormat((1, 5, 7), (11, 3), torch.float16))
    base = pool.layer(0).pointers
    for layer in map(pool.layer, range(5)):
        offsets = [mine - first for mine, first in zip(layer.pointers, base, strict=True)]
        assert all(offset % 16 == 0 for offset in offsets)
        assert layer.state.is_contiguous()


def test_only_the_distance_between_slots_is_free() -> None:
    with pytest.raises(LaunchError, match="only the distance between slots is free"):
        PoolLayer(torch.zeros(3, 4, 5, 6).transpose(2, 3))
    with pytest.raises(
        LaunchError, match=re.escape("state is [3, 4, 5], expected [slots, HV, d_v")
    ):
        PoolLayer(torch.zeros(3, 4, 5))
    with pytest.raises(LaunchError, match=re.escape("window is [3, 4], expected [slots, channels")):
        PoolLayer(torch.zeros(3, 4, 5, 6), torch.zeros(3, 4))
    with pytest.raises(LaunchError, match="slots overlap"):
        PoolLayer(torch.zeros(1, 4, 5, 6).expand(3, 4, 5, 6))
    PoolLayer(torch.zeros(1, 4, 5, 6).expand(1, 4, 5, 6))


def test_bad_numbers_are_named() -> None:
    pool = StatePool(3, 2, SLOT)
    with pytest.raises(LaunchError, match="slots must be at least 1, not 0"):
        StatePool(0, 1, SLOT)
    with pytest.raises(LaunchError, match="layer 2 is not one of the pool's 2"):
        pool.layer(2)
    for slot in (-1, 3):
        with pytest.raises(LaunchError, match=f"slot {slot} is not one of the pool's 3"):
            pool.read(slot)
    with pytest.raises(LaunchError, match=re.escape("states is [4, 6, 5], expected [2, 4, 6, 5]")):
        pool.write(0, torch.zeros(4, 6, 5))
    with pytest.raises(LaunchError, match=re.escape("windows is [1], expected [2, 10, 3]")):
        pool.write(0, torch.zeros(2, 4, 6, 5), torch.zeros(1))


def test_adopted_layers_must_match() -> None:
    with pytest.raises(LaunchError, match="states has no layer"):
        StatePool.adopt([])
    with pytest.raises(LaunchError, match="the same number of slots"):
        StatePool.adopt([torch.zeros(2, 1, 1, 1), torch.zeros(3, 1, 1, 1)])
    with pytest.raises(LaunchError, match="windows has 1 layers, states has 2"):
        StatePool.adopt(torch.zeros(2, 3, 1, 1, 1), [torch.zeros(3, 1, 1)])
    with pytest.raises(LaunchError, match="window has 2 slots, state has 3"):
        StatePool.adopt([torch.zeros(3, 1, 1, 1)], [torch.zeros(2, 1, 1)])


@pytest.mark.parametrize(
    ("states", "message"),
    [
        (None, "states is a NoneType, expected one tensor per layer or [layers, slots, HV"),
        ([1], "state is a int, expected a tensor"),
        (torch.zeros(3, 1, 1, 1), "states has 4 axes, expected [layers, slots, HV, d_v, d_k]"),
    ],
)
def test_what_is_no_memory_of_layers_is_not_adopted(states: Any, message: str) -> None:
    with pytest.raises(LaunchError, match=re.escape(message)):
        StatePool.adopt(states)


WHOLE = [("a", "'a'"), (1.5, "1.5"), (None, "None"), (True, "True")]


@pytest.mark.parametrize(("value", "shown"), WHOLE)
def test_what_counts_is_a_whole_number(value: Any, shown: str) -> None:
    pool = StatePool(2, 1, SLOT)
    calls: dict[str, Any] = {
        "slots": lambda: StatePool(value, 1, SLOT),
        "layers": lambda: StatePool(1, value, SLOT),
        "layer": lambda: pool.layer(value),
        "slot": lambda: pool.read(value),
    }
    for name, call in calls.items():
        with pytest.raises(
            LaunchError, match=re.escape(f"{name} must be a whole number, not {shown}")
        ):
            call()


def test_whole_numbers_of_numpy_are_whole() -> None:
    pool = StatePool(np.int64(2), np.int32(1), SLOT)
    assert pool.layer(np.int64(0)) is pool.layer(0)
    with pytest.raises(LaunchError, match="layer 1 is not one of the pool's 1"):
        pool.layer(np.int64(1))


@pytest.mark.parametrize("kernel", ["gdn", None, 3])
def test_a_pool_is_that_of_a_kernel(kernel: Any) -> None:
    with pytest.raises(LaunchError, match="expected a Kernel or a SlotFormat") as caught:
        StatePool(1, 1, kernel)
    assert caught.value.mend is not None


def test_a_slot_takes_tensors() -> None:
    pool = StatePool(1, 1, SLOT)
    with pytest.raises(
        LaunchError, match=re.escape("states is a list, expected a tensor [1, 4, 6")
    ):
        pool.write(0, [1])  # type: ignore[arg-type]
    with pytest.raises(LaunchError, match="windows is a int, expected a tensor"):
        pool.write(0, torch.zeros(1, 4, 6, 5), 3)  # type: ignore[arg-type]
