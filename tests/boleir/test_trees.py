"""`Tree`: what follows from the parents, the shapes, the drawing."""

from __future__ import annotations

import numpy as np
import pytest

from boleir.errors import TreeError
from boleir.trees import Tree, check_trees, words_for
from boleir.trees.faults import TreeTooDeepError, TreeTooLargeError
from tests.boleir.tree_samples import SIZES, ancestor_sets, near_rows, shapes, words_of

FORK = Tree((-1, 0, 0, 1, 1, 2))


def test_the_fork_by_hand() -> None:
    assert FORK.depth == (0, 1, 1, 2, 2, 2)
    assert FORK.max_depth == 2
    assert FORK.roots == (0,)
    assert FORK.leaves == (3, 4, 5)
    assert FORK.children == ((1, 2), (3, 4), (5,), (), (), ())
    assert FORK.levels == ((0,), (1, 2), (3, 4, 5))
    assert FORK.links == ((1, 3, 5, -1, -1, -1), (-1, 2, -1, 4, -1, -1))
    assert FORK.path(5) == (0, 2, 5)
    assert FORK.ancestors().tolist() == [[1], [3], [5], [11], [19], [37]]
    assert FORK.near(4).tolist()[:2] == [[-1, -2, -3], [0, -1, -2]]
    assert FORK.near(4).tolist()[5] == [2, 0, -1]


@pytest.mark.parametrize("nodes", SIZES)
def test_derived_arrays_are_what_walking_gives(nodes: int) -> None:
    for name, tree in shapes(nodes).items():
        assert len(tree) == nodes, name
        sets = ancestor_sets(tree.parents)
        words = words_for(nodes)
        assert tree.ancestors().dtype == np.int64
        assert tree.ancestors().tolist() == [words_of(row, words) for row in sets], name
        assert tree.depth == tuple(len(row) - 1 for row in sets), name
        for width in (1, 2, 4, 5):
            assert tree.near(width).tolist() == near_rows(tree.parents, width), name


def test_wider_words_are_padded_with_zeros() -> None:
    assert FORK.ancestors(3)[:, 1:].tolist() == [[0, 0]] * 6


def test_the_empty_tree() -> None:
    tree = Tree(())
    assert (len(tree), tree.max_depth, tree.levels, tree.roots) == (0, 0, (), ())
    assert tree.ancestors().shape == (0, 1)
    assert tree.near(4).shape == (0, 3)
    assert tree.links == ((), ())
    assert tree.draw() == "(no nodes)"


def test_shapes() -> None:
    assert Tree.chain(4).parents == (-1, 0, 1, 2)
    assert Tree.star(4).parents == (-1, 0, 0, 0)
    assert Tree.beam(2, 3).parents == (-1, 0, 0, 1, 2, 3, 4)
    assert Tree.caterpillar(3, 2).parents == (-1, 0, 0, 0, 3, 3, 3, 6, 6)
    assert Tree.balanced(2, 2).parents == (-1, 0, 0, 1, 1, 2, 2)
    assert Tree.chain(0) == Tree.star(0) == Tree(())


def test_random_trees_keep_what_they_promise_and_repeat() -> None:
    for seed in range(20):
        tree = Tree.random(40, seed=seed, roots=3, max_depth=5)
        assert len(tree.roots) == 3
        assert tree.max_depth <= 5
        assert tree == Tree.random(40, seed=seed, roots=3, max_depth=5)
    assert Tree.random(40, seed=1) != Tree.random(40, seed=2)
    # Written down once: trees in reports must mean the same tree everywhere.
    assert Tree.random(8, seed=7, roots=2).parents == (-1, 0, 0, -1, 0, 4, 0, 4)


@pytest.mark.parametrize(
    "build",
    [
        lambda: Tree.chain(-1),
        lambda: Tree.star(True),
        lambda: Tree.beam(0, 2),
        lambda: Tree.beam(2, 1.5),
        lambda: Tree.caterpillar(2, -1),
        lambda: Tree.balanced(0, 2),
        lambda: Tree.random(3, seed=0, roots=4),
        lambda: Tree.random(3, seed=0, roots=0),
        lambda: Tree.random(3, seed=0, max_depth=0),
    ],
)
def test_impossible_shapes(build) -> None:
    with pytest.raises(TreeError):
        build()


def test_drawing() -> None:
    assert FORK.draw() == "0\n|-- 1\n|   |-- 3\n|   `-- 4\n`-- 2\n    `-- 5"
    assert Tree((-1, -1), labels=("a", 1)).draw() == "0 'a'\n1"
    assert Tree.chain(2000).draw().count("\n") == 1999


def test_trees_are_values() -> None:
    assert Tree(np.array([-1, 0])) == Tree([-1, 0]) == Tree((-1, 0), labels=("x", "y"))
    assert len({Tree((-1, 0)), Tree((-1, 0), labels=("x", "y"))}) == 1
    assert repr(FORK) == "Tree(parents=(-1, 0, 0, 1, 1, 2), labels=None)"
    with pytest.raises(TreeError, match="1 labels for 2 nodes"):
        Tree((-1, 0), labels=("x",))


def test_bounds() -> None:
    assert FORK.require(max_nodes=6, max_depth=2) is FORK
    with pytest.raises(TreeTooLargeError, match="6 nodes, more than the bound of 5"):
        FORK.require(max_nodes=5)
    with pytest.raises(TreeTooDeepError, match="node 3: lies deeper than the bound of 1"):
        FORK.require(max_depth=1)


def test_text() -> None:
    assert Tree.parse("-1,0,0, 1 1,2") == FORK
    with pytest.raises(TreeError, match="cannot read"):
        Tree.parse("-1,0,x")


def test_there_is_no_path_to_a_node_that_is_not_there() -> None:
    with pytest.raises(TreeError, match="node 6: there is no such node"):
        FORK.path(6)


def test_a_batch_derives_like_its_trees() -> None:
    trees = [Tree.random(n, seed=n, roots=min(n, 1 + n % 3)) for n in (0, 1, 64, 0, 130, 17)]
    parents = np.concatenate([np.array(tree.parents, np.int32) for tree in trees])
    cu_nodes = np.cumsum([0, *map(len, trees)])
    batch = check_trees(parents, cu_nodes)
    assert (batch.max_nodes, batch.max_depth) == (130, max(t.max_depth for t in trees))
    words, near = batch.ancestors(), batch.near(4)
    for tree, start, stop in zip(trees, cu_nodes, cu_nodes[1:], strict=False):
        assert (words[start:stop] == tree.ancestors(3)).all()
        assert (near[start:stop] == tree.near(4)).all()
        assert tuple(batch.depth[start:stop]) == tree.depth
