"""Static and bounded trees: what the constructors build, what they refuse, and how they print."""

from __future__ import annotations

from typing import Any

import networkx as nx
import numpy as np
import pytest

from boleir.errors import TreeError
from boleir.language.parser import parse_tree
from boleir.language.tree_spec import (
    MAX_STATIC_NODES,
    BoundedTree,
    StaticTree,
    beam,
    chain,
    dynamic,
    from_networkx,
    parents,
)


def test_shapes() -> None:
    assert chain(1).parents == (-1,)
    assert chain(4).parents == (-1, 0, 1, 2)
    assert chain(4).depth == (0, 1, 2, 3)
    assert beam(width=3, depth=2).parents == (-1, 0, 0, 0, 1, 2, 3)
    assert beam(width=3, depth=2).max_depth == 2
    assert beam(width=1, depth=4).parents == chain(5).parents
    forest = parents(-1, 0, -1, 2, 3, name="forest")
    assert (forest.max_nodes, forest.max_depth, forest.depth) == (5, 2, (0, 1, 0, 1, 2))
    assert dynamic(nodes=64, depth=8, name="d") == BoundedTree("d", 64, 8)
    assert BoundedTree("one", 1, 0).max_depth == 0


@pytest.mark.parametrize(
    ("tree", "text"),
    [
        (chain(5, name="c"), "tree c = chain(5)"),
        (beam(width=4, depth=5, name="eagle"), "tree eagle = beam(width=4, depth=5)"),
        (beam(width=1, depth=3, name="b"), "tree b = chain(4)"),
        (parents(-1, 0, 0, 1, 1, 2, name="p"), "tree p = parents(-1, 0, 0, 1, 1, 2)"),
        (parents(-1, -1, name="two"), "tree two = parents(-1, -1)"),
        (parents(-1, name="one"), "tree one = chain(1)"),
        (dynamic(nodes=64, depth=8, name="any64"), "tree any64 = dynamic(nodes=64, depth=8)"),
    ],
)
def test_printing_parses_back(tree: StaticTree | BoundedTree, text: str) -> None:
    assert str(tree) == text
    assert parse_tree(text) == tree


@pytest.mark.parametrize(
    ("entries", "node"),
    [((0,), 0), ((-1, 1), 1), ((-1, 0, 5), 2), ((-1, -2), 1), ((-1, 2, 1), 1)],
)
def test_malformed_parents_name_the_node(entries: tuple[int, ...], node: int) -> None:
    with pytest.raises(TreeError) as caught:
        parents(*entries)
    assert caught.value.node == node


def test_refused_sizes() -> None:
    for make in (
        lambda: parents(),
        lambda: chain(0),
        lambda: chain(-3),
        lambda: chain(MAX_STATIC_NODES + 1),
        lambda: chain(10**18),
        lambda: beam(width=0, depth=3),
        lambda: beam(width=3, depth=0),
        lambda: beam(width=10**9, depth=10**9),
        lambda: parents(*[-1] * (MAX_STATIC_NODES + 1)),
        lambda: dynamic(nodes=0, depth=0),
        lambda: dynamic(nodes=4, depth=4),
        lambda: dynamic(nodes=4, depth=-1),
    ):
        with pytest.raises(TreeError):
            make()


def test_networkx_graphs() -> None:
    graph = nx.DiGraph()
    graph.add_edges_from([("b", "d"), ("a", "b"), ("a", "c"), ("c", "e")])
    tree = from_networkx(graph, name="g")
    assert tree.parents == (-1, 0, 0, 1, 2)
    assert from_networkx(nx.balanced_tree(2, 3, nx.DiGraph())).max_nodes == 15
    forest = nx.DiGraph()
    forest.add_nodes_from(range(3))
    assert from_networkx(forest).parents == (-1, -1, -1)
    with pytest.raises(TreeError, match="two parents"):
        from_networkx(nx.DiGraph([(0, 2), (1, 2)]))
    with pytest.raises(TreeError, match="lies on a cycle"):
        from_networkx(nx.DiGraph([(0, 1), (2, 3), (3, 2)]))
    with pytest.raises(TreeError, match="no node"):
        from_networkx(nx.DiGraph())


def test_a_list_of_parents_is_taken_too() -> None:
    assert parents([-1, 0, 0]) == parents((-1, 0, 0)) == parents(-1, 0, 0)
    assert parents(np.array([-1, 0])) == parents(np.int64(-1), 0) == chain(2)
    assert all(type(parent) is int for parent in parents(np.array([-1, 0])).parents)
    assert parents(iter([-1]), name="one") == chain(1, name="one")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: parents([-1, "0"]), "the parent of node 1 of the tree must be a whole number"),
        (lambda: parents("-1,0"), "node 0 of the tree must be a whole number, not '-1,0'"),
        (lambda: parents(None), "not None"),
        (lambda: parents([-1, 0], [0]), r"not \[-1, 0\]"),
        (lambda: parents(-1, True), "not True"),
        (lambda: parents(-1, 0.0, name="p"), "node 1 of tree p must be a whole number, not 0.0"),
        (lambda: chain("x"), "nodes must be a whole number, not 'x'"),
        (lambda: chain(2.5), "nodes must be a whole number"),
        (lambda: beam(width="a", depth=2), "width must be a whole number, not 'a'"),
        (lambda: beam(width=2, depth=None), "depth must be a whole number, not None"),
        (lambda: dynamic(nodes=True, depth=0), "nodes must be a whole number, not True"),
        (lambda: dynamic(nodes=2, depth="1"), "depth must be a whole number"),
        (lambda: parents(-1, 0, 5), "parent 5 of the tree is neither"),
        (lambda: from_networkx(None), "expected a networkx DiGraph, got NoneType"),
        (lambda: from_networkx(nx.path_graph(3)), "no directions\n  mend: use a DiGraph"),
        (lambda: from_networkx(nx.MultiGraph([(0, 1)])), "no directions"),
        (lambda: from_networkx(nx.DiGraph([(0, 0)])), "lies on a cycle"),
    ],
)
def test_what_is_no_tree_is_refused_in_words(make: Any, message: str) -> None:
    with pytest.raises(TreeError, match=message):
        make()


def test_an_edge_may_be_given_twice() -> None:
    assert from_networkx(nx.MultiDiGraph([(0, 1), (0, 1), (1, 2)])) == chain(3)


def test_an_unnamed_tree_has_a_name_in_text_only() -> None:
    assert str(chain(2)) == "tree t = chain(2)"
    assert parse_tree("chain(2)") == chain(2)
    assert parse_tree(str(chain(2))) == chain(2, name="t")


def test_depths_take_no_part_in_equality() -> None:
    assert len({chain(3), chain(3), parents(-1, 0, 1)}) == 1
