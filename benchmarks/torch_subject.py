"""The user without a library: plain torch, one level of the trees after the other."""

from __future__ import annotations

import torch
from torch.nn import functional

from benchmarks.oracle import NORM_EPS
from benchmarks.subject import Outputs
from benchmarks.trees import depths
from benchmarks.workload import Workload

Tensor = torch.Tensor


class TorchSubject:
    """Level-by-level verification in fp32 with one state snapshot per node."""

    name = "torch"
    updates_in_place = False

    def __init__(self, work: Workload, *, full: bool) -> None:
        """With `full`, verify reads what conv wrote, else the workload's exact convolution."""
        row, shape = work.row, work.shape
        self.work = work
        self.layer = 0
        self.stages = ("conv", "verify", "commit") if full else ("verify", "commit")
        self.qkv = torch.empty_like(work.qkv) if full else work.qkv
        self.out = work.x.new_empty(work.layers, row.total_nodes, shape.value_heads, shape.d_v)
        # Row 0 of a request is its committed state, row 1 + i that of node i.
        state = (shape.value_heads, shape.d_v, shape.d_k)
        self.snapshots = work.pool.new_empty(work.layers, row.batch, row.nodes + 1, *state)
        self.request = torch.arange(row.batch, device=work.pool.device)
        self.slots = work.slots.long()
        self.taps = work.taps.flatten(1)
        self.levels = self._levels()

    def _levels(self) -> list[tuple[Tensor, Tensor, Tensor]]:
        """Per depth: requests, local nodes, local parents (-1 for a root)."""
        rows: dict[int, list[tuple[int, int, int]]] = {}
        for request, tree in enumerate(self.work.trees):
            for node, (depth, above) in enumerate(zip(depths(tree), tree, strict=True)):
                rows.setdefault(int(depth), []).append((request, node, int(above)))
        columns = (torch.tensor(rows[depth], device=self.out.device) for depth in sorted(rows))
        return [(level[:, 0], level[:, 1], level[:, 2]) for level in columns]

    def prepare(self, layer: int) -> None:
        """Select the layer."""
        self.layer = layer

    def topology(self) -> None:
        """Nothing: the level lists belong to the constructor here."""

    def conv(self) -> None:
        """Gather the taps of every node and reduce them."""
        work, row, layer = self.work, self.work.row, self.layer
        packed = work.x[layer].unflatten(0, (row.batch, row.nodes))
        rows = torch.cat([work.window[layer, self.slots].transpose(1, 2), packed], dim=1)
        picked = rows.gather(1, self.taps[..., None].expand(-1, -1, rows.shape[2]))
        picked = picked.unflatten(1, (row.nodes, work.shape.conv_width)).float()
        total = torch.einsum("btwc,cw->btc", picked, work.conv_weight[layer].flip(1).float())
        self.qkv[layer] = functional.silu(total).flatten(0, 1)

    def verify(self) -> None:
        """One batched update per tree level."""
        work, layer = self.work, self.layer
        q, k, v, decay, beta = self._node_inputs()
        snapshots = self.snapshots[layer]
        snapshots[:, 0] = work.pool[layer, self.slots]
        for request, node, above in self.levels:
            row = request * work.row.nodes + node
            state = snapshots[request, above + 1] * decay[row]
            key = k[row].unsqueeze(-1)
            u = beta[row] * (v[row].unsqueeze(-1) - state @ key)
            state = state + u * key.transpose(-1, -2)
            snapshots[request, node + 1] = state
            self.out[layer, row] = (state @ q[row].unsqueeze(-1)).squeeze(-1).to(self.out.dtype)

    def _node_inputs(self) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
        """Normalised q, k, fp32 v, and the gates with axes ready to multiply a state."""
        work, shape, layer = self.work, self.work.shape, self.layer
        q, k, v = (part.float() for part in work.heads(self.qkv[layer]))
        group = shape.value_heads // shape.key_heads
        q = q * (q.square().sum(-1, keepdim=True) + NORM_EPS).rsqrt() * shape.d_k**-0.5
        k = k * (k.square().sum(-1, keepdim=True) + NORM_EPS).rsqrt()
        q, k = q.repeat_interleave(group, dim=1), k.repeat_interleave(group, dim=1)
        softplus = functional.softplus(work.a[layer].float() + work.dt_bias[layer])
        rate = -work.a_log[layer].exp()
        softplus = softplus.unflatten(-1, (shape.value_heads, -1))
        decay = (rate[:, None] * softplus).exp().unsqueeze(-2)
        beta = work.b[layer].float().sigmoid()[..., None, None]
        return q, k, v, decay, beta

    def commit(self) -> None:
        """Copy the accepted snapshots, and the windows where the convolution was measured too."""
        work = self.work
        node = work.accepted.long() + 1
        work.pool[:, self.slots] = self.snapshots[:, self.request, node]
        if "conv" in self.stages:
            row, width = work.row, work.shape.conv_width
            picked = work.taps[self.request, work.accepted.long(), : width - 1].flip(1)
            packed = work.x.unflatten(1, (row.batch, row.nodes))
            rows = torch.cat([work.window[:, self.slots].transpose(2, 3), packed], dim=2)
            window = rows[:, self.request[:, None], picked]
            work.window[:, self.slots] = window.transpose(2, 3)

    def outputs(self) -> Outputs:
        """The selected layer's tensors."""
        layer = self.layer
        conv = "conv" in self.stages
        return Outputs(
            out=self.out[layer],
            state=self.work.pool[layer],
            qkv=self.qkv[layer] if conv else None,
            window=self.work.window[layer] if conv else None,
        )
