"""Checking and timing: the process that may die, the inputs, the judgement, a real measurement."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import boleir
from boleir.check.check import KernelRun
from boleir.check.inputs import round_bf16
from boleir.codegen.request import Shapes
from boleir.runtime.tuning.entry import Policy
from boleir.runtime.tuning.keys import TuningKey, key_of
from boleir.runtime.tuning.measure_worker import Answerer, failed
from boleir.runtime.tuning.timer import Measured, WorkerTimer
from boleir.runtime.tuning.trial_inputs import (
    CONVOLVED_LIMIT,
    bounded_parents,
    excess_error,
    judge,
    trials,
)
from tests.codegen.sample import artifact
from tests.runtime.tuning_support import key

POLICY = Policy(cases=1)


@pytest.fixture
def starts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("STARTS", str(tmp_path / "starts"))
    return tmp_path / "starts"


def named(name: str) -> Any:
    from dataclasses import replace

    return replace(artifact("sm_90"), name=name)


@pytest.fixture
def timer(starts: Path) -> Any:
    made = WorkerTimer(timeout=3.0, start=120.0, worker="tests.runtime.misbehaving_timer")
    yield made
    made.close()


def test_one_process_serves_many_candidates(timer: WorkerTimer, starts: Path) -> None:
    for _ in range(3):
        assert timer.measure(named("good"), key(), POLICY) == Measured(5.5, 1e-6)
    assert timer.measure(named("wrong"), key(), POLICY).failure == "wrong output: error 1.0e+00"
    assert len(starts.read_text().splitlines()) == 1
    timer.measure(named("good"), key(batch=16), POLICY)
    assert len({line.split()[0] for line in starts.read_text().splitlines()}) == 1


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("hang", "no result after 3 s"),
        ("crash", "SIGABRT: CUDA error: illegal memory access"),
        ("poison", "RuntimeError: illegal memory access"),
        ("leave", "exit status 7"),
        ("list", "its answer was '[1]'"),
    ],
)
def test_after_an_accident_the_next_candidate_gets_a_new_process(
    timer: WorkerTimer, starts: Path, name: str, reason: str
) -> None:
    assert timer.measure(named("good"), key(), POLICY).us == 5.5
    bad = timer.measure(named(name), key(), POLICY)
    assert bad.us is None
    assert bad.failure is not None and reason in bad.failure
    assert timer.measure(named("good"), key(), POLICY).us == 5.5
    processes = {line.split()[0] for line in starts.read_text().splitlines()}
    assert len(processes) == 2


@pytest.mark.parametrize("name", ["text", "infinite"])
def test_what_is_no_time_is_a_failure(timer: WorkerTimer, name: str) -> None:
    found = timer.measure(named(name), key(), POLICY)
    assert (found.us, found.error) == (None, None)
    assert found.failure is not None and "process answered" in found.failure
    assert timer.measure(named("good"), key(), POLICY).us == 5.5


def test_trouble_with_files_is_a_failure(
    timer: WorkerTimer, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("boleir.runtime.tuning.timer.write", full)
    found = timer.measure(named("good"), key(), POLICY)
    assert found == Measured(failure="it could not be measured: No space left on device")


def test_a_process_that_cannot_begin_is_a_reason(
    timer: WorkerTimer, starts: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REFUSE", "1")
    failure = timer.measure(named("good"), key(), POLICY).failure
    assert failure == "the measuring process could not begin: RuntimeError: no driver"


@pytest.mark.parametrize(
    ("visible", "device", "seen"), [("", 1, "1"), ("4,6", 1, "6"), ("GPU-a,GPU-b", 0, "GPU-a")]
)
def test_a_process_sees_one_gpu(
    starts: Path, monkeypatch: pytest.MonkeyPatch, visible: str, device: int, seen: str
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    timer = WorkerTimer(device, worker="tests.runtime.misbehaving_timer")
    try:
        timer.measure(named("good"), key(), POLICY)
    finally:
        timer.close()
    assert starts.read_text().split()[1] == seen


@pytest.mark.parametrize(("nodes", "depth"), [(1, 0), (2, 1), (16, 5), (64, 8), (64, 63), (9, 1)])
def test_trees_reach_their_bounds(nodes: int, depth: int) -> None:
    parents = bounded_parents(nodes, depth, 3)
    level: list[int] = []
    for node, parent in enumerate(parents):
        assert parent < node
        level.append(0 if parent < 0 else level[parent] + 1)
    assert (len(parents), max(level)) == (nodes, depth)
    assert parents == bounded_parents(nodes, depth, 3)


def test_only_what_rounding_does_not_explain_is_an_error() -> None:
    exact = np.random.default_rng(0).normal(size=(5, 8, 64))
    assert excess_error(round_bf16(exact), exact, "bfloat16") == 0.0
    assert excess_error(exact.astype(np.float32), exact, "float32") < 1e-7
    off = exact * (1 + 1e-3)
    found = excess_error(round_bf16(off), exact, "bfloat16")
    assert 1e-5 < found < 1.2e-3
    wrong = exact.copy()
    wrong[3, 2] = 0.0
    assert excess_error(round_bf16(wrong), exact, "bfloat16") > 0.1
    wrong[1, 0, 0] = np.nan
    assert excess_error(wrong, exact, "float32") == np.inf


def small(name: str = "gated_delta_rule", dtype: str = "float32", batch: int = 1) -> TuningKey:
    found = key_of(boleir.load(name), Shapes(1, 2, 16, 16, 8, 4, dtype, "float32"), batch)
    assert found is not None
    return found


def test_trials_accept_the_right_and_refuse_the_wrong() -> None:
    of = small(dtype="bfloat16")
    (first, second) = trials(boleir.load("gated_delta_rule"), of, 2)
    right = KernelRun(round_bf16(first.outputs[0]), first.state)
    assert judge(first, right, of) == (pytest.approx(0.0, abs=1e-15), None)
    swapped = KernelRun(round_bf16(second.outputs[0]), first.state)
    error, failure = judge(first, swapped, of)
    assert error > 0.1
    assert failure is not None and "wrong output" in failure and "chain" in failure
    _, failure = judge(first, KernelRun(round_bf16(first.outputs[0]), first.state * 1.001), of)
    assert failure is not None and "wrong commit" in failure
    (convolved,) = trials(boleir.load("gdn"), small("gdn", dtype="bfloat16"), 1)
    assert convolved.limit == CONVOLVED_LIMIT


def measured_interpreted(name: str, broken: bool) -> dict[str, Any]:
    """Called in a process that interprets kernels: what the worker answers for a real kernel."""
    of = small(name, batch=1)
    heads = {"key_heads": 1, "value_heads": 2}
    text = str(boleir.load(name))

    def load(folder: str) -> Any:
        kernel = boleir.compile(
            boleir.parse(text), **heads, d_k=16, d_v=16, max_nodes=8, max_depth=4
        )
        if broken:
            run = kernel.verify

            def off(*arguments: Any, **options: Any) -> Any:
                out, factors = run(*arguments, **options)
                return out * 1.01, factors

            kernel.verify = off
        return kernel

    answer = Answerer(load)
    policy = {"working_set": 1, "replays": 1, "cases": 1, "tie": 0.02, "stages": "verify+commit"}
    assert answer({"do": "measure", "folder": ""}) == {"failure": "no key is open"}
    opened = answer({"do": "open", "key": of.to_json(), "policy": policy})
    assert "ready" in opened, opened
    return answer({"do": "measure", "folder": "unused"})


@pytest.mark.parametrize("name", ["gated_delta_rule", "gdn"])
def test_a_real_kernel_is_checked_and_timed(run_interpreted: Any, name: str) -> None:
    where = "tests.runtime.test_tuning_timer:measured_interpreted"
    found = run_interpreted(where, name=name, broken=False)
    assert found.get("failure") is None
    assert found["us"] > 0
    assert found["error"] < 2e-5


def test_a_broken_kernel_is_not_timed(run_interpreted: Any) -> None:
    where = "tests.runtime.test_tuning_timer:measured_interpreted"
    found = run_interpreted(where, name="gated_delta_rule", broken=True)
    assert "us" not in found
    assert "wrong output" in found["failure"]


def test_errors_of_the_gpu_poison_a_process() -> None:
    from boleir.errors import LaunchError

    assert failed(RuntimeError("CUDA error: an illegal memory access"))["poisoned"]
    assert failed(LaunchError("launch failed: CUDA_ERROR_ILLEGAL_ADDRESS"))["poisoned"]
    assert not failed(LaunchError("no kernel 'x'"))["poisoned"]
    assert "\n" not in failed(RuntimeError("a\nb"))["failure"]


def test_nothing_is_interpreted_in_the_measuring_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRITON_INTERPRET", "1")
    environment = WorkerTimer(0)._environment(Path())
    assert "TRITON_INTERPRET" not in environment
    assert environment["BOLEIR_TUNING"] == "off"
    assert environment["PATH"] == os.environ["PATH"]
