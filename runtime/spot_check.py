"""A compiled folder tried out on the GPU at hand: one adversarial tree against the float64 walk."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import torch

from boleir.check.check import node_errors
from boleir.check.inputs import Case, Shape, sample
from boleir.codegen.schedule import STORED_ERROR
from boleir.derive.derive import derive
from boleir.errors import CacheError, CheckError
from boleir.oracle import sequential, stored_expressions
from boleir.runtime.check_kernel import KernelUnderCheck
from boleir.trees.shapes import random

if TYPE_CHECKING:
    from boleir.codegen.interface import Interface
    from boleir.ir import Expr, Recurrence
    from boleir.oracle.values import Array
    from boleir.runtime.kernel import Kernel

FLOAT32_LIMIT = 2e-5
"""Largest error of a node when outputs are in float32."""


class SpotCheck(NamedTuple):
    """What came out: a line to print, and whether kernels ran."""

    line: str
    ran: bool


def spot_check(folder: Path, recurrence: Recurrence) -> SpotCheck:
    """Verify and commit one tree with the binaries in `folder`, if this machine can run them.

    Raises `CheckError` when the kernels are wrong.
    """
    from boleir.runtime.api import load_compiled

    if not torch.cuda.is_available():
        return SpotCheck("there is no GPU here, so the kernels were not run", False)
    try:
        kernel = load_compiled(folder)
    except CacheError as error:
        return SpotCheck(f"not run on the GPU here: {error.message}", False)
    outputs, state = errors_of(kernel, recurrence)
    face = kernel.interface
    limit = max(FLOAT32_LIMIT, torch.finfo(getattr(torch, face.out_dtype)).eps)
    device = torch.cuda.get_device_name(kernel.device)
    line = (
        f"run on {device}: worst error of a node {outputs:.1e}, of the committed state "
        f"{state:.1e} (outputs in {face.out_dtype})"
    )
    if not (outputs <= limit and state <= state_limit(face, limit)):
        raise CheckError(f"wrong kernels: {line}")
    return SpotCheck(line, True)


def state_limit(face: Interface, limit: float) -> float:
    """Largest error of a committed state, given that of outputs: unknowns that are stored in 16
    bits are rounded, and what they add up to may be smaller than they are."""
    if "unknowns" not in face.table or face.unknown_dtype == "float32":
        return limit
    return max(limit, 2 * STORED_ERROR)


def errors_of(kernel: Kernel, recurrence: Recurrence, seed: int = 0) -> tuple[float, float]:
    """Worst error of a node and of the committed state, on a random tree with collinear keys."""
    face = kernel.interface
    parents = face.parents or tuple(random(face.max_nodes, seed=seed, max_depth=face.max_depth))
    shape = Shape(face.key_heads, face.value_heads, face.d_k, face.d_v)
    case = Case(keys="cosine", log_decay=-0.03)
    drawn = sample(
        derive(recurrence), case, shape, parents=parents, seed=seed, rounding=_rounding(face.dtype)
    )
    drawn = replace(drawn, state=_rounding(face.state_dtype)(drawn.state))
    run = KernelUnderCheck(kernel)
    out = run(drawn)
    stored = None if run.mixed is None else stored_values(kernel, recurrence, run.mixed)
    outputs = 0.0
    for number, output in enumerate(out.outputs):
        walk = sequential(recurrence.with_output(number), **drawn.arguments, stored=stored)
        outputs = max(outputs, float(node_errors(output, walk.output).max()))
    assert out.state is not None
    state = walk.states[drawn.accepted]
    return outputs, float(node_errors(out.state[None], state[None])[0])


def _rounding(dtype: str) -> Callable[[Array], Array]:
    """Rounds float64 values to a format, so that the walk sees what a kernel sees."""
    kind: torch.dtype = getattr(torch, dtype)

    def rounded(values: Array) -> Array:
        found: Array = torch.as_tensor(np.ascontiguousarray(values)).to(kind).double().numpy()
        return found

    return rounded


def stored_values(kernel: Kernel, recurrence: Recurrence, mixed: torch.Tensor) -> dict[Expr, Array]:
    """Rows [nodes, channels] of convolved inputs as `kernel` kept them, as values of their
    expressions [nodes, heads, width]."""
    face, at = kernel.interface, 0
    found: dict[Expr, Array] = {}
    nodes = stored_expressions(recurrence)
    for name in face.convolved:
        item = next(x for x in face.inputs if x.name == name)
        rows = mixed[:, at : at + item.channels].double().cpu().numpy()
        found[nodes[name]] = np.reshape(rows, (len(rows), *item.shape))
        at += item.channels
    return found
