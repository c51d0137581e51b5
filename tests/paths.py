"""Paths in trees given by parents, walked as they are defined."""

from __future__ import annotations

from collections.abc import Sequence


def path_of(parents: Sequence[int], node: int) -> list[int]:
    """The nodes from `node` up to its root."""
    path = []
    while node >= 0:
        path.append(node)
        node = parents[node]
    return path


def at_or_below(parents: Sequence[int], node: int) -> list[bool]:
    """For every node, whether its path leads through `node`."""
    return [node in path_of(parents, other) for other in range(len(parents))]
