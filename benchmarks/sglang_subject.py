"""SGLang's kernels as subjects, called as its serving code calls them."""

from __future__ import annotations

import torch

from benchmarks.peers import SGLang
from benchmarks.subject import Outputs
from benchmarks.workload import Workload

Tensor = torch.Tensor
RING_LENGTH = 16
"""History entries that SGLang's chain replay keeps per request by default."""


class SGLangSerial:
    """Serial convolution and verifier with one state snapshot per node, then a scatter.

    Chains run without links, as they do there when each step proposes one candidate.
    """

    name = "sglang"
    updates_in_place = False

    def __init__(self, work: Workload, kernels: SGLang, *, full: bool) -> None:
        """With `full` the convolution runs and feeds verify, else the exact one of `work` does."""
        row, shape = work.row, work.shape
        self.work, self.kernels, self.layer = work, kernels, 0
        self.stages = ("conv", "verify", "commit", "window") if full else ("verify", "commit")
        self.rows = torch.arange(row.batch, dtype=torch.int32, device=work.x.device)
        self.parents = None if row.is_chain else work.parents.clamp(min=0)
        self.links = (None, None) if row.is_chain else (work.first_child, work.next_sibling)
        state = (shape.value_heads, shape.d_v, shape.d_k)
        self.snapshots = work.pool.new_empty(work.layers, row.batch, row.nodes, *state)
        self.windows = work.window.new_empty(
            work.layers, row.batch, row.nodes, shape.packed_dim, shape.conv_width - 1
        )
        self.qkv = [work.qkv[layer] for layer in range(work.layers)]
        self.out: list[Tensor | None] = [None] * work.layers

    def prepare(self, layer: int) -> None:
        """Select the layer."""
        self.layer = layer

    def topology(self) -> None:
        """Nothing: the convolution derives the parents in every layer."""

    def conv(self) -> None:
        """Tree convolution; also overwrites the persistent window and stores one per node."""
        work, layer = self.work, self.layer
        packed = work.x[layer].view(work.row.batch, work.row.nodes, -1).transpose(1, 2)
        first_child, next_sibling = self.links
        convolved = self.kernels.conv(
            packed,
            work.window[layer],
            work.conv_weight[layer],
            None,
            "silu",
            conv_state_indices=work.slots,
            intermediate_conv_window=self.windows[layer],
            intermediate_state_indices=self.rows,
            retrieve_next_token=first_child,
            retrieve_next_sibling=next_sibling,
            retrieve_parent_token=self.parents,
        )
        self.qkv[layer] = convolved.transpose(1, 2).view(work.row.total_nodes, -1)

    def verify(self) -> None:
        """Gates, norms and the recurrence, node after node."""
        work, layer = self.work, self.layer
        q, k, v = work.heads(self.qkv[layer].unsqueeze(0))
        self.out[layer] = self.kernels.verify(
            A_log=work.a_log[layer],
            dt_bias=work.dt_bias[layer],
            q=q,
            k=k,
            v=v,
            a=work.a[layer],
            b=work.b[layer],
            initial_state_source=work.pool[layer],
            initial_state_indices=work.slots,
            cu_seqlens=work.cu_nodes,
            use_qk_l2norm_in_kernel=True,
            softplus_beta=1.0,
            softplus_threshold=20.0,
            is_kda=work.kind == "kda",
            disable_state_update=True,
            intermediate_states_buffer=self.snapshots[layer],
            intermediate_state_indices=self.rows,
            cache_steps=work.row.nodes,
            retrieve_parent_token=self.parents,
        )

    def commit(self) -> None:
        """Copy the accepted snapshots of all layers into the pool."""
        work = self.work
        self.kernels.scatter(work.pool, self.snapshots, work.slots, work.accepted, self.rows)

    def window(self) -> None:
        """Copy the accepted windows of all layers into the pool."""
        work = self.work
        self.kernels.window_scatter(work.window, self.windows, work.slots, work.accepted, self.rows)

    def outputs(self) -> Outputs:
        """The selected layer's tensors."""
        work, layer = self.work, self.layer
        conv = "conv" in self.stages
        out = self.out[layer]
        if out is None:
            raise RuntimeError("sglang: outputs() before the first verify()")
        return Outputs(
            out=out.view(work.row.total_nodes, work.shape.value_heads, work.shape.d_v),
            state=work.pool[layer],
            qkv=self.qkv[layer] if conv else None,
            window=work.window[layer] if conv else None,
        )


