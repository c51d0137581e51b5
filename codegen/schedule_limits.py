"""Which schedules a correct kernel exists for: what is refused, by field and with a mend."""

from __future__ import annotations

from math import comb

from boleir.codegen.plan import NoKernel, Plan
from boleir.codegen.request import Shapes
from boleir.codegen.schedule import (
    COMMITS,
    FUSIONS,
    GATES,
    HORNER_SWEEPS,
    ORDERS,
    ORIENTATIONS,
    PATH_SUMS,
    PRECISIONS,
    PREPARE_WARPS,
    PREPARES,
    READERS,
    SOLVERS,
    WALK_NODES,
    InvalidSchedule,
    Schedule,
    block_depth,
    blocks,
    horner_sweeps,
    looped,
    padded,
)
from boleir.codegen.stage_limits import (
    check_gates,
    check_groups,
    check_prepare,
    check_prepare_warps,
    check_readers,
    check_spread_walks,
    check_steps,
)
from boleir.codegen.target_limits import (
    check_loop_products,
    check_narrow_products,
    check_narrow_readers,
    check_narrow_sums,
)
from boleir.codegen.targets import Target

_CHOICES: dict[str, tuple[object, ...]] = {
    "fusion": FUSIONS,
    "solver": SOLVERS,
    "gates": GATES,
    "prepare": PREPARES,
    "precision": PRECISIONS,
    "orientation": ORIENTATIONS,
    "commit": COMMITS,
    "path_sum": PATH_SUMS,
    "order": ORDERS,
    "readers": READERS,
    "warps": (1, 2, 4, 8, 16),
    "factor_warps": (1, 2, 4, 8, 16),
    "walk_nodes": WALK_NODES,
    "prepare_warps": PREPARE_WARPS,
}

PRODUCT_TOLERANCE = 2e-5
"""Largest error bound under which the log-depth product may be chosen."""

UNIT = {"fp32": 2.0**-17, "tf32": 2.0**-11, "bf16": 2.0**-8, "ieee": 2.0**-24}
"""Round-off of one product under each precision plan."""

DEFERRED_NODES = 64
"""Most nodes of a kernel whose commits are deferred."""


def validate(schedule: Schedule, plan: Plan, shapes: Shapes, target: Target | None = None) -> None:
    """Refuse a schedule that no correct kernel exists for, on `target` if that is given. Raises
    `InvalidSchedule` naming the field."""
    _check_choices(schedule)
    if target is not None and target.wgmma:
        check_narrow_products(schedule, target)
        check_narrow_sums(schedule, plan, shapes, target)
        check_narrow_readers(schedule, shapes, target)
        check_loop_products(schedule, shapes, target)
    if plan.staged or schedule.fusion == "staged":
        _check_staged(schedule, plan, shapes)
        return
    _check_key_decay(schedule, plan, shapes)
    _check_deferred(schedule, plan, shapes)
    _check_blocks(schedule, shapes)
    check_gates(schedule, plan, shapes)
    check_prepare(schedule, plan)
    check_prepare_warps(schedule, plan, shapes)
    _check_loop(schedule, shapes)
    _check_key_loop(schedule, plan, shapes)
    check_groups(schedule, plan, shapes)
    check_spread_walks(schedule, plan)
    check_readers(schedule, plan, shapes)
    check_steps(schedule, plan)
    _check_solver(schedule, plan, shapes)


def _check_choices(schedule: Schedule) -> None:
    for name, allowed in _CHOICES.items():
        if getattr(schedule, name) not in allowed:
            listed = ", ".join(map(str, allowed))
            given = getattr(schedule, name)
            raise InvalidSchedule(f"{name} must be one of {listed}, not {given!r}")
    for name in ("b_v", "b_k", "node_block", "prepare_nodes"):
        size = getattr(schedule, name)
        if size < 16 or size & (size - 1) or size > 512:
            raise InvalidSchedule(f"{name} must be a power of two from 16 to 512, not {size}")
    for name in ("registers", "factor_registers"):
        cap = getattr(schedule, name)
        if cap and not (32 <= cap <= 255 and cap % 8 == 0):
            raise InvalidSchedule(f"{name} must be 0 or a multiple of 8 from 32 to 248, not {cap}")
    if schedule.lead < 0:
        raise InvalidSchedule(f"lead must be 0 or more, not {schedule.lead}")
    if schedule.lead and schedule.order != "tiles":
        raise InvalidSchedule(
            f"lead {schedule.lead}: the tiles of a head come after its system, so that order must "
            f"be tiles, not {schedule.order}",
            mend="lead 0",
        )
    _check_persistent(schedule)
    if not 1 <= schedule.stages <= 8:
        raise InvalidSchedule(f"stages must lie in 1..8, not {schedule.stages}")
    if not 1 <= schedule.factor_stages <= 8:
        raise InvalidSchedule(f"factor_stages must lie in 1..8, not {schedule.factor_stages}")


