"""Which products a toolchain compiles rightly: what is refused for targets with warp groups."""

from __future__ import annotations

from boleir.codegen.plan import Plan
from boleir.codegen.request import Shapes
from boleir.codegen.schedule import InvalidSchedule, Schedule, loops_keys, padded
from boleir.codegen.targets import Target


def check_narrow_products(schedule: Schedule, target: Target) -> None:
    """Products of warp groups with 64 nodes on the M side read a row-major operand of b_v columns:
    below 64, of which its rows in shared memory have fewer bytes than the widest swizzle, an H200
    gave wrong numbers and illegal accesses (Triton 3.6, ptxas 12.8 and 12.9)."""
    groups = schedule.warps >= 4 and schedule.node_block >= 64
    if schedule.orientation == "nodes" and groups and schedule.b_v < 64:
        raise InvalidSchedule(
            f"b_v {schedule.b_v} with orientation nodes, node_block {schedule.node_block} and "
            f"{schedule.warps} warps: such products are compiled wrongly for {target.name}",
            mend="b_v 64 or 128, orientation values, or warps 1 or 2",
        )


def check_narrow_sums(schedule: Schedule, plan: Plan, shapes: Shapes, target: Target) -> None:
    """The same for sums of decays per key channel, whose columns are channels."""
    sums = plan.key_decay is not None and schedule.folds and schedule.path_sum == "dot"
    groups = schedule.factor_warps >= 4 and schedule.node_block >= 64
    if sums and groups and padded(shapes.d_k) < 64:
        raise InvalidSchedule(
            f"path_sum dot with d_k {shapes.d_k}, node_block {schedule.node_block} and "
            f"{schedule.factor_warps} factor warps: such products are compiled wrongly for "
            f"{target.name}",
            mend="path_sum select, or factor_warps 1 or 2",
        )


def check_narrow_readers(schedule: Schedule, shapes: Shapes, target: Target) -> None:
    """The same for products of the folded inverse with the vectors that erase."""
    warps = schedule.warps if schedule.fusion == "joined" else schedule.factor_warps
    groups = warps >= 4 and schedule.node_block >= 64
    if schedule.readers == "folded" and groups and padded(shapes.d_k) < 64:
        raise InvalidSchedule(
            f"readers folded with d_k {shapes.d_k}, node_block {schedule.node_block} and {warps} "
            f"warps for a system: such products are compiled wrongly for {target.name}",
            mend="readers apart, or warps 1 or 2",
        )


def check_loop_products(schedule: Schedule, shapes: Shapes, target: Target) -> None:
    """Products of warp groups take the state from registers where values stand on rows. In a loop
    over key chunks Triton 3.6 does not wait for the last of them before it fills these registers
    again: an H200 gave wrong numbers."""
    groups = schedule.warps >= 4 and schedule.b_v >= 64 and schedule.orientation == "values"
    if groups and loops_keys(schedule, shapes):
        raise InvalidSchedule(
            f"stages {schedule.stages} with orientation values and {schedule.warps} warps: loops "
            f"over such products are compiled wrongly for {target.name}",
            mend="stages 1, orientation nodes, or warps 1 or 2",
        )
