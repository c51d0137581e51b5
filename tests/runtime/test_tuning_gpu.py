"""Tuning on a real GPU: kernels are checked and timed, accidents are survived."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

import boleir
from boleir.codegen.artifact import Artifact
from boleir.codegen.pipeline import lower
from boleir.codegen.schedule import Schedule
from boleir.runtime.tuning import autotune
from boleir.runtime.tuning.candidates import Candidate, ParallelCompiler
from boleir.runtime.tuning.effort import EFFORT_LEVELS, Effort
from boleir.runtime.tuning.entry import Policy
from boleir.runtime.tuning.keys import key_of
from boleir.runtime.tuning.store import Store
from boleir.runtime.tuning.timer import WorkerTimer
from tests.runtime.tuning_support import GATED, key, shapes

pytestmark = pytest.mark.gpu
LIGHT = Policy(replays=5, cases=2)


@pytest.fixture
def on(tmp_path: Path) -> Iterator[autotune.Bench]:
    """The bench of this machine with a store of its own."""
    from boleir.runtime.loader import device_target

    made = replace(autotune.bench(device_target(0), [0]), store=Store(tmp_path))
    yield made
    made.close()


@pytest.mark.parametrize("name", ["gated_delta_rule", "gdn"])
def test_a_small_search_ends_with_a_working_schedule(
    on: autotune.Bench, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    from boleir.runtime.loader import device_target

    monkeypatch.setitem(EFFORT_LEVELS, "quick", Effort(3, 0, 0))
    recurrence = boleir.load(name)
    of = key_of(recurrence, shapes(16, 5), 1)
    assert of is not None
    (found,) = autotune.tune(recurrence, [of], device_target(0), on, effort="quick", policy=LIGHT)
    assert found.chosen is not None, [o.failure for o in found.outcomes]
    for outcome in found.outcomes:
        assert outcome.ok, outcome.failure
        assert outcome.us is not None and 1 < outcome.us < 1000
        assert outcome.error is not None and outcome.error < 3e-3
    assert on.store.load(on.environment, of) == found


def test_a_wild_kernel_is_survived() -> None:
    """A kernel that reads far outside its buffers takes its process with it, not the tuner."""
    from boleir.runtime.loader import device_target

    target = device_target(0)
    schedule = Schedule(b_v=32, node_block=16, warps=2)
    made = lower(GATED, key().shapes, schedule=schedule, target=target)
    marker = "tl.load("
    assert marker in made.text
    start = made.text.index("def verify")
    body = made.text[start:].replace("state +", "state + (1 << 44) +", 1)
    wild = replace(made, text=made.text[:start] + body)
    assert wild.text != made.text
    compiler, timer = ParallelCompiler(), WorkerTimer(0)
    try:
        candidates = [Candidate(schedule, wild), Candidate(schedule, made)]
        found = {c.lowered.text: r for c, r in compiler.compile(candidates, target)}
        bad, good = found[wild.text], found[made.text]
        assert isinstance(bad, Artifact) and isinstance(good, Artifact)
        failure = timer.measure(bad, key(), LIGHT).failure
        assert failure is not None and ("illegal" in failure or "died" in failure), failure
        assert timer.measure(good, key(), LIGHT).us is not None
    finally:
        timer.close()
        compiler.close()


def test_tuning_is_refused_inside_a_real_capture() -> None:
    import torch

    graph = torch.cuda.CUDAGraph()
    value = torch.zeros(1, device="cuda")
    with torch.cuda.graph(graph):
        value += 1
        with pytest.raises(autotune.TuningRefused):
            autotune.refuse_capture()
    autotune.refuse_capture()
