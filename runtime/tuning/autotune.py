"""Tuning of keys on the GPUs of this machine."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from importlib import metadata
from typing import TYPE_CHECKING

from boleir.codegen.defaults import default_schedule
from boleir.codegen.offers import offered_schedules
from boleir.codegen.schedule import Schedule
from boleir.codegen.targets import Target
from boleir.errors import LaunchError
from boleir.runtime.tuning.candidates import Candidate, Compiler, ParallelCompiler
from boleir.runtime.tuning.effort import EFFORT_LEVELS
from boleir.runtime.tuning.entry import Entry, Policy
from boleir.runtime.tuning.environment import Environment
from boleir.runtime.tuning.keys import TuningKey
from boleir.runtime.tuning.progress import Say
from boleir.runtime.tuning.search import Search
from boleir.runtime.tuning.shipped import shipped_entry
from boleir.runtime.tuning.space import Space
from boleir.runtime.tuning.store import Store
from boleir.runtime.tuning.timer import Timer, WorkerTimer

if TYPE_CHECKING:
    from boleir.ir import Recurrence


class TuningRefused(LaunchError):
    """Nothing can be measured here or now; the message says why."""


@dataclass(frozen=True, slots=True)
class Bench:
    """What tuning works with; by default the compiler, the GPUs and the store of this machine."""

    environment: Environment
    compiler: Compiler
    timers: tuple[Timer, ...]
    """One for each GPU."""
    store: Store

    def close(self) -> None:
        """End all processes."""
        for timer in self.timers:
            timer.close()
        self.compiler.close()


def bench(target: Target, devices: Sequence[int] | None = None, jobs: int | None = None) -> Bench:
    """The bench of this machine: all GPUs like the first of `devices` (by default, like the current
    one), since times of different ones do not compare. Raises `TuningRefused`."""
    import torch

    from boleir.runtime.tuning.environment import present

    if not torch.cuda.is_available():
        raise TuningRefused(
            "no GPU is present to measure on", mend="--dry-run shows what the model predicts"
        )
    count = torch.cuda.device_count()
    wanted = list(devices) if devices else [torch.cuda.current_device(), *range(count)]
    for device in wanted:
        if not 0 <= device < count:
            raise TuningRefused(f"there is no GPU number {device}, but {count}")
    environments = {device: present(device, target) for device in dict.fromkeys(wanted)}
    first = environments[wanted[0]]
    if not target.runs_on(torch.cuda.get_device_capability(wanted[0])):
        raise TuningRefused(f"GPU {wanted[0]} ({first.gpu}) does not run code for {target.name}")
    alike = [device for device, there in environments.items() if there == first]
    timers = tuple(WorkerTimer(device) for device in alike)
    return Bench(first, ParallelCompiler(jobs), timers, Store.writable())


def tune(
    recurrence: Recurrence,
    keys: Sequence[TuningKey],
    target: Target,
    on: Bench,
    *,
    effort: str = "default",
    again: bool = False,
    policy: Policy | None = None,
    say: Say = lambda _: None,
) -> list[Entry]:
    """Measure every key, each on one GPU at a time, and return what is known of each then.

    `again` forgets what was measured before. Buffers are the tuner's own: nothing of the caller's
    is touched. Raises `TuningRefused` inside a graph capture; Ctrl-C keeps what was measured.
    """
    refuse_capture()
    results: dict[TuningKey, Entry] = {}
    waiting: queue.SimpleQueue[TuningKey] = queue.SimpleQueue()
    for key in dict.fromkeys(keys):
        waiting.put(key)
    failures: list[BaseException] = []

    def told(text: str) -> None:
        """Called after each candidate: a failure on one GPU, or Ctrl-C, ends the others here."""
        if failures:
            raise failures[0]
        say(text)

    def work(timer: Timer) -> None:
        while not failures:
            try:
                key = waiting.get_nowait()
            except queue.Empty:
                return
            entry = None if again else on.store.load(on.environment, key)
            if entry is None or entry.policy != (policy or Policy()):
                entry = Entry(key, on.environment, policy or Policy(), origin=_origin())
                if again:
                    on.store.replace(entry)
            entry = entry.after_tuning(_origin())
            search = _search(recurrence, entry, target, on, timer, effort, told)
            results[key] = search.run()

    _on_all(on.timers, work, failures)
    return [results[key] for key in dict.fromkeys(keys)]


def tune_key(recurrence: Recurrence, key: TuningKey, target: Target, *, effort: str) -> Entry:
    """One key on the current GPU, with progress on standard error; for `BOLEIR_TUNING=tune`."""
    import torch

    from boleir.cli.output import Progress

    refuse_capture()
    on = bench(target, [torch.cuda.current_device()])
    try:
        with Progress() as say:
            return tune(recurrence, [key], target, on, effort=effort, say=say)[0]
    finally:
        on.close()


def refuse_capture() -> None:
    """Raise `TuningRefused` while a CUDA graph is being captured: what is launched then would
    become part of it, and nothing could be timed."""
    import torch

    if torch.cuda.is_available() and torch.cuda.is_current_stream_capturing():
        raise TuningRefused(
            "a CUDA graph is being captured", mend="compile (or tune) before the capture begins"
        )


def space_of(recurrence: Recurrence, key: TuningKey, target: Target) -> Space:
    """The schedules of a key on a target. Raises `DerivationError` or `ScheduleError`."""
    from boleir.codegen.planner import make_plan
    from boleir.derive.derive import derive

    normal = derive(recurrence).normal
    plan = make_plan(normal, key.d_k, key.d_v, key.key_heads, key.value_heads)
    return Space(plan, key.shapes, target)


def _search(
    recurrence: Recurrence,
    entry: Entry,
    target: Target,
    on: Bench,
    timer: Timer,
    effort: str,
    say: Say,
) -> Search:
    from boleir.codegen.pipeline import lower

    space = space_of(recurrence, entry.key, target)

    def lowered(schedule: Schedule) -> Candidate:
        made = lower(recurrence, space.shapes, schedule=schedule, target=target)
        return Candidate(replace(schedule, pdl=made.schedule.pdl), made)

    seeds = [
        default_schedule(space.plan, space.shapes, entry.key.batch, target),
        *offered_schedules(space.plan, space.shapes, entry.key.batch),
    ]
    shipped = shipped_entry(entry.environment, entry.key)
    if shipped is not None and shipped.chosen is not None:
        seeds.append(shipped.chosen)
    level = EFFORT_LEVELS[effort]
    return Search(entry, space, lowered, on.compiler, timer, on.store, level, tuple(seeds), say)


def _on_all(
    timers: Sequence[Timer], work: Callable[[Timer], None], failures: list[BaseException]
) -> None:
    """Run `work` for every timer, in threads if there are several. Raises the first failure."""
    if len(timers) == 1:
        work(timers[0])
        return

    def guarded(timer: Timer) -> None:
        try:
            work(timer)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=guarded, args=(timer,), daemon=True) for timer in timers]
    for thread in threads:
        thread.start()
    try:
        for thread in threads:
            thread.join()
    except BaseException as error:
        failures.append(error)
        for thread in threads:
            thread.join()  # each ends with the candidate that it is timing
        raise
    if failures:
        raise failures[0]


def _origin() -> str:
    try:
        return f"boleir {metadata.version('boleir')}"
    except metadata.PackageNotFoundError:
        return "boleir"
