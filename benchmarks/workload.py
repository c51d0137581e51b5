"""The tensors of one measured case: the same memory for boleir, its peers and the oracle."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from benchmarks import oracle
from benchmarks.serving_shapes import Kind, LayerShape, Row
from benchmarks.trees import Tree, child_sibling_links, deepest_node, tree_batch

Tensor = torch.Tensor


@dataclass(frozen=True, slots=True)
class Workload:
    """Distinct inputs and states for `layers` layers of one shape; N = batch * nodes.

    Every layer tensor has the layer as its first axis. `dim` = 2 key_heads d_k + value_heads d_v.
    """

    shape: LayerShape
    row: Row
    kind: Kind
    layers: int
    trees: list[Tree]
    parents: Tensor
    """int32 `[batch, nodes]`, local to the request, -1 for the root."""
    cu_nodes: Tensor
    """int32 `[batch + 1]`."""
    first_child: Tensor
    """int32 `[batch, nodes]`, -1 where there is none; `next_sibling` likewise."""
    next_sibling: Tensor
    taps: Tensor
    """int64 `[batch, nodes, conv_width]`, see `oracle.tap_index`."""
    slots: Tensor
    """int32 `[batch]`: rows of `pool` and `window`, out of order, never 0."""
    accepted: Tensor
    """int32 `[batch]`: local index of the last accepted node, the deepest of its tree."""
    x: Tensor
    """`[layers, N, dim]`, the packed projection before the convolution, activation dtype."""
    qkv: Tensor
    """`[layers, N, dim]`, the exact convolution of `x`, rounded to the activation dtype."""
    a: Tensor
    """`[layers, N, HV]` (gdn) or `[layers, N, HV * d_k]` (kda), activation dtype."""
    b: Tensor
    """`[layers, N, HV]`, activation dtype."""
    a_log: Tensor
    """fp32 `[layers, HV]`."""
    dt_bias: Tensor
    """fp32 `[layers, HV]` (gdn) or `[layers, HV * d_k]` (kda)."""
    conv_weight: Tensor
    """`[layers, dim, conv_width]`, activation dtype, last column for the node itself."""
    window: Tensor
    """`[layers, batch + 1, dim, conv_width - 1]`, activation dtype, oldest entry first."""
    pool: Tensor
    """fp32 `[layers, batch + 1, HV, d_v, d_k]`."""
    initial_window: Tensor
    """What `window` held at first: commits and some peers overwrite it."""
    initial_pool: Tensor
    """What `pool` held at first."""

    def heads(self, packed: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Views q, k `[..., key_heads, d_k]` and v `[..., value_heads, d_v]` of packed channels."""
        shape = self.shape
        q, k, v = packed.split([shape.key_dim, shape.key_dim, shape.value_dim], dim=-1)
        return (
            q.unflatten(-1, (shape.key_heads, shape.d_k)),
            k.unflatten(-1, (shape.key_heads, shape.d_k)),
            v.unflatten(-1, (shape.value_heads, shape.d_v)),
        )


