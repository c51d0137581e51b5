"""All schedules worth trying for one recurrence, shape and GPU, one after the other.

Fields are decided in a fixed order, so that equal arguments give equal lists everywhere. A point is
given only if a correct kernel exists for it and the GPU has the resources.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from boleir.codegen.build import SPILL_TOLERANCE
from boleir.codegen.plan import Plan
from boleir.codegen.request import Shapes
from boleir.codegen.resources import check
from boleir.codegen.schedule import Schedule, padded
from boleir.codegen.schedule_footprint import footprint
from boleir.codegen.schedule_limits import validate
from boleir.codegen.targets import Target
from boleir.errors import ScheduleError
from boleir.runtime.tuning.fragments import FRAGMENTS, Fragment

LAST_LIMITED = "gates"
"""After this field, most of what makes a schedule impossible has been decided."""

FREE = ("registers", "factor_warps", "factor_registers", "prefetch", "path_sum")
"""Fields that may have any of their values, wherever they matter: whether a kernel exists and fits
is decided by the others, and once for all values of these."""

FREE_BY_CHANNEL = ("registers", "factor_registers", "prefetch")
"""The same where key channels decay apart: whether their decays may be sums (`path_sum`) depends on
the pairs and on `factor_warps`."""

LATE = (
    "prepare",
    "prepare_nodes",
    "prepare_warps",
    "factor_stages",
    "factor_heads",
    "walk_nodes",
    "readers",
    "lead",
    "order",
    "persistent",
    "pdl",
)
"""Fields that points have at their defaults where they are enumerated: the model hardly tells their
values apart, and each would multiply the points. Neighbours of good schedules have the others."""

SIZES = {"b_v": "d_v", "b_k": "d_k", "node_block": "max_nodes", "prepare_nodes": "max_nodes"}
"""Fields that a size of the shapes bounds."""

_NONE_LEFT = object()


@dataclass(frozen=True, slots=True)
class Space:
    """The schedules of one recurrence and shape on one target."""

    plan: Plan
    shapes: Shapes
    target: Target
    fragments: Mapping[str, Fragment] = field(default_factory=lambda: FRAGMENTS)

    @property
    def free(self) -> tuple[str, ...]:
        """Fields that no limit depends on where points are enumerated."""
        return (*LATE, *(FREE if self.plan.key_decay is None else FREE_BY_CHANNEL))

    def __iter__(self) -> Iterator[Schedule]:
        """Every point once, lazily, in the order of the fragments; those with `LATE` fields at
        their defaults."""
        chosen: dict[str, Any] = {}
        known: dict[tuple[Any, ...], bool] = {}
        names = list(self.fragments)
        last = max(at for at, name in enumerate(names) if name not in self.free)
        undecided = [self._options(names[0], chosen)]
        while undecided:
            at = len(undecided) - 1
            name = names[at]
            chosen.pop(name, None)
            value = next(undecided[-1], _NONE_LEFT)
            if value is _NONE_LEFT:
                undecided.pop()
                continue
            chosen[name] = value
            if name == LAST_LIMITED and not self._possible(chosen):
                continue
            if at == last and not self._allowed(chosen, known):
                continue
            if at + 1 < len(names):
                undecided.append(self._options(names[at + 1], chosen))
            else:
                yield Schedule(**chosen)

    def __contains__(self, schedule: Schedule) -> bool:
        """Whether a correct kernel exists that this GPU has the resources for."""
        try:
            validate(schedule, self.plan, self.shapes, self.target)
            check(footprint(schedule, self.plan, self.shapes), self.target, spill=SPILL_TOLERANCE)
        except ScheduleError:
            return False
        return True

    def _options(self, name: str, chosen: Mapping[str, Any]) -> Iterator[Any]:
        """The values of the field after those of `chosen`, one after the other."""
        fragment = self.fragments[name]
        late = name in LATE
        values = (fragment.default,) if late else fragment.options(chosen, self.shapes)
        return iter(self._within(name, values))

    def _within(self, name: str, values: tuple[Any, ...]) -> tuple[Any, ...]:
        """The values of a field that the target has, and that its bound allows; the bound itself
        where it is below all."""
        if name == "pdl" and not self.target.pdl:
            return (False,)
        if name not in SIZES:
            return values
        bound = padded(getattr(self.shapes, SIZES[name]))
        return tuple(value for value in values if value <= bound) or (bound,)

    def _allowed(self, chosen: Mapping[str, Any], known: dict[tuple[Any, ...], bool]) -> bool:
        """Whether the points are in the space, once all but `free` fields are decided; `known` is
        what was found out about their limits."""
        free = self.free
        limits = tuple([value for name, value in chosen.items() if name not in free])
        if limits not in known:
            known[limits] = Schedule(**chosen) in self
        return known[limits]

    def _possible(self, chosen: Mapping[str, Any]) -> bool:
        """Whether anything can still come of the fields so far: whole branches end here."""
        try:
            validate(Schedule(**chosen), self.plan, self.shapes, self.target)
        except ScheduleError:
            return False
        return True

    def finished(self, schedule: Schedule) -> Schedule:
        """The schedule without what the target does not have."""
        return replace(schedule, pdl=False) if schedule.pdl and not self.target.pdl else schedule

    def canonical(self, schedule: Schedule) -> Schedule:
        """The schedule with its default in every field that does not matter to it."""
        chosen: dict[str, Any] = {}
        for name, fragment in self.fragments.items():
            matters = fragment.matters(chosen, self.shapes)
            chosen[name] = getattr(schedule, name) if matters else fragment.default
        return self.finished(replace(schedule, **chosen))

    def random(self, rng: random.Random, tries: int = 1000) -> Schedule | None:
        """A point by chance; None if none was met in `tries` throws."""
        for _ in range(tries):
            thrown = {
                name: rng.choice(self._within(name, part.values))
                for name, part in self.fragments.items()
            }
            point = self.canonical(Schedule(**thrown))
            if point in self:
                return point
        return None

    def neighbours(self, schedule: Schedule) -> list[Schedule]:
        """The points that differ from `schedule` in one field that matters."""
        found: dict[Schedule, None] = {}
        for name, fragment in self.fragments.items():
            for value in fragment.neighbours(getattr(schedule, name)):
                point = self.canonical(replace(schedule, **{name: value}))
                if point != schedule and point in self:
                    found[point] = None
        return list(found)
