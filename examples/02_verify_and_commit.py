"""Verify two proposal trees at once and commit what was accepted, like one step of a server.

Two requests with trees of their own go through one layer of Gated DeltaNet. The example accepts a
path of each, commits it, and compares with decoding the accepted tokens one after the other; it
also counts the memory that per-node snapshots of the state would have taken. Without a GPU the
kernels are interpreted on the CPU, on smaller shapes.

    python examples/02_verify_and_commit.py
"""

from __future__ import annotations

import os

import torch

GPU = torch.cuda.is_available()
if not GPU:
    os.environ.setdefault("TRITON_INTERPRET", "1")

import boleir as bole  # noqa: E402
from boleir.runtime.kernel import Kernel  # noqa: E402
from boleir.runtime.pool import SlotContent  # noqa: E402

SIZES = (
    {"key_heads": 16, "value_heads": 32, "d_k": 128, "d_v": 128}
    if GPU
    else {"key_heads": 1, "value_heads": 2, "d_k": 32, "d_v": 16}
)

TREES = [[-1, 0, 0, 1, 1, 2, 3], [-1, 0, 1, 0]]
"""Per request the parent of each node, -1 for a root: its parent is the committed state."""
ACCEPTED = [6, 2]
"""The last accepted node of each request."""


def main() -> None:
    """Run the example."""
    kernel = bole.compile("gdn", max_nodes=16, max_depth=5, **SIZES)
    print(kernel)
    parents = [parent for tree in TREES for parent in tree]
    starts = [0, len(TREES[0]), len(parents)]
    tree = kernel.tree_batch(parents, starts)
    for request, one in enumerate(tree.trees()):
        print(f"\nrequest {request}:\n{one.draw()}")

    torch.manual_seed(0)
    inputs = random_inputs(kernel, len(parents))
    pool = kernel.pool(slots=8, layers=1)
    slots = torch.tensor([5, 2], dtype=torch.int32, device=kernel.device)
    for slot in slots.tolist():
        pool.write(slot, torch.randn_like(pool.read(slot).states))
    before = {slot: pool.read(slot) for slot in slots.tolist()}

    workspace = kernel.workspace(max_requests=2, max_total_nodes=16, layers=1)
    out, factors = kernel.verify(tree, inputs, pool.layer(0), slots, workspace=workspace)
    print(f"outputs of all {len(parents)} nodes: {list(out.shape)}, states untouched")

    accepted = torch.tensor(ACCEPTED, dtype=torch.int32, device=kernel.device)
    kernel.commit(factors, accepted, pool, slots)

    for request, slot in enumerate(slots.tolist()):
        path = path_of(TREES[request], ACCEPTED[request])
        rows = [starts[request] + node for node in path]
        steps, state = decode(kernel, inputs, rows, before[slot])
        error = (out[rows].float() - steps).norm() / steps.norm()
        drift = (pool.read(slot).states - state).norm() / state.norm()
        print(
            f"request {request}, path {path}: outputs differ from decoding token by token "
            f"by {error:.1e}, the committed state by {drift:.1e}"
        )
    snapshot = pool.layer(0).state[0].numel() * 4
    print(
        f"kept per node until the commit: {workspace.bytes_per_node() / 1024:.1f} KiB beside the "
        f"inputs; a snapshot of the state: {snapshot / 1024:.0f} KiB"
    )


def random_inputs(kernel: Kernel, tokens: int) -> dict[str, torch.Tensor]:
    """Token inputs, parameters and convolution weights as a model would provide them."""
    face, device = kernel.interface, kernel.device
    dtype = getattr(torch, face.dtype)
    found = {x.name: torch.randn(tokens, *x.shape).to(device, dtype) for x in face.inputs}
    found |= {x.name: 0.5 * torch.randn(x.shape).to(device) for x in face.parameters}
    taps = torch.randn(face.conv_channels, face.conv_width) / 2
    found["conv_weight"] = taps.to(device, getattr(torch, face.conv_dtype))
    return found


def path_of(tree: list[int], node: int) -> list[int]:
    """Nodes from the root to `node`."""
    path: list[int] = []
    while node >= 0:
        path.insert(0, node)
        node = tree[node]
    return path


def decode(
    kernel: Kernel, inputs: dict[str, torch.Tensor], rows: list[int], start: SlotContent
) -> tuple[torch.Tensor, torch.Tensor]:
    """The same tokens one by one, each a tree of one node: outputs and the last state."""
    pool = kernel.pool(slots=1, layers=1)
    pool.write(0, *start)
    slots = torch.zeros(1, dtype=torch.int32, device=kernel.device)
    single = kernel.tree_batch([-1])
    tokens = {item.name for item in kernel.interface.inputs}
    steps = []
    for row in rows:
        given = {n: x[row : row + 1].clone() if n in tokens else x for n, x in inputs.items()}
        out, factors = kernel.verify(single, given, pool.layer(0), slots)
        kernel.commit(factors, slots, pool, slots)
        steps.append(out[0].float())
    return torch.stack(steps), pool.read(0).states


if __name__ == "__main__":
    main()
