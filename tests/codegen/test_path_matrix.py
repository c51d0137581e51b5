"""Ancestors as an operand of products: every entry, whatever the bits around it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest


@pytest.mark.parametrize("chain", [False, True], ids=["tree", "chain"])
@pytest.mark.parametrize(
    ("size", "count", "dtype"),
    [(16, 16, "float16"), (32, 29, "bfloat16"), (64, 61, "float16"), (64, 64, "bfloat16")],
)
def test_entries_are_the_bits(
    size: int, count: int, dtype: str, chain: bool, run_interpreted: Callable[..., Any]
) -> None:
    child = "tests.codegen.interpreted_path_matrix:wrong"
    assert run_interpreted(child, size=size, count=count, dtype=dtype, chain=chain) == 0
