"""The search: what is tried, in which order, what is kept, and what becomes of accidents."""

from __future__ import annotations

import random
import threading
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from boleir.codegen.artifact import Artifact
from boleir.codegen.defaults import default_schedule
from boleir.codegen.kernel_spec import CompiledKernel, Job
from boleir.codegen.offline import CompilePool
from boleir.codegen.schedule import Schedule
from boleir.errors import CompileError
from boleir.runtime.tuning import autotune as autotune_module
from boleir.runtime.tuning.autotune import TuningRefused, bench, space_of, tune
from boleir.runtime.tuning.candidates import (
    Candidate,
    ParallelCompiler,
    SharingPool,
    kernel_digest,
)
from boleir.runtime.tuning.effort import EFFORT_LEVELS, FINE, KIND, Effort, first_candidates
from boleir.runtime.tuning.entry import Entry
from boleir.runtime.tuning.progress import bar, line
from boleir.runtime.tuning.space import LATE
from boleir.runtime.tuning.timer import Measured
from tests.runtime.tuning_support import (
    GATED,
    HERE,
    SM_90,
    FakeCompiler,
    FakeTimer,
    entry,
    fake_bench,
    key,
    smooth,
)


@pytest.fixture(autouse=True)
def small_space(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fewer values for what these tests do not look at: they shall be quick."""
    from boleir.runtime.tuning import space
    from boleir.runtime.tuning.fragments import FRAGMENTS, choice, powers

    fewer = {
        **FRAGMENTS,
        "b_k": powers(128, 128, 128),
        "registers": choice((0, 128)),
        "factor_warps": powers(2, 4, 4),
        "commit": choice(("replay",)),
    }
    monkeypatch.setattr(space, "FRAGMENTS", fewer)


def run(root: Path, timer: FakeTimer, effort: str = "quick", **options: Any) -> Entry:
    on, _ = fake_bench(root, timer, compiler=options.pop("compiler", None))
    return tune(GATED, [key()], SM_90, on, effort=effort, **options)[0]


def test_a_search_finds_the_best_and_stores_it(tmp_path: Path) -> None:
    timer = FakeTimer(smooth)
    found = run(tmp_path, timer, "default")
    assert found.chosen is not None
    assert (found.chosen.b_v, found.chosen.warps) == (32, 2)
    on, _ = fake_bench(tmp_path)
    assert on.store.load(HERE, key()) == found
    assert len(timer.asked) == len(set(timer.asked)) == len(found.outcomes)
    assert len(found.outcomes) <= EFFORT_LEVELS["default"].most


def test_the_default_schedule_is_tried_first(tmp_path: Path) -> None:
    timer = FakeTimer(smooth)
    run(tmp_path, timer)
    space = space_of(GATED, key(), SM_90)
    assert timer.asked[0] == default_schedule(space.plan, space.shapes, 1)


def test_a_wider_search_times_only_what_is_new(tmp_path: Path) -> None:
    first, second, third = FakeTimer(smooth), FakeTimer(smooth), FakeTimer(smooth)
    run(tmp_path, first, "quick")
    found = run(tmp_path, second, "default")
    assert second.asked
    assert not set(first.asked) & set(second.asked)
    assert {o.schedule for o in found.outcomes} == {*first.asked, *second.asked}
    run(tmp_path, third, "quick")
    # A search around a better schedule may look at new neighbours; nothing is timed twice.
    assert not set(third.asked) & {*first.asked, *second.asked}


def test_ctrl_c_keeps_what_was_measured_and_the_next_run_goes_on(tmp_path: Path) -> None:
    first = FakeTimer(smooth)

    def interrupted(schedule: Schedule) -> Measured:
        if len(first.asked) == 4:
            raise KeyboardInterrupt
        return smooth(schedule)

    first.formula = interrupted
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path, first)
    on, _ = fake_bench(tmp_path)
    kept = on.store.load(HERE, key())
    assert kept is not None
    assert [o.schedule for o in kept.outcomes] == first.asked[:3]
    second = FakeTimer(smooth)
    run(tmp_path, second)
    assert not set(second.asked) & set(first.asked[:3])
    assert first.asked[3] in second.asked


def test_failures_are_recorded_with_their_reason_and_not_tried_again(tmp_path: Path) -> None:
    def fragile(schedule: Schedule) -> Measured:
        if schedule.fusion == "fused":
            return Measured(failure="the process died (SIGSEGV)")
        return smooth(schedule)

    compiler = FakeCompiler(lambda s: "ptxas gave up" if s.b_v == 128 else None)
    timer = FakeTimer(fragile)
    found = run(tmp_path, timer, "default", compiler=compiler)
    reasons = {o.failure for o in found.outcomes if not o.ok}
    assert "the process died (SIGSEGV)" in reasons
    assert any("ptxas gave up" in str(reason) for reason in reasons)
    assert all(s.b_v != 128 for s in timer.asked)
    assert found.chosen is not None and found.chosen.fusion != "fused"
    again, more = FakeCompiler(), FakeTimer(smooth)
    run(tmp_path, more, "default", compiler=again)
    assert not set(again.asked) & set(compiler.asked)


def test_where_nothing_works_there_is_an_entry_and_no_choice(tmp_path: Path) -> None:
    found = run(tmp_path, FakeTimer(lambda s: Measured(failure="wrong output")))
    assert found.chosen is None
    assert all(o.failure == "wrong output" for o in found.outcomes)
    none = run(tmp_path / "2", FakeTimer(lambda s: Measured()))
    assert {o.failure for o in none.outcomes} == {"no time was measured"}


def test_kernels_that_have_changed_are_timed_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = FakeTimer(smooth)
    run(tmp_path, first)
    monkeypatch.setattr(
        "boleir.runtime.tuning.candidates.source_digest", lambda lowered: "another text"
    )
    second = FakeTimer(smooth)
    found = run(tmp_path, second)
    assert second.asked[:10] == first.asked[:10]
    assert {o.source for o in found.outcomes if o.schedule in second.asked} == {"another text"}


def test_again_forgets(tmp_path: Path) -> None:
    run(tmp_path, FakeTimer(lambda s: Measured(1.0, 0.0)))
    timer = FakeTimer(smooth)
    found = run(tmp_path, timer, again=True)
    assert timer.asked
    assert all(o.us is not None and o.us > 4 for o in found.outcomes)


def test_progress_shows_a_bar_and_the_best_so_far(tmp_path: Path) -> None:
    said: list[str] = []
    run(tmp_path, FakeTimer(smooth), say=said.append)
    assert said[0].startswith("[................] 0/")
    assert "nothing works yet" in said[0]
    assert any("best " in text and " us: " in text for text in said)
    assert bar(3, 4) == "[############....] 3/4"
    assert bar(0, 0) == "[................] 0/0"
    assert "best 5.00 us" in line(1, 2, entry())


def test_several_gpus_share_the_keys(tmp_path: Path) -> None:
    together = threading.Barrier(2, timeout=120)
    met: set[int] = set()

    def slow(name: int) -> Any:
        def formula(schedule: Schedule) -> Measured:
            if name not in met:
                met.add(name)
                together.wait()  # both must be measuring at the same time
            return smooth(schedule)

        return formula

    timers = FakeTimer(slow(0)), FakeTimer(slow(1))
    on, _ = fake_bench(tmp_path, *timers)
    keys = [key(batch=b) for b in (1, 4, 16)]
    found = tune(GATED, keys, SM_90, on, effort="quick")
    assert [e.key for e in found] == keys
    assert all(e.chosen for e in found)
    assert timers[0].asked and timers[1].asked


def test_an_error_on_one_of_several_gpus_is_raised(tmp_path: Path) -> None:
    def broken(schedule: Schedule) -> Measured:
        raise ZeroDivisionError("oops")

    on, _ = fake_bench(tmp_path, FakeTimer(broken), FakeTimer(broken))
    with pytest.raises(ZeroDivisionError):
        tune(GATED, [key(), key(batch=16)], SM_90, on, effort="quick")


def test_an_error_on_one_gpu_ends_the_others_and_keeps_their_results(tmp_path: Path) -> None:
    measuring, failing = threading.Event(), threading.Event()
    threads: list[threading.Thread] = []

    def broken(schedule: Schedule) -> Measured:
        assert measuring.wait(60)
        threads.append(threading.current_thread())
        failing.set()
        raise ZeroDivisionError("oops")

    def patient(schedule: Schedule) -> Measured:
        measuring.set()
        assert failing.wait(60)
        threads[0].join(60)  # it ends once it has noted its failure
        return smooth(schedule)

    other = FakeTimer(patient)
    on, _ = fake_bench(tmp_path, FakeTimer(broken), other)
    with pytest.raises(ZeroDivisionError):
        tune(GATED, [key(), key(batch=16)], SM_90, on, effort="default")
    assert len(other.asked) == 1
    kept = [e for _, e in on.store.entries() if e.outcomes]
    assert sum(len(e.outcomes) for e in kept) == 1


def test_tuning_is_refused_inside_a_graph_capture(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda: True)
    timer = FakeTimer(smooth)
    with pytest.raises(TuningRefused, match="CUDA graph is being captured"):
        run(tmp_path, timer)
    assert timer.asked == []


def test_without_a_gpu_there_is_no_bench(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(TuningRefused, match="no GPU is present"):
        bench(SM_90)


def test_only_gpus_alike_measure_together(monkeypatch: pytest.MonkeyPatch) -> None:
    names = ["NVIDIA H200", "NVIDIA H100", "NVIDIA H200"]
    fake = SimpleNamespace(
        is_available=lambda: True,
        device_count=lambda: 3,
        current_device=lambda: 0,
        get_device_name=lambda device: names[device],
        get_device_capability=lambda device=0: (9, 0),
    )
    for name, value in vars(fake).items():
        monkeypatch.setattr(torch.cuda, name, value)
    on = bench(SM_90)
    assert on.environment.gpu == "h200"
    assert [timer._device for timer in on.timers] == [0, 2]  # type: ignore[attr-defined]
    assert [t._device for t in bench(SM_90, [1]).timers] == [1]  # type: ignore[attr-defined]
    with pytest.raises(TuningRefused, match="no GPU number 3"):
        bench(SM_90, [3])
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device=0: (8, 0))
    with pytest.raises(TuningRefused, match="does not run code for sm_90"):
        bench(SM_90)


def test_first_candidates_are_of_every_kind() -> None:
    space = space_of(GATED, key(64, 8), SM_90)
    ranked = list(space)
    seed = Schedule(b_v=16, warps=1)
    chosen = first_candidates(ranked, 24, [seed])
    assert len(chosen) == len(set(chosen)) == 24
    assert chosen[0] == seed
    kinds = {tuple(getattr(s, name) for name in KIND) for s in ranked}
    assert {tuple(getattr(s, name) for name in KIND) for s in chosen} == kinds
    coarse = [replace(s, **{name: getattr(Schedule(), name) for name in FINE}) for s in chosen[1:]]
    assert len(set(coarse)) == len(coarse)
    fine = [ranked[0], replace(ranked[0], registers=160), replace(ranked[0], stages=2)]
    assert first_candidates(fine, 24) == fine[:1]
    assert first_candidates([], 5, [seed]) == [seed]


def test_efforts_grow() -> None:
    sizes = [EFFORT_LEVELS[name].most for name in ("quick", "default", "full")]
    assert sizes == sorted(sizes)
    assert Effort(3, 2, 4).most == 11


# ---- compiling -------------------------------------------------------------------------------


def candidates(*schedules: Schedule) -> list[Candidate]:
    from boleir.codegen.pipeline import lower

    shapes = space_of(GATED, key(), SM_90).shapes
    return [Candidate(s, lower(GATED, shapes, schedule=s, target=SM_90)) for s in schedules]


def compiled(name: str, target: str) -> CompiledKernel:
    return CompiledKernel(
        name=name, target=target, binary=b"x", assembly="", entry=name, num_warps=4, shared=0,
        registers=1, spills=0, seconds=0.0, triton="3", assembler="12", pdl=False,
    )  # fmt: skip


def test_equal_jobs_are_compiled_once(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []

    def compile_job(self: CompilePool, job: Job) -> CompiledKernel:
        seen.append(job.spec.name)
        return compiled(job.spec.name, job.target.name)

    monkeypatch.setattr(CompilePool, "compile", compile_job)
    compiler = ParallelCompiler(2)
    items = candidates(Schedule(b_v=32, node_block=16), Schedule(b_v=16, node_block=16))
    found = dict(compiler.compile(items, SM_90))
    assert all(isinstance(result, Artifact) for result in found.values())
    assert seen.count("verify") == 2
    assert len([name for name in seen if "topology" in name]) == 1


def test_a_candidate_that_does_not_compile_leaves_its_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def compile_job(self: CompilePool, job: Job) -> CompiledKernel:
        if "b_v=16" in job.spec.label:
            raise CompileError("the compiler died")
        return compiled(job.spec.name, job.target.name)

    monkeypatch.setattr(CompilePool, "compile", compile_job)
    items = candidates(Schedule(b_v=32, node_block=16), Schedule(b_v=16, node_block=16))
    found = {c.schedule.b_v: r for c, r in ParallelCompiler(2).compile(items, SM_90)}
    assert isinstance(found[32], Artifact)
    assert isinstance(found[16], CompileError)


def test_a_mistake_in_an_emitter_costs_its_candidates_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from boleir.codegen import pipeline

    real = pipeline.lower

    def wrong(*arguments: Any, schedule: Schedule, **options: Any) -> Any:
        if schedule.fusion == "fused":
            raise KeyError("no such tile")
        return real(*arguments, schedule=schedule, **options)

    monkeypatch.setattr(pipeline, "lower", wrong)
    found = run(tmp_path, FakeTimer(smooth))
    failed = {o.failure for o in found.outcomes if o.schedule.fusion == "fused"}
    assert failed == {"not emitted: internal error: KeyError: 'no such tile'"}
    assert found.chosen is not None and found.chosen.fusion != "fused"


def test_a_mistake_after_the_compiler_leaves_its_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def wrong(*_: Any, **__: Any) -> None:
        raise KeyError("parameters")

    monkeypatch.setattr("boleir.runtime.tuning.candidates.assemble", wrong)
    (item,) = candidates(Schedule(b_v=32, node_block=16))
    ((_, result),) = ParallelCompiler(1).compile([item], SM_90)
    assert isinstance(result, CompileError)
    assert "KeyError" in result.message


def test_a_real_candidate_compiles_without_a_gpu() -> None:
    compiler = ParallelCompiler(2)
    try:
        (item,) = candidates(Schedule(b_v=32, node_block=16))
        ((_, result),) = compiler.compile([item], SM_90)
    finally:
        compiler.close()
    assert isinstance(result, Artifact), result
    assert result.variant("sm_90").schedule["b_v"] == 32


def test_the_pool_shares_failures_too(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []

    def compile_job(self: CompilePool, job: Job) -> CompiledKernel:
        calls.append(job)
        raise CompileError("no")

    monkeypatch.setattr(CompilePool, "compile", compile_job)
    pool = SharingPool(1)
    (item,) = candidates(Schedule(b_v=32, node_block=16))
    job = Job(item.lowered.text, item.lowered.specs()[0], SM_90)
    for _ in range(2):
        with pytest.raises(CompileError):
            pool.compile(job)
    assert len(calls) == 1


def test_candidates_share_the_kernels_in_which_they_are_equal() -> None:
    one, other, fused = candidates(
        Schedule(fusion="split", solver="inverse", b_v=32, node_block=16),
        Schedule(fusion="split", solver="inverse", b_v=16, node_block=16),
        Schedule(b_v=32, node_block=16),
    )
    assert one.source != other.source
    digests = [
        {spec.name: kernel_digest(x.lowered.text, spec.name) for spec in x.lowered.specs()}
        for x in (one, other, fused)
    ]
    assert digests[0]["commit"] == digests[1]["commit"] == digests[2]["commit"]
    assert digests[0]["factors"] == digests[1]["factors"]
    assert digests[0]["values"] != digests[1]["values"]
    changed = one.lowered.text.replace("def values(", "def values_(")
    assert kernel_digest(changed, "commit") == digests[0]["commit"]


def test_what_a_kernel_calls_is_part_of_it() -> None:
    module = "import a\nX = 1\ndef helper():\n    return X\ndef k():\n    helper()\n"
    same = '"""About it."""\n' + module + "def other():\n    pass\nY = 3\n"
    assert kernel_digest(module, "k") == kernel_digest(same, "k")
    for old, new in (("X = 1", "X = 2"), ("return X", "return -X"), ("import a", "import b")):
        assert kernel_digest(module, "k") != kernel_digest(module.replace(old, new), "k")


def test_tune_key_uses_the_current_gpu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    on, compiler = fake_bench(tmp_path)
    asked = []

    def made(target: object, devices: object) -> Any:
        asked.append(devices)
        return on

    monkeypatch.setattr(autotune_module, "bench", made)
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 3)
    found = autotune_module.tune_key(GATED, key(), SM_90, effort="quick")
    assert found.chosen is not None
    assert asked == [[3]]
    assert compiler.closed == 1


def test_random_points_and_neighbours_lie_in_the_space() -> None:
    space = space_of(GATED, key(64, 8), SM_90)
    points = set(space)
    plain = {name: space.fragments[name].default for name in LATE}
    rng = random.Random(7)
    late = set()
    default = replace(default_schedule(space.plan, space.shapes, 16), registers=0)
    split = space.canonical(replace(default, fusion="split", lead=0, gates="prepare"))
    for point in (default, split, *(space.random(rng) for _ in range(20))):
        assert point is not None
        around = space.neighbours(point)
        assert around
        assert point not in around
        assert all(other in space for other in around)
        assert {replace(other, **plain) for other in (point, *around)} <= points
        late |= {name for name in LATE for x in around if getattr(x, name) != plain[name]}
    assert late == set(LATE) - {"walk_nodes", "factor_stages"}, "no channel of it decays on its own"