def _check_persistent(schedule: Schedule) -> None:
    """Programs that stay loop over value tiles; those of a joined kernel come in an order of their
    own, and loads ahead of one loop would be those of another."""
    if schedule.persistent < 0:
        raise InvalidSchedule(f"persistent must be 0 or more, not {schedule.persistent}")
    if not schedule.persistent:
        return
    given = f"persistent {schedule.persistent}"
    if schedule.fusion in ("joined", "staged"):
        raise InvalidSchedule(
            f"{given}: programs of a {schedule.fusion} kernel take one value tile each",
            mend="persistent 0, or fusion split or fused",
        )
    if schedule.prepare == "joined":
        raise InvalidSchedule(
            f"{given}: programs that prepare in the same launch come before those of value tiles",
            mend="persistent 0, or prepare launch",
        )
    if schedule.stages > 1:
        raise InvalidSchedule(
            f"{given}: stages {schedule.stages} asks for loads ahead inside each value tile",
            mend="persistent 0 or stages 1",
        )


def _check_key_decay(schedule: Schedule, plan: Plan, shapes: Shapes) -> None:
    """Decays per key channel do not factor out of the products of two nodes, which are summed up
    along the path once per head: before the kernel of the value tiles."""
    if plan.key_decay is None and schedule.fusion == "walked":
        raise InvalidSchedule(
            f"walked keeps products that decays per key channel stand in, {plan.name} has none: "
            "fusion must be fused, split or joined"
        )
    if plan.key_decay is not None and schedule.fusion == "fused":
        raise InvalidSchedule(
            f"{plan.name} decays per key channel: fusion must be split, joined or walked, not fused"
        )
    if plan.key_decay is not None and schedule.fusion == "split" and blocks(schedule, shapes) > 1:
        raise InvalidSchedule(
            f"{plan.name} decays per key channel: split needs all {shapes.max_nodes} nodes in one "
            f"block, node_block is {schedule.node_block}",
            mend="fusion walked",
        )
    if plan.key_decay is not None and schedule.path_sum == "dot" and len(plan.pairs) > 1:
        pairs = f"{plan.name} decays per key channel and has {len(plan.pairs)} erase/write pairs"
        raise InvalidSchedule(f"{pairs}: path_sum must be select, not dot")


def _check_deferred(schedule: Schedule, plan: Plan, shapes: Shapes) -> None:
    """Deferred commits are walked where a value tile reads the state, once per launch, from what
    they have recorded of tokens."""
    from boleir.codegen.emit.commit_inputs import step_inputs

    if schedule.commit != "deferred":
        return
    if not step_inputs(plan)[0]:
        raise InvalidSchedule(
            f"commit deferred records the tokens that states depend on; states of {plan.name} "
            "depend on none",
            mend="commit replay",
        )
    what = "walked" if schedule.fusion == "walked" else ""
    if shapes.max_nodes > DEFERRED_NODES:
        what = f"{shapes.max_nodes} nodes"
    elif schedule.folds and blocks(schedule, shapes) > 1:
        what = f"{schedule.fusion} in several node blocks"
    if what:
        raise InvalidSchedule(
            f"commit deferred is for fused, split and joined kernels of up to {DEFERRED_NODES} "
            f"nodes, not for {what}",
            mend="commit replay",
        )


def _check_staged(schedule: Schedule, plan: Plan, shapes: Shapes) -> None:
    """The unknowns are solved for node after node, from row scalars that are there."""
    if not plan.staged:
        raise InvalidSchedule(
            f"staged is for updates from the right and decays per value channel; {plan.name} has "
            "neither",
            mend="fusion fused, split or joined",
        )
    what = "acts from the right" if plan.right else "decays per value channel"
    if plan.entangled is not None:
        raise NoKernel(
            f"{plan.name} {what}: all row scalars are prepared, and no program of the prepare "
            f"kernel sees all that {plan.entangled.name} needs, several inputs of which some are "
            "convolved",
            mend="scalars of one convolved input each, such as its norm",
        )
    needed = {
        "readers": "apart",
        "fusion": "staged", "gates": "prepare", "prepare": "launch", "solver": "horner",
        "orientation": "values",
        "commit": "replay", "prefetch": False, "path_sum": "select", "factor_heads": 1,
        "order": "tiles",
    }  # fmt: skip
    for name, value in needed.items():
        if getattr(schedule, name) != value:
            given = getattr(schedule, name)
            raise InvalidSchedule(f"{plan.name} {what}: {name} must be {value}, not {given}")
    _check_blocks(schedule, shapes)


def _check_blocks(schedule: Schedule, shapes: Shapes) -> None:
    nodes = schedule.node_block
    if nodes > 64:
        raise InvalidSchedule(f"node_block {nodes} is above 64: a block lies in one ancestor word")
    sizes = {"b_v": shapes.d_v, "b_k": shapes.d_k}
    sizes |= dict.fromkeys(("node_block", "prepare_nodes"), shapes.max_nodes)
    for name, size in sizes.items():
        if getattr(schedule, name) > padded(size):
            given = getattr(schedule, name)
            raise InvalidSchedule(f"{name} {given} is above the padded size {padded(size)}")
    if schedule.fusion == "joined" and shapes.max_nodes > nodes:
        raise InvalidSchedule(
            f"joined needs all {shapes.max_nodes} nodes in one block, node_block is {nodes}"
        )


