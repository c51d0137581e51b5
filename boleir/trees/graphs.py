"""Trees from and to networkx graphs: any hashable labels, edges from parent to child."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import TYPE_CHECKING, Any

from boleir.errors import TreeError
from boleir.language.tree_spec import directed
from boleir.trees.checking import find_cycle
from boleir.trees.faults import CycleError, TwoParentsError

if TYPE_CHECKING:
    import networkx

    from boleir.trees.tree import Tree


def read_graph(graph: networkx.DiGraph[Any]) -> tuple[tuple[int, ...], tuple[Hashable, ...]]:
    """Parents and labels of a directed forest, in a topological order.

    The order is the least surprising one that works: labels 0..T-1 keep their numbers, else the
    graph's own node order stands, and only where a parent would come after its child the nodes are
    taken breadth first.

    Raises:
        TwoParentsError, CycleError, TreeError: the graph is not a directed forest; the nodes are
            named by label.
    """
    nodes, above_of = directed(graph)
    above: dict[Hashable, Hashable | None] = {}
    for label in nodes:
        parents = list(above_of[label])
        if len(parents) > 1:
            raise TwoParentsError(
                f"node {label!r} has two parents: {parents[0]!r} and {parents[1]!r}"
            )
        above[label] = parents[0] if parents else None
    labels = _order(above)
    number = {label: node for node, label in enumerate(labels)}
    parents_of = (above[label] for label in labels)
    return tuple(-1 if p is None else number[p] for p in parents_of), labels


def write_graph(tree: Tree) -> networkx.DiGraph[Any]:
    """The tree as a networkx DiGraph; `read_graph` gives an equal tree back when there are no
    labels.
    """
    try:
        import networkx
    except ImportError:
        raise TreeError("networkx is not installed", mend="pip install networkx") from None
    names = tree.labels if tree.labels is not None else tuple(range(len(tree)))
    if len(set(names)) != len(names):
        raise TreeError("labels are not distinct, so they cannot name the nodes of a graph")
    graph: networkx.DiGraph[Any] = networkx.DiGraph()
    graph.add_nodes_from(names)
    graph.add_edges_from((names[p], names[i]) for i, p in enumerate(tree.parents) if p >= 0)
    return graph


def _order(above: dict[Hashable, Hashable | None]) -> tuple[Hashable, ...]:
    """The labels in topological order; `above` maps every label to its parent's, in the graph's
    order.
    """
    given = tuple(above)
    numbered: list[Hashable] = list(range(len(given)))
    if set(given) == set(numbered) and _parents_first(above, numbered):
        return tuple(numbered)
    if _parents_first(above, given):
        return given
    below: dict[Hashable, list[Hashable]] = {label: [] for label in given}
    for label, parent in above.items():
        if parent is not None:
            below[parent].append(label)
    order = [label for label in given if above[label] is None]
    for label in order:
        order.extend(below[label])
    if len(order) < len(given):
        raise _cycle(above, set(order))
    return tuple(order)


def _parents_first(above: dict[Hashable, Hashable | None], order: Iterable[Hashable]) -> bool:
    seen: set[Hashable] = set()
    for label in order:
        parent = above[label]
        if parent is not None and parent not in seen:
            return False
        seen.add(label)
    return True


def _cycle(above: dict[Hashable, Hashable | None], placed: set[Hashable]) -> CycleError:
    """The error for the first label that no root leads to: following its parents never ends."""
    labels = list(above)
    number = {label: node for node, label in enumerate(labels)}
    parents = [-1 if p is None else number[p] for p in above.values()]
    start = next(number[label] for label in labels if label not in placed)
    cycle = [repr(labels[node]) for node in reversed(find_cycle(parents, start))]
    return CycleError(f"the graph has a cycle: {' -> '.join([*cycle, cycle[0]])}")
