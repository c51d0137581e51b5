"""Which stages of a schedule a correct kernel exists for: what is prepared, shared and folded, by
which programs."""

from __future__ import annotations

from boleir.codegen.plan import NoKernel, Plan
from boleir.codegen.request import Shapes
from boleir.codegen.schedule import InvalidSchedule, Schedule, blocks, has_rows


def check_gates(schedule: Schedule, plan: Plan, shapes: Shapes) -> None:
    """A program of the prepare kernel sees one convolved input; later kernels see all of them."""
    scalar = plan.entangled
    if scalar is None:
        return
    reason = f"{plan.name}: {scalar.name} needs several inputs of which some are convolved"
    if shapes.max_nodes > 64 and shapes.parents is None:
        raise NoKernel(f"{reason}: kernels exist for up to 64 nodes, not {shapes.max_nodes}")
    if schedule.gates == "prepare":
        raise InvalidSchedule(f"{reason}: gates must be inline")


def check_prepare(schedule: Schedule, plan: Plan) -> None:
    """Programs that prepare have something to do; in the one launch of a layer they come first."""
    default = Schedule()
    changed = [
        f"{name} {getattr(schedule, name)}"
        for name in ("prepare", "prepare_nodes", "prepare_warps")
        if getattr(schedule, name) != getattr(default, name)
    ]
    rows = schedule.gates == "prepare" and has_rows(plan)
    if changed and not (plan.mixed or rows or schedule.walk_nodes):
        raise InvalidSchedule(
            f"{' and '.join(changed)}: there is nothing to prepare for {plan.name} with gates "
            f"{schedule.gates}",
            mend="prepare launch, prepare_nodes 16, prepare_warps 0",
        )
    if schedule.prepare == "overlapped" and schedule.fusion != "joined":
        raise InvalidSchedule(
            "prepare overlapped is for joined kernels, whose programs wait at once else; those of "
            f"{schedule.fusion} schedules never do",
            mend="prepare launch",
        )
    if schedule.prepare == "joined" and schedule.fusion not in ("fused", "joined"):
        raise InvalidSchedule(
            "prepare joined is for the one launch of a fused or joined kernel, but "
            f"{schedule.fusion} schedules have several",
            mend="prepare launch",
        )


def check_prepare_warps(schedule: Schedule, plan: Plan, shapes: Shapes) -> None:
    """Where programs of a kernel of their own convolve or compute row scalars, and only there."""
    from boleir.codegen.emit.context import Context

    if not schedule.prepare_warps:
        return
    context, what = Context(plan, shapes, schedule), ""
    if context.prepares_first:
        what = "programs that prepare in the launch of others have as many as these"
    elif context.spread_walks:
        what = "a prepare kernel of walks has factor_warps"
    if what:
        raise InvalidSchedule(
            f"prepare_warps {schedule.prepare_warps}: {what}", mend="prepare_warps 0"
        )


def check_groups(schedule: Schedule, plan: Plan, shapes: Shapes) -> None:
    """Value heads that one program takes have the products of their vectors in common."""
    heads, mend = schedule.factor_heads, "factor_heads 1"
    if heads == 1:
        return
    if heads < 1 or shapes.group % heads:
        of = f"{shapes.group} value head{'s' if shapes.group > 1 else ''} of a key head"
        raise InvalidSchedule(f"factor_heads {heads} does not divide the {of}", mend=mend)
    what = ""
    if schedule.fusion != "split":
        what = f"{schedule.fusion} schedules"
    elif _shares_systems(schedule, plan, shapes):
        what = f"{plan.name}, whose value heads share one system anyway"
    elif blocks(schedule, shapes) > 1:
        what = f"{shapes.max_nodes} nodes in blocks of {schedule.node_block}"
    elif not plan.grams_per_key_head:
        what = f"{plan.name}, whose products of vectors differ between them"
    elif len(plan.pairs) > 1 and schedule.node_block > 32:
        what = f"{plan.name}, whose {len(plan.pairs)} pairs of {schedule.node_block} nodes fill up "
        what += "the registers"
    if what:
        raise InvalidSchedule(
            f"factor_heads {heads}: split kernels of one node block can take several value heads "
            f"of a key head together, not {what}",
            mend=mend,
        )


def _shares_systems(schedule: Schedule, plan: Plan, shapes: Shapes) -> bool:
    from boleir.codegen.emit.context import Context

    return Context(plan, shapes, schedule).shares_systems


def check_spread_walks(schedule: Schedule, plan: Plan) -> None:
    """Walks that the prepare kernel takes: of vectors as they come."""
    nodes, what = schedule.walk_nodes, ""
    if not nodes:
        return
    if plan.key_decay is None:
        what = f"{plan.name} has no decays per key channel"
    elif schedule.path_sum != "select":
        what = f"path_sum must be select, not {schedule.path_sum}: sums are no walks"
    elif plan.mixed:
        what = f"inputs of {plan.name} are convolved in the same launch"
    if what:
        raise InvalidSchedule(f"walk_nodes {nodes}: {what}", mend="walk_nodes 0")


def check_steps(schedule: Schedule, plan: Plan) -> None:
    """Steps over key channels, whose loads can run ahead, are those of sums per key channel."""
    sums = plan.key_decay is not None and schedule.folds and schedule.path_sum == "dot"
    if schedule.factor_stages > 1 and not sums:
        raise InvalidSchedule(
            f"factor_stages {schedule.factor_stages}: no factors kernel of {plan.name} sums up "
            f"decays per key channel with path_sum {schedule.path_sum}",
            mend="factor_stages 1",
        )


def check_readers(schedule: Schedule, plan: Plan, shapes: Shapes) -> None:
    """One vector stands for all that reads the state where one inverse is folded into one
    readout."""
    if schedule.readers == "apart":
        return
    what = ""
    if not schedule.folds:
        what = f"{schedule.fusion} schedules, whose value tiles solve"
    elif len(plan.pairs) != 1:
        what = f"{plan.name}, which has {len(plan.pairs) or 'no'} pairs"
    elif blocks(schedule, shapes) > 1:
        what = f"{shapes.max_nodes} nodes in blocks of {schedule.node_block}"
    elif schedule.stages > 1:
        what = f"stages {schedule.stages}: loops over key chunks take vectors as they come"
    if what:
        raise InvalidSchedule(
            "readers folded is for split and joined kernels of one erase/write pair and one node "
            f"block, not for {what}",
            mend="readers apart",
        )
