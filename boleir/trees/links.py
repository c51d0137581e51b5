"""Trees from and to SGLang's link tensors.

An SGLang request has exactly one root, node 0. `retrieve_next_token` holds the first child of each
node and `retrieve_next_sibling` its next sibling, -1 where there is none; `retrieve_parent_token`
holds parents, except that the root's is stored as 0 (kernels there stop at node 0 instead of at
-1). Rows of requests that only pad a captured batch keep whatever links they had; they become T
roots each, a tree of no consequence that keeps the batch's layout.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from boleir.trees.checking import as_array, read_integers
from boleir.trees.faults import LinkError
from boleir.trees.ragged import Int32, Int64

if TYPE_CHECKING:
    from boleir.trees.tree import Tree

_UNREACHED = -2
_SHARED = -3


def read_link_row(next_token: Any, next_sibling: Any, parent_token: Any) -> Int32:
    """Parents int32[T] of one request; see `read_links`. Messages name no request."""
    rows = [_row(value) for value in (next_token, next_sibling, parent_token)]
    return _read(rows[0], rows[1], rows[2], None, named=False).reshape(-1)


def read_links(
    next_token: Any = None,
    next_sibling: Any = None,
    parent_token: Any = None,
    *,
    active: Any = None,
) -> Int32:
    """Parents int32[B, T] with -1 for roots.

    Give the two link tensors, the parent tensor, or all three, each [B, T] of integers. With all
    three the links decide and a contradicting parent is refused.

    Args:
        next_token: `retrieve_next_token`, the first child or -1.
        next_sibling: `retrieve_next_sibling`, the next child of the same parent or -1.
        parent_token: `retrieve_parent_token`; node 0 may hold 0 or -1.
        active: bool[B], False for padded requests, whose links are stale and not read; None when
            all are in use.

    Raises:
        LinkError: links that leave a node out, share a child, point outside or contradict the
            parents.
        TreeError: a parent that makes no tree, as for `check_trees`.
    """
    return _read(next_token, next_sibling, parent_token, active, named=True)


def write_links(tree: Tree) -> tuple[Int64, Int64, Int64]:
    """(next_token, next_sibling, parent_token) of a tree with one root, int64[T] each; children
    ascend.

    Raises:
        LinkError: there is more than one root, which SGLang's links cannot express.
    """
    if len(tree.roots) > 1:
        raise LinkError(
            "is a second root, and SGLang's links allow only node 0",
            node=tree.roots[1],
            mend="put the last accepted token above the roots",
        )
    first, following = tree.links
    parents = np.maximum(np.array(tree.parents, np.int64), 0)
    return np.array(first, np.int64), np.array(following, np.int64), parents


def _read(
    next_token: Any, next_sibling: Any, parent_token: Any, active: Any, *, named: bool
) -> Int32:
    if (next_token is None) != (next_sibling is None):
        raise LinkError("next_token and next_sibling belong together, one of them is missing")
    if next_token is None and parent_token is None:
        raise LinkError("neither links nor parents were given")
    stored = None if parent_token is None else _table(parent_token, "parent_token", named)
    if next_token is None:
        assert stored is not None
        parents = stored
    else:
        first = _table(next_token, "next_token", named)
        following = _table(next_sibling, "next_sibling", named)
        for name, table in (("next_sibling", following), ("parent_token", stored)):
            if table is not None and table.shape != first.shape:
                raise LinkError(f"{name} has shape {table.shape}, next_token {first.shape}")
        used = _active(active, first.shape[0])
        _check_range(first, "next_token", used, named)
        _check_range(following, "next_sibling", used, named)
        parents = parents_of_links(first, following)
        _refuse(
            (parents == _SHARED) & used[:, None],
            "is linked twice: as the first child or next sibling of two nodes",
            named,
        )
        _refuse(
            (parents == _UNREACHED) & used[:, None],
            "no link leads to it from node 0 (are the links stale?)",
            named,
        )
    used = _active(active, parents.shape[0])
    parents = np.where(used[:, None], parents, -1).astype(np.int32)
    _check_roots(parents, stored, used, named)
    parents[:, :1] = -1
    if stored is not None and next_token is not None:
        off = (parents != stored) & used[:, None]
        off[:, :1] = False
        _refuse(off, "parent_token contradicts the links", named)
    return parents


def parents_of_links(first: Int32, following: Int32) -> Int32:
    """Parents int32[B, T] that the links imply, without judging them.

    Node 0 gets -1, a node that no link leads to -2, a node that two links lead to -3. Links must be
    within range.
    Sibling rows are followed by pointer doubling: log2(T) rounds for any order of the siblings.
    """
    batch, nodes = first.shape
    row, node = np.nonzero(first >= 0)
    parents = np.full((batch, nodes), _UNREACHED, np.int32)
    parents[row, first[row, node]] = node
    arrivals = np.zeros((batch, nodes), np.int32)
    np.add.at(arrivals, (row, first[row, node]), 1)
    row, node = np.nonzero(following >= 0)
    head = np.broadcast_to(np.arange(nodes), (batch, nodes)).copy()
    head[row, following[row, node]] = node
    np.add.at(arrivals, (row, following[row, node]), 1)
    for _ in range(max(1, nodes - 1).bit_length()):
        head = np.take_along_axis(head, head, axis=1)
    parents = np.take_along_axis(parents, head, axis=1)
    parents[arrivals > 1] = _SHARED
    if nodes:
        parents[:, 0] = np.where(arrivals[:, 0] > 0, _SHARED, -1)
    return parents


def _check_roots(
    parents: Int32, stored: Int32 | None, used: NDArray[np.bool_], named: bool
) -> None:
    """Only node 0 may be a root, and it must be stored as one."""
    if stored is not None and stored.shape[1]:
        bad = used & (stored[:, 0] != 0) & (stored[:, 0] != -1)
        if bad.any():
            request = int(np.argmax(bad))
            raise LinkError(
                f"the root's parent is stored as {stored[request, 0]}, expected 0 or -1",
                request=request if named else None,
                node=0,
            )
    loose = (parents == -1) & used[:, None]
    loose[:, :1] = False
    _refuse(loose, "is a second root, and SGLang's links allow only node 0", named)


def _check_range(table: Int32, name: str, used: NDArray[np.bool_], named: bool) -> None:
    nodes = table.shape[1]
    bad = ((table < -1) | (table >= nodes)) & used[:, None]
    if bad.any():
        request, node = (int(x) for x in np.argwhere(bad)[0])
        raise LinkError(
            f"{name} {table[request, node]} is out of range, expected -1 up to {nodes - 1}",
            request=request if named else None,
            node=node,
        )
    # Stale links of padded rows must not index outside the table.
    table[~used] = -1


def _refuse(bad: NDArray[np.bool_], message: str, named: bool) -> None:
    if bad.any():
        request, node = (int(x) for x in np.argwhere(bad)[0])
        raise LinkError(message, request=request if named else None, node=node)


def _row(value: Any) -> Any:
    if value is None:
        return None
    array = as_array(value, "links")
    if array.ndim != 1:
        raise LinkError(f"expected one row of links, got shape {array.shape}")
    return array[None]


def _table(value: Any, name: str, named: bool) -> Int32:
    array = as_array(value, name)
    if array.ndim != 2:
        raise LinkError(f"{name} must have shape [requests, nodes], got {array.shape}")
    nodes = max(1, array.shape[1])
    values = read_integers(array, name, lambda at: (at // nodes if named else None, at % nodes))
    return np.array(values, np.int32)


def _active(active: Any, batch: int) -> NDArray[np.bool_]:
    if active is None:
        return np.ones(batch, np.bool_)
    array = np.asarray(active)
    if array.shape != (batch,) or array.dtype != np.bool_:
        raise LinkError(f"active must be bool[{batch}], got {array.dtype}{list(array.shape)}")
    return array
