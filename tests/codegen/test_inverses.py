"""Inverses of deep systems: what they lose where keys are alike and write strengths come close to
2; products of vectors that keep their digits where they nearly vanish."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import boleir
from boleir.codegen.emit.inverses import APART, DIRECT, SQUARED
from boleir.codegen.pipeline import lower
from boleir.codegen.request import Shapes
from boleir.codegen.schedule import Schedule
from tests.runtime.kernel_harness import LIMIT

CHILD = "tests.codegen.interpreted_inverses"

CHAINS = [
    # one pair: 16 nodes at a time, merged twice
    {"name": "doubled", "nodes": 64, "keys": "cosine", "strength": 1.9},
    # two pairs: the same once, and a correction by three terms
    {"name": "gated_delta_product", "nodes": 32, "keys": "identical", "strength": 2.0},
    {"name": "gated_delta_product", "nodes": 16, "keys": "identical", "strength": 1.98},
]


def test_chains_of_keys_that_are_alike_keep_their_digits(
    run_interpreted: Callable[..., Any],
) -> None:
    errors = run_interpreted(f"{CHILD}:chains", cases=CHAINS)
    for case, error in zip(CHAINS, errors, strict=True):
        assert error <= LIMIT, (case, error)


def factors(depth: int, nodes: int = 64, **fields: Any) -> str:
    """The factors kernel of a chain of that depth."""
    schedule = Schedule(**{"fusion": "split", "solver": "inverse"} | fields)
    shapes = Shapes(1, 1, 128, 64, nodes, depth)
    text: str = lower(boleir.load("delta_rule"), shapes, schedule=schedule).kernel("factors").text
    return text


@pytest.mark.parametrize(
    ("depth", "terms", "merges"),
    [(SQUARED, 2, 0), (SQUARED + 1, 3, 0), (DIRECT, 3, 0), (DIRECT + 1, 3, 2), (63, 3, 2)],
)
def test_deeper_trees_take_more_terms_and_then_parts(depth: int, terms: int, merges: int) -> None:
    text = factors(depth)
    assert ("E + E^2 + E^3" in text) == (terms == 3)
    assert text.count("nodes at a time: X <- X - X G X") == merges


def test_a_block_of_32_nodes_is_merged_once() -> None:
    text = factors(31, nodes=32, node_block=32)
    assert text.count("X <- X - X G X") == 1
    assert f"(node[:, None] ^ node[None, :]) < {APART}" in text


@pytest.mark.parametrize("precision", ["ieee", "tf32", "bf16"])
def test_other_precisions_sweep(precision: str) -> None:
    text = factors(63, precision=precision)
    assert "X <- X - X G X" not in text
    assert "for _ in range(1, 63):" in text


def test_products_of_vectors_that_nearly_vanish_keep_their_digits(
    run_interpreted: Callable[..., Any],
) -> None:
    errors = run_interpreted(f"{CHILD}:vanishing")
    assert max(errors) <= LIMIT, errors
