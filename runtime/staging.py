"""The way of a batch of trees to the device: one copy into buffers that never move.

CUDA graphs replay with the addresses they were captured with, so the buffers are allocated once for
the largest batch. Host arrays travel through one pinned buffer in one asynchronous copy.
"""

from __future__ import annotations

import torch

from boleir.errors import LaunchError
from boleir.trees import Ragged

_ALIGN = 4  # int32 entries: keeps the parents 16-byte aligned behind cu_nodes


class TreeBuffers:
    """`parents` int32[N] and `cu_nodes` int32[B + 1] on one device, sharing one allocation.

    Unused requests are empty: the entries of `cu_nodes` behind a smaller batch repeat its total.
    """

    def __init__(self, requests: int, nodes: int, device: torch.device) -> None:
        offset = -(-(requests + 1) // _ALIGN) * _ALIGN
        self._packed = torch.zeros(offset + nodes, dtype=torch.int32, device=device)
        self.cu_nodes = self._packed[: requests + 1]
        self.parents = self._packed[offset:]
        self.parents.fill_(-1)
        self._offset = offset
        self._host = self._packed
        self._copied: torch.cuda.Event | None = None
        if device.type == "cuda":
            self._host = torch.zeros(self._packed.shape, dtype=torch.int32, pin_memory=True)
            self._copied = torch.cuda.Event()  # type: ignore[no-untyped-call]

    def write(self, ragged: Ragged) -> None:
        """Copy a checked batch that fits; asynchronous on a GPU, refused inside graph capture."""
        if self._copied is not None:
            if torch.cuda.is_current_stream_capturing():
                raise LaunchError(
                    "trees from host memory cannot be written while a CUDA graph is captured",
                    mend="update() before capture and replay; capture derive()",
                )
            # The copy of the last round reads the pinned buffer that is about to change.
            self._copied.synchronize()
        requests, nodes = ragged.cu_nodes.size - 1, ragged.parents.size
        used = self._offset + nodes
        host = self._host.numpy()
        host[: requests + 1] = ragged.cu_nodes
        host[requests + 1 : self._offset] = nodes
        host[self._offset : used] = ragged.parents
        if self._copied is not None:
            self._packed[:used].copy_(self._host[:used], non_blocking=True)
            self._copied.record(torch.cuda.current_stream(self._packed.device))

    def write_tensors(self, parents: torch.Tensor, cu_nodes: torch.Tensor) -> None:
        """Copy device tensors of at most the buffers' sizes: no check of values, no
        synchronisation.

        Values that do not fit 32 bits become ones that the topology step treats as faulty.
        """
        nodes, requests = parents.numel(), cu_nodes.numel() - 1
        self.parents[:nodes].copy_(_narrow(parents))
        self.cu_nodes[: requests + 1].copy_(_narrow(cu_nodes))
        unused = self.cu_nodes[requests + 1 :]
        unused.copy_(self.cu_nodes[requests].expand_as(unused))


def _narrow(values: torch.Tensor) -> torch.Tensor:
    limits = torch.iinfo(torch.int32)
    return values if values.dtype == torch.int32 else values.clamp(limits.min, limits.max)
