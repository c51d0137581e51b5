"""What a tuning would do, without a GPU: the size of the space and what the model expects."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from boleir.codegen.defaults import default_schedule
from boleir.codegen.offers import offered_schedules
from boleir.codegen.schedule import Schedule
from boleir.codegen.targets import Target
from boleir.runtime.tuning.autotune import space_of
from boleir.runtime.tuning.effort import EFFORT_LEVELS, first_candidates, kind_of
from boleir.runtime.tuning.keys import TuningKey
from boleir.runtime.tuning.predictions import Predictions

if TYPE_CHECKING:
    from boleir.ir import Recurrence


@dataclass(frozen=True, slots=True)
class Predicted:
    """A schedule with its predicted microseconds of one layer."""

    schedule: Schedule
    us: float
    kernels: dict[str, float]
    """Microseconds of each kernel alone."""
    per_sm: int
    """Programs of the last kernel that share a multiprocessor."""

    def to_json(self) -> dict[str, Any]:
        """Plain values, times to hundredths."""
        kernels = {name: round(us, 2) for name, us in self.kernels.items()}
        own = {"us": round(self.us, 2), "kernels": kernels, "per_sm": self.per_sm}
        return {**own, "schedule": self.schedule.to_json()}


@dataclass(frozen=True, slots=True)
class Preview:
    """One key on one target."""

    key: TuningKey
    target: str
    schedules: int
    """Points of the space."""
    most: int
    """Candidates that the effort measures at most."""
    default: Predicted
    """What is taken where nothing was measured."""
    kinds: tuple[tuple[Predicted, int], ...]
    """The best of each kind and how many there are of it, the fastest kind first."""
    first: tuple[Predicted, ...]
    """What would be tried before anything is known, in order; the neighbours of the best follow."""

    def to_json(self, show: int) -> dict[str, Any]:
        """Plain values; of the first candidates, `show`."""
        return {
            "key": self.key.to_json(),
            "target": self.target,
            "schedules": self.schedules,
            "most": self.most,
            "default": self.default.to_json(),
            "kinds": [{**best.to_json(), "schedules": count} for best, count in self.kinds],
            "first": [item.to_json() for item in self.first[:show]],
        }


def preview(recurrence: Recurrence, key: TuningKey, target: Target, effort: str) -> Preview:
    """Predict the whole space of a key. Raises as `space_of` does."""
    space, level = space_of(recurrence, key, target), EFFORT_LEVELS[effort]
    predict = Predictions(space.plan, space.shapes, target, key.batch)

    def predicted(schedule: Schedule) -> Predicted:
        found = predict(schedule)
        return Predicted(schedule, found.us, found.kernels, found.occupancy)

    points = predict.best_first(space)
    default = space.finished(default_schedule(space.plan, space.shapes, key.batch, target))
    kinds: dict[Any, list[Schedule]] = {}
    for point in points:
        kinds.setdefault(kind_of(point), []).append(point)
    offered = offered_schedules(space.plan, space.shapes, key.batch)
    seeds = [seed for seed in (default, *map(space.finished, offered)) if seed in space]
    chosen = first_candidates(points, level.first, seeds)
    return Preview(
        key,
        target.name,
        len(points),
        level.most,
        predicted(default),
        tuple((predicted(group[0]), len(group)) for group in kinds.values()),
        tuple(map(predicted, chosen)),
    )
