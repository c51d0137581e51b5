"""The space of schedules, the model that orders it, and the measurements that it was fitted to."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from itertools import islice
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest

import boleir
from boleir.codegen.build import SPILL_TOLERANCE
from boleir.codegen.defaults import default_schedule
from boleir.codegen.pipeline import lower
from boleir.codegen.planner import make_plan
from boleir.codegen.request import Shapes
from boleir.codegen.resources import check
from boleir.codegen.schedule import Schedule
from boleir.codegen.schedule_footprint import footprint
from boleir.codegen.schedule_limits import validate
from boleir.codegen.targets import TARGETS, target
from boleir.derive.derive import derive
from boleir.runtime.tuning.autotune import space_of
from boleir.runtime.tuning.buckets import BATCHES, DEPTHS, NODES, bucket, bucketed
from boleir.runtime.tuning.cost_model import BANDWIDTH, MATRIX_RATE, predict
from boleir.runtime.tuning.environment import Environment
from boleir.runtime.tuning.fragments import FRAGMENTS
from boleir.runtime.tuning.keys import key_of
from boleir.runtime.tuning.lookup import tuned_schedule
from boleir.runtime.tuning.rank import rank_correlation
from boleir.runtime.tuning.settings import Settings
from boleir.runtime.tuning.shipped import FOLDER, collections, shipped_entry
from boleir.runtime.tuning.space import Space
from boleir.runtime.tuning.store import Store
from boleir.runtime.tuning.work import floor_bytes, works
from tests.runtime.tuning_support import GATED, HERE, SM_90, key, shapes

ROOT = Path(__file__).resolve().parents[2]
SPACE = space_of(GATED, key(64, 8), SM_90)


# ---- fragments -------------------------------------------------------------------------------


@pytest.mark.parametrize("name", FRAGMENTS)
def test_fragments_go_there_and_back(name: str) -> None:
    fragment = FRAGMENTS[name]
    assert fragment.default in fragment.values
    assert hasattr(Schedule(), name)
    assert fragment.random(random.Random(1)) in fragment.values
    for value in fragment.values:
        assert 0 <= fragment.encode(value) <= 1
        assert fragment.decode(fragment.encode(value)) == value
        around = fragment.neighbours(value)
        assert value not in around
        assert all(value in fragment.neighbours(other) for other in around)


def test_neighbours_of_sizes_are_one_step_away() -> None:
    assert FRAGMENTS["b_v"].neighbours(32) == (16, 64)
    assert FRAGMENTS["b_v"].neighbours(16) == (32,)
    assert set(FRAGMENTS["solver"].neighbours("horner")) == {"levels", "inverse", "product"}
    assert FRAGMENTS["registers"].neighbours(100) == FRAGMENTS["registers"].values


def test_every_field_of_a_schedule_is_a_fragment() -> None:
    assert set(FRAGMENTS) == set(Schedule().to_json())


# ---- the space -------------------------------------------------------------------------------


def test_points_are_valid_different_and_in_a_fixed_order() -> None:
    points = list(islice(SPACE, 3000))
    assert len(set(points)) == len(points)
    assert points == list(islice(space_of(GATED, key(64, 8), SM_90), 3000))
    for point in points[::50]:
        validate(point, SPACE.plan, SPACE.shapes)
        check(footprint(point, SPACE.plan, SPACE.shapes), SM_90, spill=SPILL_TOLERANCE)
        assert SPACE.canonical(point) == point


def test_enumeration_is_lazy(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []
    real = validate

    def counted(*arguments: Any) -> None:
        calls.append(1)
        real(*arguments)

    monkeypatch.setattr("boleir.runtime.tuning.space.validate", counted)
    next(iter(SPACE))
    assert len(calls) < 100


@pytest.mark.parametrize(
    ("name", "nodes", "depth"),
    [("gated_delta_rule", 16, 5), ("gdn", 64, 8), ("gdn", 128, 16), ("delta_rule", 32, 8),
     ("linear_attention", 16, 4), ("kda", 64, 8), ("kda", 128, 16), ("rwkv7", 32, 8)],
)  # fmt: skip
@pytest.mark.parametrize("on", ["sm_80", "sm_90", "sm_120"])
def test_random_points_of_any_recurrence_can_be_emitted(
    name: str, nodes: int, depth: int, on: str
) -> None:
    recurrence = boleir.load(name)
    of = key_of(recurrence, Shapes(4, 8, 64, 64, nodes, depth), 1)
    assert of is not None
    space = space_of(recurrence, of, target(on))
    rng = random.Random(nodes)
    for _ in range(3):
        point = space.random(rng)
        assert point is not None
        assert not point.pdl or target(on).pdl
        assert lower(recurrence, of.shapes, schedule=point, target=target(on)).schedule == point


@pytest.mark.parametrize("nodes", [16, 128])
def test_the_default_schedule_lies_in_the_space(nodes: int) -> None:
    space = space_of(GATED, key(nodes, 8), SM_90)
    points = set(space)
    for batch in (1, 16):
        schedule = default_schedule(space.plan, space.shapes, batch)
        assert space.canonical(schedule) in points


@pytest.mark.parametrize("nodes", [64, 128])
def test_decays_per_channel_have_a_space_and_a_model(nodes: int) -> None:
    space = space_of(boleir.load("kda"), key(nodes, 8), SM_90)
    schedule = default_schedule(space.plan, space.shapes, 16)
    assert space.finished(space.canonical(schedule)) in space
    fusions = {point.fusion for point in islice(space, 0, 80000, 23)}
    assert fusions == ({"split", "joined", "walked"} if nodes <= 64 else {"walked"})
    found = predict(schedule, space.plan, space.shapes, SM_90, 16)
    kernels = ["factors", "values"] if nodes <= 64 else ["prepare", "decays", "factors", "verify"]
    assert list(found.kernels) == kernels
    assert all(us > 0 for us in found.kernels.values())
    one = predict(schedule, space.plan, space.shapes, SM_90, 1)
    assert found.us > one.us


def test_fields_that_do_not_matter_are_not_told_apart() -> None:
    for point in islice(SPACE, 0, 30000, 37):
        if point.fusion == "fused":
            assert (point.factor_warps, point.prefetch, point.path_sum) == (4, False, "select")
            assert point.factor_registers == 0
        else:
            one_block = point.fusion != "split" or SPACE.shapes.max_nodes <= point.node_block
            assert point.commit == "replay"
            narrow = one_block and point.node_block < 64
            assert point.orientation == "values" or not narrow


# ---- buckets ---------------------------------------------------------------------------------


def test_buckets_hold_what_fits() -> None:
    assert [bucket(n, NODES) for n in (1, 8, 9, 64, 65, 256)] == [8, 8, 16, 64, 128, 256]
    assert [bucket(b, BATCHES) for b in (1, 2, 5, 17, 64, 65)] == [1, 4, 16, 64, 64, None]
    assert bucket(300, DEPTHS) is None
    found = bucketed(shapes(12, 5), 3)
    assert found is not None
    assert (found[0].max_nodes, found[0].max_depth, found[1]) == (16, 8, 4)
    narrow = bucketed(shapes(7, 6), 1)
    assert narrow is not None and narrow[0].max_depth == 7
    assert bucketed(shapes(12, 5), 65) is None


def test_any_tree_within_bounds_has_few_keys() -> None:
    keys = {
        key_of(GATED, shapes(nodes, depth), 1)
        for nodes in range(1, 257, 5)
        for depth in range(0, nodes, 17)
    }
    assert None not in keys
    assert len(keys) < len(NODES) * len(DEPTHS)


def test_static_trees_keep_their_topology() -> None:
    tree = (-1, 0, 0, 1)
    found = key_of(GATED, shapes(4, 2, parents=tree), 2)
    assert found is not None
    assert (found.nodes, found.depth, found.batch, found.parents) == (4, 2, 4, tree)
    assert found != key_of(GATED, shapes(4, 2), 2)


# ---- the model -------------------------------------------------------------------------------


def test_rank_correlation() -> None:
    assert rank_correlation([1, 2, 3], [10, 20, 30]) == pytest.approx(1)
    assert rank_correlation([1, 2, 3], [3, 2, 1]) == pytest.approx(-1)
    assert rank_correlation([1, 2, 2, 3], [1, 2, 3, 4]) == pytest.approx(0.9487, abs=1e-4)
    assert rank_correlation([1, 1], [1, 2]) is None
    assert rank_correlation([], []) is None
    with pytest.raises(ValueError, match="1 and 2"):
        rank_correlation([1], [1, 2])


def measurements(name: str = "h200-schedules.json") -> list[dict[str, Any]]:
    path = ROOT / "benchmarks" / "results" / name
    if not path.exists():
        pytest.skip("the measurements are not part of this copy")
    return json.loads(path.read_text())["rows"]


def compared(latest: bool) -> dict[tuple[int, int], list[tuple[float, float]]]:
    """Prediction and measurement by nodes and batch, for the later kernels or for all."""
    found: dict[tuple[int, int], list[tuple[float, float]]] = {}
    for row in measurements():
        sizes = shapes(row["nodes"], row["depth"])
        schedule = Schedule(**row["schedule"])
        if latest and row["revision"] < 3:
            continue
        for time in row["measured"]:
            us = predict(schedule, SPACE.plan, sizes, SM_90, time["batch"]).us
            found.setdefault((row["nodes"], time["batch"]), []).append((us, time["us"]))
    return found


@pytest.mark.parametrize("latest", [True, False])
def test_the_model_orders_what_was_measured(latest: bool) -> None:
    """Kernels of earlier revisions, which the model was fitted to less than to tunings."""
    found = {
        group: rank_correlation([p for p, _ in pairs], [us for _, us in pairs])
        for group, pairs in compared(latest).items()
    }
    assert len(found) == 4
    assert fmean(value or 0.0 for value in found.values()) > (0.6 if latest else 0.4), found
    assert min(value or 0.0 for value in found.values()) > (0.3 if latest else -0.1), found


Times = dict[tuple[str, int, int], list[tuple[float, float]]]
"""Prediction and measurement by recurrence, nodes and requests."""


def candidates(later: bool) -> Times:
    """What tunings measured."""
    found: Times = {}
    for row in measurements("h200-autotune.json"):
        if row["us"] is not None and row["later"] is later:
            name, nodes, batch = row["recurrence"], row["nodes"], row["batch"]
            heads = 32 if name == "kda" else 16
            sizes = Shapes(heads, 32, 128, 128, nodes, row["depth"])
            plan = make_plan(derive(boleir.load(name)).normal, 128, 128, heads, 32)
            us = predict(Schedule(**row["schedule"]), plan, sizes, SM_90, batch).us
            found.setdefault((name, nodes, batch), []).append((us, row["us"]))
    return found


def correlation(pairs: list[tuple[float, float]]) -> float:
    return rank_correlation(*map(list, zip(*pairs, strict=True))) or 0.0


def test_the_model_orders_the_candidates_of_tunings() -> None:
    """All but those of 16 requests of 32 nodes, most of which take about the same time."""
    found = candidates(later=False)
    assert len(found) == 6
    for group, pairs in found.items():
        assert correlation(pairs) > (-0.1 if group[1:] == (32, 16) else 0.4), group
        best = min(us for _, us in pairs)
        assert min(us for _, us in sorted(pairs)[:10]) < 1.03 * best, group


def test_the_model_orders_candidates_that_it_was_not_fitted_to() -> None:
    """Those it had chosen itself, as far as two tunings came."""
    found = candidates(later=True)
    assert len(found) == 2
    for group, pairs in found.items():
        assert correlation(pairs) > 0.2, group
        best = min(us for _, us in pairs)
        assert min(us for _, us in sorted(pairs)[:10]) < 1.1 * best, group


def test_the_best_measured_schedule_is_predicted_well() -> None:
    for group, pairs in compared(latest=True).items():
        best = min(pairs, key=lambda pair: pair[1])
        place = sorted(pairs).index(best)
        assert place <= len(pairs) * 0.6, (group, place, len(pairs))


def test_predictions_behave() -> None:
    sizes = shapes(64, 8)
    some = Schedule(fusion="split", solver="inverse", gates="inline")
    times = [predict(some, SPACE.plan, sizes, SM_90, batch).us for batch in (1, 4, 16, 64)]
    assert times == sorted(times)
    assert times[3] > 3 * times[2] * 0.9
    floor = floor_bytes(SPACE.plan, sizes, 64)
    assert times[3] > floor / 4.8e6  # the H200 moves 4.8 MB in a microsecond
    slower = predict(some, SPACE.plan, sizes, target("sm_121"), 16).us
    assert slower > times[2]
    found = predict(some, SPACE.plan, sizes, SM_90, 16)
    assert list(found.kernels) == ["factors", "values"]
    assert found.occupancy >= 1
    fused = replace(some, fusion="fused", gates="prepare")
    assert [w.kernel for w in works(fused, SPACE.plan, sizes, 1)] == ["prepare", "verify"]


def test_every_target_can_be_predicted() -> None:
    assert set(BANDWIDTH) == set(MATRIX_RATE) == set(TARGETS)
    for name in TARGETS:
        assert predict(Schedule(b_v=32), SPACE.plan, shapes(16, 5), target(name)).us > 0


def test_the_floor_counts_every_byte_once() -> None:
    state, vectors = 32 * 128 * 128 * 4, 2 * 16 * 128 + 32 * 128
    rows = (vectors + 2 * 32 + 32 * 128) * 2
    assert floor_bytes(SPACE.plan, shapes(64, 8), 3) == 3 * (state + 64 * rows)


# ---- what is shipped -------------------------------------------------------------------------


def test_shipped_schedules_are_valid_and_found() -> None:
    assert collections()
    for entry in collections():
        recurrence = boleir.load(entry.key.recurrence)
        assert str(recurrence) == entry.key.text, "the recurrence has changed: tune and ship again"
        space = space_of(recurrence, entry.key, target(entry.environment.arch))
        assert entry.chosen is not None
        assert space.finished(entry.chosen) in space
        here = replace(entry.environment, ptxas="99")
        assert shipped_entry(here, entry.key) == entry
        assert shipped_entry(replace(here, triton="9.9.0"), entry.key) is None
        assert shipped_entry(replace(here, gpu="h100"), entry.key) is None
        assert shipped_entry(here, replace(entry.key, d_v=64)) is None


def test_a_shipped_file_of_another_version_is_a_warning(tmp_path: Path) -> None:
    (tmp_path / "h200.json").write_text('{"format": 1, "entries": [{"content": {}}]}')
    with pytest.warns(UserWarning, match=r"not used: .*h200\.json"):
        assert collections(tmp_path) == ()


def test_shipped_files_are_named_after_their_gpu() -> None:
    for path in FOLDER.glob("*.json"):
        for entry in collections():
            assert path.name.startswith(entry.environment.gpu)


def test_the_own_store_goes_before_what_is_shipped(tmp_path: Path) -> None:
    shipped = next(e for e in collections() if (e.key.nodes, e.key.batch) == (64, 1))
    store = Store(tmp_path)

    def ask(where: Environment) -> Schedule | None:
        return tuned_schedule(
            GATED, shapes(64, 8), SM_90, 1,
            settings=Settings(), store=store, environment=where,
        )  # fmt: skip

    assert ask(HERE) == shipped.chosen
    other = replace(shipped.outcomes[-1], schedule=Schedule(b_v=16))
    own = replace(shipped, environment=HERE, outcomes=(other,))
    assert own.chosen != shipped.chosen
    store.save(own)
    assert ask(HERE) == own.chosen
    assert ask(replace(HERE, gpu="b200")) is None


def test_the_staged_space_holds_its_default_and_is_predicted() -> None:
    sizes = shapes(64, 8)
    form = derive(boleir.load("gated_oja")).normal
    plan = make_plan(form, sizes.d_k, sizes.d_v, sizes.key_heads, sizes.value_heads)
    space = Space(plan, sizes, SM_90)
    points = list(islice(space, 500))
    assert points and all(point.fusion == "staged" for point in points)
    assert len(set(points)) == len(points)
    for batch in (1, 16):
        some = default_schedule(plan, sizes, batch)
        assert some in space
        found = predict(replace(some, pdl=True), plan, sizes, SM_90, batch)
        assert list(found.kernels) == ["prepare", "factors", "unknowns", "values"]
        assert found.us >= sum(found.kernels.values()) * 0.999  # nothing overlaps
    deeper = predict(default_schedule(plan, sizes), plan, shapes(64, 40), SM_90).us
    assert deeper > predict(default_schedule(plan, sizes), plan, sizes, SM_90).us
