"""The topology step as one more kernel of a compiled folder, so that serving needs no compiler."""

from __future__ import annotations

from pathlib import Path

from boleir.codegen.kernel_spec import KernelSpec
from boleir.codegen.launch_spec import Grid

NAME = "topology"
FILE = "topology.py"
"""The kernel's source in a compiled folder."""

ARGUMENTS = ("parents", "cu_nodes", "ancestors", "depth", "near", "flags")
GRID: Grid = ("batch", "1", "1")


def topology_source() -> str:
    """The text of the module that holds the kernel."""
    return Path(__file__).with_name("topology_kernel.py").read_text(encoding="utf-8")


def topology_spec(max_nodes: int, max_depth: int, conv_width: int) -> KernelSpec:
    """The kernel for trees within these bounds and a convolution of this width (1: none)."""
    words = -(-max_nodes // 64)
    return KernelSpec(
        name=NAME,
        signature={name: "*i64" if name == "ancestors" else "*i32" for name in ARGUMENTS},
        constants={
            "MAX_NODES": max_nodes,
            "MAX_DEPTH": max_depth,
            "CONV_WIDTH": conv_width,
            "WORDS": words,
        },
        num_warps=warps_for(max_nodes, words),
        label=f"{max_nodes} nodes, depth {max_depth}",
    )


def warps_for(max_nodes: int, words: int) -> int:
    """Warps per program: two lanes per thread, at most eight warps."""
    lanes = _power_of_two(max_nodes) * _power_of_two(words)
    return min(8, max(1, lanes // 64))


def _power_of_two(size: int) -> int:
    return 1 << (size - 1).bit_length()
