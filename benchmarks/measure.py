"""One case: check every subject against the oracle on what it really captured, then time it."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import torch

from benchmarks import oracle
from benchmarks.protocol import Clock, Replay, interleaved
from benchmarks.serving_shapes import LINEAR_LAYERS_PER_MODEL
from benchmarks.subject import PER_LAYER_STAGES, PER_ROUND_STAGES, SUMMED_STAGES, Outputs, Subject
from benchmarks.workload import Workload, reference

ORDER = ("topology", "conv", "verify", "commit", "window")
WHOLE = "whole"
"""All summed stages of all layers in one graph, as an engine would run them."""

TOLERATED_ERROR = 0.05
"""Above this a subject computes something else; below it, the errors are there to be compared."""

SubjectFactory = Callable[[Workload], Subject]


@dataclass(frozen=True, slots=True)
class Captured:
    """A subject with one replay per stage, and one for the whole round."""

    subject: Subject
    replays: dict[str, Replay]


def capture(subject: Subject, work: Workload, clock: Clock) -> Captured:
    """Record every stage of `subject` over all layers, and all of them together."""

    def run(stage: str) -> None:
        if stage in PER_ROUND_STAGES:
            getattr(subject, stage)()
            return
        for layer in range(work.layers):
            subject.prepare(layer)
            getattr(subject, stage)()

    def whole() -> None:
        if "topology" in subject.stages:
            subject.topology()
        for layer in range(work.layers):
            subject.prepare(layer)
            for stage in PER_LAYER_STAGES:
                if stage in subject.stages:
                    getattr(subject, stage)()
        if "commit" in subject.stages:
            subject.commit()

    stages = [stage for stage in ORDER if stage in subject.stages]
    # The whole round comes first: a subject that allocates its results anew at each call then
    # reports those of the single-stage graphs, which are the ones that are checked.
    replays = {WHOLE: clock.capture(whole)}
    for stage in stages:
        replays[stage] = clock.capture(partial(run, stage))
        replays[stage]()  # capturing computes nothing, and the next stage reads these results
    return Captured(subject, replays)


def check(captured: Captured, work: Workload, clock: Clock) -> dict[str, float]:
    """Worst relative errors against float64 over the first and the last layer.

    Results are filled with NaN before each stage is replayed. `verify_*`: per node, `commit`: per
    request, `conv`: per node. `verify_storage` is what rounding the exact result to the output's
    type costs: nothing can be better. Keys that end in `_changed` are 1 when memory that must stay
    untouched was written; `window_wrong` is 1 when a committed window differs in any bit.
    """
    subject, replays = captured.subject, captured.replays
    report: dict[str, float] = {}
    _restore(subject, work)
    _poison(subject, work)
    for stage in ("topology", "conv", "verify"):
        if stage in replays:
            replays[stage]()
    clock.synchronise()
    layers = sorted({0, work.layers - 1})
    exact = {}
    for layer in layers:
        subject.prepare(layer)
        results = subject.outputs()
        exact[layer] = reference(work, layer, results.qkv)
        _check_verify(report, work, layer, results, exact[layer], subject.updates_in_place)
    if "commit" in replays:
        replays["commit"]()
        clock.synchronise()
    if "commit" in replays or subject.updates_in_place:
        for layer in layers:
            subject.prepare(layer)
            state = subject.outputs().state[work.slots.long()]
            error = oracle.relative_error(state, exact[layer][1], keep_dims=1)
            _worst(report, "commit", error.max())
    _check_window(report, captured, work, clock, layers)
    _restore(subject, work)
    return report


def _check_verify(
    report: dict[str, float],
    work: Workload,
    layer: int,
    results: Outputs,
    exact: tuple[torch.Tensor, torch.Tensor],
    updates_in_place: bool,
) -> None:
    per_request = (work.row.batch, work.row.nodes)
    if results.qkv is not None:
        mended = work.qkv[layer].double()
        _worst(report, "conv", oracle.relative_error(results.qkv, mended, keep_dims=1).max())
    error = oracle.relative_error(results.out.unflatten(0, per_request), exact[0], keep_dims=2)
    _worst(report, "verify_max", error.max())
    _worst(report, "verify_median", error.median())
    stored = exact[0].to(results.out.dtype)
    storage = oracle.relative_error(stored, exact[0], keep_dims=2)
    _worst(report, "verify_storage", storage.max())
    if not updates_in_place:
        changed = not torch.equal(results.state, work.initial_pool[layer].to(results.state.dtype))
        _worst(report, "state_changed", float(changed))


def _check_window(
    report: dict[str, float], captured: Captured, work: Workload, clock: Clock, layers: list[int]
) -> None:
    """The committed convolution window must hold the last entries of the accepted path exactly."""
    if "window" in captured.replays:
        captured.replays["window"]()
        clock.synchronise()
    for layer in layers:
        captured.subject.prepare(layer)
        window = captured.subject.outputs().window
        if window is None:
            continue
        slots = work.slots.long()
        x = work.x[layer].unflatten(0, (work.row.batch, work.row.nodes))
        before = work.initial_window[layer, slots]
        exact = oracle.window_after(x, before, work.taps, work.accepted)
        _worst(report, "window_wrong", float(not torch.equal(window[slots], exact)))


def _worst(report: dict[str, float], key: str, value: torch.Tensor | float) -> None:
    report[key] = max(report.get(key, 0.0), float(value))


def _restore(subject: Subject, work: Workload) -> None:
    for layer in range(work.layers):
        subject.prepare(layer)
        results = subject.outputs()
        results.state.copy_(work.initial_pool[layer])
        if results.window is not None:
            results.window.copy_(work.initial_window[layer])
    work.window.copy_(work.initial_window)


def _poison(subject: Subject, work: Workload) -> None:
    for layer in range(work.layers):
        subject.prepare(layer)
        results = subject.outputs()
        results.out.fill_(torch.nan)
        if results.qkv is not None:
            results.qkv.fill_(torch.nan)


def measure(
    work: Workload, factories: Mapping[str, SubjectFactory], clock: Clock, rounds: int
) -> dict[str, Any]:
    """Check and time all subjects on `work`; a subject that fails is reported, not fatal."""
    report: dict[str, Any] = {}
    captured: dict[str, Captured] = {}
    for name, factory in factories.items():
        try:
            captured[name] = capture(factory(work), work, clock)
            errors = check(captured[name], work, clock)
            report[name] = {"errors": errors, "wrong": faults(errors)}
        except Exception as failure:
            captured.pop(name, None)
            report[name] = {"failed": f"{type(failure).__name__}: {failure}"[:500]}
    replays = {
        (name, stage): (replay, 1 if stage == "topology" else work.layers)
        for name, item in captured.items()
        for stage, replay in item.replays.items()
    }
    for (name, stage), timing in interleaved(clock, replays, rounds).items():
        report[name].setdefault("stages", {})[stage] = asdict(timing)
    for name, item in captured.items():
        report[name]["host"] = host_microseconds(item.subject, work, clock)
        report[name]["sum"] = stage_sum(report[name]["stages"])
    return report


def faults(errors: Mapping[str, float]) -> list[str]:
    """The checks that failed; empty when a subject's results can be believed."""
    found = [key for key, value in errors.items() if not value <= TOLERATED_ERROR]
    return sorted(found)


def host_microseconds(subject: Subject, work: Workload, clock: Clock, rounds: int = 5) -> float:
    """Least host time of one layer's launches without a graph, in microseconds. A subject whose
    stages are parts of one call has that call, `serve`."""
    stages = [getattr(subject, stage) for stage in PER_LAYER_STAGES if stage in subject.stages]
    calls: list[Callable[[], None]] = [subject.serve] if hasattr(subject, "serve") else stages
    times = []
    for _ in range(rounds):
        clock.synchronise()
        start = time.perf_counter()
        for layer in range(work.layers):
            subject.prepare(layer)
            for call in calls:
                call()
        times.append(time.perf_counter() - start)
    clock.synchronise()
    return min(times) / work.layers * 1e6


def stage_sum(stages: Mapping[str, Mapping[str, float]]) -> float:
    """Microseconds per layer of all summed stages; the topology is shared by a model's layers."""
    total = 0.0
    for stage in SUMMED_STAGES:
        if stage in stages:
            share = LINEAR_LAYERS_PER_MODEL if stage == "topology" else 1
            total += stages[stage]["median"] / share
    return total
