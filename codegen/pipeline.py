"""From a recurrence to kernels: the whole lowering, one readable function of named steps."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from boleir.codegen.defaults import default_schedule
from boleir.codegen.emit.blocked_factors import emit_blocked_factors
from boleir.codegen.emit.blocked_values import emit_blocked_values
from boleir.codegen.emit.commit import emit_commit
from boleir.codegen.emit.commit_inputs import keep_for_commit
from boleir.codegen.emit.context import Context
from boleir.codegen.emit.deferred import recorded_channels
from boleir.codegen.emit.joined import emit_joined
from boleir.codegen.emit.key_factors import emit_walked
from boleir.codegen.emit.key_stages import emit_head_factors
from boleir.codegen.emit.module import module_text
from boleir.codegen.emit.persistent import with_persistent
from boleir.codegen.emit.prepare import emit_prepare, needs_prepare
from boleir.codegen.emit.record import with_deferred
from boleir.codegen.emit.staged_factors import emit_staged_factors
from boleir.codegen.emit.staged_values import emit_staged_values
from boleir.codegen.emit.unknowns import emit_unknowns
from boleir.codegen.emit.values import emit_values
from boleir.codegen.emit.verify import emit_verify
from boleir.codegen.emit.writer import EmittedKernel
from boleir.codegen.kernel_spec import KernelSpec
from boleir.codegen.plan import Plan
from boleir.codegen.planner import make_plan
from boleir.codegen.request import Shapes
from boleir.codegen.schedule import Schedule
from boleir.codegen.schedule_limits import validate
from boleir.codegen.targets import Target
from boleir.derive.closed_form import ClosedForm
from boleir.derive.derive import derive
from boleir.ir import Kind, Recurrence

STEPS = ("recurrence", "closed-form", "plan", "schedule", "kernels", "module")
"""Names that `--print-after` accepts, in the order they happen."""

Watch = Callable[[str, Any], None]
"""Called after each step with its name and its result."""


@dataclass(frozen=True, slots=True)
class Lowered:
    """Everything that was decided and written for one recurrence, shape and target."""

    recurrence: Recurrence
    form: ClosedForm
    plan: Plan
    shapes: Shapes
    schedule: Schedule
    kernels: tuple[EmittedKernel, ...]
    text: str
    """The emitted module."""

    @property
    def context(self) -> Context:
        """Plan, shapes and schedule together."""
        return Context(self.plan, self.shapes, self.schedule)

    def kernel(self, name: str) -> EmittedKernel:
        """The emitted kernel called `name`. Raises `KeyError`."""
        for kernel in self.kernels:
            if kernel.name == name:
                return kernel
        raise KeyError(name)

    @property
    def aligned_strides(self) -> frozenset[str]:
        """Integer arguments that must be multiples of 16, so that rows can be loaded 16 bytes at a
        time.

        Strides of head scalars are free: they are loaded one by one. So are those of rows that are
        no such multiple when they are dense: dense tensors are always taken.
        """
        shapes = self.shapes
        vectors = [x for x in self.recurrence.tokens if x.kind is not Kind.HEAD]
        rows = {x.name: shapes.channels(x) for x in vectors}
        out = shapes.value_heads * shapes.d_v
        rows |= {readout.pointer: out for readout in self.plan.readouts}
        rows["state"] = out * shapes.d_k
        rows["recorded"] = recorded_channels(self.context)
        return frozenset(f"{name}_stride" for name, size in rows.items() if size % 16 == 0)

    def specs(self) -> list[KernelSpec]:
        """What the offline compiler needs for each kernel."""
        return [
            KernelSpec(
                name=kernel.name,
                signature=dict(kernel.arguments),
                aligned=tuple(
                    name
                    for name, kind in kernel.arguments
                    if kind.startswith("*") or name in self.aligned_strides
                ),
                num_warps=kernel.warps,
                num_stages=kernel.stages,
                max_registers=kernel.registers or None,
                pdl=kernel.pdl,
                label=self.schedule.label,
            )
            for kernel in self.kernels
        ]


def lower(
    recurrence: Recurrence,
    shapes: Shapes,
    *,
    schedule: Schedule | None = None,
    target: Target | None = None,
    batch: int = 1,
    watch: Watch = lambda step, result: None,
) -> Lowered:
    """Recurrence -> closed form -> plan -> schedule -> kernels -> module. `target` None: any (no
    target features). `batch`: about how many requests the default schedule is chosen for.

    Raises `DerivationError`, `NoKernel`, `InvalidSchedule`.
    """
    watch("recurrence", recurrence)
    form = derive(recurrence)
    watch("closed-form", form)
    plan = make_plan(form.normal, shapes.d_k, shapes.d_v, shapes.key_heads, shapes.value_heads)
    watch("plan", plan)
    schedule = schedule or default_schedule(plan, shapes, batch, target)
    validate(schedule, plan, shapes, target)
    if target is None or not target.pdl:
        schedule = replace(schedule, pdl=False)
    watch("schedule", schedule)
    plan = keep_for_commit(plan, schedule)
    context = Context(plan, shapes, schedule)
    kernels = emit_kernels(context)
    watch("kernels", kernels)
    text = module_text(context, kernels, str(recurrence), str(form))
    watch("module", text)
    return Lowered(recurrence, form, plan, shapes, schedule, tuple(kernels), text)


def emit_kernels(context: Context) -> list[EmittedKernel]:
    """The kernels of one layer in launch order, then commit."""
    pdl = context.schedule.pdl
    prepared = needs_prepare(context)
    kernels = []
    if prepared and not context.prepares_first:
        kernels.append(emit_prepare(context, pdl=pdl))
    if context.schedule.fusion == "staged":
        if context.plan.pairs:
            kernels += [emit_staged_factors(context, pdl=pdl), emit_unknowns(context, pdl=pdl)]
        kernels.append(emit_staged_values(context, pdl=pdl))
    elif context.schedule.fusion == "joined" or context.prepares_first:
        kernels.append(emit_joined(context, pdl=pdl))
    elif context.schedule.fusion == "split" and context.blocks > 1:
        kernels.append(emit_blocked_factors(context, pdl=pdl))
        kernels.append(with_persistent(context, emit_blocked_values(context, pdl=pdl)))
    elif context.schedule.fusion == "split":
        kernels.append(emit_head_factors(context, pdl=pdl))
        kernels.append(with_persistent(context, emit_values(context, pdl=pdl)))
    else:
        if context.walked and not context.spread_walks:
            kernels += emit_walked(context, pdl=pdl)
        early = prepared or context.walked
        verify = emit_verify(context, wait=("prepared" if early else "start") if pdl else None)
        kernels.append(with_persistent(context, verify))
    kernels.append(emit_commit(context))
    return with_deferred(context, kernels) if context.schedule.commit == "deferred" else kernels
