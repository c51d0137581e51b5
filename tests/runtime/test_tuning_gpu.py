"""Tuning on a real GPU: kernels are checked and timed, accidents are survived."""

from __future__ import annotations

import gc
import random
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

import boleir
from boleir.codegen.artifact import Artifact
from boleir.codegen.pipeline import lower
from boleir.codegen.request import Shapes
from boleir.codegen.schedule import Schedule
from boleir.codegen.targets import Target
from boleir.runtime.tuning import autotune
from boleir.runtime.tuning.candidates import Candidate, ParallelCompiler
from boleir.runtime.tuning.effort import EFFORT_LEVELS, Effort
from boleir.runtime.tuning.entry import Policy
from boleir.runtime.tuning.keys import TuningKey, key_of
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


def test_a_whole_tuning_is_refused_inside_a_real_capture(on: autotune.Bench) -> None:
    import torch

    from boleir.runtime.loader import device_target

    target = device_target(0)
    graph = torch.cuda.CUDAGraph()
    value = torch.zeros(1, device="cuda")
    with torch.cuda.graph(graph):
        value += 1
        with pytest.raises(autotune.TuningRefused, match="being captured"):
            autotune.tune(GATED, [key()], target, on, effort="quick", policy=LIGHT)
    graph.replay()
    assert value.item() == 1  # and the capture is none the worse for it
    assert on.store.files() == []


def test_a_tuning_leaves_the_users_memory_alone(
    on: autotune.Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    import torch

    from boleir.runtime.loader import device_target

    monkeypatch.setitem(EFFORT_LEVELS, "quick", Effort(2, 0, 0))
    torch.manual_seed(5)
    sizes = (1, 1000, 1 << 20, 1 << 26)
    mine = [torch.randn(size, device="cuda") for size in sizes]
    kept = [tensor.cpu() for tensor in mine]
    torch.cuda.synchronize()
    gc.collect()  # what other tests have left in cycles may go at any time
    before = torch.cuda.memory_allocated(), torch.cuda.current_device(), torch.cuda.get_rng_state()
    (found,) = autotune.tune(GATED, [key()], device_target(0), on, effort="quick", policy=LIGHT)
    assert found.chosen is not None
    torch.cuda.synchronize()
    assert (torch.cuda.memory_allocated(), torch.cuda.current_device()) == before[:2]
    assert torch.equal(torch.cuda.get_rng_state(), before[2])
    for tensor, was in zip(mine, kept, strict=True):
        assert torch.equal(tensor.cpu(), was)


RANDOM_KEYS = (
    ("gated_delta_rule", 64, 8, 128, 128),
    ("gdn", 16, 5, 128, 128),
    ("gated_delta_product", 32, 8, 64, 64),
    ("kda", 64, 8, 64, 128),
    ("gated_oja", 16, 5, 64, 64),
    ("gated_delta_rule", 128, 16, 60, 96),
)
"""Recurrence, nodes, depth, d_k, d_v: of every family of kernels one."""


def random_candidates(
    name: str, nodes: int, depth: int, d_k: int, d_v: int, target: Target, count: int = 4
) -> tuple[TuningKey, list[Candidate]]:
    """Different points of a space, by chance, with their kernels; outputs in float32."""
    recurrence = boleir.load(name)
    sizes = Shapes(2, 4, d_k, d_v, nodes, depth, out_dtype="float32")
    of = key_of(recurrence, sizes, 1)
    assert of is not None
    space = autotune.space_of(recurrence, of, target)
    rng = random.Random(f"{name} {nodes}")
    points: dict[Schedule, None] = {}
    while len(points) < count:
        point = space.random(rng)
        assert point is not None
        points[point] = None
    lowered = {p: lower(recurrence, of.shapes, schedule=p, target=target) for p in points}
    return of, [Candidate(point, made) for point, made in lowered.items()]


@pytest.mark.parametrize("sizes", RANDOM_KEYS, ids=lambda sizes: f"{sizes[0]}-{sizes[1]}")
def test_random_points_of_the_space_compute_what_the_float64_walk_does(
    sizes: tuple[str, int, int, int, int],
) -> None:
    """Each is checked in a worker process with a limit, which may die or hang. A point that the
    compiler refuses is no wrong result; most must not be refused."""
    from boleir.runtime.loader import device_target

    target = device_target(0)
    of, candidates = random_candidates(*sizes, target)
    compiler, timer = ParallelCompiler(), WorkerTimer(0, timeout=60.0)
    policy = Policy(replays=1, working_set=1)
    try:
        made = list(compiler.compile(candidates, target))
        kernels = [(item, result) for item, result in made if isinstance(result, Artifact)]
        assert 2 * len(kernels) >= len(candidates), [str(result) for _, result in made]
        wrong = {}
        for item, result in kernels:
            found = timer.measure(result, of, policy)
            if found.failure is not None:
                wrong[item.schedule.label] = found.failure
    finally:
        timer.close()
        compiler.close()
    assert not wrong
