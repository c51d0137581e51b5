"""`TreeBatch` on the CPU: constructors, bounds, buffers that stay, checked mode."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
import torch

from boleir.errors import TreeError
from boleir.runtime.tree_batch import TreeBatch
from boleir.trees import Tree
from boleir.trees.faults import (
    ChildBeforeParentError,
    CycleError,
    LinkError,
    NodeCountError,
    NotAnIntegerError,
    NotATreeMaskError,
    ParentOutOfRangeError,
    TreeTooDeepError,
    TreeTooLargeError,
    TwoParentsError,
)

TREES = [Tree.random(n, seed=n, roots=min(n, 1 + n % 3)) for n in (0, 1, 5, 64, 0, 65, 130)]
ROOTED = [Tree.random(16, seed=seed) for seed in range(4)]


def _check(batch: TreeBatch, trees: list[Tree]) -> None:
    """Shapes, dtypes and contents of `batch` are those of `trees`; further requests are empty."""
    assert batch.trees()[: len(trees)] == tuple(trees)
    assert all(len(tree) == 0 for tree in batch.trees()[len(trees) :])
    assert batch.ancestors.dtype == torch.int64
    assert {t.dtype for t in (batch.parents, batch.cu_nodes, batch.depth, batch.near)} == {
        torch.int32
    }
    for tree, start in zip(trees, batch.cu_nodes.tolist(), strict=False):
        rows = slice(start, start + len(tree))
        assert (batch.ancestors[rows].cpu().numpy() == tree.ancestors(batch.words)).all()
        assert batch.depth[rows].tolist() == list(tree.depth)
        assert (batch.near[rows].cpu().numpy() == tree.near(batch.conv_width)).all()


def _encoded(trees: list[Tree]) -> tuple[np.ndarray, np.ndarray]:
    parents = [np.array(tree.parents, np.int32) for tree in trees]
    return np.concatenate([np.empty(0, np.int32), *parents]), np.cumsum([0, *map(len, trees)])


# ---- one-off batches -----------------------------------------------------------------


def test_from_parents_takes_lists_arrays_and_tensors() -> None:
    parents, cu_nodes = _encoded(TREES)
    for convert in (list, np.asarray, torch.as_tensor, lambda x: torch.as_tensor(x).long()):
        batch = TreeBatch.from_parents(convert(parents), convert(cu_nodes))
        _check(batch, TREES)
    assert (batch.num_requests, batch.num_nodes, batch.words) == (7, 265, 3)
    assert (batch.max_nodes, batch.max_depth) == (130, max(tree.max_depth for tree in TREES))


def test_a_single_request_needs_no_counts() -> None:
    _check(TreeBatch.from_parents([-1, 0, 0]), [Tree.star(3)])


def test_bounds_and_width_can_be_given() -> None:
    batch = TreeBatch.from_trees(ROOTED, max_nodes=100, max_depth=20, conv_width=3)
    assert (batch.max_nodes, batch.max_depth, batch.words, batch.conv_width) == (100, 20, 2, 3)
    _check(batch, ROOTED)


def test_batches_of_nothing() -> None:
    for batch in (
        TreeBatch.from_trees([]),
        TreeBatch.from_parents([], [0]),
        TreeBatch.from_masks([]),
        TreeBatch.from_networkx([]),
        TreeBatch.empty(0, 16),
    ):
        assert (batch.num_requests, batch.num_nodes) == (0, 0)
        assert batch.trees() == ()
    for batch in (
        TreeBatch.from_trees([Tree(()), Tree(())]),
        TreeBatch.from_parents([], [0, 0, 0]),
    ):
        _check(batch, [Tree(()), Tree(())])
        assert (batch.max_depth, batch.words) == (0, 1)


def test_from_networkx_gives_the_names_back() -> None:
    graphs = [nx.DiGraph([("b", "c"), ("a", "b")]), nx.DiGraph(), nx.DiGraph([(0, 1)])]
    batch = TreeBatch.from_networkx(graphs)
    _check(batch, [Tree.chain(3), Tree(()), Tree.chain(2)])
    assert batch.labels == (("a", "b", "c"), (), (0, 1))


def test_from_paths() -> None:
    batch = TreeBatch.from_paths([[[5, 6], [5, 7]], [], [[1]]], implicit_root=True)
    _check(batch, [Tree((-1, 0, 1, 1)), Tree((-1,)), Tree((-1, 0))])
    assert batch.labels[0] == ((), (5,), (5, 6), (5, 7))


def test_from_masks() -> None:
    _check(TreeBatch.from_masks([torch.as_tensor(t.to_mask()) for t in TREES]), TREES)
    _check(TreeBatch.from_masks(np.stack([tree.to_mask() for tree in ROOTED])), ROOTED)


def test_from_sglang() -> None:
    links = [
        torch.as_tensor(np.stack(rows))
        for rows in zip(*(t.to_sglang() for t in ROOTED), strict=True)
    ]
    _check(TreeBatch.from_sglang(*links), ROOTED)
    _check(TreeBatch.from_sglang(*[row.int() for row in links[:2]]), ROOTED)
    _check(TreeBatch.from_sglang(parent_token=links[2]), ROOTED)
    active = torch.tensor([True, False, True, True])
    for row in links:
        row[1] = 3
    batch = TreeBatch.from_sglang(*links, active=active)
    _check(batch, [ROOTED[0], Tree((-1,) * 16), *ROOTED[2:]])


def test_from_eagle() -> None:
    batch = TreeBatch.from_eagle(
        [[-1, 0, 1], [-1, 0, 1]], torch.tensor([[0, 1, 2], [1, 4, 5]]), top_k=2
    )
    _check(batch, [Tree((-1, 0, 0, 1)), Tree((-1, 0, 1, 1))])
    with pytest.raises(TreeError, match="1 rows of parent_list, but 2"):
        TreeBatch.from_eagle([[-1]], [[0], [1]], top_k=2)


@pytest.mark.parametrize(
    ("build", "error", "where"),
    [
        (lambda: TreeBatch.from_parents([-1, -1, 2, 0], [0, 1, 4]), ChildBeforeParentError, (1, 1)),
        (lambda: TreeBatch.from_parents([-1, -1, 2, 1], [0, 1, 4]), CycleError, (1, 1)),
        (lambda: TreeBatch.from_parents([-1, -1, 4], [0, 1, 3]), ParentOutOfRangeError, (1, 1)),
        (lambda: TreeBatch.from_parents(torch.tensor([-1, 0.5])), NotAnIntegerError, (0, 1)),
        (
            lambda: TreeBatch.from_parents(torch.tensor([-1, float("nan")]).bfloat16()),
            NotAnIntegerError,
            (0, 1),
        ),
        (
            lambda: TreeBatch.from_trees([Tree.chain(2), Tree.chain(257)]),
            TreeTooLargeError,
            (1, None),
        ),
        (lambda: TreeBatch.from_trees(TREES, max_nodes=64), TreeTooLargeError, (5, None)),
        (lambda: TreeBatch.from_trees([Tree.chain(2)] * 2, max_depth=0), TreeTooDeepError, (0, 1)),
        (lambda: TreeBatch.from_trees([Tree.chain(2), [-1]]), TreeError, (1, None)),
        (
            lambda: TreeBatch.from_networkx([nx.DiGraph(), nx.DiGraph([(0, 1), (1, 0)])]),
            CycleError,
            (1, None),
        ),
        (
            lambda: TreeBatch.from_networkx([nx.DiGraph([(0, 2), (1, 2)])]),
            TwoParentsError,
            (0, None),
        ),
        (lambda: TreeBatch.from_masks([[[True]], [[True, True]] * 2]), NotATreeMaskError, (1, 0)),
        (lambda: TreeBatch.from_sglang([[1, -1]], [[-1, 1]]), LinkError, (0, 1)),
        (lambda: TreeBatch.from_trees([], max_nodes=257), TreeError, (None, None)),
        (lambda: TreeBatch.from_trees([], max_nodes=0), TreeError, (None, None)),
        (lambda: TreeBatch.from_trees([], max_depth=-1), TreeError, (None, None)),
        (lambda: TreeBatch.from_trees([], conv_width=0), TreeError, (None, None)),
        (lambda: TreeBatch.empty(-1, 16), TreeError, (None, None)),
    ],
)
def test_refusals_name_request_and_node(build, error, where) -> None:
    with pytest.raises(error) as caught:
        build()
    assert (caught.value.request, caught.value.node) == where
    if where[0] is not None:
        assert str(caught.value).startswith(f"request {where[0]}")


def test_another_device_and_back() -> None:
    batch = TreeBatch.from_trees(TREES, conv_width=3)
    again = batch.to("cpu")
    _check(again, TREES)
    assert (again.max_nodes, again.conv_width) == (batch.max_nodes, 3)
    assert again.parents.data_ptr() != batch.parents.data_ptr()


# ---- buffers that stay ---------------------------------------------------------------


def _pointers(batch: TreeBatch) -> list[int]:
    tensors = (batch.parents, batch.cu_nodes, batch.ancestors, batch.depth, batch.near)
    return [tensor.data_ptr() for tensor in tensors]


def test_updates_stay_in_place() -> None:
    batch = TreeBatch.empty(8, 130)
    _check(batch, [])
    before = _pointers(batch)
    for trees in (TREES, ROOTED, [], TREES[::-1], [Tree.chain(130)] * 8):
        batch.update(*_encoded(trees))
        _check(batch, trees)
    batch.update(*map(torch.as_tensor, _encoded(ROOTED)))
    _check(batch, ROOTED)
    assert _pointers(batch) == before


def test_a_faulty_update_changes_nothing() -> None:
    batch = TreeBatch.empty(4, 16, max_depth=15)
    batch.update(*_encoded(ROOTED))
    for parents, cu_nodes, error in (
        ([-1, 1], [0, 2], CycleError),
        ([-1] * 17, [0, 17], TreeTooLargeError),
        ([-1] * 5, [0, 1, 2, 3, 4, 5], TreeTooLargeError),
        (Tree.chain(16).parents[:0], [1], TreeError),
    ):
        with pytest.raises(error):
            batch.update(parents, cu_nodes)
        _check(batch, ROOTED)
    shallow = TreeBatch.empty(2, 16, max_depth=3)
    with pytest.raises(TreeTooDeepError, match="request 1, node 4"):
        shallow.update(*_encoded([Tree.star(3), Tree.chain(5)]))


def test_capacity_in_nodes() -> None:
    batch = TreeBatch.empty(8, 64, total_nodes=64)
    batch.update(*_encoded(ROOTED))
    with pytest.raises(TreeTooLargeError, match="80 nodes, its buffers hold 64"):
        batch.update(*_encoded([*ROOTED, ROOTED[0]]))


def test_update_from_sglang() -> None:
    batch = TreeBatch.empty(6, 16)
    links = [np.stack(rows) for rows in zip(*(tree.to_sglang() for tree in ROOTED), strict=True)]
    batch.update_from_sglang(*links)
    _check(batch, ROOTED)
    batch.update_from_sglang(parent_token=torch.as_tensor(links[2]))
    _check(batch, ROOTED)


def test_the_step_reports_what_was_written_behind_its_back() -> None:
    batch = TreeBatch.empty(4, 16, max_depth=6)
    batch.update(*_encoded([Tree.star(4), Tree.chain(7)]))
    batch.check()
    for position, wrong, error, words in (
        (5, 9, ParentOutOfRangeError, "request 1, node 1: parent 9 is out of range"),
        (5, 3, ChildBeforeParentError, "request 1, node 1: parent 3 does not come before"),
        (2, -7, ParentOutOfRangeError, "request 0, node 2: parent -7"),
    ):
        batch.parents[position] = wrong
        batch.derive()
        with pytest.raises(error, match=words):
            batch.check()
        batch.update(*_encoded([Tree.star(4), Tree.chain(7)]))
        batch.check()


def test_another_step_can_be_put_in() -> None:
    calls = []
    batch = TreeBatch.empty(2, 16, step=lambda *tensors: calls.append(tensors))
    batch.update([-1, 0], [0, 2])
    assert [tensor.data_ptr() for tensor in calls[0][:5]] == _pointers(batch)[:5]
    assert calls[0][5] is batch.flags


# ---- the path of GPU tensors, walked on the CPU --------------------------------------------------


def test_tensors_are_taken_without_a_look() -> None:
    batch = TreeBatch.empty(8, 130, checked=True)
    parents, cu_nodes = map(torch.as_tensor, _encoded(TREES))
    batch._update_on_device(parents, cu_nodes)
    _check(batch, TREES)
    batch.check()
    wild = parents.long()
    wild[3] = 1 << 40
    batch._update_on_device(wild, cu_nodes)
    with pytest.raises(ParentOutOfRangeError, match="request 2, node 2"):
        batch.check()


@pytest.mark.parametrize("wrong", [10**6, -5, 1 << 40])
def test_counts_out_of_range_are_reported_and_led_back(wrong: int) -> None:
    batch = TreeBatch.empty(4, 16, checked=True)
    parents, cu_nodes = map(torch.as_tensor, _encoded(ROOTED))
    cu_nodes[2] = wrong
    batch._update_on_device(parents, cu_nodes)
    assert int(batch.cu_nodes.min()) >= 0
    assert int(batch.cu_nodes.max()) <= 64
    with pytest.raises(NodeCountError, match="request 1: cu_nodes"):
        batch.check()
    assert (batch.ancestors[:16].numpy() == ROOTED[0].ancestors()).all()


def test_tensors_of_the_wrong_kind_are_refused() -> None:
    batch = TreeBatch.empty(4, 16)
    parents, cu_nodes = map(torch.as_tensor, _encoded(ROOTED))
    for bad_parents, bad_counts, error in (
        (parents.float(), cu_nodes, NotAnIntegerError),
        (parents.bool(), cu_nodes, NotAnIntegerError),
        (parents[None], cu_nodes, TreeError),
        (parents, cu_nodes[:0], TreeError),
        (torch.cat([parents, parents]), cu_nodes, TreeTooLargeError),
        (parents, torch.cat([cu_nodes, cu_nodes]), TreeTooLargeError),
    ):
        with pytest.raises(error):
            batch._update_on_device(bad_parents, bad_counts)
