"""The schedule that is taken where none was measured or asked for: a rule of few lines."""

from __future__ import annotations

from dataclasses import replace

from boleir.codegen.digits import keeps_digits
from boleir.codegen.emit.context import Context
from boleir.codegen.emit.inverses import DIRECT
from boleir.codegen.emit.key_vectors import readers, written_bases
from boleir.codegen.plan import Plan
from boleir.codegen.request import Shapes
from boleir.codegen.schedule import (
    HORNER_SWEEPS,
    Schedule,
    blocks,
    horner_sweeps,
    padded,
    single_inverse,
)
from boleir.codegen.targets import Target

FEW_REQUESTS = 4
"""Up to this many, the default schedule is chosen for latency."""

LEAD = 320
"""Systems that come before the first value tile where programs take turns: nearly as many programs
as run at the same time."""

KEY_CHUNK = 32
"""Key channels of a chunk that a loop takes."""


def default_schedule(
    plan: Plan, shapes: Shapes, batch: int = 1, target: Target | None = None
) -> Schedule:
    """A good schedule for about `batch` requests without measuring, from what an H200 showed.

    Up to 64 nodes the factors of a head are worth programs of their own, which overlap the loading
    of the state; only a small tree behind a convolution is faster in one fused launch. Few requests
    wait for latency: one joined launch of few programs, with all gates computed where they are
    needed and loads issued early. Many fill the GPU: few registers let more programs share a
    multiprocessor. More than 32 nodes keep it busy in one launch, too, where factors and value
    tiles take turns, unless products of many vectors take registers that value tiles would lack;
    fewer nodes take split launches. More than 32 nodes stand on rows, so that outputs lie as in
    memory, also those of two blocks; more than 64 are solved block by block: once per head, too,
    wherever one inverse will do. Two pairs per token are folded up to 64 nodes. Decays per key
    channel are summed where a block of 64 nodes has registers for it and requests are many, else
    walked (and then one vector reads the state for all, where there are pure writes beside a pair):
    in one joined launch where few requests of one pair per token are, by several programs for each
    head where these are one or two, or nothing is solved for few of more than 32 nodes. A launch of
    few nodes begins while they are convolved. Value heads share one system where they can. Tiles of
    a second output need more registers, those of a third would spill under any cap. Several steps
    per token of deep trees are solved level by level: sweeps would overflow. Sums of few key
    channels are refused where warps multiply in groups, so that these are walked. Where warps
    multiply alone, their operands take the registers of a whole state tile, so that it comes in
    chunks, or in narrow tiles. These last by counts of instructions and spills: no GPU has measured
    them.
    """
    narrow = target is not None and target.wgmma and padded(shapes.d_k) < 64
    found = _default_schedule(plan, shapes, batch, sums=not narrow)
    if plan.entangled is not None:
        found = replace(found, gates="inline")
    inline = replace(found, gates="inline")
    if not (plan.mixed or found.walk_nodes) and Context(plan, shapes, inline).shares_systems:
        found = inline
    if found.solver == "horner" and horner_sweeps(found, plan, shapes) > HORNER_SWEEPS:
        found = replace(found, solver="levels")
    alone = target is not None and target.backend == "cuda" and not target.wide_products
    if alone and found.walk_nodes and not plan.pairs:
        found = replace(found, gates="prepare", prefetch=False, b_k=min(64, found.b_k))
    if alone and (shapes.max_nodes > 64 or found.walk_nodes):
        found = replace(found, orientation="values")
    if alone and plan.key_decay is not None and found.path_sum == "dot":
        found = replace(found, orientation="values", b_v=min(32, found.b_v), registers=0)
    if target is not None and not target.wgmma:
        # Triton 3.6 does not compile such loops for sm_100
        found = replace(found, factor_stages=1)
    outputs = len(plan.readouts)
    if found.lead and (alone or outputs > 1):
        # few registers for value tiles, but not for what they wait for
        found = replace(found, fusion="split", gates="prepare", lead=0)
    if found.registers and outputs > 1:
        found = replace(found, registers=0 if alone or outputs > 2 else 168)
    return key_loop(found, plan, shapes, 2) or found if alone else found


