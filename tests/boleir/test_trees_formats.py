"""Ways in and out: graphs, paths, masks, SGLang's links, EAGLE's candidates."""

from __future__ import annotations

import sys
from subprocess import run

import networkx as nx
import numpy as np
import pytest

from boleir.errors import TreeError
from boleir.trees import Tree
from boleir.trees.faults import (
    CandidateError,
    ChildBeforeParentError,
    CycleError,
    LinkError,
    NotAnIntegerError,
    NotATreeMaskError,
    PathError,
    TwoParentsError,
)
from boleir.trees.links import read_links
from tests.boleir.tree_samples import SIZES, shapes

FORK = Tree((-1, 0, 0, 1, 1, 2))


@pytest.mark.parametrize("nodes", SIZES)
def test_there_and_back(nodes: int) -> None:
    for tree in shapes(nodes).values():
        assert Tree.from_networkx(tree.to_networkx()) == tree
        assert Tree.from_mask(tree.to_mask()) == tree
        assert Tree.from_mask(tree.to_mask().astype(np.int8)) == tree
        if nodes <= 64:
            assert Tree.from_paths(tree.to_paths()) == tree
        if len(tree.roots) == 1:
            first, following, parents = tree.to_sglang()
            assert parents[0] == 0
            assert Tree.from_sglang(first, following, parents) == tree
            assert Tree.from_sglang(first, following) == tree
            assert Tree.from_sglang(parent_token=parents) == tree


def test_the_empty_tree_there_and_back() -> None:
    empty = Tree(())
    assert Tree.from_networkx(empty.to_networkx()) == empty
    assert Tree.from_mask(empty.to_mask()) == empty
    assert Tree.from_mask([]) == empty
    assert Tree.from_paths(empty.to_paths()) == empty
    assert Tree.from_sglang(*empty.to_sglang()) == empty


# ---- networkx ------------------------------------------------------------------------


def _check_labels(graph: nx.DiGraph, tree: Tree) -> None:
    assert tree.labels is not None
    assert sorted(map(repr, tree.labels)) == sorted(map(repr, graph.nodes))
    edges = {(tree.labels[p], tree.labels[i]) for i, p in enumerate(tree.parents) if p >= 0}
    assert edges == set(graph.edges)


def test_any_labels_in_any_order() -> None:
    graph = nx.DiGraph([("b", (1, 2)), ("root", "b"), ("root", "a")])
    graph.add_node(frozenset({5}))
    tree = Tree.from_networkx(graph)
    _check_labels(graph, tree)
    assert tree.max_depth == 2
    assert len(tree.roots) == 2


def test_random_graphs_keep_their_edges() -> None:
    rng = np.random.default_rng(0)
    for seed in range(20):
        tree = Tree.random(30, seed=seed, roots=2)
        names = [f"n{i}" for i in rng.permutation(30)]
        edges = [(names[p], names[i]) for i, p in enumerate(tree.parents) if p >= 0]
        graph = nx.DiGraph()
        graph.add_nodes_from(rng.permutation(names).tolist())
        graph.add_edges_from([edges[k] for k in rng.permutation(len(edges))])
        again = Tree.from_networkx(graph)
        _check_labels(graph, again)
        assert sorted(again.depth) == sorted(tree.depth)


def test_the_order_is_the_least_surprising_one() -> None:
    numbered = nx.DiGraph([(0, 2), (0, 1), (2, 3)])
    assert Tree.from_networkx(numbered).labels == (0, 1, 2, 3)
    assert Tree.from_networkx(numbered).parents == (-1, 0, 0, 2)
    named = nx.DiGraph()
    named.add_nodes_from("xyz")
    named.add_edge("x", "z")
    assert Tree.from_networkx(named).labels == ("x", "y", "z")


@pytest.mark.parametrize(
    ("graph", "error", "words"),
    [
        (
            nx.DiGraph([("a", "b"), ("b", "a"), ("r", "s")]),
            CycleError,
            "'a' -> 'b' -> 'a'|'b' -> 'a' ->",
        ),
        (nx.DiGraph([("r", "s"), ("a", "a")]), CycleError, "'a' -> 'a'"),
        (nx.DiGraph([("a", "c"), ("b", "c")]), TwoParentsError, "'c' has two parents: 'a' and 'b'"),
        (nx.Graph([("a", "b")]), TreeError, "no directions"),
        ({"a": ["b"]}, TreeError, "DiGraph, got dict"),
    ],
)
def test_graphs_that_are_no_forest(graph, error, words) -> None:
    with pytest.raises(error, match=words):
        Tree.from_networkx(graph)


def test_the_cycle_is_shown_in_the_direction_of_its_edges() -> None:
    graph = nx.DiGraph([(1, 2), (2, 3), (3, 1)])
    with pytest.raises(CycleError, match=r"1 -> 2 -> 3 -> 1|2 -> 3 -> 1 -> 2|3 -> 1 -> 2 -> 3"):
        Tree.from_networkx(graph)


