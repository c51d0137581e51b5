"""The topology step on a GPU, compiled just in time: launches `topology` of
`boleir.codegen.topology_kernel`.
"""

from __future__ import annotations

import torch

from boleir.codegen.topology import warps_for
from boleir.codegen.topology_kernel import topology


def launch_topology(
    parents: torch.Tensor,
    cu_nodes: torch.Tensor,
    ancestors: torch.Tensor,
    depth: torch.Tensor,
    near: torch.Tensor,
    flags: torch.Tensor | None,
    *,
    max_nodes: int,
    max_depth: int,
) -> None:
    """Launch `topology` on the current stream; shapes and dtypes as there, all on one GPU.

    Each pair of bounds and each width is one compiled variant. Without requests nothing is
    launched.
    """
    requests = cu_nodes.numel() - 1
    if requests == 0:
        return
    words = ancestors.shape[1]
    # Triton launches on the current device, which need not be the batch's.
    with torch.cuda.device(parents.device):
        topology[(requests,)](
            parents,
            cu_nodes,
            ancestors,
            depth,
            near,
            flags,
            MAX_NODES=max_nodes,
            MAX_DEPTH=max_depth,
            CONV_WIDTH=near.shape[1] + 1,
            WORDS=words,
            num_warps=warps_for(max_nodes, words),
        )
