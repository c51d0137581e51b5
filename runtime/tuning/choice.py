"""Which of the measured schedules is taken: the fastest, and of equals the simplest.

Two runs of one tuner differ by a percent or so. Taking the simplest of those that are about equally
fast makes the choice reproducible, and the kernels easier to read.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields
from operator import attrgetter, ne
from typing import TYPE_CHECKING, Any

from boleir.codegen.schedule import Schedule

if TYPE_CHECKING:
    from boleir.runtime.tuning.entry import Outcome


LAUNCHES = {"split": 1, "walked": 1, "staged": 2}
"""Launches of a layer beyond the first."""

_values = attrgetter(*(f.name for f in fields(Schedule)))
_PLAIN = _values(Schedule())


def complexity(schedule: Schedule) -> tuple[Any, ...]:
    """Smaller is simpler: fewer launches, fewer departures from the default values, then an order
    that never leaves two schedules equal."""
    values = _values(schedule)
    departures = sum(map(ne, values, _PLAIN))
    launches = LAUNCHES.get(schedule.fusion, 0) + (schedule.gates == "prepare")
    return launches, departures, tuple(map(str, values))


def best(outcomes: Iterable[Outcome], tie: float) -> Outcome | None:
    """The simplest among those at most `tie` (relative) slower than the fastest; None of none."""
    timed = [(outcome.us, outcome) for outcome in outcomes if outcome.us is not None]
    if not timed:
        return None
    limit = min(us for us, _ in timed) * (1 + tie)
    return min((o for us, o in timed if us <= limit), key=lambda o: complexity(o.schedule))
