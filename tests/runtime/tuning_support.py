"""Keys, entries and stand-ins for the compiler and the GPU, shared by the tests of tuning."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import boleir
from boleir.codegen.artifact import Artifact
from boleir.codegen.request import Shapes
from boleir.codegen.schedule import Schedule
from boleir.codegen.targets import Target, target
from boleir.errors import BoleirError, CompileError
from boleir.runtime.tuning.autotune import Bench
from boleir.runtime.tuning.candidates import Candidate
from boleir.runtime.tuning.entry import Entry, Outcome, Policy
from boleir.runtime.tuning.environment import Environment
from boleir.runtime.tuning.keys import TuningKey, key_of
from boleir.runtime.tuning.store import Store
from boleir.runtime.tuning.timer import Measured

SM_90 = target("sm_90")
HERE = Environment("h200", "sm_90", "3.6.0", "12.9.86")
GATED = boleir.load("gated_delta_rule")


def shapes(nodes: int = 16, depth: int = 5, **changes: Any) -> Shapes:
    """A Qwen3.5-9B layer."""
    return Shapes(16, 32, 128, 128, nodes, depth, **changes)


def key(nodes: int = 16, depth: int = 5, batch: int = 1) -> TuningKey:
    """The key that serves such a layer."""
    found = key_of(GATED, shapes(nodes, depth), batch)
    assert found is not None
    return found


def outcome(us: float | None, source: str = "text", **fields: Any) -> Outcome:
    """An outcome of a schedule with `fields`."""
    failure = None if us is not None else "no luck"
    return Outcome(Schedule(**fields), source, us, 1e-6 if us else None, failure)


def entry(*outcomes: Outcome, of: TuningKey | None = None, where: Environment = HERE) -> Entry:
    """An entry with some outcomes."""
    some = outcomes or (outcome(7.0), outcome(5.0, b_v=32), outcome(None, warps=8))
    return Entry(of or key(), where, Policy(), some, "test")


@dataclass
class FakeCompiler:
    """Makes artifacts of nothing, remembers what it was asked, fails where `breaks` says so."""

    breaks: Callable[[Schedule], str | None] = lambda schedule: None
    asked: list[Schedule] = field(default_factory=list)
    closed: int = 0

    def compile(
        self, candidates: Sequence[Candidate], target: Target
    ) -> Iterator[tuple[Candidate, Artifact | BoleirError]]:
        """Every candidate, in order."""
        for candidate in candidates:
            self.asked.append(candidate.schedule)
            why = self.breaks(candidate.schedule)
            if why is not None:
                yield candidate, CompileError(why)
                continue
            extra = {"schedule": candidate.schedule.to_json()}
            yield candidate, Artifact("fake", "", "", {}, {}, (), {}, extra)

    def close(self) -> None:
        """Remember it."""
        self.closed += 1


@dataclass
class FakeTimer:
    """Times by a formula; an exception in the formula is raised."""

    formula: Callable[[Schedule], Measured]
    asked: list[Schedule] = field(default_factory=list)
    closed: int = 0

    def measure(self, artifact: Artifact, key: TuningKey, policy: Policy) -> Measured:
        """What the formula says."""
        schedule = Schedule.from_json(artifact.extra["schedule"])
        self.asked.append(schedule)
        return self.formula(schedule)

    def close(self) -> None:
        """Remember it."""
        self.closed += 1


def smooth(schedule: Schedule) -> Measured:
    """A time with one best point: small value tiles on two warps."""
    us = 5.0 + abs(schedule.b_v - 32) / 16 + abs(schedule.warps - 2) + len(schedule.label) / 100
    return Measured(us, 1e-6)


def fake_bench(
    root: Path, *timers: FakeTimer, compiler: FakeCompiler | None = None
) -> tuple[Bench, FakeCompiler]:
    """A bench that needs neither compiler nor GPU."""
    made = compiler or FakeCompiler()
    return Bench(HERE, made, timers or (FakeTimer(smooth),), Store(root)), made
