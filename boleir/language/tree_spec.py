"""Proposal trees as the language knows them: static (a constant of the compiler) or bounded
(topology is data).

Plain values without a parser behind them, so that compiled kernels and serving processes may carry
them.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from operator import index
from typing import Any

from boleir.errors import TreeError

UNNAMED = ""
"""Name of a tree that was given none."""
SPELLED = "t"
"""What such a tree is called where the language wants a name."""
MAX_STATIC_NODES = 1024
"""Largest static tree; what a kernel takes is decided by the schedule."""


@dataclass(frozen=True, slots=True)
class StaticTree:
    """A tree known when compiling. `parents[i]` is the parent of node i, -1 for a root; parents
    come first.

    Raises `TreeError` naming the node when `parents` is no such list.
    """

    name: str
    parents: tuple[int, ...]
    depth: tuple[int, ...] = field(init=False, repr=False, compare=False)
    """Edges between each node and its root."""

    def __post_init__(self) -> None:
        if not self.parents:
            raise TreeError(f"{_called(self.name)} has no node")
        if len(self.parents) > MAX_STATIC_NODES:
            raise TreeError(
                f"{_called(self.name)} has {len(self.parents)} nodes; "
                f"a static tree has at most {MAX_STATIC_NODES}"
            )
        depths: list[int] = []
        for node, parent in enumerate(self.parents):
            if not -1 <= parent < node:
                raise TreeError(
                    f"parent {parent} of {_called(self.name)} is neither -1 nor an earlier node",
                    node=node,
                    mend="number the nodes so that every parent comes before its children",
                )
            depths.append(0 if parent < 0 else depths[parent] + 1)
        object.__setattr__(self, "depth", tuple(depths))

    @property
    def max_nodes(self) -> int:
        """Number of nodes."""
        return len(self.parents)

    @property
    def max_depth(self) -> int:
        """Largest depth, in edges below a root."""
        return max(self.depth)

    def __str__(self) -> str:
        return f"tree {self.name or SPELLED} = {_spelling(self.parents)}"


@dataclass(frozen=True, slots=True)
class BoundedTree:
    """Any tree of at most `max_nodes` nodes and depth at most `max_depth` (edges); the topology
    arrives with the data.
    """

    name: str
    max_nodes: int
    max_depth: int

    def __post_init__(self) -> None:
        if self.max_nodes < 1:
            raise TreeError(f"{_called(self.name)} needs at least one node")
        if not 0 <= self.max_depth < self.max_nodes:
            raise TreeError(
                f"{_called(self.name)} cannot have depth {self.max_depth} "
                f"with {self.max_nodes} nodes",
                mend=f"a depth between 0 and {self.max_nodes - 1}",
            )

    def __str__(self) -> str:
        return (
            f"tree {self.name or SPELLED} = dynamic(nodes={self.max_nodes}, depth={self.max_depth})"
        )


TreeSpec = StaticTree | BoundedTree
"""What a tree declaration of the language denotes."""


def parents(*entries: int | Iterable[int], name: str = UNNAMED) -> StaticTree:
    """The static tree with the given parents, -1 for a root: `parents(-1, 0, 0)`, or one list of
    them. Raises `TreeError`."""
    given: Iterable[object] = entries
    if len(entries) == 1 and isinstance(entries[0], Iterable) and not isinstance(entries[0], str):
        given = entries[0]
    numbers = []
    for node, entry in enumerate(given):
        what = f"the parent of node {node} of {_called(name)}"
        numbers.append(_whole(what, entry, mend="parents(-1, 0, 0)"))
    return StaticTree(name, tuple(numbers))


def chain(nodes: int, *, name: str = UNNAMED) -> StaticTree:
    """`nodes` nodes in a row; depth `nodes - 1`."""
    nodes = _whole("nodes", nodes, mend="chain(4)")
    _bounded(name, nodes, nodes)
    return StaticTree(name, tuple(range(-1, nodes - 1)))


def beam(*, width: int, depth: int, name: str = UNNAMED) -> StaticTree:
    """A root and below it `depth` levels of `width` nodes, each continuing its own beam: 1 + width
    * depth nodes.
    """
    width = _whole("width", width, mend="beam(width=4, depth=5)")
    depth = _whole("depth", depth, mend="beam(width=4, depth=5)")
    _bounded(name, min(width, depth), 1 + width * depth)
    return StaticTree(name, (-1,) + (0,) * width + tuple(range(1, 1 + width * (depth - 1))))


def dynamic(*, nodes: int, depth: int, name: str = UNNAMED) -> BoundedTree:
    """Any tree within the two bounds."""
    mend = "dynamic(nodes=64, depth=8)"
    return BoundedTree(name, _whole("nodes", nodes, mend=mend), _whole("depth", depth, mend=mend))


def from_networkx(graph: object, *, name: str = UNNAMED) -> StaticTree:
    """The static tree of a networkx `DiGraph` whose edges lead from parent to child.

    Nodes are numbered parents first, siblings in the order the graph holds them. Raises `TreeError`
    when the graph has no directions, a node has two parents or lies on a cycle.
    """
    nodes, above_of = directed(graph)
    parent: dict[Hashable, Hashable] = {}
    for below in nodes:
        found = list(above_of[below])
        if len(found) > 1:
            raise TreeError(
                f"node {below!r} of {_called(name)} has two parents, {found[0]!r} and {found[1]!r}"
            )
        if found:
            parent[below] = found[0]
    order = [node for node in nodes if node not in parent]
    children: dict[Hashable, list[Hashable]] = {}
    for node in nodes:
        if node in parent:
            children.setdefault(parent[node], []).append(node)
    for node in order:  # grows while it is walked: breadth first
        order.extend(children.get(node, ()))
    if len(order) != len(nodes):
        lost = next(node for node in nodes if node not in set(order))
        raise TreeError(f"node {lost!r} of {_called(name)} lies on a cycle")
    place = {node: i for i, node in enumerate(order)}
    return StaticTree(name, tuple(place[parent[node]] if node in parent else -1 for node in order))


def directed(graph: Any) -> tuple[list[Hashable], Mapping[Hashable, Iterable[Hashable]]]:
    """Nodes of a networkx graph, and by node those with an edge to it. Raises `TreeError` for what
    is no graph, or one whose edges have no direction."""
    if hasattr(graph, "is_directed") and hasattr(graph, "pred"):
        return list(graph.nodes), graph.pred
    if hasattr(graph, "is_directed"):
        raise TreeError("the graph has no directions", mend="use a DiGraph: parent -> child")
    raise TreeError(f"expected a networkx DiGraph, got {type(graph).__name__}")


def _called(name: str) -> str:
    """How messages name a tree."""
    return "the tree" if name == UNNAMED else f"tree {name}"


def _whole(what: str, value: object, *, mend: str) -> int:
    if not isinstance(value, bool):
        try:
            return index(value)  # type: ignore[arg-type]
        except TypeError:
            pass
    raise TreeError(f"{what} must be a whole number, not {value!r}", mend=mend)


def _bounded(name: str, smallest: int, nodes: int) -> None:
    if smallest < 1:
        raise TreeError(f"{_called(name)} needs at least one node")
    if nodes > MAX_STATIC_NODES:
        raise TreeError(
            f"{_called(name)} has {nodes} nodes; a static tree has at most {MAX_STATIC_NODES}"
        )


def _spelling(entries: Sequence[int]) -> str:
    """Shortest canonical constructor of a static tree."""
    count = len(entries)
    if tuple(entries) == tuple(range(-1, count - 1)):
        return f"chain({count})"
    width = sum(1 for entry in entries if entry == 0)
    if width and (count - 1) % width == 0:
        depth = (count - 1) // width
        if tuple(entries) == beam(width=width, depth=depth).parents:
            return f"beam(width={width}, depth={depth})"
    return f"parents({', '.join(map(str, entries))})"
