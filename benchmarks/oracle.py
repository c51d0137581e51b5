"""The same layer in float64, node by node: what every measured kernel is compared with."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch.nn import functional

from benchmarks.trees import Tree

Tensor = torch.Tensor
NORM_EPS = 1e-6
SOFTPLUS_LINEAR_ABOVE = 20.0


def tap_index(trees: Sequence[Tree], width: int) -> Tensor:
    """Rows read by each convolution tap, int64 `[batch, nodes, width]`.

    Rows are counted in the window (`width - 1` rows, oldest first) followed by the nodes. Tap m
    reads the m-th ancestor of the node, and past the root the window from its newest entry on.
    """
    index = torch.empty(len(trees), len(trees[0]), width, dtype=torch.int64)
    for request, parent in enumerate(trees):
        for node in range(len(parent)):
            row = node + width - 1
            for tap in range(width):
                index[request, node, tap] = row
                row = _row_before(row, parent, width)
    return index


def _row_before(row: int, parent: Tree, width: int) -> int:
    """The row one token earlier on the path: the parent's, or the next older window entry."""
    if row < width - 1:
        return row - 1
    above = int(parent[row - width + 1])
    return above + width - 1 if above >= 0 else width - 2


def tree_convolution(x: Tensor, weight: Tensor, window: Tensor, taps: Tensor) -> Tensor:
    """Causal depthwise convolution along root paths, then SiLU, in float64.

    `x` `[batch, nodes, channels]`, `weight` `[channels, width]` (last column: the node itself),
    `window` `[batch, channels, width - 1]` oldest first; the result has the shape of `x`.
    """
    rows = torch.cat([window.transpose(1, 2), x], dim=1).double()
    total = torch.zeros_like(x, dtype=torch.float64)
    width = weight.shape[1]
    for tap in range(width):
        picked = taps[:, :, tap, None].to(x.device).expand(-1, -1, x.shape[2])
        total += rows.gather(1, picked) * weight[:, width - 1 - tap].double()
    return functional.silu(total)


def window_after(x: Tensor, window: Tensor, taps: Tensor, accepted: Tensor) -> Tensor:
    """The convolution window once `accepted` (`[batch]`) is committed, oldest first."""
    width = taps.shape[2]
    rows = torch.cat([window.transpose(1, 2), x], dim=1)
    batch = torch.arange(len(accepted), device=x.device)
    picked = taps.to(x.device)[batch, accepted.long(), : width - 1].flip(1)
    return rows[batch[:, None], picked].transpose(1, 2)


def gates(a: Tensor, b: Tensor, a_log: Tensor, dt_bias: Tensor) -> tuple[Tensor, Tensor]:
    """Log decay and write gate in float64: -exp(A_log) softplus(a + dt_bias), and sigmoid(b).

    `a` is `[..., heads]`, or `[..., heads, d_k]` for a decay per key channel; `dt_bias` has its
    trailing shape, `a_log` is `[heads]`, `b` `[..., heads]`.
    """
    rate = a_log.double().exp()
    if a.dim() > b.dim():
        rate = rate[:, None]
    x = a.double() + dt_bias.double()
    softplus = functional.softplus(x, threshold=SOFTPLUS_LINEAR_ABOVE)
    return -rate * softplus, b.double().sigmoid()


def normalise(x: Tensor) -> Tensor:
    """x / sqrt(sum x^2 + eps) over the last axis, in float64."""
    x = x.double()
    return x / (x.square().sum(-1, keepdim=True) + NORM_EPS).sqrt()


def walk(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    log_decay: Tensor,
    beta: Tensor,
    state: Tensor,
    trees: Sequence[Tree],
    accepted: Tensor,
) -> tuple[Tensor, Tensor]:
    """Outputs of all nodes and the state at `accepted`, by walking the trees node by node.

    `q, k` `[batch, nodes, key_heads, d_k]` and `v` `[batch, nodes, heads, d_v]` after convolution,
    `log_decay` `[batch, nodes, heads]` or `[..., d_k]`, `beta` `[batch, nodes, heads]`, `state`
    `[batch, heads, d_v, d_k]`. Returns `[batch, nodes, heads, d_v]` and a tensor like `state`,
    both float64.
    """
    group = v.shape[2] // k.shape[2]
    q = (normalise(q) / q.shape[-1] ** 0.5).repeat_interleave(group, dim=2)
    k = normalise(k).repeat_interleave(group, dim=2)
    v = v.double()
    decay = log_decay.exp()
    decay = decay[..., None, None] if decay.dim() == 3 else decay[..., None, :]
    parents = torch.tensor([tree.tolist() for tree in trees], device=v.device)
    batch = torch.arange(len(trees), device=v.device)
    states = state.new_empty(v.shape[1] + 1, *state.shape, dtype=torch.float64)
    states[0] = state
    out = torch.empty_like(v)
    for node in range(v.shape[1]):
        s = states[parents[:, node] + 1, batch] * decay[:, node]
        read = torch.einsum("bhvk,bhk->bhv", s, k[:, node])
        u = beta[:, node, :, None] * (v[:, node] - read)
        s = s + u[..., None] * k[:, node, :, None, :]
        states[node + 1] = s
        out[:, node] = torch.einsum("bhvk,bhk->bhv", s, q[:, node])
    return out, states[accepted.long() + 1, batch]


def relative_error(value: Tensor, reference: Tensor, keep_dims: int) -> Tensor:
    """‖value − reference‖ / ‖reference‖ over all axes after the first `keep_dims`.

    Anything not finite counts as an infinite error, so that an unwritten output cannot hide.
    """
    difference = (value.double() - reference.double()).flatten(keep_dims).norm(dim=-1)
    error = difference / reference.double().flatten(keep_dims).norm(dim=-1)
    return torch.where(error.isfinite(), error, torch.inf)