class SGLangReplay:
    """The chain verifier that rebuilds outputs from a checkpoint and a ring of inputs."""

    name = "sglang-replay"
    stages = ("verify",)
    updates_in_place = False

    def __init__(self, work: Workload, kernels: SGLang) -> None:
        """Rings are empty: the checkpoint is the committed state, as the oracle assumes."""
        row, shape = work.row, work.shape
        if not row.is_chain or work.kind != "gdn":
            raise ValueError("sglang-replay verifies gdn chains only")
        self.work, self.kernels, self.layer = work, kernels, 0
        self.ring = max(RING_LENGTH, 1 << (2 * row.nodes - 1).bit_length())
        device = work.x.device
        self.rows = torch.arange(row.batch, dtype=torch.int32, device=device)

        def ring(heads: int, *width: int) -> Tensor:
            return work.x.new_zeros(work.layers, row.batch, heads, self.ring, *width)

        self.d, self.d_low = (ring(shape.value_heads, shape.d_v) for _ in range(2))
        self.k, self.k_low = (ring(shape.key_heads, shape.d_k) for _ in range(2))
        self.g = ring(shape.value_heads).float()
        self.write_pos, self.base = (torch.zeros_like(self.rows) for _ in range(2))
        self.is_flush = torch.zeros(row.batch, dtype=torch.int8, device=device)
        self.out = work.x.new_empty(work.layers, row.total_nodes, shape.value_heads, shape.d_v)

    def prepare(self, layer: int) -> None:
        """Select the layer."""
        self.layer = layer

    def topology(self) -> None:
        """Nothing to derive for a chain."""

    def conv(self) -> None:
        """Measured with the serial subject."""

    def verify(self) -> None:
        """One launch: outputs, and this window's entries of the ring."""
        work, layer = self.work, self.layer
        q, k, v = work.heads(work.qkv[layer])
        self.kernels.replay_verify(
            q=q,
            k=k,
            v=v,
            a=work.a[layer],
            b=work.b[layer],
            A_log=work.a_log[layer],
            dt_bias=work.dt_bias[layer],
            checkpoint_state=work.pool[layer],
            d_cache=self.d[layer],
            k_cache=self.k[layer],
            g_cache=self.g[layer],
            rawv_cache=self.d_low[layer],
            rawk_cache=self.k_low[layer],
            beta_cache=None,
            out=self.out[layer],
            query_start_loc=work.cu_nodes,
            ssm_state_indices=work.slots,
            replay_indices=self.rows,
            write_pos=self.write_pos,
            cache_base=self.base,
            is_flush=self.is_flush,
            max_cache_len=self.ring,
            max_spec_len=work.row.nodes,
            scale=work.shape.d_k**-0.5,
            use_qk_l2norm_in_kernel=True,
            null_block_id=-1,
            launch_mode="verify",
        )

    def commit(self) -> None:
        """Its commit moves ring cursors; the states follow every few rounds, so it is not timed."""

    def outputs(self) -> Outputs:
        """The selected layer's tensors."""
        return Outputs(out=self.out[self.layer], state=self.work.pool[self.layer])


class SGLangDecode:
    """One decode step of one token per request: what a verification round replaces."""

    name = "sglang-decode"
    stages = ("verify",)
    updates_in_place = True

    def __init__(self, work: Workload, kernels: SGLang) -> None:
        """Needs a row with one node per request."""
        if work.row.nodes != 1 or work.kind != "gdn":
            raise ValueError("sglang-decode takes gdn rows of one node per request")
        self.work, self.kernels, self.layer = work, kernels, 0
        shape = work.shape
        self.out = work.x.new_empty(work.layers, work.row.batch, 1, shape.value_heads, shape.d_v)

    def prepare(self, layer: int) -> None:
        """Select the layer."""
        self.layer = layer

    def topology(self) -> None:
        """Nothing to derive for one token."""

    def conv(self) -> None:
        """Not part of the step that is compared."""

    def verify(self) -> None:
        """Gates, norms, update and readout, with the state moved in place."""
        work, layer = self.work, self.layer
        self.kernels.decode(
            mixed_qkv=work.qkv[layer],
            a=work.a[layer],
            b=work.b[layer],
            A_log=work.a_log[layer],
            dt_bias=work.dt_bias[layer],
            scale=work.shape.d_k**-0.5,
            initial_state=work.pool[layer],
            out=self.out[layer],
            ssm_state_indices=work.slots,
            use_qk_l2norm_in_kernel=True,
        )

    def commit(self) -> None:
        """Done by the step itself."""

    def outputs(self) -> Outputs:
        """The selected layer's tensors."""
        return Outputs(out=self.out[self.layer].squeeze(1), state=self.work.pool[self.layer])
