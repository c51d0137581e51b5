"""boleir itself, bound to one workload."""

from __future__ import annotations

import torch

import boleir
from benchmarks.subject import Outputs
from benchmarks.workload import Workload
from boleir.codegen.schedule import Schedule
from boleir.runtime.call_records import Factors
from boleir.runtime.kernel import Kernel
from boleir.runtime.pool import PoolLayer
from boleir.runtime.tree_batch import TreeBatch
from boleir.runtime.verification import Verification

Tensor = torch.Tensor

RECURRENCES = {("gdn", True): "gdn", ("gdn", False): "gated_delta_rule", ("kda", False): "kda"}
"""By the kind of decay and whether the convolution is part of the measurement."""


class BoleirSubject:
    """Compiled kernels; verify starts from packed q | k | v and raw gates."""

    updates_in_place = False

    def __init__(
        self, work: Workload, *, full: bool, schedule: Schedule | None = None, name: str = "boleir"
    ) -> None:
        """With `schedule` instead of the default one; `name` then tells them apart."""
        self.name = name
        shape, row = work.shape, work.row
        self.work = work
        self.full = full
        self.stages = (
            ("topology", "conv", "verify", "commit") if full else ("topology", "verify", "commit")
        )
        self.kernel: Kernel = boleir.compile(
            RECURRENCES[work.kind, full],
            key_heads=shape.key_heads,
            value_heads=shape.value_heads,
            d_k=shape.d_k,
            d_v=shape.d_v,
            max_nodes=row.nodes,
            max_depth=row.depth,
            dtype=work.x.dtype,
            schedule=schedule,
            batch=row.batch,
        )
        self.trees = self._trees()
        # the harness runs one stage for all layers before the next: layers must not share rows
        self.workspace = self.kernel.workspace(row.batch, row.total_nodes, work.layers, share=False)
        windows = work.window if full else [None] * work.layers
        self.pool = [PoolLayer(s, w) for s, w in zip(work.pool, windows, strict=True)]
        self.out = work.x.new_empty(work.layers, row.total_nodes, shape.value_heads, shape.d_v)
        self.inputs = [self._inputs(layer) for layer in range(work.layers)]
        self.layer = 0
        self.factors: list[Factors] = []
        for layer in range(work.layers):
            self.prepare(layer)
            self.factors.append(self._run())
        self._split_stages()

    def _trees(self) -> TreeBatch:
        """Fixed buffers, filled from the workload's parents."""
        face, row, work = self.kernel.interface, self.work.row, self.work
        trees = TreeBatch.empty(
            row.batch, face.max_nodes, work.pool.device, face.conv_width, max_depth=face.max_depth,
            total_nodes=row.total_nodes,
        )  # fmt: skip
        trees.update(work.parents.flatten(), work.cu_nodes)
        return trees

    def _inputs(self, layer: int) -> dict[str, Tensor]:
        work = self.work
        q, k, v = work.heads((work.x if self.full else work.qkv)[layer])
        gate, bias = "a", work.dt_bias[layer]
        raw = work.a[layer]
        if work.kind == "kda":  # a gate and a bias per key channel
            heads = (work.shape.value_heads, work.shape.d_k)
            gate, raw, bias = "f", raw.view(-1, *heads), bias.view(heads)
        inputs = {
            "q": q, "k": k, "v": v, gate: raw, "b": work.b[layer],
            "A_log": work.a_log[layer], "dt_bias": bias,
        }  # fmt: skip
        if self.full:
            inputs["conv_weight"] = work.conv_weight[layer]
        return inputs

    def _run(self) -> Factors:
        _, factors = self.kernel.verify(
            self.trees,
            self.inputs[self.layer],
            self.pool[self.layer],
            self.work.slots,
            workspace=self.workspace,
            layer=self.layer,
            out=self.out[self.layer],
        )
        return factors

    def _split_stages(self) -> None:
        """Let conv() and verify() start their own kernels of a layer: they are timed apart."""
        self._whole, program = self.kernel._loaded()
        face = self.kernel.interface
        every = list(face.verifying)
        first = 1 if self.full else 0
        self._parts = {
            name: Verification(face, program, self.kernel.device, stages)
            for name, stages in (("conv", every[:first]), ("verify", every[first:]))
        }

    def _part(self, stage: str) -> None:
        """Call a part of the layer's kernels, in the kernel's own place."""
        self.kernel._verification = self._parts[stage]
        try:
            self._run()
        finally:
            self.kernel._verification = self._whole

    def prepare(self, layer: int) -> None:
        """Select the layer."""
        self.layer = layer

    def topology(self) -> None:
        """Ancestor words, depths, nearest ancestors."""
        self.trees.derive()

    def conv(self) -> None:
        """The prepare kernel: convolution, norms, gates."""
        self._part("conv")

    def verify(self) -> None:
        """The other kernels of the layer."""
        self._part("verify")

    def serve(self) -> None:
        """All kernels of the layer, in the one call that users make."""
        self._run()

    def commit(self) -> None:
        """One launch for all layers."""
        work = self.work
        self.kernel.commit(self.factors, work.accepted, self.pool, work.slots)

    def outputs(self) -> Outputs:
        """The selected layer's tensors."""
        layer, dim = self.layer, self.work.shape.packed_dim
        if not self.full:
            return Outputs(out=self.out[layer], state=self.work.pool[layer])
        return Outputs(
            out=self.out[layer],
            state=self.work.pool[layer],
            qkv=self.workspace.convolved(layer)[:, :dim],
            window=self.work.window[layer],
        )


def make(work: Workload, *, full: bool) -> BoleirSubject:
    """The entry that `benchmarks.registry` looks for."""
    return BoleirSubject(work, full=full)
