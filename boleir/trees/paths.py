"""Trees from lists of paths: n-gram continuations that share prefixes, or Medusa-style choices."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import Any

from boleir.trees.faults import PathError


def read_paths(
    paths: Iterable[Sequence[Hashable]], *, implicit_root: bool
) -> tuple[tuple[int, ...], tuple[Hashable, ...]]:
    """Parents and labels of the trie of `paths`.

    Every distinct non-empty prefix is one node, numbered by first appearance (a prefix before what
    continues it), so that repeated paths and paths that only spell out a prefix add nothing. The
    label of a node is its prefix as a tuple.

    Args:
        paths: sequences of hashable items (tokens or choice numbers); arrays are accepted.
        implicit_root: put a node with the empty prefix above all paths.

    Raises:
        PathError: names the path and, where it applies, the item.
    """
    prefixes: dict[tuple[Hashable, ...], int] = {(): 0} if implicit_root else {}
    parents: list[int] = [-1] if implicit_root else []
    try:
        rows = list(paths)
    except TypeError:
        raise PathError(f"expected a list of paths, got {type(paths).__name__}") from None
    for row, path in enumerate(rows):
        items = _items(path, row)
        node = 0 if implicit_root else -1
        for length in range(1, len(items) + 1):
            prefix = items[:length]
            below = prefixes.get(prefix)
            if below is None:
                below = prefixes[prefix] = len(parents)
                parents.append(node)
            node = below
    return tuple(parents), tuple(prefixes)


def _items(path: Any, row: int) -> tuple[Hashable, ...]:
    """One path as a tuple of hashable items that compare equal to themselves (NaN does not)."""
    if isinstance(path, (str, bytes)):
        raise PathError(f"path {row} is text, expected a sequence of tokens")
    try:
        items = tuple(path.tolist() if hasattr(path, "tolist") else path)
    except TypeError:
        raise PathError(f"path {row} is no sequence of tokens: {path!r}") from None
    for position, item in enumerate(items):
        try:
            hash(item)
        except TypeError:
            raise PathError(f"path {row}, item {position}: {item!r} cannot be a token") from None
        if item != item:
            raise PathError(f"path {row}, item {position}: {item!r} cannot be a token")
    return items
