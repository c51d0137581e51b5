"""What is emitted for several outputs: one solve, one read of the state, names of their own."""

from __future__ import annotations

import pytest

import boleir
from boleir.codegen.pipeline import Lowered, lower
from boleir.codegen.plan import NoKernel
from boleir.codegen.planner import is_local
from boleir.codegen.request import Shapes
from boleir.codegen.schedule import Schedule
from boleir.codegen.targets import target as find_target
from tests.codegen.several_outputs import TEXTS

SHAPES = Shapes(1, 2, 64, 32, 32, 8)
SPLIT = Schedule(fusion="split", solver="inverse", b_v=16, b_k=64, node_block=32)


def lowered(name: str, output: int | None = None, schedule: Schedule | None = None) -> Lowered:
    recurrence = boleir.parse(TEXTS[name])
    if output is not None:
        recurrence = recurrence.with_output(output)
    return lower(recurrence, SHAPES, schedule=schedule)


def counts(made: Lowered, kernel: str, *parts: str) -> list[int]:
    return [made.kernel(kernel).text.count(part) for part in parts]


def test_the_system_is_solved_and_the_state_read_once() -> None:
    both, one = lowered("two_queries", None, SPLIT), lowered("two_queries", 0, SPLIT)
    solve = ("inverse_residual = ", "minus_g = ", "tl.store(place")
    assert counts(both, "factors", *solve)[:2] == counts(one, "factors", *solve)[:2] != [0, 0]
    assert counts(both, "factors", *solve)[2] == 2 * counts(one, "factors", *solve)[2]
    read = ("tl.load(state", "right = ", "tl.store(out_")
    assert counts(both, "values", *read)[:2] == counts(one, "values", *read)[:2]
    assert counts(both, "values", *read)[2] == 2 * counts(one, "values", *read)[2] > 0
    fused = ("right = ", "u = tl.dot")
    both, one = (
        lowered("surprised", n, Schedule(b_v=16, b_k=64, node_block=32)) for n in (None, 2)
    )
    assert counts(both, "verify", *fused) == counts(one, "verify", *fused)


def test_everything_but_the_reading_is_that_of_one_output() -> None:
    """Where the outputs need the same inputs."""
    both = lowered("value_decays")
    one = lowered("value_decays", 0)
    for name in ("prepare", "unknowns", "commit"):
        assert both.kernel(name).text == one.kernel(name).text


def test_outputs_have_pointers_and_names_of_their_own() -> None:
    made = lowered("surprised")
    assert [readout.pointer for readout in made.plan.readouts] == ["out", "out_2", "out_3"]
    assert made.plan.readouts[1].mark == "_o2"
    assert {"out_stride", "out_2_stride", "out_3_stride"} <= made.aligned_strides
    assert "\n    out_3          bf16 [N, 2, 32]" in made.text
    for name in ("out_tile", "out_tile_o2", "fold1_o3", "share_0_o2", "readout12"):
        assert is_local(name)
    assert not is_local("fold_o") and not is_local("beta_o2")


def test_inputs_leave_the_names_of_the_outputs_there_are() -> None:
    text = TEXTS["channel_writes"].replace("p: key", "out_2: key").replace("^T p", "^T out_2")
    with pytest.raises(NoKernel, match="'out_2' already means something"):
        lower(boleir.parse(text), SHAPES)
    assert lower(boleir.parse(text).with_output(0), SHAPES).plan.readouts


def test_tiles_of_more_outputs_have_the_registers_that_they_need() -> None:
    """By counts of spills; one output keeps the caps that were measured."""
    shapes = Shapes(16, 32, 128, 128, 32, 8)
    caps = {}
    for name, output in (("two_queries", 0), ("two_queries", None), ("surprised", None)):
        recurrence = boleir.parse(TEXTS[name])
        given = recurrence if output is None else recurrence.with_output(output)
        for target in ("sm_90", "sm_80"):
            made = lower(given, shapes, target=find_target(target), batch=16)
            caps[name, len(given.outputs), target] = made.schedule.registers
    assert caps == {
        ("two_queries", 1, "sm_90"): 128,
        ("two_queries", 1, "sm_80"): 128,
        ("two_queries", 2, "sm_90"): 168,
        ("two_queries", 2, "sm_80"): 0,
        ("surprised", 3, "sm_90"): 0,
        ("surprised", 3, "sm_80"): 0,
    }
