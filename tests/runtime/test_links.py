"""Links to parents in torch, as on the device: equal to the host's reading, harmless where links
are broken.
"""

from __future__ import annotations

import numpy as np
import pytest
import torch

from boleir.runtime.links import as_local_parents, parents_of_links
from boleir.trees import Tree
from boleir.trees.links import read_links


@pytest.mark.parametrize("nodes", [1, 2, 3, 16, 17, 64, 100])
@pytest.mark.parametrize("dtype", [torch.int32, torch.int64])
def test_sound_links(nodes: int, dtype: torch.dtype) -> None:
    trees = [Tree.random(nodes, seed=seed) for seed in range(6)] + [
        Tree.star(nodes),
        Tree.chain(nodes),
    ]
    first, following, parents = (
        torch.as_tensor(np.stack(rows)).to(dtype)
        for rows in zip(*(tree.to_sglang() for tree in trees), strict=True)
    )
    expected = [list(tree.parents) for tree in trees]
    assert parents_of_links(first, following).tolist() == expected
    assert as_local_parents(parents).tolist() == expected
    assert parents[:, 0].tolist() == [0] * len(trees)


def test_padded_rows_become_roots() -> None:
    first = torch.tensor([[1, -1, -1], [9, -4, 0]])
    following = torch.tensor([[-1, 2, -1], [1, 1, 1]])
    active = torch.tensor([True, False])
    assert parents_of_links(first, following, active).tolist() == [[-1, 0, 0], [-1, -1, -1]]
    stale = torch.tensor([[0, 0, 0], [5, 5, 5]])
    assert as_local_parents(stale, active).tolist() == [[-1, 0, 0], [-1, -1, -1]]


def test_broken_links_stay_inside_and_unlinked_nodes_are_marked() -> None:
    generator = torch.Generator().manual_seed(0)
    first = torch.randint(-3, 14, (200, 10), generator=generator)
    following = torch.randint(-3, 14, (200, 10), generator=generator)
    parents = parents_of_links(first, following)
    assert int(parents.min()) >= -2
    assert int(parents.max()) < 10
    assert parents_of_links(first[:1] * 0 - 1, following[:1] * 0 - 1).tolist() == [[-1] + [-2] * 9]


def test_equal_to_the_host_for_siblings_in_any_order() -> None:
    first, following = np.array([[3, -1, 4, -1, -1]]), np.array([[-1, 2, -1, 1, -1]])
    table = read_links(first, following)
    assert table.tolist() == [[-1, 0, 0, 0, 2]]
    assert parents_of_links(*map(torch.as_tensor, (first, following))).tolist() == table.tolist()
