"""fla-core's gated delta rule as a chain verifier: outputs only, no state is kept."""

from __future__ import annotations

from typing import Literal

import torch

from benchmarks.peers import Fla
from benchmarks.subject import Outputs
from benchmarks.workload import Workload

Tensor = torch.Tensor


class FlaChain:
    """The recurrent or the chunked kernel, given the contiguous layouts that it prefers.

    It knows no slots, so the states are gathered into request order before the clock starts.
    """

    stages = ("verify",)
    updates_in_place = False

    def __init__(self, work: Workload, kernels: Fla, form: Literal["recurrent", "chunk"]) -> None:
        """`form` picks the kernel."""
        row = work.row
        if not row.is_chain or work.kind != "gdn":
            raise ValueError("fla verifies gdn chains only")
        self.name = f"fla-{form}"
        self.work, self.layer = work, 0
        self.kernel = kernels.recurrent if form == "recurrent" else kernels.chunk
        packed = work.qkv.unflatten(1, (row.batch, row.nodes))
        self.q, self.k, self.v = (part.contiguous() for part in work.heads(packed))
        self.a = work.a.unflatten(1, (row.batch, row.nodes))
        self.b = work.b.unflatten(1, (row.batch, row.nodes))
        self.states = work.initial_pool[:, work.slots.long()].contiguous()
        self.out: list[Tensor | None] = [None] * work.layers

    def prepare(self, layer: int) -> None:
        """Select the layer."""
        self.layer = layer

    def topology(self) -> None:
        """Nothing to derive for a chain."""

    def conv(self) -> None:
        """Not part of this library's rule."""

    def verify(self) -> None:
        """Gates, norms and outputs in one call."""
        layer = self.layer
        with torch.no_grad():
            self.out[layer], _ = self.kernel(
                self.q[layer],
                self.k[layer],
                self.v[layer],
                g=self.a[layer],
                beta=self.b[layer],
                initial_state=self.states[layer],
                output_final_state=False,
                use_qk_l2norm_in_kernel=True,
                use_gate_in_kernel=True,
                A_log=self.work.a_log[layer],
                dt_bias=self.work.dt_bias[layer],
                use_beta_sigmoid_in_kernel=True,
                state_v_first=True,
            )

    def commit(self) -> None:
        """No state is kept."""

    def outputs(self) -> Outputs:
        """The selected layer's tensors."""
        out = self.out[self.layer]
        if out is None:
            raise RuntimeError(f"{self.name}: outputs() before the first verify()")
        return Outputs(out=out.flatten(0, 1), state=self.work.pool[self.layer])
