"""Reading and checking trees on the host: whatever comes in, either a sound batch or a clear error.

Everything is vectorised over the batch, so that checking 256 requests of 64 nodes costs a fraction
of a millisecond; Python loops run only on the way to an error.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from boleir.errors import TreeError
from boleir.trees.faults import (
    CycleError,
    Fault,
    NodeCountError,
    NotAnIntegerError,
    ParentOutOfRangeError,
    error_of,
)
from boleir.trees.ragged import MAX_NODES, Int32, Ragged, depths, local_numbers

Locate = Callable[[int], tuple[int | None, int | None]]


def check_trees(
    parents: Any,
    cu_nodes: Any = None,
    *,
    max_nodes: int | None = MAX_NODES,
    max_depth: int | None = None,
) -> Ragged:
    """Read and check a batch of trees.

    Args:
        parents: N whole numbers (any integer array, list or tuple), local to each request, -1 for a
            root.
        cu_nodes: B+1 whole numbers, from 0 to N, not decreasing; None means one tree and no request
            is named.
        max_nodes: bound on the nodes of one request, or None.
        max_depth: bound on the edges below a root, or None.

    Raises:
        TreeError: the subclass says what is wrong, the message names request and node.
    """
    raw = as_array(parents, "parents")
    if raw.ndim != 1:
        raise TreeError(f"parents must be one row of numbers, got shape {raw.shape}")
    cu = _read_cu_nodes(np.array([0, raw.size]) if cu_nodes is None else cu_nodes, raw.size)
    counts = np.diff(cu)
    locate = _locator(cu, named=cu_nodes is not None)
    if max_nodes is not None and counts.max(initial=0) > max_nodes:
        request = int(np.argmax(counts > max_nodes))
        name = request if cu_nodes is not None else None
        size = int(counts[request])
        raise error_of(Fault.TOO_LARGE, request=name, node=None, count=size, bound=max_nodes)
    values = read_integers(raw, "parent", locate)
    local = local_numbers(cu, counts, values.size)
    bad = (values < -1) | (values >= local)
    if bad.any():
        raise _describe(values, cu, int(np.argmax(bad)), locate)
    depth = depths(values, cu, counts)
    if max_depth is not None and depth.max(initial=0) > max_depth:
        name, node = locate(int(np.argmax(depth > max_depth)))
        raise error_of(Fault.TOO_DEEP, request=name, node=node, bound=max_depth)
    return Ragged(values, cu, depth)


def as_array(values: Any, what: str) -> NDArray[Any]:
    """`values` as an array that keeps every element as it was given: mixed lists do not turn into
    floats.
    """
    if isinstance(values, np.ndarray):
        return values
    try:
        array = np.asarray(values)
        if array.ndim == 1 and isinstance(values, (list, tuple)):
            plain = array.dtype.kind in "iu" and not {bool, np.bool_} & set(map(type, values))
            array = array if plain else np.array(values, dtype=object)
    except (TypeError, ValueError, OverflowError):
        raise TreeError(f"{what} must be an array or a list of whole numbers") from None
    return array


def read_integers(values: NDArray[Any], what: str, locate: Locate) -> Int32:
    """`values` as int32, refusing floats, NaN, bools and numbers beyond 32 bits by position.

    `what` names one value in messages; `locate` turns a flat position into request (or None) and
    node.
    """
    if values.size == 0:
        return np.empty(values.shape, np.int32)
    if values.dtype == np.int32:
        return values
    limits = np.iinfo(np.int32)
    if values.dtype.kind in "iu" and values.min() >= limits.min and values.max() <= limits.max:
        return values.astype(np.int32)
    flat = values.reshape(-1)
    first = 0
    if values.dtype.kind == "f":
        with np.errstate(invalid="ignore"):
            first = int(np.argmax(flat != np.rint(flat)))
    for position, value in enumerate(flat[first:].tolist(), first):
        request, node = locate(position)
        if not isinstance(value, (int, np.integer)) or isinstance(value, bool):
            raise NotAnIntegerError(
                f"{what} {value!r} is not a whole number", request=request, node=node
            )
        if not limits.min <= value <= limits.max:
            raise ParentOutOfRangeError(
                f"{what} {value} is out of range", request=request, node=node
            )
    return values.astype(np.int32)


def _read_cu_nodes(cu_nodes: Any, total: int) -> Int32:
    raw = as_array(cu_nodes, "cu_nodes")
    if raw.ndim != 1 or raw.size == 0:
        raise NodeCountError(
            f"cu_nodes must be one row of B+1 numbers starting with 0, got shape {raw.shape}"
        )
    cu = read_integers(raw, "cu_nodes entry", lambda position: (position, None))
    if cu[0] != 0:
        raise NodeCountError(f"cu_nodes must start with 0, got {cu[0]}")
    down = cu[1:] < cu[:-1]
    if down.any():
        request = int(np.argmax(down))
        raise NodeCountError(
            f"cu_nodes decreases from {cu[request]} to {cu[request + 1]}", request=request
        )
    if cu[-1] != total:
        raise NodeCountError(
            f"cu_nodes ends at {cu[-1]}, but there are {total} parents", request=cu.size - 2
        )
    return cu


def _locator(cu: Int32, *, named: bool) -> Locate:
    """How a flat position is named: request and local node, or only the node of a tree that stands
    alone.
    """

    def locate(position: int) -> tuple[int | None, int | None]:
        request = int(np.searchsorted(cu, position, side="right")) - 1
        return (request if named else None), position - int(cu[request])

    return locate


def _describe(parents: Int32, cu: Int32, position: int, locate: Locate) -> TreeError:
    """The error for the first parent that is out of range or not before its child."""
    request = int(np.searchsorted(cu, position, side="right")) - 1
    start, count = int(cu[request]), int(cu[request + 1] - cu[request])
    name, node = locate(position)
    parent = int(parents[position])
    if not -1 <= parent < count:
        return error_of(Fault.PARENT_RANGE, request=name, node=node, parent=parent, count=count)
    if parent == node:
        return CycleError("is its own parent", request=name, node=node)
    cycle = find_cycle(parents[start : start + count].tolist(), position - start)
    if cycle:
        path = " -> ".join(str(step) for step in [*cycle, cycle[0]])
        return CycleError(f"following parents runs in a cycle: {path}", request=name, node=node)
    return error_of(Fault.ORDER, request=name, node=node, parent=parent)


def find_cycle(parents: list[int], node: int) -> list[int]:
    """The cycle that following parents from `node` ends in, as node numbers; empty when it reaches
    a root.
    """
    seen: dict[int, int] = {}
    path: list[int] = []
    while 0 <= node < len(parents):
        if node in seen:
            return path[seen[node] :]
        seen[node] = len(path)
        path.append(node)
        node = parents[node]
    return []
