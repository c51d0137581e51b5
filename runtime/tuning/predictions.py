"""What the cost model says of many schedules of one key, and their order by it.

A space has tens of thousands of points, of which many differ in nothing that the model looks at:
each prediction, and each kernel that schedules have in common, is computed once.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, fields
from operator import attrgetter
from typing import Any

from boleir.codegen.plan import Plan
from boleir.codegen.request import Shapes
from boleir.codegen.schedule import Schedule
from boleir.codegen.targets import Target
from boleir.runtime.tuning.choice import complexity
from boleir.runtime.tuning.cost_model import KernelTimes, Prediction, predict

UNSEEN = ("prefetch", "factor_registers", "order", "persistent")
"""Fields that no count of work depends on."""

_seen = attrgetter(*(f.name for f in fields(Schedule) if f.name not in UNSEEN))


@dataclass(slots=True)
class Predictions:
    """Predictions for `batch` full requests; call it with a schedule."""

    plan: Plan
    shapes: Shapes
    target: Target
    batch: int
    _known: dict[Any, Prediction] = field(default_factory=dict)
    _kernels: KernelTimes = field(default_factory=dict)

    def __call__(self, schedule: Schedule) -> Prediction:
        """How long one layer's verification takes."""
        seen = _seen(schedule)
        found = self._known.get(seen)
        if found is None:
            found = predict(
                schedule, self.plan, self.shapes, self.target, self.batch, known=self._kernels
            )
            self._known[seen] = found
        return found

    def best_first(self, schedules: Iterable[Schedule]) -> list[Schedule]:
        """By predicted time, the simpler of equal ones before the other."""
        return sorted(schedules, key=lambda point: (self(point).us, complexity(point)))
