"""Tables of pointers: uploaded on change, a few kept, never another content for a graph."""

from __future__ import annotations

import pytest
import torch

from boleir.runtime.pointer_table import KEPT, PointerTables

PLACE = torch.device("cpu")


def _key(number: int) -> tuple[tuple[int, ...], ...]:
    return ((number, number + 1), (number + 2, number + 3))


def test_a_table_holds_its_rows() -> None:
    tables = PointerTables(4, PLACE)
    assert tables.get(_key(10)).tolist() == [10, 11, 12, 13]


def test_a_known_key_is_not_uploaded_again() -> None:
    tables = PointerTables(4, PLACE)
    first = tables.get(_key(10))
    tables.get(_key(20))
    first.zero_()
    assert tables.get(_key(10)) is first
    assert not first.any()


def test_the_oldest_table_makes_room() -> None:
    tables = PointerTables(4, PLACE)
    first = tables.get(_key(0))
    for number in range(1, KEPT + 1):
        tables.get(_key(number))
    assert first.tolist() == [KEPT, KEPT + 1, KEPT + 2, KEPT + 3]
    again = tables.get(_key(0))
    assert again.tolist() == [0, 1, 2, 3]
    assert again is not first


def test_a_table_used_by_a_graph_keeps_its_content(monkeypatch: pytest.MonkeyPatch) -> None:
    tables = PointerTables(4, PLACE)
    seen = tables.get(_key(0))
    fresh = tables._get_captured(_key(100))
    shared = tables._get_captured(_key(0))
    assert shared is seen
    assert fresh is not seen
    for number in range(1, 3 * KEPT):
        tables.get(_key(number))
    assert seen.tolist() == [0, 1, 2, 3]
    assert fresh.tolist() == [100, 101, 102, 103]
    # What only replays fill serves nobody outside the graph.
    assert tables.get(_key(100)) is not fresh
    assert tables._get_captured(_key(7)).tolist() == [7, 8, 9, 10]
