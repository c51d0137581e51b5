"""`TreeBatch` on a GPU: the kernel's results, no waiting, CUDA graphs with changed trees, checked
mode.
"""

from __future__ import annotations

import numpy as np
import pytest
import torch

from boleir.errors import LaunchError, TreeError
from boleir.runtime.tree_batch import TreeBatch
from boleir.trees import Tree
from boleir.trees.faults import NodeCountError, ParentOutOfRangeError, TreeTooDeepError
from tests.boleir.tree_samples import SIZES, shapes
from tests.runtime.test_tree_batch import ROOTED, TREES, _check, _encoded, _pointers

pytestmark = pytest.mark.gpu

GPU = "cuda"


def _on_gpu(trees: list[Tree]) -> tuple[torch.Tensor, torch.Tensor]:
    parents, cu_nodes = _encoded(trees)
    return torch.as_tensor(parents, device=GPU), torch.as_tensor(cu_nodes, device=GPU)


@pytest.mark.parametrize("nodes", SIZES)
def test_every_shape_and_size(nodes: int) -> None:
    trees = list(shapes(nodes).values())
    batch = TreeBatch.from_trees(trees, device=GPU)
    assert batch.device.type == "cuda"
    _check(batch, trees)


def test_ragged_batches_from_gpu_tensors() -> None:
    batch = TreeBatch.from_parents(*_on_gpu(TREES))
    assert batch.device.type == "cuda"
    _check(batch, TREES)
    _check(batch.to("cpu"), TREES)
    _check(batch.to("cpu").to(GPU), TREES)


def test_batches_of_nothing() -> None:
    for batch in (TreeBatch.from_trees([], device=GPU), TreeBatch.empty(0, 64, GPU)):
        batch.derive()
        assert batch.trees() == ()
    _check(TreeBatch.from_trees([Tree(()), Tree(())], device=GPU), [Tree(()), Tree(())])


def test_more_requests_than_a_grid_has_rows() -> None:
    trees = [Tree.star(3)] * 70_000
    batch = TreeBatch.from_trees(trees, device=GPU)
    assert batch.depth.view(-1, 3).unique(dim=0).tolist() == [[0, 1, 1]]


def test_host_updates_stay_in_place_and_may_follow_each_other_at_once() -> None:
    batch = TreeBatch.empty(8, 130, GPU)
    before = _pointers(batch)
    for trees in (TREES, ROOTED, [], TREES[::-1]):
        batch.update(*_encoded(trees))
        _check(batch, trees)
    for seed in range(200):
        last = [Tree.random(130, seed=seed * 8 + k) for k in range(8)]
        batch.update(*_encoded(last))
    _check(batch, last)
    assert _pointers(batch) == before


def test_gpu_updates_never_wait() -> None:
    batch = TreeBatch.empty(8, 130, GPU, checked=True)
    parents, cu_nodes = _on_gpu(TREES)
    links = [
        torch.as_tensor(np.stack(r), device=GPU)
        for r in zip(*(t.to_sglang() for t in ROOTED), strict=True)
    ]
    batch.update(parents, cu_nodes)
    batch.update_from_sglang(*links)
    torch.cuda.set_sync_debug_mode("error")
    try:
        batch.update(parents, cu_nodes)
        batch.update(parents.long(), cu_nodes.long())
    finally:
        torch.cuda.set_sync_debug_mode("default")
    _check(batch, TREES)
    torch.cuda.set_sync_debug_mode("error")
    try:
        batch.update_from_sglang(*links)
    finally:
        torch.cuda.set_sync_debug_mode("default")
    _check(batch, ROOTED)
    batch.check()


def test_a_captured_step_follows_changed_trees() -> None:
    batch = TreeBatch.empty(8, 130, GPU)
    batch.update(*_encoded(TREES))
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        batch.derive()
    for trees in (TREES[::-1], ROOTED, [Tree.chain(130)]):
        # Only the canonical encoding changes; the replay derives the rest.
        batch._buffers.write_tensors(*_on_gpu(trees))
        graph.replay()
        _check(batch, trees)


