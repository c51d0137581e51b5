"""The search for one key: predict, compile in parallel, check, time one by one, keep everything.

Every finished candidate is in the store before the next one is timed: a search that is interrupted
goes on where it stopped, and a wider one times only what is new.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from boleir.codegen.artifact import Artifact
from boleir.codegen.schedule import Schedule
from boleir.errors import BoleirError
from boleir.runtime.tuning.candidates import Candidate, Compiler
from boleir.runtime.tuning.choice import best
from boleir.runtime.tuning.effort import Effort, first_candidates
from boleir.runtime.tuning.entry import Entry, Outcome
from boleir.runtime.tuning.predictions import Predictions
from boleir.runtime.tuning.progress import Say, line
from boleir.runtime.tuning.space import Space
from boleir.runtime.tuning.store import Store
from boleir.runtime.tuning.timer import Timer

Lower = Callable[[Schedule], Candidate]
"""Emits the kernels of a schedule, or raises why it cannot."""


@dataclass(slots=True)
class Search:
    """One key on one GPU. `entry` is what is known; it grows."""

    entry: Entry
    space: Space
    lower: Lower
    compiler: Compiler
    timer: Timer
    store: Store
    effort: Effort
    seeds: Sequence[Schedule] = ()
    """Tried first, whatever the model thinks of them."""
    say: Say = lambda _: None
    predict: Predictions = field(init=False)

    def __post_init__(self) -> None:
        space, batch = self.space, self.entry.key.batch
        self.predict = Predictions(space.plan, space.shapes, space.target, batch)

    def run(self) -> Entry:
        """Try what the effort allows and return all that is known then."""
        seeds = [seed for seed in map(self.space.finished, self.seeds) if seed in self.space]
        self._try(first_candidates(self.ranked(), self.effort.first, seeds))
        for _ in range(self.effort.rounds):
            around = self._around_best()
            if not around:
                break
            self._try(around)
        return self.entry

    def ranked(self) -> list[Schedule]:
        """The whole space, best predicted first, the simpler of equal ones before the other."""
        return self.predict.best_first(self.space)

    def _around_best(self) -> list[Schedule]:
        """Untried neighbours of the fastest schedule, best predicted first."""
        found = best(self.entry.outcomes, 0.0)
        if found is None:
            return []
        tried = {outcome.schedule for outcome in self.entry.outcomes}
        around = [s for s in self.space.neighbours(found.schedule) if s not in tried]
        return sorted(around, key=lambda s: self.predict(s).us)[: self.effort.neighbours]

    def _try(self, schedules: Sequence[Schedule]) -> None:
        candidates = []
        for schedule in schedules:
            try:
                candidate = self.lower(schedule)
            except Exception as error:  # a mistake in an emitter costs its own candidates only
                self._keep(Outcome(schedule, "", failure=_reason("not emitted", error)))
                continue
            if self.entry.known(schedule, candidate.source) is None:
                candidates.append(candidate)
        done = len(schedules) - len(candidates)
        self.say(line(done, len(schedules), self.entry))
        for candidate, result in self.compiler.compile(candidates, self.space.target):
            self._keep(self._measure(candidate, result))
            done += 1
            self.say(line(done, len(schedules), self.entry))

    def _measure(self, candidate: Candidate, result: Artifact | BoleirError) -> Outcome:
        if isinstance(result, BoleirError):
            failure = _reason("not compiled", result)
            return Outcome(candidate.schedule, candidate.source, failure=failure)
        found = self.timer.measure(result, self.entry.key, self.entry.policy)
        why = found.failure or ("no time was measured" if found.us is None else None)
        us = found.us if why is None else None
        return Outcome(candidate.schedule, candidate.source, us, found.error, why)

    def _keep(self, outcome: Outcome) -> None:
        self.entry = self.entry.with_outcomes((outcome,))
        self.store.save(self.entry)


def _reason(what: str, error: Exception) -> str:
    text = f"internal error: {type(error).__name__}: {error}"
    if isinstance(error, BoleirError):
        text = error.message
    return f"{what}: {' '.join(text.split())[:300]}"
