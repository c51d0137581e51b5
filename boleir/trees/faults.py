"""What can be wrong with a proposal tree: one code and one error class per fault.

The host check, the device check and the adapters all speak through this table, so that the same bad
tree is described in the same words wherever it is caught. A device kernel can only store a number;
`error_of` turns it into the error.
"""

from __future__ import annotations

from enum import IntEnum

from boleir.errors import TreeError


class Fault(IntEnum):
    """A fault as the number that a device flag holds; the smaller number wins when a node has
    several.
    """

    NONE = 0
    PARENT_RANGE = 1
    """The parent is below -1 or not below the number of nodes of the request."""
    ORDER = 2
    """The parent does not come before the node (a cycle always has such a node)."""
    TOO_DEEP = 3
    """More edges above the node than the depth bound allows."""
    TOO_LARGE = 4
    """The request has more nodes than the bound allows."""
    SPAN = 5
    """`cu_nodes` decreases or reaches beyond the nodes there are."""


class ParentOutOfRangeError(TreeError):
    """A parent is neither -1 nor the number of a node of the same request."""


class ChildBeforeParentError(TreeError):
    """A parent does not come before its child, though the tree has no cycle: the nodes want
    sorting.
    """


class CycleError(TreeError):
    """Following parents never ends."""


class TreeTooDeepError(TreeError):
    """A node lies deeper than the depth bound."""


class TreeTooLargeError(TreeError):
    """A request has more nodes than the bound."""


class NodeCountError(TreeError):
    """`cu_nodes` does not describe the requests: wrong start, decreasing, or not ending at the
    number of nodes.
    """


class NotAnIntegerError(TreeError):
    """A value that must be a whole number is a float, NaN, a bool, None or something else."""


class TwoParentsError(TreeError):
    """A node of a graph has more than one parent."""


class NotATreeMaskError(TreeError):
    """A boolean matrix is no ancestor-or-self mask of any tree."""


class LinkError(TreeError):
    """First-child, next-sibling or parent links contradict each other or leave a node out."""


class CandidateError(TreeError):
    """EAGLE's candidate table does not describe a tree."""


class PathError(TreeError):
    """A list of paths does not describe a tree."""


_CLASSES: dict[Fault, type[TreeError]] = {
    Fault.PARENT_RANGE: ParentOutOfRangeError,
    Fault.ORDER: ChildBeforeParentError,
    Fault.TOO_DEEP: TreeTooDeepError,
    Fault.TOO_LARGE: TreeTooLargeError,
    Fault.SPAN: NodeCountError,
}


def error_of(
    fault: Fault,
    *,
    request: int | None,
    node: int | None,
    parent: int | None = None,
    count: int | None = None,
    bound: int | None = None,
) -> TreeError:
    """The error that describes `fault`.

    Args:
        fault: what is wrong; not `NONE`.
        request: the request concerned, or None when the tree stands alone.
        node: the node concerned, local to the request, or None when the whole request is meant.
        parent: the parent stored for `node`, when it is known.
        count: how many nodes the request has, when it is known.
        bound: the node or depth bound that was exceeded, when it is known.
    """
    shown = "its parent" if parent is None else f"parent {parent}"
    mend: str | None = None
    if fault is Fault.PARENT_RANGE:
        last = "the last node of the request" if count is None else str(count - 1)
        message = f"{shown} is out of range, expected -1 (a root) up to {last}"
    elif fault is Fault.ORDER:
        message = f"{shown} does not come before its child"
        mend = "number the nodes so that every parent comes before its children"
    elif fault is Fault.TOO_DEEP:
        message = f"lies deeper than the bound of {bound} edges below a root"
    elif fault is Fault.TOO_LARGE:
        has = "more nodes" if count is None else f"{count} nodes, more"
        message = f"has {has} than the bound of {bound}"
    else:
        message = "cu_nodes decreases or reaches beyond the nodes there are"
    return _CLASSES[fault](message, request=request, node=node, mend=mend)
