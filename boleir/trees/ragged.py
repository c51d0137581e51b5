"""Many trees in two arrays, and what follows from them, a whole batch at a time on the host.

A batch of B trees with N nodes altogether is `parents[N]` (local to the request, -1 for a root,
parent before child) and `cu_nodes[B+1]` (where each request starts). Everything else follows from
them. The work is a fixed number of numpy passes plus log2(depth) rounds of pointer doubling, never
a Python loop over nodes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

MAX_NODES = 256
"""Nodes per request that the kernels are built for: four ancestor words."""
WORD_BITS = 64
"""Nodes per ancestor word."""

Int32 = NDArray[np.int32]
Int64 = NDArray[np.int64]


def words_for(nodes: int) -> int:
    """Ancestor words per node when a request has up to `nodes` nodes; at least one."""
    return max(1, -(-nodes // WORD_BITS))


@dataclass(frozen=True, slots=True, eq=False)
class Ragged:
    """A checked batch: `parents` int32[N], `cu_nodes` int32[B+1], `depth` int32[N] (roots: 0)."""

    parents: Int32
    cu_nodes: Int32
    depth: Int32

    @property
    def max_nodes(self) -> int:
        """Nodes of the largest request."""
        return int(np.diff(self.cu_nodes).max(initial=0))

    @property
    def max_depth(self) -> int:
        """Edges below the roots on the longest path; 0 for a batch without nodes."""
        return int(self.depth.max(initial=0))

    def ancestors(self, words: int | None = None) -> Int64:
        """Ancestor words int64[N, words]: bit j % 64 of word j // 64 set iff j is i or above i."""
        counts = np.diff(self.cu_nodes)
        words = words_for(self.max_nodes) if words is None else words
        total = self.parents.size
        local = local_numbers(self.cu_nodes, counts, total)
        bits = np.zeros((total + 1, words), np.uint64)
        own = np.uint64(1) << (local % WORD_BITS).astype(np.uint64)
        bits[np.arange(total), local // WORD_BITS] = own
        jump = _jump_table(self.parents, self.cu_nodes, counts)
        for _ in range(self.max_depth.bit_length()):
            bits |= bits[jump]
            jump = jump[jump]
        return bits[:total].view(np.int64)

    def near(self, width: int) -> Int32:
        """Nearest ancestors int32[N, width - 1] for a causal convolution of `width` taps.

        Column m holds the (m+1)-th nearest ancestor; where the path ends first, -1 - r with r = 0
        for the most recent entry of the committed window, r = 1 for the one before it, and so on.
        """
        counts = np.diff(self.cu_nodes)
        starts = np.repeat(self.cu_nodes[:-1], counts)
        result = np.empty((self.parents.size, width - 1), np.int32)
        current = self.parents
        for m in range(width - 1):
            result[:, m] = current
            if m + 2 < width:
                above = self.parents[np.maximum(current, 0) + starts]
                current = np.where(current >= 0, above, current - 1)
        return result


def local_numbers(cu: Int32, counts: Int32, total: int) -> Int32:
    """The number of each node within its own request, int32[N]."""
    return np.arange(total, dtype=np.int32) - np.repeat(cu[:-1], counts)


def _jump_table(parents: Int32, cu: Int32, counts: Int32) -> Int64:
    """Global position of each node's parent, int64[N+1]; roots and the extra last entry point at
    the last entry.
    """
    total = parents.size
    table = np.full(total + 1, total, np.int64)
    table[:total] = np.where(parents < 0, total, parents + np.repeat(cu[:-1], counts))
    return table


def depths(parents: Int32, cu: Int32, counts: Int32) -> Int32:
    """Edges above each node, by pointer doubling: after round r a node has counted up to 2^r
    ancestors.
    """
    total = parents.size
    jump = _jump_table(parents, cu, counts)
    depth: Int32 = (jump != total).astype(np.int32)
    while jump.min(initial=total) != total:
        depth += depth[jump]
        jump = jump[jump]
    return depth[:total]