def test_labels_name_the_nodes_of_a_graph() -> None:
    graph = Tree((-1, 0), labels=("x", "y")).to_networkx()
    assert list(graph.edges) == [("x", "y")]
    with pytest.raises(TreeError, match="not distinct"):
        Tree((-1, 0), labels=("x", "x")).to_networkx()


def test_trees_need_no_networkx() -> None:
    code = (
        "import boleir.trees, sys; boleir.trees.Tree.chain(3); assert 'networkx' not in sys.modules"
    )
    assert run([sys.executable, "-c", code], check=False).returncode == 0


# ---- paths ---------------------------------------------------------------------------


def test_medusa_style_choices() -> None:
    choices = [(0,), (1,), (0, 0), (0, 1), (1, 0), (0, 0, 0)]
    tree = Tree.from_paths(choices, implicit_root=True)
    assert tree.parents == (-1, 0, 0, 1, 1, 2, 3)
    assert tree.labels == ((), *choices)


def test_token_paths_share_prefixes() -> None:
    tree = Tree.from_paths([[7, 8, 9], [7, 8, 5], [7], [4, 8], np.array([7, 6])])
    assert tree.parents == (-1, 0, 1, 1, -1, 4, 0)
    assert tree.labels == ((7,), (7, 8), (7, 8, 9), (7, 8, 5), (4,), (4, 8), (7, 6))
    assert Tree.from_paths([], implicit_root=True).parents == (-1,)
    assert Tree.from_paths([[]]).parents == ()


@pytest.mark.parametrize(
    ("paths", "words"),
    [
        (3, "list of paths"),
        ([1, 2], "path 0 is no sequence"),
        ([[1], "ab"], "path 1 is text"),
        ([[1], [2, [3]]], "path 1, item 1"),
        ([[float("nan")]], "path 0, item 0: nan"),
    ],
)
def test_bad_paths(paths, words) -> None:
    with pytest.raises(PathError, match=words):
        Tree.from_paths(paths)


# ---- masks ---------------------------------------------------------------------------


def _mask(**changes: bool) -> np.ndarray:
    mask = FORK.to_mask()
    for place, value in changes.items():
        row, column = map(int, place[1:].split("_"))
        mask[row, column] = value
    return mask


@pytest.mark.parametrize(
    ("mask", "node", "words"),
    [
        (_mask(x2_2=False), 2, "own ancestor"),
        (_mask(x1_4=True), 1, "comes after it"),
        (_mask(x3_0=False), 3, "exactly the ancestors"),
        (_mask(x5_1=True), 5, "exactly the ancestors"),
        (_mask(x4_3=True), 4, None),
        (np.zeros((2, 3), bool), None, "shape"),
        (np.zeros(4, bool), None, "shape"),
        (np.eye(2) * 0.0, None, "float64"),
        (np.eye(2, dtype=int) * 2, None, "other than 0 and 1"),
        ([[True], [True, False]], None, "no array"),
    ],
)
def test_masks_of_no_tree(mask, node, words) -> None:
    if words is None:  # sibling made an ancestor: another tree, not a fault
        assert Tree.from_mask(mask).parents[4] == 3
        return
    with pytest.raises(NotATreeMaskError, match=words) as caught:
        Tree.from_mask(mask)
    assert caught.value.node == node


def test_every_flipped_bit_gives_another_tree_or_an_error() -> None:
    for tree in shapes(12).values():
        for row in range(12):
            for column in range(12):
                mask = tree.to_mask()
                mask[row, column] ^= True
                try:
                    other = Tree.from_mask(mask)
                except NotATreeMaskError:
                    continue
                assert other != tree
                assert (other.to_mask() == mask).all()


# ---- SGLang --------------------------------------------------------------------------


def test_links_by_hand() -> None:
    first, following, parents = (row.tolist() for row in FORK.to_sglang())
    assert first == [1, 3, 5, -1, -1, -1]
    assert following == [-1, 2, -1, 4, -1, -1]
    assert parents == [0, 0, 0, 1, 1, 2]


def test_siblings_may_be_linked_in_any_order() -> None:
    first = [3, -1, -1, -1]
    assert Tree.from_sglang(first, [-1, 2, -1, 1]) == Tree.star(4)