def layer_count(shape: LayerShape, row: Row, l2_bytes: int, at_least: int = 8) -> int:
    """Layers whose states and inputs together are at least three times the L2 cache."""
    state = row.batch * shape.state_elements * 4
    inputs = row.total_nodes * (shape.packed_dim + shape.value_dim + 2 * shape.value_heads) * 2
    return max(at_least, -(-3 * l2_bytes // (state + inputs)))


def make_workload(
    shape: LayerShape,
    row: Row,
    layers: int,
    *,
    kind: Kind = "gdn",
    device: str = "cpu",
    dtype: torch.dtype = torch.bfloat16,
    seed: int = 0,
) -> Workload:
    """Random inputs with the gate statistics of a trained model's initialisation, never zeros."""
    if kind == "kda" and shape.key_heads != shape.value_heads:
        raise ValueError("a key-channel decay needs as many key heads as value heads")
    generator = torch.Generator(device=device).manual_seed(seed)

    def normal(*size: int, scale: float = 1.0) -> Tensor:
        return torch.randn(*size, generator=generator, device=device) * scale

    def uniform(low: float, high: float, *size: int) -> Tensor:
        return torch.rand(*size, generator=generator, device=device) * (high - low) + low

    trees = tree_batch(row, seed)
    links = [child_sibling_links(tree) for tree in trees]
    taps = oracle.tap_index(trees, shape.conv_width)
    gate_width = shape.value_heads * (shape.d_k if kind == "kda" else 1)
    slots = 1 + torch.randperm(row.batch, generator=generator, device=device)
    x = normal(layers, row.total_nodes, shape.packed_dim).to(dtype)
    weight = uniform(-0.5, 0.5, layers, shape.packed_dim, shape.conv_width).to(dtype)
    window = normal(layers, row.batch + 1, shape.packed_dim, shape.conv_width - 1).to(dtype)
    step = uniform(-6.9, -2.3, layers, gate_width).exp()  # softplus(dt_bias) in 1e-3 .. 0.1
    pool = normal(layers, row.batch + 1, *_state_shape(shape), scale=0.5)
    return Workload(
        shape=shape,
        row=row,
        kind=kind,
        layers=layers,
        trees=trees,
        parents=_int32([tree.tolist() for tree in trees], device),
        cu_nodes=_int32([i * row.nodes for i in range(row.batch + 1)], device),
        first_child=_int32([child.tolist() for child, _ in links], device),
        next_sibling=_int32([sibling.tolist() for _, sibling in links], device),
        taps=taps.to(device),
        slots=slots.int(),
        accepted=_int32([deepest_node(tree) for tree in trees], device),
        x=x,
        qkv=_convolved(x, weight, window[:, slots], taps, row).to(dtype),
        a=normal(layers, row.total_nodes, gate_width).to(dtype),
        b=normal(layers, row.total_nodes, shape.value_heads).to(dtype),
        a_log=uniform(1.0, 16.0, layers, shape.value_heads).log(),
        dt_bias=step.expm1().log(),
        conv_weight=weight,
        window=window,
        pool=pool,
        initial_window=window.clone(),
        initial_pool=pool.clone(),
    )


def _state_shape(shape: LayerShape) -> tuple[int, int, int]:
    return shape.value_heads, shape.d_v, shape.d_k


def _int32(values: list[int] | list[list[int]], device: str) -> Tensor:
    return torch.tensor(values, dtype=torch.int32, device=device)


def _convolved(x: Tensor, weight: Tensor, window: Tensor, taps: Tensor, row: Row) -> Tensor:
    """The exact convolution of every layer, one layer at a time to bound the float64 memory."""
    packed = x.unflatten(1, (row.batch, row.nodes))
    layers = (
        oracle.tree_convolution(packed[i], weight[i], window[i], taps).flatten(0, 1)
        for i in range(len(x))
    )
    return torch.stack([layer.float() for layer in layers])


def reference(
    work: Workload, layer: int, qkv: Tensor | None = None, accepted: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """Float64 outputs `[batch, nodes, HV, d_v]` and committed states `[batch, HV, d_v, d_k]`.

    Starts from `qkv` `[N, dim]` when given - the rounded inputs that a verifier really had - and
    from the exact convolution otherwise.
    """
    q, k, v = work.heads(work.qkv[layer] if qkv is None else qkv)
    per_request = (work.row.batch, work.row.nodes)
    a, dt_bias = work.a[layer], work.dt_bias[layer]
    if work.kind == "kda":
        per_channel = (work.shape.value_heads, work.shape.d_k)
        a, dt_bias = a.unflatten(-1, per_channel), dt_bias.unflatten(-1, per_channel)
    log_decay, beta = oracle.gates(a, work.b[layer], work.a_log[layer], dt_bias)
    q, k, v, log_decay, beta = (
        part.unflatten(0, per_request) for part in (q, k, v, log_decay, beta)
    )
    return oracle.walk(
        q,
        k,
        v,
        log_decay,
        beta,
        state=work.initial_pool[layer, work.slots.long()],
        trees=work.trees,
        accepted=work.accepted if accepted is None else accepted,
    )
