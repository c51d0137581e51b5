"""The interface of a layer's kernels: complete, plain, and back from JSON."""

from __future__ import annotations

import json
from typing import Any

import pytest

import boleir
from boleir.codegen.interface import Interface, Operand, interface_of
from boleir.codegen.pipeline import lower
from boleir.codegen.request import Shapes
from boleir.codegen.schedule import Schedule
from boleir.errors import CacheError

SHAPES = Shapes(2, 4, 32, 48, 16, 5)
KNOWN = {
    "cu_nodes",
    "ancestors",
    "depths",
    "near",
    "slots",
    "state",
    "window",
    "out",
    "conv_weight",
}
KNOWN |= {"mixed", "passing", "rows", "folded", "vectors", "decayed", "products", "unknowns"}
KNOWN.add("capacity")
COMMIT = {"table", "batch", "accepted", "target_slots", "track_slots", "track_nodes"}


def face(name: str = "gdn", **schedule: Any) -> Interface:
    """The interface of a kernel with a given schedule."""
    chosen = Schedule(b_v=16, b_k=32, node_block=16, **schedule)
    return interface_of(lower(boleir.load(name), SHAPES, schedule=chosen))


def test_gdn_in_full() -> None:
    found = face()
    assert found.inputs[0] == Operand("q", "key", 2, 32)
    assert [x.shape for x in found.inputs] == [(2, 32), (2, 32), (4, 48), (4,), (4,)]
    assert [x.name for x in found.parameters] == ["A_log", "dt_bias"]
    assert found.convolved == ("q", "k", "v")
    assert (found.kept, found.kept_channels) == (("k", "v"), 64 + 192)
    assert (found.conv_channels, found.conv_width) == (2 * 64 + 192, 4)
    assert (found.dtype, found.state_dtype, found.out_dtype) == ("bfloat16", "float32", "bfloat16")
    assert found.stages == ("prepare", "verify", "commit")
    assert (found.folded, found.unknowns) == (0, 0)
    assert found.planes > 0


def test_schedules_change_the_workspaces() -> None:
    split = face(fusion="split", solver="inverse")
    assert split.stages == ("prepare", "factors", "values", "commit")
    assert split.folded >= 4 * 16 * 16
    stored = face(commit="factors")
    assert stored.unknowns == 1
    assert "unknowns" in stored.table
    assert face("gated_delta_rule", gates="inline").planes == 0


@pytest.mark.parametrize("name", ["gdn", "gated_delta_rule", "mamba2", "gated_delta_product"])
def test_every_argument_of_every_kernel_is_accounted_for(name: str) -> None:
    for options in ({}, {"gates": "inline"}, {"commit": "factors"}):
        lowered = lower(
            boleir.load(name),
            SHAPES,
            schedule=Schedule(b_v=16, b_k=32, node_block=16, **options),
        )
        found = interface_of(lowered)
        own = {x.name for x in (*found.inputs, *found.parameters)}
        strides = {f"{x.name}_stride" for x in found.inputs}
        strides |= {"state_stride", "window_stride", "out_stride"}
        for kernel in lowered.kernels:
            given = {argument for argument, _ in kernel.arguments}
            assert given <= own | strides | KNOWN | COMMIT, kernel.name
        assert set(found.table) <= own | KNOWN


def test_json_and_back() -> None:
    for found in (face(), face(fusion="split", solver="inverse")):
        assert Interface.from_json(json.loads(json.dumps(found.to_json()))) == found
    static = interface_of(lower(boleir.load("gdn"), Shapes(1, 1, 16, 16, 2, 1, parents=(-1, 0))))
    assert Interface.from_json(json.loads(json.dumps(static.to_json()))) == static


def test_what_is_no_interface_is_refused() -> None:
    values = face().to_json()
    del values["planes"]
    with pytest.raises(CacheError, match="is not understood"):
        Interface.from_json(values)
    with pytest.raises(CacheError, match="is not understood"):
        Interface.from_json({**face().to_json(), "new": 1})


def test_names_are_plain_strings() -> None:
    found = face()
    names = [x.name for x in (*found.inputs, *found.parameters)]
    assert all(type(name) is str for name in (*names, *found.convolved, *found.table))
