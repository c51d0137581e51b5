"""Seeded proposal trees that every subject of a measurement receives alike.

A tree is an int32 array `parent`: `parent[i]` is the index of node i's parent, -1 for the root,
and parents come before their children.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from benchmarks.serving_shapes import Row

Tree = NDArray[np.int32]


def chain(nodes: int) -> Tree:
    """A single path of `nodes` nodes."""
    return np.arange(-1, nodes - 1, dtype=np.int32)


def random_tree(nodes: int, depth: int, rng: np.random.Generator) -> Tree:
    """A random recursive tree with one root whose deepest node lies exactly `depth` edges below it.

    A path of the wanted depth is laid first, the other nodes attach to uniformly drawn nodes that
    may still have children, and a random topological order hides which path was first.
    """
    if not 0 <= depth < nodes:
        raise ValueError(f"no tree of {nodes} nodes has depth {depth}")
    parent = list(chain(depth + 1))
    level = list(range(depth + 1))
    for _ in range(nodes - depth - 1):
        open_nodes = [i for i, d in enumerate(level) if d < depth]
        chosen = int(rng.choice(open_nodes)) if open_nodes else -1
        parent.append(np.int32(chosen))
        level.append(level[chosen] + 1)
    return _shuffle(np.array(parent, dtype=np.int32), rng)


def _shuffle(parent: Tree, rng: np.random.Generator) -> Tree:
    """Renumber the nodes in a random order that keeps parents before children."""
    children: list[list[int]] = [[] for _ in parent]
    for node, above in enumerate(parent):
        if above >= 0:
            children[above].append(node)
    ready = [0]
    new_index = np.full(len(parent), -1, dtype=np.int32)
    renumbered = np.empty_like(parent)
    for index in range(len(parent)):
        node = ready.pop(int(rng.integers(len(ready))))
        new_index[node] = index
        renumbered[index] = new_index[parent[node]] if parent[node] >= 0 else -1
        ready += children[node]
    return renumbered


def tree_batch(row: Row, seed: int = 0) -> list[Tree]:
    """One tree per request, each from its own seed; chains when the row is a chain."""
    if row.is_chain:
        return [chain(row.nodes) for _ in range(row.batch)]
    return [
        random_tree(row.nodes, row.depth, np.random.default_rng((seed, request)))
        for request in range(row.batch)
    ]


def depths(parent: Tree) -> NDArray[np.int32]:
    """Edges between the root and each node."""
    level = np.zeros(len(parent), dtype=np.int32)
    for node, above in enumerate(parent):
        if above >= 0:
            level[node] = level[above] + 1
    return level


def child_sibling_links(parent: Tree) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """First child and next sibling of every node, -1 where there is none."""
    first_child = np.full(len(parent), -1, dtype=np.int32)
    next_sibling = np.full(len(parent), -1, dtype=np.int32)
    last_child: dict[int, int] = {}
    for node, above in enumerate(parent.tolist()):
        if above < 0:
            continue
        if above in last_child:
            next_sibling[last_child[above]] = node
        else:
            first_child[above] = node
        last_child[above] = node
    return first_child, next_sibling


def deepest_node(parent: Tree) -> int:
    """The first node at the greatest depth: the longest path that a commit could accept."""
    return int(depths(parent).argmax())


def root_path(parent: Tree, node: int) -> list[int]:
    """The nodes from the root to `node`, both included."""
    path = [node]
    while parent[path[-1]] >= 0:
        path.append(int(parent[path[-1]]))
    return path[::-1]
