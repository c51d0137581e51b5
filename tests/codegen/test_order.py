"""Programs of value tiles in another order: bits, what is emitted, refusals."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import boleir
from boleir.codegen.pipeline import Lowered, lower
from boleir.codegen.request import Shapes
from boleir.codegen.schedule import InvalidSchedule, Schedule

CHILD = "tests.codegen.interpreted_groups"
FUSED = {"fusion": "fused", "solver": "horner"}
INLINE = {"gates": "inline"}
CASES: list[dict[str, Any]] = [
    {"name": "gated_delta_rule", "shape": [1, 2, 16, 40]},
    {"name": "gated_delta_rule", "shape": [1, 2, 16, 32], "fusion": "joined", **INLINE},
    {"name": "gated_delta_rule", "shape": [1, 2, 16, 32], **FUSED, **INLINE},
    {"name": "mamba2", "shape": [1, 2, 16, 32], "node_block": 16},
    {"name": "kda", "shape": [2, 2, 16, 32], "path_sum": "dot", "factor_warps": 2},
]


def made(name: str, **fields: Any) -> Lowered:
    schedule = Schedule(**{"order": "heads", "b_k": 64, "b_v": 32, **fields})
    return lower(boleir.load(name), Shapes(2, 4, 64, 64, 64, 7), schedule=schedule)


def test_the_order_of_programs_changes_no_bit(run_interpreted: Callable[..., Any]) -> None:
    cases = [{**case, "order": "heads"} for case in CASES]
    plain = {"order": "tiles"}
    assert run_interpreted(f"{CHILD}:differing", cases=cases, plain=plain) == []


@pytest.mark.parametrize(
    ("name", "kernel", "fields"),
    [
        ("gdn", "values", {"fusion": "split", "solver": "inverse"}),
        ("gdn", "values", {"fusion": "split", "solver": "inverse", "node_block": 32}),
        ("gdn", "verify", {}),
        ("gdn", "verify", {"fusion": "joined", "solver": "inverse"}),
        ("kda", "verify", {"fusion": "walked"}),
    ],
)
def test_heads_follow_each_other(name: str, kernel: str, fields: dict[str, Any]) -> None:
    text = made(name, **fields).kernel(kernel).text
    assert (
        "head = program % VALUE_HEADS\n    value_tile = program // VALUE_HEADS % VALUE_TILES"
        in text
    )
    assert "program // VALUE_TILES" not in text
    assert (
        "program // VALUE_TILES % VALUE_HEADS"
        in made(name, **fields, order="tiles").kernel(kernel).text
    )


def test_other_orders_are_refused() -> None:
    with pytest.raises(InvalidSchedule, match="order must be one of tiles, heads, not 'none'"):
        made("gdn", order="none")
    with pytest.raises(InvalidSchedule, match="gated_oja acts from the right: order must be tiles"):
        made("gated_oja", fusion="staged")
