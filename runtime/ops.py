"""`verify` and `commit` as torch operators, so that `torch.compile` sees them and what they change.

Inside a compiled region `Kernel.verify` and `Kernel.commit` become one operator each, with every
tensor an argument and those that are written marked as such; their fake implementations do nothing,
because results are written into arguments. Outside, calls go straight to the kernels.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count
from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

import torch

from boleir.errors import LaunchError

if TYPE_CHECKING:
    from boleir.runtime.kernel import Kernel

_KERNELS: WeakValueDictionary[int, Kernel] = WeakValueDictionary()
_HANDLES = count()


def register(kernel: Kernel) -> int:
    """A number that stands for `kernel` in operator arguments, as long as it lives."""
    handle = next(_HANDLES)
    _KERNELS[handle] = kernel
    return handle


def _kernel(handle: int) -> Kernel:
    found = _KERNELS.get(handle)
    if found is None:
        raise LaunchError("the kernel behind this operator call no longer exists")
    return found


@torch.library.custom_op(
    "boleir::verify",
    mutates_args=("out", "scratch"),
    schema=(
        "(int kernel, Tensor[] inputs, Tensor slots, Tensor(a!)[] out, Tensor[] tree, "
        "Tensor(b!)[] scratch, Tensor[] pool) -> ()"
    ),
)
def verify(
    kernel: int,
    inputs: Sequence[torch.Tensor],
    slots: torch.Tensor,
    out: Sequence[torch.Tensor],
    tree: Sequence[torch.Tensor],
    scratch: Sequence[torch.Tensor],
    pool: Sequence[torch.Tensor],
) -> None:
    """Verification of one layer from bare tensors.

    `inputs` as the kernel's names order them; `out`: its outputs; `tree`: cu_nodes, ancestors,
    depth, near; `scratch`: the tensors of a workspace's layer; `pool`: state and window.
    """
    _kernel(kernel).verify_tensors(inputs, slots, out, tree, scratch, pool)


@torch.library.custom_op(
    "boleir::commit",
    mutates_args=("states", "windows"),
    schema=(
        "(int kernel, Tensor(a!)[] states, Tensor(b!)[] windows, Tensor[] columns, "
        "Tensor[] requests, Tensor[] tree) -> ()"
    ),
)
def commit(
    kernel: int,
    states: Sequence[torch.Tensor],
    windows: Sequence[torch.Tensor],
    columns: Sequence[torch.Tensor],
    requests: Sequence[torch.Tensor],
    tree: Sequence[torch.Tensor],
) -> None:
    """Commit of all layers from bare tensors.

    `columns`: for each layer in turn its inputs and scratch; `requests`: accepted_node, slots,
    target_slots, track_slots, track_nodes; `tree`: cu_nodes, ancestors, depth, near.
    """
    _kernel(kernel).commit_tensors(states, windows, columns, requests, tree)


@verify.register_fake
def _(*arguments: object) -> None:
    """Nothing: the outputs are an argument."""


@commit.register_fake
def _(*arguments: object) -> None:
    """Nothing: the states are an argument."""