def key_loop(schedule: Schedule, plan: Plan, shapes: Shapes, stages: int) -> Schedule | None:
    """The same with a loop over small key chunks, where there can be one."""
    chunks = -(-shapes.d_k // KEY_CHUNK)
    one_block = schedule.folds and blocks(schedule, shapes) == 1
    if plan.key_decay is not None or plan.reads_sums:
        return None
    if not one_block or not max(2, stages - 1) <= chunks:
        return None
    return replace(schedule, b_k=KEY_CHUNK, stages=stages)


MOST_PRODUCTS = 2
"""Products of all nodes that a program of 64 nodes has registers for."""


def _has_few_products(plan: Plan) -> bool:
    """Whether all products of two nodes' vectors fit into the registers of one program."""
    return len(readers(plan)) * len(written_bases(plan)) <= MOST_PRODUCTS


def key_sums(schedule: Schedule, plan: Plan, shapes: Shapes) -> Schedule | None:
    """The same with decays per key channel as differences of sums, where one block of 64 nodes has
    registers for their products; not where paths of numbers cancel, for which walks are better."""
    if schedule.fusion != "split" or schedule.node_block < 64:
        return None
    if not _has_few_products(plan) or (not plan.pairs and keeps_digits(plan, shapes, schedule)):
        return None  # no registers, or no digits to spare
    gates = "prepare" if plan.mixed else "inline"
    # ptxas 12.8 leaves registers unset behind loads that run ahead, where blocks of inverses follow
    stages = 1 if horner_sweeps(schedule, plan, shapes) > DIRECT else 3
    sums = replace(schedule, path_sum="dot", factor_warps=4, factor_stages=stages, gates=gates)
    if schedule.b_v < 64:
        return sums
    sums = replace(sums, orientation="nodes", b_k=min(64, padded(shapes.d_k)), registers=128)
    if plan.pairs or len(plan.readouts) > 1 or shapes.d_k > 128 or padded(shapes.d_v) < 128:
        return sums
    # value tiles load nothing but these vectors and what is folded: one tile loads them once
    return replace(sums, b_v=128, registers=0)


def one_reader(schedule: Schedule, plan: Plan, shapes: Shapes) -> Schedule | None:
    """The same with one vector for all that reads the state: where there are too many products for
    registers, value tiles come to wait for what they read."""
    if schedule.node_block < 64 or len(plan.pairs) != 1 or not plan.writes:
        return None
    return replace(schedule, readers="folded") if padded(shapes.d_k) >= 64 else None


FEW_WALKERS = 2
"""Up to so many requests several programs share the walks of a head, if a solve follows: more fill
the GPU anyway."""


def spread_walks(schedule: Schedule, plan: Plan, shapes: Shapes, batch: int) -> Schedule | None:
    """The same in one launch whose first programs share the walks of a head: 16 nodes have no paths
    that are worth it. Without a solve, value tiles wait for little else."""
    if schedule.fusion != "split" or schedule.node_block < 32 or plan.mixed:
        return None
    shared = replace(
        schedule, fusion="joined", gates="prepare", prepare="joined", walk_nodes=8, factor_warps=4,
        b_v=min(64, padded(shapes.d_v)),
    )  # fmt: skip
    if not plan.pairs:
        if shapes.d_k > 128:
            return replace(shared, b_k=64)
        if batch > 1 and schedule.node_block >= 64 and min(shapes.d_k, shapes.d_v) >= 64:
            return _rows_of_nodes(shared, shapes, batch)
        return replace(shared, gates="inline", b_k=padded(shapes.d_k), prefetch=True)
    if schedule.node_block < 64:
        return shared
    b_k = min(64, padded(shapes.d_k))
    return replace(shared, b_k=b_k, b_v=min(128, padded(shapes.d_v)), warps=8, walk_nodes=16)


def _rows_of_nodes(shared: Schedule, shapes: Shapes, batch: int) -> Schedule:
    """The same with nodes on rows: fewer registers, so that more programs share a multiprocessor
    where there are many."""
    rows = replace(shared, gates="inline", orientation="nodes")
    if batch > FEW_WALKERS:
        return replace(rows, b_k=64)
    return replace(rows, b_k=padded(shapes.d_k), prefetch=True)


def joined_walks(schedule: Schedule, plan: Plan, shapes: Shapes) -> Schedule | None:
    """The same in one launch whose programs take as many value columns as they have registers for:
    where the solve of 64 nodes is what all wait for, and there are few products to keep."""
    if schedule.fusion != "split" or schedule.node_block < 64 or plan.mixed or not plan.pairs:
        return None
    if not _has_few_products(plan):
        return None
    b_k, b_v = min(64, padded(shapes.d_k)), min(128, padded(shapes.d_v))
    return replace(schedule, fusion="joined", b_k=b_k, b_v=b_v, warps=8, factor_warps=4)


def _default_schedule(plan: Plan, shapes: Shapes, batch: int, *, sums: bool) -> Schedule:
    """The same for any target; `sums`: decays per key channel may be summed."""
    nodes = min(64, padded(shapes.max_nodes))
    b_k, b_v = min(128, padded(shapes.d_k)), min(64, padded(shapes.d_v))
    if plan.staged:
        return _staged_schedule(plan, shapes)
    if plan.key_decay is not None:
        return _key_decay_schedule(plan, shapes, batch, sums=sums)
    single = single_inverse(plan)
    if _folds_pairs(plan, shapes):
        return _pairs_schedule(plan, shapes, batch)
    writes = bool(plan.pairs or plan.writes)
    if shapes.max_nodes > 64 and single and writes and plan.entangled is None:
        return _blocked_schedule(plan, shapes, batch)
    if shapes.max_nodes > 64 or not single:
        solver = "inverse" if single and plan.pairs else "horner"
        return Schedule(solver=solver, b_v=min(32, b_v), b_k=b_k, node_block=nodes, gates="prepare")
    if nodes <= 16 and plan.mixed:
        return Schedule(b_v=min(32, b_v), b_k=b_k, node_block=nodes, gates="prepare", warps=2)
    many = batch > FEW_REQUESTS
    wide = nodes > 32
    split = Schedule(
        fusion="split", solver="inverse", b_v=b_v, b_k=b_k, node_block=nodes,
        gates="prepare" if plan.mixed else "inline",
        orientation="nodes" if wide and b_v >= 64 else "values", prefetch=not many,
        factor_warps=4 if wide else 2,
    )  # fmt: skip
    if nodes > 16 and many:
        split = replace(split, registers=168 if wide and plan.pairs else 128)
    elif wide:
        split = replace(split, path_sum="dot")
    if plan.entangled is not None:
        return split
    if not many:
        joined = replace(split, fusion="joined", b_k=min(64, b_k) if wide else b_k)
        return joined if wide or not plan.mixed else replace(joined, prepare="overlapped")
    if wide and _has_few_products(plan):
        return replace(split, fusion="joined", lead=LEAD)
    return split if nodes <= 16 else replace(split, gates="prepare")


def _folds_pairs(plan: Plan, shapes: Shapes) -> bool:
    """Whether the solve for several pairs is folded by default: where the factors kernel has
    registers for it. Value tiles that solve for all of them do several times as much."""
    if any(pair.gain is not None for pair in plan.pairs) or plan.entangled is not None:
        return False
    return len(plan.pairs) == 2 and not plan.writes and shapes.max_nodes <= 64


def _pairs_schedule(plan: Plan, shapes: Shapes, batch: int) -> Schedule:
    """The split schedule for several pairs: registers are short, so that all row scalars are
    prepared, and operands of 32 nodes, which lie in registers, are spread over more warps and
    shorter key chunks."""
    nodes = min(64, padded(shapes.max_nodes))
    wide, small = nodes > 32, nodes <= 16
    b_v = min(16 if small else 64, padded(shapes.d_v))
    return Schedule(
        fusion="split", solver="inverse", b_v=b_v,
        b_k=min(128 if wide or small else 32, padded(shapes.d_k)), node_block=nodes,
        gates="prepare", orientation="nodes" if wide and b_v >= 64 else "values",
        warps=1 if small else 4, factor_warps=4 if wide or small else 8,
        registers=168 if wide and batch > FEW_REQUESTS else 0,
    )  # fmt: skip


def _blocked_schedule(plan: Plan, shapes: Shapes, batch: int) -> Schedule:
    """The split schedule for several node blocks, whose kernels read row scalars back."""
    capped = batch > FEW_REQUESTS and shapes.max_nodes > 128
    b_v = min(64 if shapes.d_k <= 128 else 32, padded(shapes.d_v))
    return Schedule(
        fusion="split", solver="inverse", b_v=b_v,
        orientation="nodes" if b_v >= 64 and shapes.max_nodes <= 128 else "values",
        b_k=min(128, padded(shapes.d_k)), node_block=64, gates="prepare",
        registers=168 if capped else 0,
    )  # fmt: skip


def _staged_schedule(plan: Plan, shapes: Shapes) -> Schedule:
    """Large tiles: vectors of ancestors are read once for all channels of a tile, and the state by
    few programs."""
    nodes = min(64, padded(shapes.max_nodes))
    return Schedule(
        fusion="staged", b_v=min(64 if plan.right else 32, padded(shapes.d_v)),
        b_k=min(64, padded(shapes.d_k)),
        node_block=nodes, gates="prepare", warps=4, factor_warps=4,
    )  # fmt: skip


def _key_decay_schedule(plan: Plan, shapes: Shapes, batch: int, *, sums: bool) -> Schedule:
    """The split schedule where one inverse per head will do, else the walked one; with small key
    chunks: vectors come as float32 to all kernels, and whole rows of them would spill."""
    nodes = min(64, padded(shapes.max_nodes))
    many = batch > FEW_REQUESTS
    small = nodes <= 16
    split = Schedule(
        fusion="split", solver="inverse", b_v=16 if small else min(64, padded(shapes.d_v)),
        b_k=min(32 if shapes.d_k <= 128 else 64, padded(shapes.d_k)), node_block=nodes,
        gates="prepare" if plan.mixed or (many and not small) else "inline",
        warps=1 if small else 4, factor_warps=4 if nodes <= 32 else 8,
    )  # fmt: skip
    single = single_inverse(plan)
    if shapes.max_nodes <= 64 and single:
        if many and not sums:
            return split
        if many:
            return key_sums(split, plan, shapes) or one_reader(split, plan, shapes) or split
        if batch <= FEW_WALKERS or (nodes > 32 and not plan.pairs):
            return spread_walks(split, plan, shapes, batch) or split
        return joined_walks(split, plan, shapes) or split
    solver = "inverse" if single and plan.pairs else "horner"
    # several systems of 64 nodes spill, but scalars that no earlier kernel prepares need one block
    small_blocks = not single and plan.entangled is None
    return replace(
        split, fusion="walked", solver=solver, b_v=min(32, padded(shapes.d_v)), gates="prepare",
        warps=4, node_block=min(32, nodes) if small_blocks else nodes,
    )  # fmt: skip
