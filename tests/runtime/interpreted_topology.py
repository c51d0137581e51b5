"""Run in a child process under Triton's interpreter: the kernel's results as plain lists."""

from __future__ import annotations

from typing import Any

import torch

GUARD = 7
"""Rows before and behind every buffer; they must keep their fill."""
FILL = -12345


def run(cases: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Launch `topology` on every case; see `launch` for its keys."""
    return [launch(**case) for case in cases]


def launch(
    parents: list[int],
    cu_nodes: list[int],
    max_nodes: int,
    max_depth: int,
    width: int,
    words: int,
    checked: bool = True,
) -> dict[str, Any]:
    """One launch into guarded, poisoned buffers; `guards` says whether all guards survived."""
    from boleir.codegen.topology_kernel import topology

    total, requests = len(parents), len(cu_nodes) - 1
    buffers = [
        torch.full((total + 2 * GUARD, words), FILL, dtype=torch.int64),
        torch.full((total + 2 * GUARD,), FILL, dtype=torch.int32),
        torch.full((total + 2 * GUARD, width - 1), FILL, dtype=torch.int32),
        torch.full((requests + 2 * GUARD, 2), FILL, dtype=torch.int32),
    ]
    ancestors, depth, near, flags = (buffer[GUARD : len(buffer) - GUARD] for buffer in buffers)
    # Parents behind the batch's own would send a stray read somewhere else than to the root.
    held = torch.tensor([9] * GUARD + parents + [9] * GUARD, dtype=torch.int32)
    topology[(requests,)](
        held[GUARD : GUARD + total],
        torch.tensor(cu_nodes, dtype=torch.int32),
        ancestors,
        depth,
        near,
        flags if checked else None,
        MAX_NODES=max_nodes,
        MAX_DEPTH=max_depth,
        CONV_WIDTH=width,
        WORDS=words,
    )
    guards = all(
        bool((band == FILL).all())
        for buffer in buffers
        for band in (buffer[:GUARD], buffer[-GUARD:])
    )
    return {
        "ancestors": ancestors.tolist(),
        "depth": depth.tolist(),
        "near": near.tolist(),
        "flags": flags.tolist(),
        "guards": guards,
    }
