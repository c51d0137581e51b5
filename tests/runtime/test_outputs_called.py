"""What a call of a kernel with several outputs takes and gives, before any kernel runs."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from boleir.codegen.interface import Interface
from boleir.runtime import ops
from boleir.runtime.arguments import ArgumentError
from tests.runtime.recording_program import inputs_for, recorded

PARENTS, CU = [-1, 0, 0, -1, 0], [0, 3, 5]


class Calls:
    """A kernel of three outputs, and the values that its verify kernel got."""

    def __init__(self) -> None:
        self.kernel, self.program = recorded("surprised", interpreted=False)
        self.tree = self.kernel.tree_batch(PARENTS, CU)
        self.pool, self.space = self.kernel.pool(2, 1), self.kernel.workspace(2, 5)
        self.slots = torch.tensor([1, 0], dtype=torch.int32)
        self.inputs = inputs_for(self.kernel, 5)

    def verify(self, out: Any = None) -> tuple[Any, dict[str, Any]]:
        """The outputs, and the values of the last launch."""
        found, self.factors = self.kernel.verify(
            self.tree, self.inputs, self.pool.layer(0), self.slots, workspace=self.space, out=out
        )
        return found, self.program.launches[-1][3]


def buffer(heads: int = 4) -> torch.Tensor:
    return torch.zeros(5, heads, 48, dtype=torch.bfloat16)


def test_all_outputs_come_from_one_launch() -> None:
    calls = Calls()
    for _ in range(3):  # checked, prepared, repeated
        calls.program.launches.clear()
        outs, values = calls.verify()
        assert [launch[0] for launch in calls.program.launches] == ["prepare", "verify"]
        assert isinstance(outs, tuple) and [tuple(x.shape) for x in outs] == [(5, 4, 48)] * 3
        assert [values[name] for name in ("out", "out_2", "out_3")] == [x.data_ptr() for x in outs]
        assert values["out_stride"] == values["out_2_stride"] == values["out_3_stride"] == 192


def test_buffers_are_taken_in_the_order_of_the_outputs() -> None:
    calls = Calls()
    for kind in (list, tuple, list):
        given = kind([buffer(), buffer(6)[:, 1:5], buffer()])
        outs, values = calls.verify(out=given)
        assert all(x is y for x, y in zip(outs, given, strict=True))
        assert [values[name] for name in ("out", "out_2", "out_3")] == [x.data_ptr() for x in given]
        strides = [values[f"{name}_stride"] for name in ("out", "out_2", "out_3")]
        assert strides == [192, 288, 192]


def test_one_commit_for_all() -> None:
    calls = Calls()
    calls.verify()
    calls.program.launches.clear()
    calls.kernel.commit(calls.factors, calls.slots, calls.pool, calls.slots)
    assert [launch[0] for launch in calls.program.launches] == ["commit"]


@pytest.mark.parametrize(
    ("out", "message"),
    [
        (buffer(), "out is a Tensor, expected a sequence of 3 tensors, one for each output"),
        ([buffer()] * 2, "out has 2 entries, expected a sequence of 3 tensors"),
        ([buffer(), None, buffer()], "out_2 is a NoneType, expected a tensor"),
        ([buffer(), buffer(), buffer().float()], "out_3 is torch.float32, expected torch.bfloat16"),
        ([buffer(), buffer()[:3], buffer()], "out_2 has 3 tokens, the inputs have 5"),
    ],
)
def test_other_buffers_are_refused(out: Any, message: str) -> None:
    calls = Calls()
    calls.verify([buffer() for _ in range(3)])
    with pytest.raises(ArgumentError, match=message):
        calls.verify(out=out)


def test_a_sequence_is_refused_where_there_is_one_output() -> None:
    kernel, _ = recorded(interpreted=False)
    tree, pool = kernel.tree_batch(PARENTS, CU), kernel.pool(2, 1)
    slots = torch.tensor([1, 0], dtype=torch.int32)
    with pytest.raises(ArgumentError, match="out is a list, expected a tensor"):
        kernel.verify(tree, inputs_for(kernel, 5), pool.layer(0), slots, out=[buffer()])


def test_the_operator_takes_all_outputs() -> None:
    calls = Calls()
    outs, _ = calls.verify()
    direct = list(calls.program.launches)
    calls.program.launches.clear()
    tree, layer = calls.tree, calls.pool.layer(0)
    trees = [tree.cu_nodes, tree.ancestors, tree.depth, tree.near]
    scratch, given = list(calls.space.layer(0).tensors), list(calls.inputs.values())
    pool = list(layer.tensors[:2])
    ops.verify(calls.kernel._handle, given, calls.slots, list(outs), trees, scratch, pool)
    assert [x[0] for x in calls.program.launches] == [x[0] for x in direct]
    for mine, theirs in zip(calls.program.launches, direct, strict=True):
        differ = {name for name, value in mine[3].items() if value != theirs[3][name]}
        assert differ <= {"window"}


def test_a_compiled_region_calls_the_operator_once() -> None:
    calls = Calls()
    kernel, tree, slots, space = calls.kernel, calls.tree, calls.slots, calls.space
    inputs, layer = calls.inputs, calls.pool.layer(0)

    def step(given: list[torch.Tensor] | None) -> Any:
        return kernel.verify(tree, inputs, layer, slots, workspace=space, out=given)[0]

    compiled = torch.compile(step, backend="eager", fullgraph=True)
    for given in (None, [buffer(), buffer(), buffer()]):
        calls.program.launches.clear()
        outs = compiled(given)
        assert isinstance(outs, tuple) and [tuple(x.shape) for x in outs] == [(5, 4, 48)] * 3
        assert [launch[0] for launch in calls.program.launches] == ["prepare", "verify"]


def test_an_interface_says_what_the_outputs_are_called() -> None:
    face = Calls().kernel.interface
    assert face.outputs == ("out", "out_2", "out_3")
    assert {"out_stride", "out_2_stride", "out_3_stride"} <= set(face.aligned)
    assert Interface.from_json(face.to_json()) == face
    assert recorded()[0].interface.outputs == ("out",)