@pytest.mark.parametrize(
    ("first", "following", "parents", "node", "words"),
    [
        ([1, -1, -1], [-1, -1, -1], None, 2, "no link leads"),
        ([1, 1, -1], [-1, 2, -1], None, 1, "linked twice"),
        ([1, -1, -1], [-1, 2, 1], None, 1, "linked twice"),
        ([1, 0, -1], [-1, 2, -1], None, 0, "linked twice"),
        ([1, 3, -1], [-1, 2, -1], None, 1, "next_token 3 is out of range"),
        ([1, -1, -1], [-1, -2, -1], None, 1, "next_sibling -2 is out of range"),
        ([1, -1, -1], [-1, 2, -1], [0, 0, 1], 2, "contradicts"),
        ([1, -1, -1], [-1, 2, -1], [2, 0, 0], 0, "stored as 2"),
        (None, None, [0, 0, -1], 2, "second root"),
        (None, None, [5, 0, 0], 0, "stored as 5"),
        ([1, -1, -1], None, None, None, "belong together"),
        (None, None, None, None, "neither links nor parents"),
        ([1, -1], [-1, -1, -1], None, None, "shape"),
        ([[1, -1]], [[-1, -1]], None, None, "one row"),
    ],
)
def test_bad_links(first, following, parents, node, words) -> None:
    with pytest.raises(LinkError, match=words) as caught:
        Tree.from_sglang(first, following, parents)
    assert caught.value.node == node


def test_links_that_are_no_integers_or_no_order() -> None:
    with pytest.raises(NotAnIntegerError, match="node 1: next_token nan"):
        Tree.from_sglang([1, float("nan")], [-1, -1])
    with pytest.raises(ChildBeforeParentError, match="node 1"):
        Tree.from_sglang([2, -1, 1], [-1, -1, -1])
    with pytest.raises(CycleError):
        Tree.from_sglang([3, 2, 1, -1], [-1, -1, -1, -1])


def test_stale_rows_of_a_padded_batch_are_not_read() -> None:
    first, following, parents = (np.stack([row, row, row]) for row in FORK.to_sglang())
    first[1], following[1], parents[1] = 77, -9, 3
    with pytest.raises(LinkError, match="request 1, node 0"):
        read_links(first, following)
    active = np.array([True, False, True])
    table = read_links(first, following, parents, active=active)
    assert table.tolist() == [list(FORK.parents), [-1] * 6, list(FORK.parents)]
    assert read_links(parent_token=parents, active=active).tolist() == table.tolist()
    with pytest.raises(LinkError, match=r"active must be bool\[3\]"):
        read_links(first, following, active=np.array([1, 0, 1]))


def test_reading_links_leaves_them_alone() -> None:
    first, following = (np.stack([row]).astype(np.int32) for row in FORK.to_sglang()[:2])
    before = first.copy(), following.copy()
    read_links(first, following, active=np.array([False]))
    assert (first == before[0]).all()
    assert (following == before[1]).all()


def test_sglang_knows_one_root() -> None:
    with pytest.raises(LinkError, match="node 2: is a second root"):
        Tree((-1, 0, -1)).to_sglang()


# ---- EAGLE ---------------------------------------------------------------------------

# Two candidates per block. Step 1 draws 0, 1 below the root; step 2 draws 2, 3 below 0 and 4, 5
# below 1; step 3 expands 2 (candidates 6, 7) and 5 (candidates 8, 9).
BLOCKS = [-1, 0, 1, 2, 5]


def test_candidates_by_hand() -> None:
    tree = Tree.from_eagle(BLOCKS, [0, 1, 2, 5, 6, 8], top_k=2)
    assert tree.parents == (-1, 0, 0, 1, 2, 3, 4)


def test_both_conventions_of_the_parent_list() -> None:
    original = [entry + 1 for entry in BLOCKS]
    selected = [0, 1, 2, 3, 5, 7, 9]
    tree = Tree.from_eagle(BLOCKS, selected, top_k=2)
    assert Tree.from_eagle(np.array(original), np.array(selected), top_k=2) == tree


def test_one_step_needs_no_parent_list() -> None:
    assert Tree.from_eagle([], [0, 2, 3], top_k=4) == Tree.star(4)
    assert Tree.from_eagle([], [], top_k=4) == Tree.chain(1)


@pytest.mark.parametrize(
    ("blocks", "selected", "node", "words"),
    [
        (BLOCKS, [1, 2], 2, "below candidate 0, which was not selected"),
        (BLOCKS, [1, 4, 8, 5], 3, "below candidate 5, which comes after it"),
        (BLOCKS, [0, 10], 2, "block 5, but parent_list has 5"),
        (BLOCKS, [0, 0], 2, "is node 1 already"),
        (BLOCKS, [-1], 1, "is negative"),
        ([3, 0], [0], None, "starts with 3"),
        ([[0]], [0], None, "one row"),
    ],
)
def test_bad_candidates(blocks, selected, node, words) -> None:
    with pytest.raises(CandidateError, match=words) as caught:
        Tree.from_eagle(blocks, selected, top_k=2)
    assert caught.value.node == node


def test_candidates_need_a_block_size() -> None:
    with pytest.raises(TreeError, match="top_k"):
        Tree.from_eagle(BLOCKS, [0], top_k=0)
