"""What `boleir.compile` asks when it is given no schedule. It never fails: without an answer, the
default schedule is taken."""

from __future__ import annotations

from typing import TYPE_CHECKING

from boleir.codegen.schedule import Schedule
from boleir.codegen.schedule_limits import validate
from boleir.errors import ScheduleError
from boleir.runtime.tuning.entry import Entry
from boleir.runtime.tuning.environment import Environment
from boleir.runtime.tuning.keys import TuningKey, key_of
from boleir.runtime.tuning.settings import Settings
from boleir.runtime.tuning.shipped import shipped_entry
from boleir.runtime.tuning.store import Store

if TYPE_CHECKING:
    from boleir.codegen.plan import Plan
    from boleir.codegen.request import Shapes
    from boleir.codegen.targets import Target
    from boleir.ir import Recurrence


def stored(store: Store, environment: Environment, key: TuningKey) -> Entry | None:
    """The entry of this machine, else the one that was shipped."""
    entry = store.load(environment, key)
    return entry if entry is not None else shipped_entry(environment, key)


def tuned_schedule(
    recurrence: Recurrence,
    shapes: Shapes,
    target: Target,
    batch: int,
    *,
    settings: Settings | None = None,
    store: Store | None = None,
    environment: Environment | None = None,
) -> Schedule | None:
    """The schedule to take for these shapes and about `batch` requests, or None for the default.

    Without `environment` it is that of the GPU present; there is no answer for a target that is not
    present, nor outside the range that is tuned. Only mode `tune` compiles or times anything.
    """
    settings = Settings.from_environment() if settings is None else settings
    if settings.mode == "off":
        return None
    key = key_of(recurrence, shapes, batch)
    if key is None:
        return None
    here = _environment(target) if environment is None else environment
    if here is None:
        return None
    entry = stored(Store.default() if store is None else store, here, key)
    if (entry is None or not entry.tuned) and settings.mode == "tune":
        from boleir.runtime.tuning.autotune import tune_key

        entry = tune_key(recurrence, key, target, effort=settings.effort)
    schedule = None if entry is None else entry.chosen
    if schedule is None or not _fits(schedule, _plan(recurrence, shapes), shapes):
        return None
    return schedule


def _environment(target: Target) -> Environment | None:
    """That of the GPU present, if it is the target."""
    import torch

    from boleir.runtime.tuning.environment import present

    if not torch.cuda.is_available():
        return None
    device = torch.cuda.current_device()
    if not target.runs_on(torch.cuda.get_device_capability(device)):
        return None
    return present(device, target)


def _plan(recurrence: Recurrence, shapes: Shapes) -> Plan:
    from boleir.codegen.planner import make_plan
    from boleir.derive.derive import derive

    normal = derive(recurrence).normal
    return make_plan(normal, shapes.d_k, shapes.d_v, shapes.key_heads, shapes.value_heads)


def _fits(schedule: Schedule, plan: Plan, shapes: Shapes) -> bool:
    """The bucket's schedule may be too large for the smallest of its shapes."""
    try:
        validate(schedule, plan, shapes)
    except ScheduleError:
        return False
    return True
