"""The oracle itself against a slow walk of single root paths written another way."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from benchmarks import oracle, trees
from benchmarks.serving_shapes import Kind, LayerShape, Row
from benchmarks.workload import Workload, make_workload, reference

SMALL = LayerShape("small", key_heads=2, value_heads=4, d_k=6, d_v=5)
PER_CHANNEL = LayerShape("per-channel", key_heads=3, value_heads=3, d_k=6, d_v=5)


def workload(kind: Kind, row: Row) -> Workload:
    return make_workload(
        SMALL if kind == "gdn" else PER_CHANNEL, row, 2, kind=kind, dtype=torch.float32, seed=7
    )


def path_output(
    work: Workload, layer: int, request: int, node: int
) -> tuple[np.ndarray, np.ndarray]:
    """Output and K-first state of one node, by running its root path as a plain sequence."""
    shape = work.shape
    path = trees.root_path(work.trees[request], node)
    rows = [request * work.row.nodes + i for i in path]
    q, k, v = (part[rows].double().numpy() for part in work.heads(work.qkv[layer]))
    a, b, a_log, dt_bias = (
        t.double().numpy()
        for t in (work.a[layer], work.b[layer], work.a_log[layer], work.dt_bias[layer])
    )
    states = work.initial_pool[layer, int(work.slots[request])].double().numpy()
    states = states.transpose(0, 2, 1).copy()
    out = np.zeros((shape.value_heads, shape.d_v))
    for step, row in enumerate(rows):
        for head in range(shape.value_heads):
            key_head = head * shape.key_heads // shape.value_heads
            key = k[step, key_head] / np.sqrt((k[step, key_head] ** 2).sum() + 1e-6)
            query = q[step, key_head] / np.sqrt((q[step, key_head] ** 2).sum() + 1e-6)
            channels = slice(head * shape.d_k, (head + 1) * shape.d_k)
            own = channels if work.kind == "kda" else head
            decay = np.exp(-np.exp(a_log[head]) * np.log1p(np.exp(a[row][own] + dt_bias[own])))
            state = states[head] * np.reshape(decay, (-1, 1))
            beta = 1 / (1 + np.exp(-b[row, head]))
            state = state + np.outer(key, beta * (v[step, head] - state.T @ key))
            states[head] = state
            out[head] = state.T @ query / np.sqrt(shape.d_k)
    return out, states


@pytest.mark.parametrize("kind", ["gdn", "kda"])
@pytest.mark.parametrize("row", [Row(2, 7, 3), Row(1, 4, 3)], ids=str)
def test_walk_agrees_with_single_paths(kind: Kind, row: Row) -> None:
    work = workload(kind, row)
    for layer in range(work.layers):
        out, states = reference(work, layer)
        for request in range(row.batch):
            for node in range(row.nodes):
                exact, state = path_output(work, layer, request, node)
                np.testing.assert_allclose(out[request, node], exact, rtol=1e-9, atol=1e-12)
                if node == int(work.accepted[request]):
                    committed = states[request].numpy().transpose(0, 2, 1)
                    np.testing.assert_allclose(committed, state, rtol=1e-9, atol=1e-12)


def test_convolution_reads_ancestors_then_the_window() -> None:
    work = workload("gdn", Row(2, 9, 4))
    layer, width = 1, work.shape.conv_width
    slots = work.slots.long()
    x = work.x[layer].unflatten(0, (2, 9))
    window = work.initial_window[layer, slots]
    weight = work.conv_weight[layer]
    got = oracle.tree_convolution(x, weight, window, work.taps)
    after = oracle.window_after(x, window, work.taps, work.accepted)
    for request, tree in enumerate(work.trees):
        for node in range(9):
            path = trees.root_path(tree, node)
            sequence = torch.cat([window[request].T, x[request, path]]).double()[-width:]
            total = (sequence * weight.T.double()).sum(0)
            torch.testing.assert_close(got[request, node], total * total.sigmoid())
            if node == int(work.accepted[request]):
                assert torch.equal(after[request], sequence[1:].T.float())


def test_relative_error_is_per_node_and_never_hides_what_is_not_finite() -> None:
    exact = torch.ones(3, 4)
    value = exact.clone()
    value[1] *= 1.5
    value[2, 0] = torch.nan
    error = oracle.relative_error(value, exact, keep_dims=1)
    assert error.tolist() == [0.0, 0.5, float("inf")]


def test_inputs_are_distinct_and_not_trivial() -> None:
    work = workload("gdn", Row(3, 6, 2))
    for tensor in (work.x, work.qkv, work.a, work.b, work.pool, work.conv_weight, work.a_log):
        assert tensor.isfinite().all()
        assert (tensor != 0).float().mean() > 0.99
        assert not torch.equal(tensor[0], tensor[1])
    assert sorted(work.slots.tolist()) == [1, 2, 3]
    log_decay, _ = oracle.gates(work.a[0], work.b[0], work.a_log[0], work.dt_bias[0])
    assert (log_decay < 0).all()
    assert log_decay.exp().mean() > 0.1


def test_key_channel_decay_needs_equal_head_counts() -> None:
    with pytest.raises(ValueError, match="as many key heads"):
        make_workload(SMALL, Row(1, 2, 1), 1, kind="kda")
