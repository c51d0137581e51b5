"""Memory that verification and commit need beside inputs, pools and outputs, allocated once.

What a later commit reads (convolved inputs, stored unknowns) exists per layer; what only the
kernels of one layer hand to each other is shared by all layers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import torch

from boleir.errors import LaunchError
from boleir.runtime.pointer_table import PointerTables
from boleir.runtime.whole import count, place

if TYPE_CHECKING:
    from boleir.codegen.interface import Interface
    from boleir.runtime.tree_batch import TreeBatch


class Scratch(NamedTuple):
    """The buffers of one layer; those that a recurrence or schedule does not need are empty.

    `tensors`: mixed [nodes, kept_channels] and passing [nodes, other channels] in the activation
    dtype (inputs after convolution and activation that the commit reads or not); rows, float32
    [planes, value_heads, nodes] (gates, norms, sums of log-gates along the paths); folded (the
    solved systems of all requests and heads, in pieces); vectors, float32 (vectors times their
    path's decays, where value channels decay apart); decayed, float32 [planes, value_heads, nodes,
    d_k] and products, float32 [planes, value_heads, nodes, columns] (decays, key vectors times
    those of their paths, products of each node with its ancestors, where key channels decay apart);
    signals, int32 (launches that left factors, and those whose factors were used: only kernels may
    write them); unknowns, float32 or bfloat16 [pairs, nodes, value_heads * d_v, or d_k where
    updates act from the right].
    """

    tensors: tuple[torch.Tensor, ...]
    pointers: tuple[int, ...]
    """Their addresses."""


class Workspace:
    """Buffers for up to `max_requests` requests with `max_total_nodes` nodes altogether, in each of
    `layers` layers. One batch at a time may use them."""

    def __init__(
        self,
        face: Interface,
        max_requests: int,
        max_total_nodes: int,
        layers: int,
        device: torch.device,
        *,
        share: bool = True,
    ) -> None:
        """`share`: layers run one after the other and share what is not kept for the commit."""
        max_requests = count("max_requests", max_requests, 0)
        max_total_nodes = count("max_total_nodes", max_total_nodes, 0)
        layers = count("layers", layers, 0)
        self.face = face
        self.max_requests = max_requests
        self.max_total_nodes = max_total_nodes
        self.layers = layers
        self.device = device
        self._keeps_unknowns = "unknowns" in face.table
        """Else only blocks of one verification exchange them."""
        common = self._handed_on()
        self._scratch = []
        self._kept: list[torch.Tensor] = []
        for _ in range(layers):
            mixed = self._buffer(max_total_nodes, face.kept_channels, dtype=face.dtype)
            own = [mixed, *(self._unknowns() if self._keeps_unknowns else ())]
            tensors = (own[0], *(common if share else self._handed_on()), *own[1:])
            self._scratch.append(Scratch(tensors, tuple(t.data_ptr() for t in tensors)))
            self._kept += own
        self.nothing = torch.full((max_requests,), -1, dtype=torch.int32, device=device)
        """-1 for every request: no track slot, no track node."""
        self.tables = PointerTables(layers * len(face.table), device)
        self.prepared: dict[tuple[int, object], Any] = {}
        """By layer and `boleir.runtime.verification`: the last call, ready to be repeated."""
        self.checked: dict[tuple[object, ...], Any] = {}
        """Combinations of arguments that have been checked."""

    def _buffer(self, *shape: int, dtype: str = "float32") -> torch.Tensor:
        return torch.empty(shape, dtype=getattr(torch, dtype), device=self.device)

    def _unknowns(self) -> tuple[torch.Tensor, ...]:
        face = self.face
        width = face.value_heads * face.unknown_width
        dtype = face.unknown_dtype
        return (self._buffer(face.unknowns, self.max_total_nodes, width, dtype=dtype),)

    def _handed_on(self) -> tuple[torch.Tensor, ...]:
        """What only the kernels of one layer hand to each other, in the order of `Scratch`."""
        face, requests, nodes = self.face, self.max_requests, self.max_total_nodes
        return (
            self._buffer(nodes, face.conv_channels - face.kept_channels, dtype=face.dtype),
            self._buffer(face.planes, face.value_heads, nodes),
            self._buffer(requests, face.folded, dtype=face.folded_dtype),
            self._buffer(requests, face.vectors),
            self._buffer(face.decayed, face.value_heads, nodes, face.d_k),
            self._buffer(face.products, face.value_heads, nodes, face.columns),
            torch.zeros((requests, face.signals), dtype=torch.int32, device=self.device),
            *(() if self._keeps_unknowns else self._unknowns()),
        )

    def layer(self, index: int) -> Scratch:
        """Buffers of one layer. Raises `LaunchError` when there is none of that number."""
        return self._scratch[place("layer", index, self.layers, "workspace")]

    def convolved(self, index: int) -> torch.Tensor:
        """A copy of what one layer's last verification stored of the convolved inputs, [nodes,
        conv_channels] in the order of `face.convolved`. Of layers that share memory, only the last
        one's is whole."""
        face, (mixed, passing, *_) = self.face, self.layer(index).tensors
        at, parts = {True: 0, False: 0}, []
        for name in face.convolved:
            channels = next(item.channels for item in face.inputs if item.name == name)
            kept = name in face.kept
            rows = mixed if kept else passing
            parts.append(rows[:, at[kept] : at[kept] + channels])
            at[kept] += channels
        return torch.cat([mixed[:, :0], *parts], dim=1)

    @property
    def bytes(self) -> int:
        """Bytes of all buffers."""
        once = {id(t): t for scratch in self._scratch for t in scratch.tensors}
        return _bytes(tuple(once.values()))

    def bytes_per_node(self) -> float:
        """Bytes per node and layer that live until the commit, inputs not counted."""
        return _bytes(self._kept) / max(1, self.layers * self.max_total_nodes)


def _bytes(tensors: Sequence[torch.Tensor]) -> int:
    return sum(t.numel() * t.element_size() for t in tensors)


def check_workspace(face: Interface, workspace: Workspace, tree: TreeBatch) -> None:
    """Refuse a workspace of another kernel, place or size. Raises `LaunchError`."""
    if not isinstance(workspace, Workspace):
        raise LaunchError(
            f"workspace is a {type(workspace).__name__}", mend="use kernel.workspace(...)"
        )
    if workspace.face != face:
        raise LaunchError("workspace belongs to another kernel", mend="use kernel.workspace(...)")
    if workspace.device != tree.device:
        raise LaunchError(f"workspace lies on {workspace.device}, the trees on {tree.device}")
    for what, need, room in (
        ("requests", tree.num_requests, workspace.max_requests),
        ("nodes", tree.num_nodes, workspace.max_total_nodes),
    ):
        if need > room:
            raise LaunchError(f"workspace has room for {room} {what}, the trees have {need}")
