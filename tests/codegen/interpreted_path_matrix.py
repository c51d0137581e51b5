"""Run in child processes: matrices of ancestors, unpacked by a kernel that does nothing else."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import torch

import boleir
from boleir.codegen.compile_worker import load_module
from boleir.codegen.emit.context import Context
from boleir.codegen.emit.frame import Frame
from boleir.codegen.emit.path_matrix import path_matrix
from boleir.codegen.emit.writer import Writer
from boleir.codegen.launch_spec import Grid
from boleir.codegen.pipeline import lower
from boleir.codegen.request import Shapes

MARGIN = 3
"""Rows before the request, so that no word is where its number says."""


def _kernel(size: int, dtype: str, parents: tuple[int, ...] | None) -> str:
    shapes = Shapes(1, 1, 16, 16, size, size - 1, parents=parents)
    lowered = lower(boleir.load("gated_delta_rule"), shapes)
    assert lowered.schedule.node_block == size
    writer = Writer()
    frame = Frame(Context(lowered.plan, lowered.shapes, lowered.schedule), writer)
    writer.let("request", "tl.program_id(0)")
    frame.node_range()
    path_matrix(frame, "mask", dtype)
    writer.let("node", "tl.arange(0, NODE_BLOCK)")
    at = f"{writer.arg('matrix', '*fp32')} + node[:, None] * NODE_BLOCK + node[None, :]"
    writer.line(f"tl.store({at}, mask.to(tl.float32))")
    constants = f"NODE_BLOCK = tl.constexpr({size})\nMAX_NODES = tl.constexpr({size})\n"
    text = writer.kernel("unpack", "One matrix.", Grid(()), warps=4).text
    return f"import triton\nimport triton.language as tl\n{constants}\n{text}"


def wrong(size: int, count: int, dtype: str, chain: bool) -> int:
    """How many entries of the matrix of a request of `count` nodes, with any bits in the words of
    its nodes and of those around it, are not as the bits say."""
    text = _kernel(size, dtype, tuple(range(-1, size - 1)) if chain else None)
    words = np.random.default_rng(size).integers(-(2**63), 2**63, MARGIN + 2 * size)
    matrix = torch.full((size, size), torch.nan)
    limits = torch.tensor([MARGIN, MARGIN + count], dtype=torch.int32)
    with tempfile.TemporaryDirectory() as scratch:
        unpack = load_module(text, Path(scratch), {}).unpack
        arguments = {"cu_nodes": limits, "ancestors": torch.from_numpy(words), "matrix": matrix}
        unpack[(1,)](**{x: y for x, y in arguments.items() if x in unpack.arg_names})
    node = np.arange(size)
    bits = words[MARGIN : MARGIN + size, None] >> node & 1
    expected = np.where(node[:, None] < count, node[:, None] >= node if chain else bits, 0)
    return int((matrix.numpy() != expected).sum())
