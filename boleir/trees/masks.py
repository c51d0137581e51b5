"""Trees from and to boolean ancestor masks, the form that attention kernels take."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from boleir.trees.faults import NotATreeMaskError
from boleir.trees.ragged import Int32

if TYPE_CHECKING:
    from boleir.trees.tree import Tree


def read_mask(mask: Any, request: int | None = None) -> Int32:
    """Parents int32[T] of the tree whose ancestor-or-self mask is `mask`.

    The parent of a node is its latest strict ancestor, and its row must be its parent's row with
    itself added; anything else is no tree.

    Args:
        mask: [T, T] of bools or of the integers 0 and 1; entry (i, j) is set iff j is i or an
            ancestor of i.
        request: how to name the mask in messages.

    Raises:
        NotATreeMaskError: names request, node and what is wrong.
    """
    rows = _read_bools(mask, request)
    nodes = rows.shape[0]
    strict = np.tril(rows, -1)
    _refuse_first(~np.diagonal(rows), "is not set as its own ancestor (the diagonal)", request)
    _refuse_first(
        np.triu(rows, 1).any(1), "has an ancestor that comes after it: parents come first", request
    )
    latest = nodes - 1 - np.argmax(strict[:, ::-1], axis=1) if nodes else np.empty(0, np.int64)
    parents = np.where(strict.any(1), latest, -1)
    above = np.where((parents >= 0)[:, None], rows[parents], False)
    _refuse_first(
        (above != strict).any(1), "does not have exactly the ancestors of its nearest one", request
    )
    return parents.astype(np.int32)


def write_mask(tree: Tree) -> NDArray[np.bool_]:
    """The ancestor-or-self mask bool[T, T] of a tree."""
    nodes = len(tree)
    mask = np.eye(nodes, dtype=np.bool_)
    for node, parent in enumerate(tree.parents):
        if parent >= 0:
            mask[node] |= mask[parent]
    return mask


def _read_bools(mask: Any, request: int | None) -> NDArray[np.bool_]:
    try:
        array = np.asarray(mask)
    except (TypeError, ValueError):
        raise NotATreeMaskError("the mask is no array of bools", request=request) from None
    if array.size == 0:
        return np.empty((0, 0), np.bool_)
    if array.ndim != 2 or array.shape[0] != array.shape[1]:
        raise NotATreeMaskError(f"the mask has shape {array.shape}, not [T, T]", request=request)
    if array.dtype != np.bool_:
        if array.dtype.kind not in "iu" or not np.isin(array, (0, 1)).all():
            raise NotATreeMaskError(
                f"the mask holds {array.dtype} values other than 0 and 1"
                if array.dtype.kind in "iu"
                else f"the mask holds {array.dtype} values, expected bools",
                request=request,
                mend="pass mask == 0 for an additive mask of zeros and -inf",
            )
        array = array.astype(np.bool_)
    return array


def _refuse_first(bad: ArrayLike, message: str, request: int | None) -> None:
    """Raise for the first node that `bad`, bool[T], marks."""
    if np.any(bad):
        raise NotATreeMaskError(message, request=request, node=int(np.argmax(bad)))
