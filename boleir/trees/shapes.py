"""Parents of the usual tree shapes, as tuples for `Tree`: what the constructors of `Tree` and of
the text language share.

Every shape has one root, node 0 (the last accepted token), unless it says otherwise.
"""

from __future__ import annotations

import random as _random

from boleir.errors import TreeError


def chain(nodes: int) -> tuple[int, ...]:
    """`nodes` nodes in a row: depth nodes - 1."""
    require_count("nodes", nodes, 0)
    return tuple(range(-1, nodes - 1))


def star(nodes: int) -> tuple[int, ...]:
    """One root and nodes - 1 children of it: depth 1."""
    require_count("nodes", nodes, 0)
    return (-1, *[0] * (nodes - 1)) if nodes else ()


def beam(width: int, depth: int) -> tuple[int, ...]:
    """A root with `width` paths of `depth` nodes below it, numbered level by level: 1 + width *
    depth nodes.
    """
    require_count("width", width, 1)
    require_count("depth", depth, 0)
    return (-1, *(max(0, node - width) for node in range(1, 1 + width * depth)))


def caterpillar(spine: int, legs: int) -> tuple[int, ...]:
    """A chain of `spine` nodes, each with `legs` leaves beside the next spine node: spine * (legs +
    1) nodes.
    """
    require_count("spine", spine, 1)
    require_count("legs", legs, 0)
    parents: list[int] = []
    for segment in range(spine):
        body = segment * (legs + 1)
        parents.append(body - legs - 1 if segment else -1)
        parents.extend([body] * legs)
    return tuple(parents)


def balanced(branching: int, depth: int) -> tuple[int, ...]:
    """Every node above the last level has `branching` children, numbered level by level."""
    require_count("branching", branching, 1)
    require_count("depth", depth, 0)
    nodes = sum(branching**level for level in range(depth + 1))
    return (-1, *((node - 1) // branching for node in range(1, nodes)))


def random(
    nodes: int, *, seed: int, roots: int = 1, max_depth: int | None = None
) -> tuple[int, ...]:
    """A random forest with exactly `roots` roots: every other node hangs below a random earlier
    node.

    The same arguments give the same tree on every machine and Python version. `max_depth` bounds
    the edges below a root.
    """
    require_count("nodes", nodes, 0)
    require_count("roots", roots, min(nodes, 1))
    if not nodes:
        return ()
    if roots > nodes:
        raise TreeError(f"{nodes} nodes cannot have {roots} roots")
    if max_depth == 0 and roots < nodes:
        raise TreeError(f"{nodes} nodes with {roots} roots need a depth of at least 1")
    rng = _random.Random(seed)
    starts = {0, *rng.sample(range(1, nodes), roots - 1)}
    parents: list[int] = []
    open_nodes: list[int] = []
    depth: list[int] = []
    for node in range(nodes):
        parent = -1 if node in starts else open_nodes[int(rng.random() * len(open_nodes))]
        parents.append(parent)
        depth.append(0 if parent < 0 else depth[parent] + 1)
        if max_depth is None or depth[node] < max_depth:
            open_nodes.append(node)
    return tuple(parents)


def require_count(name: str, value: object, least: int) -> None:
    """Refuse a shape parameter that is not a whole number of at least `least`."""
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise TreeError(f"{name} must be a whole number of at least {least}, got {value!r}")
