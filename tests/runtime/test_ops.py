"""The operators: what they say they change, and what happens when their kernel is gone.

That they compute what direct calls compute is tested in `test_kernel_interpreted`.
"""

from __future__ import annotations

import pytest
import torch

from boleir.errors import LaunchError
from boleir.runtime import ops
from tests.runtime.recording_program import inputs_for, recorded

INT = torch.int32


def _written(name: str) -> set[str]:
    schema = getattr(torch.ops.boleir, name).default._schema
    return {
        argument.name
        for argument in schema.arguments
        if argument.alias_info is not None and argument.alias_info.is_write
    }


def test_operators_declare_what_they_write() -> None:
    assert _written("verify") == {"out", "scratch"}
    assert _written("commit") == {"states", "windows"}


def test_operators_launch_what_direct_calls_launch() -> None:
    kernel, program = recorded(interpreted=False)
    tree = kernel.tree_batch([-1, -1, 0], [0, 1, 3])
    inputs, pool, space = inputs_for(kernel, 3), kernel.pool(2, 1), kernel.workspace(2, 3)
    slots = torch.tensor([1, 0], dtype=INT)
    out, factors = kernel.verify(tree, inputs, pool.layer(0), slots, workspace=space)
    kernel.commit(factors, slots, pool, slots)
    direct = list(program.launches)
    program.launches.clear()
    layer, scratch = pool.layer(0), list(space.layer(0).tensors)
    trees = [tree.cu_nodes, tree.ancestors, tree.depth, tree.near]
    given, handle = list(inputs.values()), kernel._handle
    ops.verify(handle, given, slots, [out], trees, scratch, list(layer.tensors[:2]))
    rows = [slots, slots, slots, space.nothing, space.nothing]
    ops.commit(handle, [layer.state], [layer.tensors[1]], [*given, *scratch], rows, trees)
    assert [launch[:3] for launch in program.launches] == [launch[:3] for launch in direct]
    for mine, theirs in zip(program.launches, direct, strict=True):
        same = {name for name, value in mine[3].items() if value == theirs[3][name]}
        assert set(mine[3]) - same <= {"table", "window"}


def test_fakes_do_nothing() -> None:
    from torch._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode():
        tensor = torch.zeros(4)
        assert ops.verify(0, [tensor], tensor, [tensor], [tensor], [tensor], [tensor]) is None
        assert ops.commit(0, [tensor], [tensor], [tensor], [tensor], [tensor]) is None


def test_an_operator_outlives_its_kernel_with_a_message() -> None:
    tensor = torch.zeros(4)
    with pytest.raises(LaunchError, match="no longer exists"):
        ops.verify(
            1 << 40, [tensor], tensor, [torch.zeros(4)], [tensor], [torch.zeros(4)], [tensor]
        )
