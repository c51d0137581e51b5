"""One proposal tree: its parents, what follows from them, and the ways in and out of other
notations.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from boleir.errors import TreeError
from boleir.trees import shapes
from boleir.trees.checking import check_trees
from boleir.trees.faults import Fault, error_of
from boleir.trees.ragged import Int32, Int64, Ragged

if TYPE_CHECKING:
    import networkx


@dataclass(frozen=True, slots=True)
class Tree:
    """A tree (or forest) of proposed tokens.

    `parents[i]` is the parent of node i, or -1 for a root; parents come before their children. Any
    sequence or array of whole numbers is accepted and checked. `labels` carries the names that
    nodes had where the tree came from (graph nodes, path prefixes): `labels[i]` belongs to node i.
    Labels take no part in comparisons.

    Raises:
        TreeError: the subclass says what is wrong, the message names the node.
    """

    parents: tuple[int, ...]
    labels: tuple[Hashable, ...] | None = field(default=None, compare=False)
    depth: tuple[int, ...] = field(init=False, compare=False, repr=False)
    """Edges between each node and its root."""

    def __post_init__(self) -> None:
        ragged = check_trees(self.parents, max_nodes=None)
        object.__setattr__(self, "parents", tuple(ragged.parents.tolist()))
        object.__setattr__(self, "depth", tuple(ragged.depth.tolist()))
        if self.labels is not None:
            object.__setattr__(self, "labels", tuple(self.labels))
            if len(self.labels) != len(self.parents):
                raise TreeError(f"{len(self.labels)} labels for {len(self.parents)} nodes")

    # ---- shapes ----------------------------------------------------------------------

    @classmethod
    def chain(cls, nodes: int) -> Self:
        """`nodes` nodes in a row (no tree at all: ordinary speculation)."""
        return cls(shapes.chain(nodes))

    @classmethod
    def star(cls, nodes: int) -> Self:
        """A root with nodes - 1 children."""
        return cls(shapes.star(nodes))

    @classmethod
    def beam(cls, width: int, depth: int) -> Self:
        """A root with `width` paths of `depth` nodes below it, numbered level by level."""
        return cls(shapes.beam(width, depth))

    @classmethod
    def caterpillar(cls, spine: int, legs: int = 1) -> Self:
        """A chain of `spine` nodes, each with `legs` leaves of its own."""
        return cls(shapes.caterpillar(spine, legs))

    @classmethod
    def balanced(cls, branching: int, depth: int) -> Self:
        """Every node above the last of depth + 1 levels has `branching` children."""
        return cls(shapes.balanced(branching, depth))

    @classmethod
    def random(cls, nodes: int, *, seed: int, roots: int = 1, max_depth: int | None = None) -> Self:
        """A reproducible random forest; see `boleir.trees.shapes.random`."""
        return cls(shapes.random(nodes, seed=seed, roots=roots, max_depth=max_depth))

    # ---- ways in ---------------------------------------------------------------------

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parents as text, separated by commas or blanks: `-1,0,0,1,1,2`."""
        words = text.replace(",", " ").split()
        try:
            return cls(tuple(int(word) for word in words))
        except ValueError:
            raise TreeError(
                f"cannot read {text[:80]!r} as parents", mend="write them like -1,0,0,1,1,2"
            ) from None

    @classmethod
    def from_networkx(cls, graph: networkx.DiGraph[Any]) -> Self:
        """A directed graph with edges from parents to children and any labels; `labels[i]` is node
        i's label.
        """
        from boleir.trees.graphs import read_graph

        return cls(*read_graph(graph))

    @classmethod
    def from_paths(
        cls, paths: Iterable[Sequence[Hashable]], *, implicit_root: bool = False
    ) -> Self:
        """Token or choice paths that share prefixes; `labels[i]` is the prefix that ends in node i.

        With `implicit_root` a node with the empty prefix is put above all paths, as Medusa-style
        choices assume.
        """
        from boleir.trees.paths import read_paths

        return cls(*read_paths(paths, implicit_root=implicit_root))

    @classmethod
    def from_mask(cls, mask: Any) -> Self:
        """A boolean matrix [T, T]: entry (i, j) says whether j is i or an ancestor of i."""
        from boleir.trees.masks import read_mask

        return cls(tuple(read_mask(mask).tolist()))

    @classmethod
    def from_sglang(
        cls, next_token: Any = None, next_sibling: Any = None, parent_token: Any = None
    ) -> Self:
        """SGLang's link rows of one request; see `boleir.trees.links`."""
        from boleir.trees.links import read_link_row

        return cls(tuple(read_link_row(next_token, next_sibling, parent_token).tolist()))

    @classmethod
    def from_eagle(cls, parent_list: Any, selected_index: Any, *, top_k: int) -> Self:
        """EAGLE's candidate table of one request; see `boleir.trees.eagle`."""
        from boleir.trees.eagle import read_candidates

        return cls(read_candidates(parent_list, selected_index, top_k=top_k))

    # ---- what follows from the parents -----------------------------------------------

    def __len__(self) -> int:
        return len(self.parents)

    @property
    def max_depth(self) -> int:
        """Edges on the longest path below a root (0 for a tree without edges): G^(max_depth + 1) =
        0.
        """
        return max(self.depth, default=0)

    @property
    def roots(self) -> tuple[int, ...]:
        """Nodes without a parent."""
        return tuple(node for node, parent in enumerate(self.parents) if parent < 0)

    @property
    def leaves(self) -> tuple[int, ...]:
        """Nodes without children."""
        inner = set(self.parents)
        return tuple(node for node in range(len(self)) if node not in inner)

    @property
    def children(self) -> tuple[tuple[int, ...], ...]:
        """The children of every node, ascending."""
        below: list[list[int]] = [[] for _ in self.parents]
        for node, parent in enumerate(self.parents):
            if parent >= 0:
                below[parent].append(node)
        return tuple(map(tuple, below))

    @property
    def levels(self) -> tuple[tuple[int, ...], ...]:
        """Nodes by depth: `levels[0]` are the roots."""
        rows: list[list[int]] = [[] for _ in range(self.max_depth + 1 if self.parents else 0)]
        for node, depth in enumerate(self.depth):
            rows[depth].append(node)
        return tuple(map(tuple, rows))

    @property
    def links(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """First child and next sibling of every node, -1 where there is none; roots are siblings of
        each other.
        """
        first = [-1] * len(self)
        following = [-1] * len(self)
        latest: dict[int, int] = {}
        for node, parent in enumerate(self.parents):
            if parent in latest:
                following[latest[parent]] = node
            elif parent >= 0:
                first[parent] = node
            latest[parent] = node
        return tuple(first), tuple(following)

    def path(self, node: int) -> tuple[int, ...]:
        """The nodes from the root down to `node`, itself included."""
        if not 0 <= node < len(self):
            raise TreeError(f"there is no such node in a tree of {len(self)} nodes", node=node)
        steps = [node]
        while self.parents[steps[-1]] >= 0:
            steps.append(self.parents[steps[-1]])
        return tuple(reversed(steps))

    def ragged(self) -> Ragged:
        """This tree as a batch of one request."""
        return Ragged(
            np.array(self.parents, np.int32),
            np.array([0, len(self)], np.int32),
            np.array(self.depth, np.int32),
        )

    def ancestors(self, words: int | None = None) -> Int64:
        """Ancestor words int64[T, words]: bit j % 64 of word j // 64 is set iff j is i or an
        ancestor of i.
        """
        return self.ragged().ancestors(words)

    def near(self, width: int) -> Int32:
        """Nearest ancestors int32[T, width - 1] for a convolution of `width` taps; see
        `Ragged.near`.
        """
        return self.ragged().near(width)

    def require(self, *, max_nodes: int | None = None, max_depth: int | None = None) -> Self:
        """This tree, if it keeps to the bounds; else a `TreeError` that names the bound."""
        if max_nodes is not None and len(self) > max_nodes:
            raise error_of(
                Fault.TOO_LARGE, request=None, node=None, count=len(self), bound=max_nodes
            )
        if max_depth is not None and self.max_depth > max_depth:
            node = next(node for node, depth in enumerate(self.depth) if depth > max_depth)
            raise error_of(Fault.TOO_DEEP, request=None, node=node, bound=max_depth)
        return self

    def draw(self) -> str:
        """The tree as ASCII text, one node per line, with labels where there are any."""
        from boleir.trees.drawing import draw

        return draw(self)

    # ---- ways out --------------------------------------------------------------------

    def to_networkx(self) -> networkx.DiGraph[Any]:
        """A directed graph from parents to children; nodes are the labels if there are any, else
        the numbers.
        """
        from boleir.trees.graphs import write_graph

        return write_graph(self)

    def to_mask(self) -> NDArray[np.bool_]:
        """The ancestor-or-self mask, bool[T, T]."""
        from boleir.trees.masks import write_mask

        return write_mask(self)

    def to_paths(self) -> tuple[tuple[Hashable, ...], ...]:
        """Every node's path as node numbers; `from_paths` gives an equal tree back."""
        return tuple(self.path(node) for node in range(len(self)))

    def to_sglang(self) -> tuple[Int64, Int64, Int64]:
        """SGLang's (next_token, next_sibling, parent_token), int64[T] each; for one root only."""
        from boleir.trees.links import write_links

        return write_links(self)