def test_a_captured_update_reads_the_tensors_it_was_captured_with() -> None:
    batch = TreeBatch.empty(4, 16, GPU)
    first, following = (
        torch.as_tensor(np.stack([tree.to_sglang()[k] for tree in ROOTED]), device=GPU)
        for k in (0, 1)
    )
    active = torch.ones(4, dtype=torch.bool, device=GPU)
    batch.update_from_sglang(first, following, active=active)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        batch.update_from_sglang(first, following, active=active)
    others = [Tree.random(16, seed=seed) for seed in range(10, 14)]
    first.copy_(torch.as_tensor(np.stack([tree.to_sglang()[0] for tree in others])))
    following.copy_(torch.as_tensor(np.stack([tree.to_sglang()[1] for tree in others])))
    active[2] = False
    graph.replay()
    _check(batch, [others[0], others[1], Tree((-1,) * 16), others[3]])


def test_host_trees_are_refused_inside_capture() -> None:
    batch = TreeBatch.empty(4, 16, GPU)
    batch.update(*_encoded(ROOTED))
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with pytest.raises(LaunchError, match="host memory"), torch.cuda.graph(graph):
        batch.update(*_encoded(ROOTED))


def _microseconds(trees: list[Tree]) -> float:
    """One topology step as replays of a captured graph see it."""
    batch = TreeBatch.empty(len(trees), max(map(len, trees)), GPU)
    batch.update(*_encoded(trees))
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(50):
            batch.derive()
    events = [torch.cuda.Event(enable_timing=True) for _ in range(2)]
    times = []
    for _ in range(20):
        events[0].record()
        graph.replay()
        events[1].record()
        torch.cuda.synchronize()
        times.append(events[0].elapsed_time(events[1]) * 1000 / 50)
    return sorted(times)[10]


def test_the_step_is_small_change() -> None:
    # Once per round against tens of microseconds per layer; generous for slower GPUs.
    assert _microseconds([Tree.random(64, seed=s, max_depth=8) for s in range(16)]) < 20
    assert _microseconds([Tree.chain(256)] * 16) < 60


def test_checked_mode() -> None:
    batch = TreeBatch.empty(4, 16, GPU, max_depth=15, checked=True)
    parents, cu_nodes = _on_gpu(ROOTED)
    batch.update(parents, cu_nodes)
    batch.check()
    parents[20] = 1 << 30
    batch.update(parents, cu_nodes)
    with pytest.raises(ParentOutOfRangeError, match="request 1, node 4: parent 1073741824"):
        batch.check()
    _check_untouched(batch)
    parents[20] = ROOTED[1].parents[4]
    for wrong in (10**6, -5):
        bad = cu_nodes.clone()
        bad[2] = wrong
        batch.update(parents, bad)
        with pytest.raises(NodeCountError, match="request 1"):
            batch.check()
    batch.update(parents, cu_nodes)
    batch.check()
    shallow = TreeBatch.empty(1, 16, GPU, max_depth=3, checked=True)
    shallow.update(*_on_gpu([Tree.chain(6)]))
    with pytest.raises(TreeTooDeepError, match="request 0, node 4"):
        shallow.check()


def _check_untouched(batch: TreeBatch) -> None:
    for request in (0, 2, 3):
        rows = slice(16 * request, 16 * request + 16)
        assert (batch.ancestors[rows].cpu().numpy() == ROOTED[request].ancestors()).all()


def test_what_cannot_be_copied_is_refused_without_a_look() -> None:
    batch = TreeBatch.empty(4, 16, GPU)
    parents, cu_nodes = _on_gpu(ROOTED)
    for bad_parents, bad_counts in (
        (parents.float(), cu_nodes),
        (parents[None], cu_nodes),
        (parents, cu_nodes[:0]),
        (torch.cat([parents, parents]), cu_nodes),
        (parents, torch.cat([cu_nodes, cu_nodes])),
    ):
        with pytest.raises(TreeError):
            batch.update(bad_parents, bad_counts)
