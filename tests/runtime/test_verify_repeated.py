"""Calls that repeat the last one of their layer: fast, and never with another call's arguments."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import pytest
import torch

from boleir.errors import LaunchError
from boleir.runtime.arguments import ArgumentError
from tests.runtime.recording_program import inputs_for, recorded

PARENTS, CU = [-1, 0, 0, -1, 0], [0, 3, 3, 5]


class Rounds:
    """A kernel called again and again; the values that each call's last kernel got."""

    def __init__(self) -> None:
        self.kernel, self.program = recorded(interpreted=False)
        self.tree = self.kernel.tree_batch(PARENTS, CU)
        self.pool = self.kernel.pool(4, 2)
        self.space = self.kernel.workspace(3, 9, 2)
        self.slots = torch.tensor([2, -1, 0], dtype=torch.int32)
        self.inputs = inputs_for(self.kernel, 5)
        self.out: torch.Tensor | None = torch.zeros(5, 4, 48, dtype=torch.bfloat16)

    def verify(self, **changes: Any) -> dict[str, Any]:
        """The values of a call, some of whose arguments are others than the usual."""
        given = {"tree": self.tree, "inputs": self.inputs, "pool_layer": self.pool.layer(0)}
        given |= {"slots": self.slots, "workspace": self.space, "layer": 0, "out": self.out}
        self.returned = self.kernel.verify(**{**given, **changes})
        return self.program.launches[-1][3]

    def inputs_with(self, **changes: torch.Tensor) -> dict[str, torch.Tensor]:
        return {**self.inputs, **changes}


def addresses(values: dict[str, Any], names: Any) -> list[int]:
    return [values[name] for name in names]


def test_every_tensor_of_a_call_is_the_one_given() -> None:
    rounds = Rounds()
    rounds.verify()
    for _ in range(3):
        inputs = inputs_for(rounds.kernel, 5)
        slots, out = rounds.slots.clone(), torch.zeros(5, 4, 48, dtype=torch.bfloat16)
        values = rounds.verify(inputs=inputs, slots=slots, out=out)
        assert addresses(values, inputs) == [x.data_ptr() for x in inputs.values()]
        assert (values["slots"], values["out"]) == (slots.data_ptr(), out.data_ptr())
        returned, factors = rounds.returned
        assert returned is out
        assert all(x is y for x, y in zip(factors.inputs, inputs.values(), strict=True))
        assert set(factors.pointers) >= {inputs["k"].data_ptr(), values["mixed"], values["state"]}


def test_a_tensor_that_moved_its_memory_is_followed() -> None:
    rounds = Rounds()
    rounds.verify()
    moved = torch.zeros(5, 2, 32, dtype=torch.bfloat16)
    rounds.inputs["k"].data = moved
    assert rounds.verify()["k"] == moved.data_ptr()
    rounds.inputs["k"].resize_(5, 2, 16)  # the same object at the same address
    with pytest.raises(ArgumentError, match=r"k is \[5, 2, 16\], expected"):
        rounds.verify()


def test_other_strides_are_passed_on_and_bad_ones_refused() -> None:
    rounds = Rounds()
    assert rounds.verify()["q_stride"] == 64
    packed = torch.zeros(5, 320, dtype=torch.bfloat16)
    values = rounds.verify(inputs=rounds.inputs_with(q=packed[:, :64].unflatten(1, (2, 32))))
    assert values["q_stride"] == 320
    assert rounds.verify()["q_stride"] == 64
    bad = torch.zeros(5, 2, 64, dtype=torch.bfloat16)[:, :, ::2]
    with pytest.raises(ArgumentError, match="only the distance between tokens is free"):
        rounds.verify(inputs=rounds.inputs_with(q=bad))


def test_misalignment_is_noticed_after_good_calls() -> None:
    rounds = Rounds()
    rounds.verify()
    off = torch.zeros(5 * 64 + 3, dtype=torch.bfloat16)[3:].view(5, 2, 32)
    with pytest.raises(ArgumentError, match="k begins at an address that is 6 above"):
        rounds.verify(inputs=rounds.inputs_with(k=off))
    assert rounds.verify()["k"] == rounds.inputs["k"].data_ptr()


def test_new_trees_reach_the_kernels() -> None:
    rounds = Rounds()
    rounds.verify()
    other = rounds.kernel.tree_batch([-1, 0, 1, -1, -1], CU)  # as many requests and nodes
    values = rounds.verify(tree=other)
    assert values["ancestors"] == other.ancestors.data_ptr()
    assert rounds.returned[1].tree is other
    fewer = rounds.kernel.tree_batch([-1, 0, 0], [0, 3])
    assert rounds.verify(tree=fewer)["depths"] == fewer.depth.data_ptr()
    assert rounds.program.launches[-1][1] == 1
    assert rounds.verify()["ancestors"] == rounds.tree.ancestors.data_ptr()
    assert rounds.program.launches[-1][1] == 3


def test_layers_pools_and_workspaces_keep_their_own() -> None:
    rounds = Rounds()
    wide = rounds.kernel.workspace(3, 12, 2)
    for space in (rounds.space, wide):
        for layer in (0, 1, 0):
            for at in (1, 0):
                values = rounds.verify(
                    pool_layer=rounds.pool.layer(at), workspace=space, layer=layer
                )
                assert values["state"] == rounds.pool.layer(at).state.data_ptr()
                assert values["mixed"] == space.layer(layer).tensors[0].data_ptr()
                assert values["capacity"] == space.max_total_nodes
    for layer in (2, -1):
        with pytest.raises(LaunchError, match=f"layer {layer} is not one of the workspace's 2"):
            rounds.verify(layer=layer)


def test_outputs_are_given_or_made_anew() -> None:
    rounds = Rounds()
    rounds.verify()
    made = []
    for _ in range(3):
        values = rounds.verify(out=None)
        made.append(rounds.returned[0])
        assert values["out"] == made[-1].data_ptr()
        assert (made[-1].shape, made[-1].dtype) == ((5, 4, 48), torch.bfloat16)
    assert len({x.data_ptr() for x in made}) == 3
    wide = torch.zeros(5, 4 * 48 + 16, dtype=torch.bfloat16)[:, :192].unflatten(1, (4, 48))
    assert rounds.verify(out=wide)["out_stride"] == 208
    assert rounds.verify()["out_stride"] == 192


def test_a_failed_call_leaves_nothing_half_prepared(monkeypatch: pytest.MonkeyPatch) -> None:
    rounds = Rounds()
    rounds.verify()
    (last,) = rounds.space.prepared.values()
    whole = type(last.launches).readdress

    def interrupted(self: Any, given: Any) -> None:
        raise KeyboardInterrupt

    others = inputs_for(rounds.kernel, 5)
    monkeypatch.setattr(type(last.launches), "readdress", interrupted)
    with pytest.raises(KeyboardInterrupt):
        rounds.verify(inputs=others)
    monkeypatch.setattr(type(last.launches), "readdress", whole)
    assert rounds.verify()["k"] == rounds.inputs["k"].data_ptr()
    assert rounds.verify(inputs=others)["k"] == others["k"].data_ptr()


def test_a_workspace_that_is_dropped_is_freed() -> None:
    rounds = Rounds()
    rounds.verify(workspace=None)
    rounds.verify()
    dropped = weakref.ref(rounds.space)
    memory = weakref.ref(rounds.space.layer(0).tensors[0])
    del rounds.space, rounds.returned
    gc.collect()
    assert dropped() is None
    assert memory() is None
