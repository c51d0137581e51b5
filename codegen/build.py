"""From a request to a compiled folder's content: lower for every target, compile all at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from boleir.codegen.artifact import Artifact, TargetBuild, collect
from boleir.codegen.defaults import default_schedule
from boleir.codegen.interface import interface_of
from boleir.codegen.kernel_spec import CompiledKernel, Job, KernelSpec
from boleir.codegen.launch_spec import LaunchSpec
from boleir.codegen.offline import CompilePool, all_compiled
from boleir.codegen.pipeline import Lowered, lower
from boleir.codegen.planner import make_plan
from boleir.codegen.request import Request
from boleir.codegen.resources import ResourceLimit, check
from boleir.codegen.schedule import Schedule
from boleir.codegen.schedule_footprint import footprint
from boleir.codegen.targets import Target
from boleir.codegen.targets import target as find_target
from boleir.codegen.topology import FILE, GRID, topology_source, topology_spec
from boleir.derive.derive import derive
from boleir.errors import BoleirError

Say = Callable[[str], None]
"""Called with what is being done, for progress."""

Show = Callable[[str, str], None]
"""Called after each step of the lowering with its name and its result as text."""

SPILL_TOLERANCE = 4.0
"""How far a variant's estimated registers may exceed what a thread can have before it is refused:
the estimate is coarse, and the compiler keeps much of what it counts in shared memory."""


def build(
    request: Request,
    *,
    choices: Mapping[str, Any] | None = None,
    progress: Say = lambda _: None,
    show: Show = lambda step, text: None,
    workers: int | None = None,
    assembly: bool = False,
    pool: CompilePool | None = None,
) -> Artifact:
    """Lower and compile `request` for all its targets.

    `choices` replaces fields of the default schedule; `assembly` keeps the listings. Raises a
    `DerivationError`, `ScheduleError` or `CompileError` naming what is wrong.
    """
    wanted = [find_target(name) for name in request.targets]
    schedule = scheduled(request, choices or {})
    lowered: list[Lowered] = []
    for target in wanted:
        progress(f"lowering for {target.name}")
        lowered.append(lower_one(request, schedule, target, show if not lowered else None))
    return assemble(
        list(zip(lowered, wanted, strict=True)),
        progress=progress,
        workers=workers,
        assembly=assembly,
        pool=pool,
    )


def assemble(
    variants: Sequence[tuple[Lowered, Target]],
    *,
    progress: Say = lambda _: None,
    workers: int | None = None,
    assembly: bool = False,
    pool: CompilePool | None = None,
) -> Artifact:
    """Compile kernels that have been lowered, one variant per target, as one folder's content.

    All variants are of one recurrence and shape. Raises `CompileError`.
    """
    jobs = [job for made, target in variants for job in jobs_of(made, target)]
    if pool is not None:
        compiled = _compile(pool, jobs, progress)
    else:
        with CompilePool(workers) as own:
            compiled = _compile(own, jobs, progress)
    builds = []
    for made, target in variants:
        count = len(made.kernels) + 1
        kernels, compiled = compiled[:count], compiled[count:]
        builds.append(_target_build(made, target, kernels))
    first = variants[0][0]
    sizes = first.shapes.to_json()
    return collect(
        builds,
        name=first.recurrence.name,
        recurrence=str(first.recurrence),
        closed_form=str(first.form),
        shapes={k: v for k, v in sizes.items() if isinstance(v, int)},
        dtypes={"vectors": first.shapes.dtype, "state": first.shapes.state_dtype},
        extra={
            "request": sizes,
            "interfaces": {target.name: interface_of(made).to_json() for made, target in variants},
        },
        more={FILE: topology_source().encode()},
        assembly=assembly,
    )


def scheduled(request: Request, choices: Mapping[str, Any]) -> Schedule | None:
    """The default schedule with `choices` put in, or None where there are none."""
    if not choices:
        return None
    shapes = request.shapes
    plan = make_plan(
        derive(request.recurrence).normal,
        shapes.d_k,
        shapes.d_v,
        shapes.key_heads,
        shapes.value_heads,
    )
    return replace(default_schedule(plan, shapes, request.batch), **choices)


def lower_one(
    request: Request, schedule: Schedule | None, target: Target, show: Show | None
) -> Lowered:
    """The kernels of one target as text, refused here when they cannot fit on it."""

    def watch(step: str, result: Any) -> None:
        if show is not None:
            show(step, step_text(step, result))

    made = lower(
        request.recurrence,
        request.shapes,
        schedule=schedule,
        target=target,
        batch=request.batch,
        watch=watch,
    )
    try:
        check(footprint(made.schedule, made.plan, made.shapes), target, spill=SPILL_TOLERANCE)
    except ResourceLimit as error:
        error.message = f"{request.recurrence.name} ({made.schedule.label}): {error.message}"
        error.mend = "smaller b_v, b_k or node_block"
        raise
    return made


def step_text(step: str, result: Any) -> str:
    """What `--print-after` shows of a step."""
    if step == "kernels":
        return "\n".join(
            f"{kernel.name}: grid {' x '.join(kernel.grid)}, {kernel.warps} warps"
            for kernel in result
        )
    return str(result)


def _compile(pool: CompilePool, jobs: list[Job], progress: Say) -> list[CompiledKernel]:
    def told(done: int, total: int, result: CompiledKernel | BoleirError) -> None:
        what = f"{result.name} for {result.target}" if isinstance(result, CompiledKernel) else ""
        progress(f"[{done}/{total}] compiled {what or 'one with an error'}")

    progress(f"compiling {len(jobs)} kernels")
    return all_compiled(pool.run(jobs, told))


def jobs_of(made: Lowered, target: Target) -> list[Job]:
    """The layer's kernels, then the topology step."""
    return [
        *(Job(made.text, spec, target) for spec in made.specs()),
        Job(topology_source(), _topology(made), target),
    ]


def _topology(made: Lowered) -> KernelSpec:
    return topology_spec(made.shapes.max_nodes, made.shapes.max_depth, made.plan.conv_width)


def _target_build(made: Lowered, target: Target, kernels: list[CompiledKernel]) -> TargetBuild:
    specs = [*made.specs(), _topology(made)]
    grids = [*(kernel.grid for kernel in made.kernels), GRID]
    launches = [
        LaunchSpec.of(spec, kernel, grid)
        for spec, kernel, grid in zip(specs, kernels, grids, strict=True)
    ]
    return TargetBuild(
        target.name,
        made.text,
        made.schedule.to_json(),
        list(zip(launches, kernels, strict=True)),
    )
