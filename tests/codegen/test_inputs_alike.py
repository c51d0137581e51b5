"""Inputs that one branch serves: what is chosen for a unit belongs to the input of the unit."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from boleir.codegen.emit.commit_inputs import keep_for_commit
from boleir.codegen.emit.inputs_alike import Alike, alike
from boleir.codegen.pipeline import lower
from boleir.codegen.plan import Mixed
from boleir.codegen.planner import make_plan
from boleir.codegen.request import Shapes
from boleir.codegen.schedule import Schedule
from boleir.derive.derive import derive
from boleir.library import resolve

CHOOSING = {"tl": SimpleNamespace(where=np.where, multiple_of=lambda value, by: value)}


def mixed() -> tuple[Mixed, ...]:
    plan = make_plan(derive(resolve("gdn")).normal, 32, 32, 2, 4)
    return keep_for_commit(plan, Schedule()).mixed


def chosen(text: str, unit: int) -> int:
    return int(eval(text, {**CHOOSING, "unit": unit}))


@pytest.mark.parametrize("units", [(2, 2, 4), (1, 1, 1), (3, 5, 2)])
def test_every_unit_gets_what_belongs_to_its_input(units: tuple[int, ...]) -> None:
    group = Alike(mixed(), units)
    expected = [(at, own) for at, count in enumerate(units) for own in range(count)]
    numbers = {m: at for at, m in enumerate(group.inputs)}
    for unit, (at, own) in enumerate(expected):
        assert chosen(group.choose(lambda m: str(numbers[m])), unit) == at
        assert chosen(group.own_unit, unit) == own
        tests = [eval(group.test(x) or "True", {"unit": unit}) for x in range(3)]
        assert tests == [x == at for x in range(3)]


def test_equal_values_need_no_choice() -> None:
    group = Alike(mixed(), (2, 2, 4))
    assert group.choose(lambda m: "7") == "7"
    assert group.choose(lambda m: m.buffer) == "tl.where(unit < 2, passing, mixed)"
    assert group.choose_aligned(lambda m: "7") == "7"
    assert group.choose_aligned(lambda m: m.buffer).startswith("tl.multiple_of(tl.where(")
    assert group.choose_aligned(lambda m: m.buffer, aligned=False).startswith("tl.where(")


def test_one_input_is_chosen_without_a_test() -> None:
    group = Alike(mixed()[:1], (4,))
    assert (group.own_unit, group.test(0)) == ("unit", None)


def test_only_neighbours_with_the_same_key_are_alike() -> None:
    q, k, v = mixed()
    groups = alike((q, k, v), lambda m: m.source.kind, lambda m: 2)
    assert [g.names for g in groups] == ["q, k", "v"]
    other = replace(k, functions=())
    groups = alike((q, other, v), lambda m: m.functions, lambda m: 2)
    assert [g.names for g in groups] == ["q", "k", "v"]


@pytest.mark.parametrize(("d_v", "branches"), [(128, ["q, k, v"]), (64, ["q, k", "v"])])
def test_heads_of_another_width_have_a_branch_of_their_own(d_v: int, branches: list[str]) -> None:
    text = lower(resolve("gdn"), Shapes(2, 4, 128, d_v, 16, 4)).kernel("prepare").text
    assert [x for x in branches if f"# {x}: convolution, then silu" in text] == branches
    assert text.count(": convolution, then silu") == len(branches)