def _check_loop(schedule: Schedule, shapes: Shapes) -> None:
    several = schedule.folds and blocks(schedule, shapes) > 1
    if (several or looped(schedule, shapes)) and schedule.gates != "prepare":
        raise InvalidSchedule(
            f"{shapes.max_nodes} nodes in blocks of {schedule.node_block} are walked in a loop, "
            "which reads row scalars back: gates must be prepare"
        )
    if schedule.commit == "factors16" and looped(schedule, shapes):
        raise InvalidSchedule(
            f"commit factors16: {shapes.max_nodes} nodes in blocks of {schedule.node_block} are "
            "walked in a loop, whose outputs would see the rounding of the stored unknowns",
            mend="commit factors",
        )


def _check_key_loop(schedule: Schedule, plan: Plan, shapes: Shapes) -> None:
    """A loop over key chunks needs several, and nothing else that takes the state."""
    if schedule.stages == 1 or not schedule.folds or blocks(schedule, shapes) > 1:
        return
    chunks = -(-shapes.d_k // schedule.b_k)
    if chunks == 1 or schedule.stages > chunks + 1:
        most = f"{chunks} key chunk{'s' if chunks > 1 else ''} of {schedule.b_k}"
        raise InvalidSchedule(
            f"stages {schedule.stages}: {shapes.d_k} key channels are {most}",
            mend=f"stages up to {chunks + 1}, or a smaller b_k" if chunks > 1 else "a smaller b_k",
        )
    what = "deferred commits advance it" if schedule.commit == "deferred" else ""
    if plan.key_decay is not None:
        what = "decays per key channel need all channels"
    if plan.reads_sums:
        what = f"vectors of {plan.name} are computed from sums over all channels"
    if what:
        raise InvalidSchedule(
            f"stages {schedule.stages}: the state is taken in chunks, but {what}", mend="stages 1"
        )


def _check_solver(schedule: Schedule, plan: Plan, shapes: Shapes) -> None:
    if schedule.solver in ("inverse", "product") or schedule.folds:
        _check_shared(schedule, plan)
    if schedule.folds and blocks(schedule, shapes) > 1 and not (plan.pairs or plan.writes):
        raise InvalidSchedule(
            f"{plan.name} writes nothing, so that no block is read: split needs all "
            f"{shapes.max_nodes} nodes in one block, node_block is {schedule.node_block}",
            mend="fusion fused",
        )
    if schedule.folds:
        _check_folding(schedule)
    sweeps = horner_sweeps(schedule, plan, shapes)
    if schedule.solver == "horner" and sweeps > HORNER_SWEEPS:
        raise InvalidSchedule(
            f"horner: in {sweeps} sweeps over {plan.form.micro_steps} steps per token what is not "
            f"final yet leaves the range of float32; {HORNER_SWEEPS} are allowed",
            mend="solver levels",
        )
    if schedule.solver == "product" and plan.pairs:
        error = product_error(schedule.precision, block_depth(schedule, shapes))
        if error > PRODUCT_TOLERANCE and schedule.precision in ("fp32", "ieee"):
            raise InvalidSchedule(
                f"product: its error bound at depth {shapes.max_depth} is {error:.0e}, "
                f"above {PRODUCT_TOLERANCE:.0e}",
                mend="solver inverse, horner or levels",
            )


def _check_shared(schedule: Schedule, plan: Plan) -> None:
    """One inverse per head: the same for every value channel; several pairs are eliminated one
    after the other where the solve is folded, value tiles solve for all of them at once."""
    which = f"{schedule.solver}/{schedule.fusion}"
    if any(pair.gain is not None for pair in plan.pairs):
        raise InvalidSchedule(
            f"{which} needs one inverse per head; a value-vector gain has one per channel"
        )
    if len(plan.pairs) > 1 and not schedule.folds:
        raise InvalidSchedule(
            f"{which} takes one erase/write pair per token, {plan.name} has {len(plan.pairs)}",
            mend="solver horner, or fusion split",
        )


def _check_folding(schedule: Schedule) -> None:
    fusion = schedule.fusion
    if schedule.stores_unknowns:
        raise InvalidSchedule(
            f"{fusion} folds the solve into the readout and has no U to store: commit must be "
            "replay or deferred"
        )
    if schedule.solver not in ("inverse", "product"):
        raise InvalidSchedule(
            f"{fusion} shares an inverse between value tiles: solver must be inverse or product"
        )


def product_error(precision: str, depth: int, beta: float = 1.0) -> float:
    """Bound u * max_p beta^p C(d-1, p-1) for the log-depth product at depth d (identical keys
    attain it)."""
    if depth < 1:
        return UNIT[precision]
    return UNIT[precision] * max(beta**p * comb(depth - 1, p - 1) for p in range(1, depth + 1))
