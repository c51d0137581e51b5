"""The harness: a right subject passes, each kind of wrong one is caught, reports are complete."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from benchmarks import table
from benchmarks.measure import capture, check, faults, measure, stage_sum
from benchmarks.protocol import HostClock, Timing, interleaved
from benchmarks.serving_shapes import LINEAR_LAYERS_PER_MODEL, Kind, LayerShape, Row
from benchmarks.subject import Subject
from benchmarks.torch_subject import TorchSubject
from benchmarks.workload import Workload, layer_count, make_workload

SMALL = LayerShape("small", key_heads=2, value_heads=4, d_k=16, d_v=8)
ROW = Row(2, 7, 3)


@pytest.fixture
def work() -> Workload:
    return make_workload(SMALL, ROW, layers=2, dtype=torch.float32)


def errors_of(subject: Subject, work: Workload) -> dict[str, float]:
    clock = HostClock()
    return check(capture(subject, work, clock), work, clock)


@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize("row", [ROW, Row(1, 1, 0), Row(3, 4, 3)], ids=str)
def test_plain_torch_is_exact(row: Row, full: bool) -> None:
    work = make_workload(SMALL, row, layers=2, dtype=torch.float32)
    errors = errors_of(TorchSubject(work, full=full), work)
    assert errors["verify_max"] < 2e-6
    assert errors["commit"] < 2e-6
    assert errors["state_changed"] == 0
    assert ("conv" in errors) == full
    if full:
        assert errors["conv"] < 2e-6
        assert errors["window_wrong"] == 0
    assert faults(errors) == []


@pytest.mark.parametrize("kind", ["gdn", "kda"])
def test_both_kinds_of_decay(kind: Kind) -> None:
    shape = LayerShape("equal", key_heads=3, value_heads=3, d_k=16, d_v=8)
    work = make_workload(shape, ROW, layers=2, kind=kind, dtype=torch.float32)
    assert errors_of(TorchSubject(work, full=True), work)["verify_max"] < 2e-6


@pytest.mark.parametrize(("kind", "full"), [("kda", False), ("gdn", False), ("gdn", True)])
def test_boleir_is_measured_on_the_peers_tensors(
    kind: Kind, full: bool, run_interpreted: Callable[..., Any]
) -> None:
    where = "tests.benchmarks.interpreted_subject:errors"
    errors = run_interpreted(where, kind=kind, full=full)
    assert faults(errors) == []
    assert errors["verify_max"] < 2e-5


class Silent(TorchSubject):
    """Leaves the outputs as they were."""

    def verify(self) -> None:
        pass


class OneNodeWrong(TorchSubject):
    """Shifts the output of one node of 14."""

    def verify(self) -> None:
        super().verify()
        self.out[self.layer, 5] += 0.5 * self.out[self.layer, 5].abs().mean()


class WritesTheState(TorchSubject):
    """Touches memory that verification must only read."""

    def verify(self) -> None:
        super().verify()
        self.work.pool[self.layer, 0, 0, 0, 0] = 1.0


class ForgetsALayer(TorchSubject):
    """Commits all layers but the last."""

    def commit(self) -> None:
        kept = self.work.pool[-1].clone()
        super().commit()
        self.work.pool[-1] = kept


class ForgetsTheWindow(TorchSubject):
    """Commits the states alone."""

    def commit(self) -> None:
        kept = self.work.window.clone()
        super().commit()
        self.work.window.copy_(kept)


@pytest.mark.parametrize(
    ("subject", "fault"),
    [
        (Silent, "verify_max"),
        (OneNodeWrong, "verify_max"),
        (WritesTheState, "state_changed"),
        (ForgetsALayer, "commit"),
        (ForgetsTheWindow, "window_wrong"),
    ],
)
def test_wrong_subjects_are_caught(subject: type[TorchSubject], fault: str, work: Workload) -> None:
    assert fault in faults(errors_of(subject(work, full=True), work))


def test_a_check_leaves_the_workload_as_it_was(work: Workload) -> None:
    errors_of(TorchSubject(work, full=True), work)
    assert torch.equal(work.pool, work.initial_pool)
    assert torch.equal(work.window, work.initial_window)


def failing(work: Workload) -> Subject:
    raise RuntimeError("no such kernel")


def test_one_failure_does_not_stop_the_others(work: Workload) -> None:
    factories = {"bad": failing, "torch": lambda w: TorchSubject(w, full=True)}
    report = measure(work, factories, HostClock(), rounds=3)
    assert report["bad"] == {"failed": "RuntimeError: no such kernel"}
    good = report["torch"]
    assert good["wrong"] == []
    assert set(good["stages"]) == {"whole", "conv", "verify", "commit"}
    assert good["stages"]["verify"]["samples"] == 3
    assert good["sum"] > 0
    assert good["host"] > 0


def test_sum_shares_the_topology_and_leaves_out_the_window() -> None:
    times = {"topology": float(LINEAR_LAYERS_PER_MODEL), "conv": 2.0, "verify": 3.0}
    times |= {"commit": 4.0, "window": 50.0}
    stages = {name: {"median": time} for name, time in times.items()}
    assert stage_sum(stages) == 1.0 + 2.0 + 3.0 + 4.0


def test_timing_is_the_median_per_layer() -> None:
    timing = Timing.of([40.0, 10.0, 20.0, 1000.0], layers=10)
    assert (timing.median, timing.fastest, timing.slowest, timing.samples) == (3.0, 1.0, 100.0, 4)
    calls: list[str] = []
    replays = {name: (lambda name=name: calls.append(name), 1) for name in "ab"}
    interleaved(HostClock(), replays, rounds=2)
    assert calls == ["a", "b"] * 3


def test_layer_count_exceeds_three_times_the_cache() -> None:
    shape = LayerShape("nine", key_heads=16, value_heads=32)
    l2 = 60 * 2**20
    for row in (Row(1, 16, 5), Row(16, 64, 8)):
        layers = layer_count(shape, row, l2)
        assert layers * row.batch * shape.state_elements * 4 >= 0.6 * 3 * l2
    assert layer_count(shape, Row(1, 16, 5), l2) > layer_count(shape, Row(16, 64, 8), l2)


def test_tables_show_ratios_and_failures(work: Workload) -> None:
    def subject(time: float, wrong: list[str]) -> dict[str, object]:
        stages = {stage: {"median": time} for stage in ("verify", "commit", "whole")}
        errors = {"verify_max": 1e-3, "commit": 2e-6}
        return {"stages": stages, "errors": errors, "wrong": wrong, "sum": 2 * time, "host": 1.0}

    case = {
        "layer": "small",
        "row": "1x16x5",
        "mode": "core",
        "floor_us": {"conv": 1.0, "verify": 2.0, "commit": 3.0},
        "subjects": {
            "boleir": subject(5.0, []),
            "sglang": subject(60.0, ["verify_max"]),
            "torch": {"failed": "out of memory"},
        },
    }
    place = {"device": "Some GPU", "driver": "1", "torch": "2", "triton": "3", "command": "run"}
    report = {"environment": place, "copy_bandwidth": 4e12, "cases": [case]}
    text = table.markdown(report)
    assert "12.0x" in text  # 60 / 5
    assert "2.5x" in text  # 5 / 2, over the floor
    assert "(wrong)" in text
    assert "failed" in text
    assert "4.00 TB/s" in text
