"""Every malformed tree is refused with its own error, which names request and node."""

from __future__ import annotations

import time

import numpy as np
import pytest

from boleir.errors import TreeError
from boleir.trees import Tree, check_trees
from boleir.trees.faults import (
    ChildBeforeParentError,
    CycleError,
    NodeCountError,
    NotAnIntegerError,
    ParentOutOfRangeError,
    TreeTooDeepError,
    TreeTooLargeError,
)

NAN = float("nan")

BAD_TREES = [
    ([-1, 0, 3, 2], CycleError, 2, "2 -> 3 -> 2"),
    ([-1, 1], CycleError, 1, "its own parent"),
    ([1, 0], CycleError, 0, "0 -> 1 -> 0"),
    ([1, -1], ChildBeforeParentError, 0, "parent 1 does not come before its child"),
    ([-1, 0, 4, 0, 0], ChildBeforeParentError, 2, "number the nodes"),
    ([-1, 0, 3], ParentOutOfRangeError, 2, "parent 3 is out of range, expected -1"),
    ([-1, -2], ParentOutOfRangeError, 1, "parent -2"),
    ([-1, 2**40], ParentOutOfRangeError, 1, "parent 1099511627776"),
    ([-1, -(2**70)], ParentOutOfRangeError, 1, "out of range"),
    ([-1, 0, NAN], NotAnIntegerError, 2, "nan is not a whole number"),
    ([-1, 0.5], NotAnIntegerError, 1, "0.5"),
    ([-1, float("inf")], NotAnIntegerError, 1, "inf"),
    (np.array([-1.0, 0.0]), NotAnIntegerError, 0, "-1.0"),
    ([-1, None], NotAnIntegerError, 1, "None"),
    ([-1, True], NotAnIntegerError, 1, "True"),
    ([-1, "0"], NotAnIntegerError, 1, "'0'"),
    (np.array([True]), NotAnIntegerError, 0, "True"),
]


@pytest.mark.parametrize(("parents", "error", "node", "words"), BAD_TREES)
def test_a_bad_tree(parents, error, node, words) -> None:
    with pytest.raises(error) as caught:
        Tree(parents)
    assert words in str(caught.value)
    assert (caught.value.request, caught.value.node) == (None, node)
    assert str(caught.value).startswith(f"node {node}: ")


@pytest.mark.parametrize(("parents", "error", "node", "words"), BAD_TREES)
def test_a_bad_tree_in_a_batch(parents, error, node, words) -> None:
    rows = np.array([-1, 0, 0, *list(parents), -1, 0], dtype=object)
    cu_nodes = [0, 3, 3, 3 + len(parents), 5 + len(parents)]
    with pytest.raises(error) as caught:
        check_trees(list(rows), cu_nodes)
    assert (caught.value.request, caught.value.node) == (2, node)
    assert str(caught.value).startswith(f"request 2, node {node}: ")


@pytest.mark.parametrize("parents", ["-1", 3, [[1], [2, 3]], [[-1, 0]], np.zeros((2, 2), int), {1}])
def test_what_is_no_row_of_numbers(parents) -> None:
    with pytest.raises(TreeError, match="parents must be"):
        Tree(parents)


@pytest.mark.parametrize(
    ("cu_nodes", "request_", "words"),
    [
        ([], None, "B\\+1 numbers"),
        ([[0, 2]], None, "shape"),
        (7, None, "shape"),
        ([1, 2], None, "start with 0"),
        ([0, 2, 1, 2], 1, "decreases from 2 to 1"),
        ([0, 1], 0, "ends at 1, but there are 2 parents"),
        ([0, 3], 0, "ends at 3"),
        ([0], -1, "ends at 0"),
        ([0, 1.5, 2], 1, "1.5 is not a whole number"),
        ([0, NAN], 1, "nan"),
    ],
)
def test_bad_node_counts(cu_nodes, request_, words) -> None:
    with pytest.raises((NodeCountError, NotAnIntegerError), match=words) as caught:
        check_trees([-1, 0], cu_nodes)
    if request_ != -1:
        assert caught.value.request == request_


def test_bounds_of_a_batch() -> None:
    parents, cu_nodes = [-1, -1, 0, 1, -1, 0, 1, 2], [0, 1, 4, 8]
    assert check_trees(parents, cu_nodes, max_nodes=4, max_depth=3).max_depth == 3
    with pytest.raises(TreeTooLargeError, match="request 2: has 4 nodes, more than the bound of 3"):
        check_trees(parents, cu_nodes, max_nodes=3)
    with pytest.raises(TreeTooDeepError, match=r"request 1, node 2: lies deeper .* 1 edges"):
        check_trees(parents, cu_nodes, max_depth=1)
    with pytest.raises(TreeTooLargeError, match="has 257 nodes"):
        check_trees(Tree.chain(257).parents)


def test_integer_dtypes_are_read_and_never_wrap() -> None:
    for dtype in (np.int8, np.int16, np.int32, np.int64):
        assert check_trees(np.array([-1, 0], dtype)).parents.tolist() == [-1, 0]
    for dtype in (np.uint32, np.uint64):
        with pytest.raises(ParentOutOfRangeError, match="node 0"):
            check_trees(np.array([np.iinfo(dtype).max, 0], dtype))


def test_one_wrong_entry_anywhere_is_found() -> None:
    tree = Tree.random(60, seed=3, roots=2)
    for node in range(60):
        for wrong in (-2, node, 59 if node < 59 else 60, 60, 1 << 20):
            parents = list(tree.parents)
            parents[node] = wrong
            with pytest.raises(TreeError) as caught:
                Tree(parents)
            assert caught.value.node == node


def test_a_batch_is_checked_in_milliseconds() -> None:
    trees = [Tree.random(64, seed=seed, max_depth=8) for seed in range(256)]
    parents = np.concatenate([np.array(tree.parents, np.int32) for tree in trees])
    cu_nodes = np.arange(257, dtype=np.int32) * 64
    best = min(_seconds(parents, cu_nodes) for _ in range(10))
    assert best < 10e-3  # below 1 ms on a quick machine; a loop over the nodes takes 50 times that


def _seconds(parents, cu_nodes) -> float:
    start = time.process_time()
    check_trees(parents, cu_nodes)
    return time.process_time() - start


def test_a_long_wrong_list_is_refused_quickly() -> None:
    start = time.process_time()
    for parents in ([-1] * 200_000 + [NAN], [*range(1, 200_001), 0], "x" * 1_000_000):
        with pytest.raises(TreeError):
            Tree(parents)
    assert time.process_time() - start < 5  # below 1 s on a quick machine
