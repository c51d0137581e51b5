"""Formats that were checked are recognised, and nothing else is taken for them."""

from __future__ import annotations

import pytest
import torch

from boleir.runtime import formats
from boleir.runtime.formats import Same, Tensors, same_formats

WAYS = {"torch": formats._by_torch, "python": formats._by_python}


def test_this_torch_has_the_fast_comparison_or_python_serves() -> None:
    one = torch.zeros(3, 4)
    assert same_formats([one])(torch.ones(3, 4))
    assert not same_formats([one])(torch.zeros(4, 3))


@pytest.mark.parametrize("way", WAYS)
def test_each_difference_is_seen(way: str) -> None:
    assert formats._distinguishes(WAYS[way])


def test_a_comparison_that_overlooks_something_is_not_used() -> None:
    def shapes_only(tensors: Tensors) -> Same:
        known = [tensor.shape for tensor in tensors]
        return lambda *others: [getattr(x, "shape", None) for x in others] == known

    def yes(tensors: Tensors) -> Same:
        return lambda *others: True

    def no(tensors: Tensors) -> Same:
        return lambda *others: False

    for careless in (shapes_only, yes, no):
        assert not formats._distinguishes(careless)


def test_python_serves_where_torch_has_none(monkeypatch: pytest.MonkeyPatch) -> None:
    def gone(tensors: Tensors) -> Same:
        raise AttributeError("TensorGuards")

    monkeypatch.setattr(formats, "_by_torch", gone)
    formats._torch_compares.cache_clear()
    try:
        assert same_formats([torch.zeros(2)])(torch.zeros(2))
        assert not same_formats([torch.zeros(2)])(torch.zeros(2), torch.zeros(2))
    finally:
        formats._torch_compares.cache_clear()
