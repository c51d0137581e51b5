"""A kernel as `boleir.check` wants to run it: one request in, outputs and committed state out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch

from boleir.check.check import KernelRun
from boleir.check.inputs import Shape
from boleir.oracle import stored_expressions

if TYPE_CHECKING:
    from boleir.check.inputs import Sample
    from boleir.ir import Recurrence
    from boleir.runtime.kernel import Kernel


class KernelUnderCheck:
    """Runs samples through `verify` and `commit`. The samples' tree, shape and bounds must fit the
    kernel; its outputs should be float32, or their rounding is what the check sees."""

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self.mixed: torch.Tensor | None = None
        """Convolved inputs as the last run stored them, [nodes, channels]."""

    def __call__(self, sample: Sample) -> KernelRun:
        """Every output [T, HV, d_v] and the state after committing `sample.accepted`."""
        kernel, face = self.kernel, self.kernel.interface
        tree = kernel.tree_batch(list(sample.parents))
        pool = kernel.pool(2, 1)
        layer = pool.layer(0)
        layer.state[1] = self._tensor(sample.state.transpose(0, 2, 1), face.state_dtype)
        if layer.window is not None:
            rows = np.concatenate([sample.windows[name] for name in face.convolved])
            layer.window[1] = self._tensor(rows, face.dtype)
        slots = torch.ones(1, dtype=torch.int32, device=kernel.device)
        space = kernel.workspace(1, len(sample.parents))
        out, factors = kernel.verify(tree, self._inputs(sample), layer, slots, workspace=space)
        self.mixed = space.convolved(0)
        ends = torch.full((1,), sample.accepted, dtype=torch.int32, device=kernel.device)
        kernel.commit(factors, ends, layer, slots)
        kernel.flush(layer)
        state = layer.state[1].double().cpu().numpy().transpose(0, 2, 1)
        outs = out if len(face.outputs) > 1 else [out]
        output, *more = (one.double().cpu().numpy() for one in outs)
        return KernelRun(output, state, tuple(more))

    def _inputs(self, sample: Sample) -> dict[str, torch.Tensor]:
        face = self.kernel.interface
        found = {x.name: self._tensor(sample.inputs[x.name], face.dtype) for x in face.inputs}
        for item in face.parameters:
            # A sample has parameters per value head; key vectors are shared within a group.
            values = sample.inputs[item.name]
            own = values[:: max(1, len(values) // item.heads)]
            found[item.name] = self._tensor(own, "float32")
        if face.conv_channels:
            rows = np.concatenate([sample.weights[name] for name in face.convolved])
            found["conv_weight"] = self._tensor(rows, face.conv_dtype)
        return found

    def _tensor(self, values: Any, dtype: str) -> torch.Tensor:
        tensor = torch.as_tensor(np.ascontiguousarray(values))
        return tensor.to(device=self.kernel.device, dtype=getattr(torch, dtype))


class Runnable(NamedTuple):
    """Kernels that can run on this machine, and the samples they are made for."""

    kernels: dict[str, KernelUnderCheck]
    shape: Shape
    nodes: int
    reason: str
    """Why there are none, or empty."""


def kernels_here(recurrence: Recurrence) -> Runnable:
    """The kernels of `recurrence` on the GPU present; interpreted with TRITON_INTERPRET=1.

    None without either, and none for a recurrence that has no kernels.
    """
    from boleir.codegen.plan import NoKernel
    from boleir.runtime.api import compile
    from boleir.runtime.jit import interpreting

    shape, nodes = Shape(2, 4, 128, 96), 64
    if interpreting():
        shape, nodes = Shape(1, 2, 32, 24), 9
    elif not torch.cuda.is_available():
        return Runnable({}, shape, nodes, "there is no GPU here to run the kernels on")
    # Convolved inputs are stored like the inputs: in float32 the check sees no rounding.
    dtype = "float32" if stored_expressions(recurrence) else None
    try:
        kernel = compile(
            recurrence,
            key_heads=shape.key_heads,
            value_heads=shape.value_heads,
            d_k=shape.d_k,
            d_v=shape.d_v,
            max_nodes=nodes,
            max_depth=nodes - 1,
            dtype=dtype,
            out_dtype="float32",
        )
    except NoKernel as error:
        return Runnable({}, shape, nodes, str(error))
    place = kernel.target or "interpreted"
    return Runnable({place: KernelUnderCheck(kernel)}, shape, nodes, "")
