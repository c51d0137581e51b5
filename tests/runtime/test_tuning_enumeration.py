"""Enumerating and predicting a space: quick, and the same as asking point by point."""

from __future__ import annotations

import random
from dataclasses import replace
from itertools import islice
from typing import Any

import pytest

import boleir
from boleir.cli.main import main
from boleir.codegen.defaults import default_schedule
from boleir.codegen.pipeline import lower
from boleir.codegen.planner import make_plan
from boleir.codegen.request import Shapes
from boleir.codegen.schedule import Schedule
from boleir.codegen.schedule_limits import validate
from boleir.codegen.targets import target
from boleir.derive.derive import derive
from boleir.runtime.tuning import preview as preview_module
from boleir.runtime.tuning.autotune import space_of
from boleir.runtime.tuning.choice import complexity
from boleir.runtime.tuning.cost_model import predict
from boleir.runtime.tuning.keys import TuningKey, key_of
from boleir.runtime.tuning.predictions import UNSEEN, Predictions
from boleir.runtime.tuning.space import FREE, LATE, Space
from tests.codegen.key_decays import WALKED
from tests.runtime.tuning_support import GATED, SM_90, key


def space(name: str, nodes: int, d_k: int, d_v: int, on: str = "sm_90") -> Space:
    """A small layer's space."""
    recurrence = boleir.load(name)
    of = key_of(recurrence, Shapes(2, 4, d_k, d_v, nodes, min(8, nodes - 1)), 1)
    assert of is not None
    return space_of(recurrence, of, target(on))


@pytest.mark.parametrize(
    ("name", "nodes", "d_k", "d_v", "on"),
    [
        ("gated_delta_rule", 64, 128, 128, "sm_90"),
        ("gated_delta_product", 256, 128, 128, "sm_120"),
        ("kda", 16, 64, 32, "sm_90"),
        ("gated_oja", 64, 64, 64, "sm_80"),
    ],
)
def test_enumeration_finds_what_asking_finds(
    name: str, nodes: int, d_k: int, d_v: int, on: str
) -> None:
    some = space(name, nodes, d_k, d_v, on)
    points = set(some)
    rng = random.Random(nodes)
    met = 0
    for _ in range(1500):
        thrown = {
            field: part.default if field in LATE else part.random(rng)
            for field, part in some.fragments.items()
        }
        point = some.canonical(Schedule(**thrown))
        sizes = point.b_k <= d_k and point.b_v <= d_v
        assert (point in some and sizes) == (point in points), point.label
        met += point in points
    assert met > 5


def test_limits_are_asked_for_once(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []
    real = validate

    def counted(*arguments: Any) -> None:
        calls.append(1)
        real(*arguments)

    monkeypatch.setattr("boleir.runtime.tuning.space.validate", counted)
    points = list(space_of(GATED, key(16, 5), SM_90))
    assert len(points) > 5 * len(calls)


@pytest.mark.parametrize(
    ("name", "nodes"), [("gated_delta_rule", 64), ("gdn", 128), ("kda", 128), ("gated_oja", 64)]
)
def test_predictions_are_those_of_the_model(name: str, nodes: int) -> None:
    some = space(name, nodes, 64, 64)
    known = Predictions(some.plan, some.shapes, some.target, 16)
    for point in islice(some, 0, 20000, 211):
        for other in (
            point,
            replace(point, prefetch=not point.prefetch),
            replace(point, path_sum="dot", factor_registers=128),
            replace(point, order="heads", pdl=not point.pdl),
        ):
            fresh = predict(other, some.plan, some.shapes, some.target, 16)
            assert known(other) == fresh, other.label
    assert set(UNSEEN) <= {*FREE, *LATE}


def test_dependent_launches_are_left_out_where_targets_have_them_alone() -> None:
    for on in ("sm_80", "sm_90"):
        some = space("gated_delta_rule", 16, 32, 32, on)
        default = some.finished(default_schedule(some.plan, some.shapes))
        assert {point.pdl for point in islice(some, 500)} == {target(on).pdl}
        around = {point.pdl for point in some.neighbours(default)}
        assert around == ({False, True} if target(on).pdl else {False})


@pytest.mark.parametrize(("name", "d_k"), [("two_pairs", 64), ("kda", 32)])
def test_sums_by_channel_are_enumerated_where_they_exist(name: str, d_k: int) -> None:
    """Two pairs have none; few channels have none where warps multiply in groups."""
    made = boleir.parse(WALKED[name]) if name in WALKED else boleir.load(name)
    plan = make_plan(derive(made).normal, d_k, 64, 2, 2)
    some = Space(plan, Shapes(2, 2, d_k, 64, 64, 5), SM_90)
    points = list(islice(some, 0, 40000, 5))
    assert points
    assert all(point in some for point in points)
    assert any(point.path_sum == "dot" for point in points) == (name == "kda")


def test_best_first_is_by_time_and_then_by_simplicity() -> None:
    some = space("gated_delta_rule", 16, 32, 32)
    known = Predictions(some.plan, some.shapes, some.target, 1)
    ranked = known.best_first(some)
    keys = [(known(point).us, complexity(point)) for point in ranked]
    assert keys == sorted(keys)
    assert len(ranked) == len(set(ranked)) == len(list(some))


@pytest.mark.parametrize(
    ("name", "d_k", "d_v"), [("gated_delta_rule", 16, 16), ("kda", 8, 16), ("gated_oja", 16, 12)]
)
def test_small_heads_have_a_space(name: str, d_k: int, d_v: int) -> None:
    some = space(name, 8, d_k, d_v)
    points = list(islice(some, 4000))
    assert points
    assert {point.b_k for point in points} == {16}
    default = some.finished(default_schedule(some.plan, some.shapes))
    assert default in some
    point = some.random(random.Random(1))
    assert point is not None
    assert some.neighbours(point)
    recurrence = boleir.load(name)
    assert lower(recurrence, some.shapes, schedule=point, target=SM_90).schedule == point


def test_larger_heads_have_no_small_key_chunks() -> None:
    assert {point.b_k for point in space("gated_delta_rule", 16, 60, 96)} == {32, 64}


def test_a_dry_run_prints_key_by_key(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    real = preview_module.preview
    seen: list[str] = []

    def second_never_comes(recurrence: Any, of: TuningKey, *rest: Any) -> Any:
        seen.append(capsys.readouterr().out)
        if len(seen) == 2:
            raise KeyboardInterrupt
        return real(recurrence, of, *rest)

    monkeypatch.setattr(preview_module, "preview", second_never_comes)
    argv = ["autotune", "gated_delta_rule", "--dry-run", "--dims", "16x16", "--nodes", "8"]
    assert main([*argv, "--depth", "2", "--batch", "1,16", "--target", "sm_90"]) == 130
    assert "nodes 8x2 batch 1, sm_90:" in seen[1]
    assert "tried first" in seen[1]
