"""Trees of a whole batch from other notations, on the host: one request per graph, path list, mask,
row.

Each reader gives a `HostTrees`, the canonical encoding still to be checked as a batch. What a
reader finds wrong with one tree is reported with the request it belongs to.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np
import torch

from boleir.errors import TreeError
from boleir.trees import Tree
from boleir.trees.eagle import read_candidates
from boleir.trees.links import read_links
from boleir.trees.masks import read_mask

Labels = tuple[tuple[Hashable, ...] | None, ...]
_Source = TypeVar("_Source")


class HostTrees(NamedTuple):
    """`parents` [N], `cu_nodes` [B + 1], and the nodes' names per request where there are any."""

    parents: Any
    cu_nodes: Any
    labels: Labels | None = None


def join(rows: Sequence[Any], labels: Labels | None = None) -> HostTrees:
    """One row of parents per request, put one behind the other."""
    parents = np.concatenate([np.empty(0, np.int32), *(np.asarray(row, np.int32) for row in rows)])
    return HostTrees(parents, np.cumsum([0, *(len(row) for row in rows)]), labels)


def join_trees(trees: Iterable[Tree]) -> HostTrees:
    """One request per `Tree`, labels kept."""
    rows = list(trees)
    for request, tree in enumerate(rows):
        if not isinstance(tree, Tree):
            raise TreeError(f"expected a Tree, got {type(tree).__name__}", request=request)
    named = any(tree.labels is not None for tree in rows)
    return join([t.parents for t in rows], tuple(t.labels for t in rows) if named else None)


def join_each(sources: Iterable[_Source], read: Callable[[_Source], Tree]) -> HostTrees:
    """One request per source; a `TreeError` of `read` is raised again with the request named."""
    trees = []
    for request, source in enumerate(sources):
        try:
            trees.append(read(source))
        except TreeError as error:
            again = type(error)(error.message, request=request, mend=error.mend)
            again.node = error.node
            raise again from None
    return join_trees(trees)


def join_masks(masks: Iterable[Any]) -> HostTrees:
    """One request per boolean ancestor-or-self mask [T, T]; T may differ."""
    return join([read_mask(on_host(mask), request) for request, mask in enumerate(masks)])


def join_links(links: Sequence[Any], active: Any) -> HostTrees:
    """SGLang's (next_token, next_sibling, parent_token), each [B, T] or None."""
    table = read_links(*map(on_host, links), active=on_host(active))
    return HostTrees(table.reshape(-1), np.arange(table.shape[0] + 1) * table.shape[1])


def join_candidates(parent_lists: Iterable[Any], selected: Iterable[Any], top_k: int) -> HostTrees:
    """EAGLE's (parent_list, selected_index) per request."""
    lists, kept = list(parent_lists), list(selected)
    if len(lists) != len(kept):
        raise TreeError(f"{len(lists)} rows of parent_list, but {len(kept)} of selected_index")
    return join(
        [
            read_candidates(on_host(a), on_host(b), top_k=top_k, request=request)
            for request, (a, b) in enumerate(zip(lists, kept, strict=True))
        ]
    )


def on_host(values: Any) -> Any:
    """A tensor as a numpy array (waits for a GPU), anything else as it is."""
    if not isinstance(values, torch.Tensor):
        return values
    values = values.detach().cpu()
    # numpy has no bfloat16; the readers refuse floats of any kind by name and position.
    return (values.float() if values.dtype == torch.bfloat16 else values).numpy()


def device_of(*values: Any) -> torch.device:
    """The device of the first tensor among `values`, else torch's default device."""
    tensors = (value for value in values if isinstance(value, torch.Tensor))
    first = next(tensors, None)
    return torch.get_default_device() if first is None else first.device
