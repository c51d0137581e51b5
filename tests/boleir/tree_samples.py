"""Trees that several tests share, and the plain definitions they are compared with."""

from __future__ import annotations

from boleir.trees import Tree

SIZES = (1, 2, 5, 8, 9, 16, 17, 31, 32, 33, 60, 63, 64, 65, 128, 129, 192, 193, 256)


def shapes(nodes: int) -> dict[str, Tree]:
    """Trees of exactly `nodes` nodes (at least one) and of every kind."""
    found = {
        "chain": Tree.chain(nodes),
        "star": Tree.star(nodes),
        "roots": Tree((-1,) * nodes),
        "caterpillar": Tree(Tree.caterpillar(nodes, 1).parents[:nodes]),
        "balanced": Tree(Tree.balanced(2, nodes.bit_length()).parents[:nodes]),
        "beam": Tree(Tree.beam(4, nodes).parents[:nodes]),
    }
    for seed in range(3):
        roots = min(nodes, 1 + seed)
        found[f"random {seed}"] = Tree.random(nodes, seed=seed, roots=roots)
        found[f"shallow {seed}"] = Tree.random(nodes, seed=seed, roots=roots, max_depth=4)
    return found


def ancestor_sets(parents: tuple[int, ...]) -> list[set[int]]:
    """Ancestors-or-self of every node, by walking."""
    rows = []
    for node in range(len(parents)):
        row = set()
        while node >= 0:
            row.add(node)
            node = parents[node]
        rows.append(row)
    return rows


def near_rows(parents: tuple[int, ...], width: int) -> list[list[int]]:
    """Nearest ancestors, then -1 - r for the r-th latest entry of the window, by walking."""
    rows = []
    for node in range(len(parents)):
        row, window = [], 0
        current = parents[node]
        for _ in range(width - 1):
            if current >= 0:
                row.append(current)
                current = parents[current]
            else:
                row.append(-1 - window)
                window += 1
        rows.append(row)
    return rows


def words_of(members: set[int], words: int) -> list[int]:
    """A set of node numbers as signed 64-bit words."""
    unsigned = [sum(1 << (j % 64) for j in members if j // 64 == word) for word in range(words)]
    return [value - (1 << 64) if value >> 63 else value for value in unsigned]
