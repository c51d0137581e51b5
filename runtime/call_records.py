"""What a verification leaves behind: for the commit, and for the next call like it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    import torch

    from boleir.runtime.arguments import Call
    from boleir.runtime.formats import Same
    from boleir.runtime.launches import Launches
    from boleir.runtime.pool import PoolLayer
    from boleir.runtime.tree_batch import TreeBatch
    from boleir.runtime.workspace import Workspace


class Factors(NamedTuple):
    """What a commit of one layer needs from its verification. It holds references and addresses, no
    copies: inputs and workspace must stay as they are until the commit."""

    tree: TreeBatch
    workspace: Workspace
    pool_layer: PoolLayer
    layer: int
    call: Call
    pointers: tuple[int, ...]
    """This layer's row of the table that the commit reads."""
    inputs: tuple[torch.Tensor, ...]


class BoundTrees(NamedTuple):
    """A checked `TreeBatch` and its addresses (or tensors)."""

    tree: TreeBatch | None
    key: tuple[object, ...]
    requests: int
    values: list[Any]


class Checked(NamedTuple):
    """What follows from a checked combination; `held` keeps the objects whose ids are in the key
    alive, so that the ids stay theirs."""

    call: Call
    integers: tuple[int, ...]
    same: Same
    """Whether tensors (inputs, slots, out if given) have the formats that were checked."""
    held: tuple[Any, ...]


class Prepared:
    """The last call of one layer of a workspace, ready to be repeated."""

    __slots__ = (
        "addresses", "bound", "count", "fixed", "launches", "pointers", "pool_layer",
        "trees", "with_out",
    )  # fmt: skip

    trees: BoundTrees
    pool_layer: PoolLayer
    count: int
    """Number of inputs that were given."""
    with_out: bool
    bound: Checked
    addresses: tuple[int, ...]
    """Of inputs, slots and out."""
    pointers: tuple[int, ...]
    """The layer's row of the commit's table."""
    launches: Launches
    fixed: list[Any]
    """The values after these addresses; those of the trees, in front, may be outdated."""


new_factors: Callable[[type[Factors], tuple[Any, ...]], Factors] = tuple.__new__
"""`Factors` from a tuple of its fields: half a microsecond less than by its constructor."""
