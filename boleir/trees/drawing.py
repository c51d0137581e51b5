"""Trees as plain text, for terminals, logs and emitted comments."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from boleir.trees.tree import Tree


def draw(tree: Tree, name: Callable[[int], str] | None = None) -> str:
    """One line per node in depth-first order, ASCII only; `name` turns a node number into what is
    shown for it.
    """
    if name is None:
        name = _with_label(tree) if tree.labels is not None else str
    children = tree.children
    lines: list[str] = []
    stack: list[tuple[int, str, str]] = [(root, "", "") for root in reversed(tree.roots)]
    while stack:
        node, lead, indent = stack.pop()
        lines.append(f"{lead}{name(node)}")
        below = children[node]
        for position, child in reversed(list(enumerate(below))):
            last = position == len(below) - 1
            branch, rest = ("`-- ", "    ") if last else ("|-- ", "|   ")
            stack.append((child, indent + branch, indent + rest))
    return "\n".join(lines) if lines else "(no nodes)"


def _with_label(tree: Tree) -> Callable[[int], str]:
    labels = tree.labels or ()
    return lambda node: str(node) if labels[node] == node else f"{node} {labels[node]!r}"
