"""Trees from EAGLE's candidate table.

An EAGLE drafter expands `top_k` nodes per step with `top_k` candidates each; candidates are
numbered in the order they were drawn, in blocks of `top_k` that share a parent. `parent_list[b]` is
the candidate below which block b hangs, and `selected_index` lists the candidates that were kept.
Node 0 of the tree is the last accepted token, node i the candidate `selected_index[i - 1]`. Two
conventions exist for `parent_list` and its first entry tells which: SGLang stores candidate numbers
with -1 for the root, the original implementation candidate numbers plus one with 0 for the root.
"""

from __future__ import annotations

from typing import Any

from boleir.trees.checking import as_array, read_integers
from boleir.trees.faults import CandidateError
from boleir.trees.shapes import require_count


def read_candidates(
    parent_list: Any, selected_index: Any, *, top_k: int, request: int | None = None
) -> tuple[int, ...]:
    """Parents of the tree of selected candidates: one node more than `selected_index` has entries.

    Args:
        parent_list: [blocks] of integers, or empty when only the first block was drawn.
        selected_index: [T - 1] of distinct candidate numbers, parents before children (ascending
            does).
        top_k: candidates per block.
        request: how to name the request in messages.

    Raises:
        CandidateError: a candidate that is negative, repeated, beyond the table, or whose parent
            was not selected.
    """
    require_count("top_k", top_k, 1)
    blocks = _row(parent_list, "parent_list", request)
    selected = _row(selected_index, "selected_index", request)
    shift = _shift(blocks, request)
    node_of: dict[int, int] = {}
    parents = [-1]
    for node, candidate in enumerate(selected, 1):
        if candidate < 0 or candidate in node_of:
            what = "is negative" if candidate < 0 else f"is node {node_of[candidate]} already"
            raise CandidateError(f"candidate {candidate} {what}", request=request, node=node)
        parents.append(_parent(candidate, node, blocks, top_k, shift, node_of, selected, request))
        node_of[candidate] = node
    return tuple(parents)


def _parent(
    candidate: int,
    node: int,
    blocks: list[int],
    top_k: int,
    shift: int,
    node_of: dict[int, int],
    selected: list[int],
    request: int | None,
) -> int:
    block = candidate // top_k
    if block == 0:
        return 0
    if block >= len(blocks):
        raise CandidateError(
            f"candidate {candidate} lies in block {block}, but parent_list has {len(blocks)}",
            request=request,
            node=node,
        )
    above = blocks[block] - shift
    if above not in node_of:
        late = "comes after it" if above in selected else "was not selected"
        raise CandidateError(
            f"candidate {candidate} hangs below candidate {above}, which {late}",
            request=request,
            node=node,
        )
    return node_of[above]


def _shift(blocks: list[int], request: int | None) -> int:
    """What to subtract from an entry of `parent_list` to get a candidate number."""
    if not blocks:
        return 0
    if blocks[0] not in (-1, 0):
        raise CandidateError(
            f"parent_list starts with {blocks[0]}, expected -1 or 0 for the root", request=request
        )
    return blocks[0] + 1


def _row(values: Any, what: str, request: int | None) -> list[int]:
    array = as_array(values, what)
    if array.ndim != 1:
        raise CandidateError(f"{what} must be one row, got shape {array.shape}", request=request)
    row: list[int] = read_integers(array, what, lambda at: (request, at)).tolist()
    return row
