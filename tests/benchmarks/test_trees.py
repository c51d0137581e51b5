"""Seeded trees: exact depth, one root, parents first, and links that rebuild the parents."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks import trees
from benchmarks.serving_shapes import ROW_SETS, Row

ALL_ROWS = [row for rows in ROW_SETS.values() for row in rows]


@pytest.mark.parametrize("row", ALL_ROWS, ids=str)
def test_trees_have_one_root_and_exactly_the_wanted_depth(row: Row) -> None:
    batch = trees.tree_batch(row, seed=3)
    assert len(batch) == row.batch
    for parent in batch:
        assert len(parent) == row.nodes
        assert parent[0] == -1
        assert (parent[1:] >= 0).all()
        assert (parent[1:] < np.arange(1, row.nodes)).all()
        assert trees.depths(parent).max() == row.depth


def test_requests_and_seeds_differ_and_repeat() -> None:
    row = Row(2, 32, 8)
    first, second = trees.tree_batch(row, seed=1)
    assert not np.array_equal(first, second)
    assert np.array_equal(first, trees.tree_batch(row, seed=1)[0])
    assert not np.array_equal(first, trees.tree_batch(row, seed=2)[0])


def test_the_deepest_path_is_not_always_the_first_nodes() -> None:
    batch = trees.tree_batch(Row(16, 32, 8), seed=0)
    assert any(trees.root_path(tree, trees.deepest_node(tree)) != list(range(9)) for tree in batch)


def test_links_walk_back_to_the_parents() -> None:
    for parent in trees.tree_batch(Row(4, 33, 6), seed=5):
        first_child, next_sibling = trees.child_sibling_links(parent)
        found = np.full(len(parent), -1)
        for node in range(len(parent)):
            child = first_child[node]
            while child >= 0:
                assert child > node
                found[child] = node
                assert next_sibling[child] == -1 or next_sibling[child] > child
                child = next_sibling[child]
        assert np.array_equal(found, parent)


def test_star_and_chain_are_the_extremes() -> None:
    rng = np.random.default_rng(0)
    assert trees.random_tree(5, 1, rng).tolist() == [-1, 0, 0, 0, 0]
    assert trees.random_tree(5, 4, rng).tolist() == [-1, 0, 1, 2, 3]
    assert trees.random_tree(1, 0, rng).tolist() == [-1]


@pytest.mark.parametrize(("nodes", "depth"), [(4, 4), (0, 0), (3, -1)])
def test_impossible_trees_are_refused(nodes: int, depth: int) -> None:
    with pytest.raises(ValueError, match=f"{nodes} nodes"):
        trees.random_tree(nodes, depth, np.random.default_rng(0))


@pytest.mark.parametrize("text", ["16", "ax2", "1x2x3x4", "1x4x4", "0x4"])
def test_malformed_rows_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"need batch|expected BATCH"):
        Row.parse(text)


def test_rows_read_back_from_their_text() -> None:
    assert Row.parse("16x8") == Row(16, 8, 7)
    for row in ALL_ROWS:
        assert Row.parse(str(row)) == row
