"""Which code derives a batch's topology, and what its report means.

The step runs once per round. On a GPU it is the Triton kernel, compiled just in time or out of a
compiled folder; on the CPU it is plain torch. All of them write the same bits.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Protocol

import torch

from boleir.codegen.topology import ARGUMENTS
from boleir.errors import TreeError
from boleir.trees import Fault
from boleir.trees.faults import error_of

if TYPE_CHECKING:
    from boleir.runtime.program import Program


class Step(Protocol):
    """Anything that derives `ancestors`, `depth`, `near` and `flags` from `parents` and `cu_nodes`.

    It must run on the current stream without waiting and write every row of every request; shapes
    and dtypes are those of `TreeBatch`.
    """

    def __call__(
        self,
        parents: torch.Tensor,
        cu_nodes: torch.Tensor,
        ancestors: torch.Tensor,
        depth: torch.Tensor,
        near: torch.Tensor,
        flags: torch.Tensor,
        /,
    ) -> None: ...


def default_step(device: torch.device, *, max_nodes: int, max_depth: int) -> Step:
    """The step for a device, bound to its node and depth bound; imports Triton only for a GPU."""
    if device.type == "cuda":
        from boleir.runtime.topology import launch_topology

        return functools.partial(launch_topology, max_nodes=max_nodes, max_depth=max_depth)
    from boleir.runtime.topology_torch import derive_topology

    return functools.partial(derive_topology, max_nodes=max_nodes, max_depth=max_depth)


class CompiledStep:
    """The topology kernel of a compiled folder, for trees within the bounds it was compiled for."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._start = program.bind("topology", ARGUMENTS)

    def __call__(
        self,
        parents: torch.Tensor,
        cu_nodes: torch.Tensor,
        ancestors: torch.Tensor,
        depth: torch.Tensor,
        near: torch.Tensor,
        flags: torch.Tensor,
        /,
    ) -> None:
        """See `Step`."""
        tensors = (parents, cu_nodes, ancestors, depth, near, flags)
        values = [tensor.data_ptr() for tensor in tensors]
        if self._program.on_device():
            self._start(cu_nodes.numel() - 1, 1, values)
            return
        with torch.cuda.device(parents.device):
            self._start(cu_nodes.numel() - 1, 1, values)


def first_fault(
    flags: torch.Tensor,
    parents: torch.Tensor,
    cu_nodes: torch.Tensor,
    *,
    max_nodes: int,
    max_depth: int,
) -> TreeError | None:
    """The error for the first request that the step flagged, or None; waits for the GPU."""
    report = flags.cpu()
    faulty = torch.nonzero(report[:, 0])
    if not faulty.numel():
        return None
    request = int(faulty[0])
    fault, node = Fault(int(report[request, 0])), int(report[request, 1])
    start, stop = cu_nodes[request : request + 2].tolist()
    if fault in (Fault.TOO_LARGE, Fault.SPAN):
        return error_of(fault, request=request, node=None, count=stop - start, bound=max_nodes)
    parent = int(parents[start + node])
    count = stop - start
    return error_of(fault, request=request, node=node, parent=parent, count=count, bound=max_depth)
