"""What a static tree tells the compiler, and what a bound does."""

from __future__ import annotations

import pytest

import boleir
from boleir.codegen.pipeline import Lowered, lower
from boleir.codegen.request import Shapes
from boleir.codegen.schedule import Schedule
from boleir.codegen.topology_facts import alive, is_chain, sweeps_of_block

CHAIN = tuple(range(-1, 39))
STAR = (-1, *[0] * 39)
TWO = (*range(-1, 15), -1, *range(16, 31))
"""Two chains of 16 nodes: a block each, with nothing between them."""


def lowered(
    parents: tuple[int, ...] | None, nodes: int, depth: int, name: str = "gated_delta_rule",
    **fields: object,
) -> Lowered:  # fmt: skip
    schedule = Schedule(**{"b_v": 16, "b_k": 32, "node_block": 16, **fields})  # type: ignore[arg-type]
    shapes = Shapes(1, 2, 32, 32, nodes, depth, parents=parents)
    return lower(boleir.load(name), shapes, schedule=schedule)


def test_chains_are_recognised() -> None:
    assert is_chain((-1,)) and is_chain(CHAIN)
    assert not is_chain(None) and not is_chain(STAR) and not is_chain((-1, -1))


def test_dead_blocks_vanish() -> None:
    made = lowered(TWO, 32, 15)
    assert not alive(made.context, 1, 0) and alive(made.context, 1, 1)
    assert "minus_g_1_0" not in made.text and "minus_g_1" in made.text
    assert "minus_g_1_0" in lowered(CHAIN, 40, 39).text


def test_sweeps_follow_the_depth_inside_a_block() -> None:
    star = lowered(STAR, 40, 1)
    assert [sweeps_of_block(star.context, b) for b in range(3)] == [1, 0, 0]
    chain = lowered(CHAIN, 40, 39)
    assert [sweeps_of_block(chain.context, b) for b in range(3)] == [15, 15, 7]


def test_bounds_hold_for_every_tree() -> None:
    made = lowered(None, 40, 39)
    assert sweeps_of_block(made.context, 0) == 15
    assert sweeps_of_block(lowered(None, 16, 3).context, 0) == 3
    assert sweeps_of_block(lowered(None, 16, 3, "gated_delta_product").context, 0) == 7
    folded = {"fusion": "split", "solver": "inverse", "node_block": 16}
    assert sweeps_of_block(lowered(None, 16, 3, "gated_delta_product", **folded).context, 0) == 3
    levels = lowered(None, 16, 3, solver="levels")
    assert sweeps_of_block(levels.context, 0) == 3


def test_chains_need_no_ancestor_words() -> None:
    verify = lowered(CHAIN, 40, 39).kernel("verify")
    assert "ancestors" not in dict(verify.arguments)
    assert "ancestors" in dict(lowered(STAR, 40, 1).kernel("verify").arguments)


def test_only_dynamic_trees_are_walked_in_a_loop() -> None:
    assert "for block in range" in lowered(None, 40, 39).text
    assert "for block in range" not in lowered(CHAIN, 40, 39).text


@pytest.mark.parametrize(("depth", "rolled"), [(16, False), (17, True)])
def test_many_sweeps_become_a_loop(depth: int, rolled: bool) -> None:
    text = lowered(None, 32, depth, node_block=32).kernel("verify").text
    assert (f"for _ in range(1, {depth + 1}):" in text) == rolled
