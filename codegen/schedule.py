"""A schedule: everything the mathematics leaves open, as one value.

The closed form says what the outputs are. A schedule says how many value columns one program takes,
in which pieces the key dimension is walked, how the nilpotent system is solved, which stages share
a launch, and in which precision products are taken. Any schedule that passes `validate` gives a
correct kernel; which is fastest is measured.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from math import comb
from typing import Any

from boleir.codegen.plan import NoKernel, Plan
from boleir.codegen.request import Shapes
from boleir.codegen.resources import Footprint
from boleir.codegen.targets import Target
from boleir.errors import ScheduleError

FUSIONS = ("fused", "split", "joined", "walked", "staged")
SOLVERS = ("horner", "levels", "inverse", "product")
GATES = ("inline", "prepare")
PRECISIONS = ("fp32", "tf32", "bf16", "ieee")
ORIENTATIONS = ("values", "nodes")
COMMITS = ("replay", "factors", "factors16", "deferred")
PATH_SUMS = ("select", "dot")
ORDERS = ("tiles", "heads")

_CHOICES: dict[str, tuple[object, ...]] = {
    "fusion": FUSIONS,
    "solver": SOLVERS,
    "gates": GATES,
    "precision": PRECISIONS,
    "orientation": ORIENTATIONS,
    "commit": COMMITS,
    "path_sum": PATH_SUMS,
    "order": ORDERS,
    "warps": (1, 2, 4, 8, 16),
    "factor_warps": (1, 2, 4, 8, 16),
}

PRODUCT_TOLERANCE = 2e-5
"""Largest error bound under which the log-depth product may be chosen."""
UNIT = {"fp32": 2.0**-17, "tf32": 2.0**-11, "bf16": 2.0**-8, "ieee": 2.0**-24}
"""Round-off of one product under each precision plan."""


class InvalidSchedule(ScheduleError):
    """A schedule outside the space, or impossible for this recurrence or shape; the field is
    named."""


STORED_ERROR = 2.0**-9
"""Round-off of unknowns that are stored in bfloat16, which only the committed state sees."""


@dataclass(frozen=True, slots=True)
class Schedule:
    """One point of the schedule space. Sizes count elements; `warps` are 32 threads."""

    fusion: str = "fused"
    """`fused`: one launch per layer. `split`: factors once per head, the solve among them, then
    value tiles. `joined`: both in one launch, whose value tiles wait for the factors of their head.
    `walked`: products once per head, where decays stand inside them; value tiles solve. `staged`:
    factors, unknowns, values, for decays per value channel and updates from the right."""
    solver: str = "horner"
    """`horner`: U <- R - G U; `levels`: the same, one level of the tree at a time; `inverse`:
    (I+G)^-1 by cheap sweeps on the identity and a correction, of deep trees 16 nodes at a time;
    `product`: (I-G)(I+G^2)(I+G^4)..., where its error bound allows."""
    b_v: int = 64
    """Value columns per program."""
    b_k: int = 128
    """Key chunk: the state is walked in pieces of this many key channels."""
    node_block: int = 64
    """Nodes per block; more nodes than one block are solved block by block."""
    orientation: str = "values"
    """What stands on the M side of the matrix products: value columns or nodes."""
    gates: str = "prepare"
    """Where row scalars (gates, norms) are computed: by the prepare kernel, or in the verify kernel
    itself."""
    precision: str = "fp32"
    """`fp32`: bf16 pieces, as many as each operand needs; `tf32`, `bf16`: one pass; `ieee`: no
    tensor cores."""
    commit: str = "replay"
    """`replay`: walk the accepted path from the inputs; `factors`: verification stores U, the
    commit sums it up; `factors16`: the same in bfloat16, with an error of the committed state of up
    to `STORED_ERROR` of what the path has written; `deferred`: the commit records the path's
    tokens, the next verification walks them where it reads the state."""
    warps: int = 4
    stages: int = 1
    """More than one: loops keep so many loads ahead, in shared memory. Split and joined kernels of
    one node block take the state and the key vectors in a loop over key chunks then."""
    registers: int = 0
    """Cap on registers per thread of the kernel that reads the state; 0: none."""
    factor_warps: int = 4
    factor_registers: int = 0
    """The same cap for the factors kernel."""
    factor_heads: int = 1
    """Value heads of one key head that a program of the factors kernel takes, one after the other:
    it loads their key vectors and multiplies them once. Split schedules of one node block."""
    prefetch: bool = False
    """Load all vectors of a value tile before the first product (of two node blocks: multiply both
    by the state before what comes from the factors): less waiting, more registers."""
    lead: int = 0
    """Systems whose factors come before all value tiles of a joined kernel, those of the others
    after the tiles of a head each; 0: all of them."""
    path_sum: str = "select"
    """How the factors kernel sums gates along paths: `select` and add, or `dot` with the mask. Per
    key channel `select` walks up the paths and multiplies; `dot` has decays as differences of sums,
    and walks where those leave their bounds."""
    order: str = "tiles"
    """Which programs of value tiles come after each other, to find in the caches what they share:
    the `tiles` of a head, or the `heads` of a request with one tile each."""
    pdl: bool = True
    """Programmatic dependent launch between the kernels of a layer, where the target has it."""

    @property
    def label(self) -> str:
        """The schedule in a few words: only what differs from the default."""
        default = Schedule()
        changed = [
            f"{f.name}={getattr(self, f.name)}"
            for f in fields(self)
            if getattr(self, f.name) != getattr(default, f.name)
        ]
        return " ".join(changed) or "default"

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return asdict(self)

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> Schedule:
        """Inverse of `to_json`; unknown fields are refused."""
        unknown = set(values) - {f.name for f in fields(cls)}
        if unknown:
            raise InvalidSchedule(f"unknown schedule field {sorted(unknown)[0]!r}")
        return cls(**values)

    @property
    def stores_unknowns(self) -> bool:
        """Whether verification stores U for the commit."""
        return self.commit in ("factors", "factors16")

    @property
    def folds(self) -> bool:
        """Whether the solve is folded into the readout once per head, for all value tiles."""
        return self.fusion in ("split", "joined")


DEFERRED_NODES = 64
"""Most nodes of a kernel whose commits are deferred."""


def validate(schedule: Schedule, plan: Plan, shapes: Shapes, target: Target | None = None) -> None:
    """Refuse a schedule that no correct kernel exists for, on `target` if that is given. Raises
    `InvalidSchedule` naming the field."""
    _check_choices(schedule)
    if target is not None and target.wgmma:
        _check_narrow_products(schedule, target)
        _check_narrow_sums(schedule, plan, shapes, target)
        _check_loop_products(schedule, shapes, target)
    if plan.staged or schedule.fusion == "staged":
        _check_staged(schedule, plan, shapes)
        return
    _check_key_decay(schedule, plan, shapes)
    _check_deferred(schedule, plan, shapes)
    _check_blocks(schedule, shapes)
    _check_gates(schedule, plan, shapes)
    _check_loop(schedule, shapes)
    _check_key_loop(schedule, plan, shapes)
    _check_groups(schedule, plan, shapes)
    _check_solver(schedule, plan, shapes)


def _check_choices(schedule: Schedule) -> None:
    for name, allowed in _CHOICES.items():
        if getattr(schedule, name) not in allowed:
            listed = ", ".join(map(str, allowed))
            given = getattr(schedule, name)
            raise InvalidSchedule(f"{name} must be one of {listed}, not {given!r}")
    for name in ("b_v", "b_k", "node_block"):
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
    if not 1 <= schedule.stages <= 8:
        raise InvalidSchedule(f"stages must lie in 1..8, not {schedule.stages}")


def _check_narrow_products(schedule: Schedule, target: Target) -> None:
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


def _check_loop_products(schedule: Schedule, shapes: Shapes, target: Target) -> None:
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


def _check_narrow_sums(schedule: Schedule, plan: Plan, shapes: Shapes, target: Target) -> None:
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
    from boleir.codegen.emit.deferred import replayed_inputs

    if schedule.commit != "deferred":
        return
    if not replayed_inputs(plan)[0]:
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
        "fusion": "staged", "gates": "prepare", "solver": "horner", "orientation": "values",
        "commit": "replay", "prefetch": False, "path_sum": "select", "factor_heads": 1,
        "order": "tiles",
    }  # fmt: skip
    for name, value in needed.items():
        if getattr(schedule, name) != value:
            given = getattr(schedule, name)
            raise InvalidSchedule(f"{plan.name} {what}: {name} must be {value}, not {given}")
    _check_blocks(schedule, shapes)


def single_inverse(plan: Plan) -> bool:
    """Whether one inverse per head solves the system: one pair, the same for all value channels."""
    return len(plan.pairs) <= 1 and all(pair.gain is None for pair in plan.pairs)


def _check_blocks(schedule: Schedule, shapes: Shapes) -> None:
    nodes = schedule.node_block
    if nodes > 64:
        raise InvalidSchedule(f"node_block {nodes} is above 64: a block lies in one ancestor word")
    sizes = (("b_v", shapes.d_v), ("b_k", shapes.d_k), ("node_block", shapes.max_nodes))
    for name, size in sizes:
        if getattr(schedule, name) > padded(size):
            given = getattr(schedule, name)
            raise InvalidSchedule(f"{name} {given} is above the padded size {padded(size)}")
    if schedule.fusion == "joined" and shapes.max_nodes > nodes:
        raise InvalidSchedule(
            f"joined needs all {shapes.max_nodes} nodes in one block, node_block is {nodes}"
        )


def _check_gates(schedule: Schedule, plan: Plan, shapes: Shapes) -> None:
    """A program of the prepare kernel sees one convolved input; later kernels see all of them."""
    scalar = plan.entangled
    if scalar is None:
        return
    reason = f"{plan.name}: {scalar.name} needs several inputs of which some are convolved"
    if shapes.max_nodes > 64 and shapes.parents is None:
        raise NoKernel(f"{reason}: kernels exist for up to 64 nodes, not {shapes.max_nodes}")
    if schedule.gates == "prepare":
        raise InvalidSchedule(f"{reason}: gates must be inline")


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


def _check_groups(schedule: Schedule, plan: Plan, shapes: Shapes) -> None:
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
    if schedule.solver == "levels" and plan.form.micro_steps > 1:
        steps = plan.form.micro_steps
        raise InvalidSchedule(f"levels takes one step per token, {plan.name} has {steps}")
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


def padded(size: int) -> int:
    """The power of two, at least 16, that holds `size`."""
    return max(16, 1 << (size - 1).bit_length())


def blocks(schedule: Schedule, shapes: Shapes) -> int:
    """Node blocks of a request."""
    return -(-shapes.max_nodes // schedule.node_block)


def looped(schedule: Schedule, shapes: Shapes) -> bool:
    """Whether a kernel walks the node blocks in a loop instead of having them written out: where
    value tiles need not solve them, only two are. Otherwise those of a static tree are, since what
    is known of each makes it shorter."""
    count = blocks(schedule, shapes)
    return count > 2 if schedule.folds else count > 1 and shapes.parents is None


def block_depth(schedule: Schedule, shapes: Shapes) -> int:
    """Most edges of a path that stays inside one node block."""
    return min(shapes.max_depth, schedule.node_block - 1, shapes.max_nodes - 1)


BYTES = {"bfloat16": 2, "float16": 2, "float32": 4}
STAGED_BYTES = {"fp32": 4, "tf32": 4, "bf16": 2, "ieee": 4}
"""Shared memory per element of an operand of a product: two bf16 pieces, or one fp32 or bf16
value."""


def footprint(schedule: Schedule, plan: Plan, shapes: Shapes) -> Footprint:
    """Least needs of one program of the verify kernel (shared memory in bytes, live 32-bit values).

    The compiler reuses shared memory between products, so what counts is the largest operand staged
    for one of them; this agrees with what compiled variants report.
    """
    nodes = schedule.node_block
    if schedule.fusion == "staged":
        return _staged_footprint(schedule, plan, shapes)
    operand = max(max(nodes, schedule.b_v) * schedule.b_k, nodes * nodes)
    kept = blocks(schedule, shapes) * max(1, len(plan.pairs)) + len(plan.readouts) - 1
    unknowns = kept * schedule.b_v * nodes
    shared = operand * STAGED_BYTES[schedule.precision]
    return Footprint(
        shared=max(shared, _ahead(schedule, plan, shapes)),
        live=schedule.b_v * schedule.b_k + unknowns + nodes * nodes,
        warps=schedule.warps,
    )


def loops_keys(schedule: Schedule, shapes: Shapes) -> bool:
    """Whether the value kernel takes the state and the key vectors in a loop over key chunks."""
    return schedule.folds and blocks(schedule, shapes) == 1 and schedule.stages > 1


def _ahead(schedule: Schedule, plan: Plan, shapes: Shapes) -> int:
    """Shared memory in bytes that a loop over key chunks has its loads in: `stages` chunks of the
    vectors, which products read there, one less of the state, and its pieces."""
    if not loops_keys(schedule, shapes):
        return 0
    vectors = {reader.base.key for reader in plan.reading}
    keys = len(vectors) * schedule.node_block * BYTES[shapes.dtype]
    state = schedule.b_v * ((schedule.stages - 1) * BYTES[shapes.state_dtype])
    pieces = schedule.b_v * STAGED_BYTES[schedule.precision]
    return schedule.b_k * (schedule.stages * keys + state + pieces)


def unknown_tile(schedule: Schedule, plan: Plan) -> int:
    """Channels of the unknowns in one tile."""
    return schedule.b_k if plan.right else schedule.b_v


def _staged_footprint(schedule: Schedule, plan: Plan, shapes: Shapes) -> Footprint:
    """Least needs of one program of the unknowns kernel, or of the value kernel where those are
    more."""
    channels = unknown_tile(schedule, plan)
    nodes, walking = schedule.node_block, min(32, padded(shapes.max_nodes))
    chunk = shapes.d_k if plan.key_decay is not None else min(32, shapes.d_k)
    kept = len(plan.pairs) + sum(pair.gain is not None for pair in plan.pairs)
    kept += 2 if plan.unknown_log_decay is not None else 0
    unknowns = nodes * channels * kept + 32 * (nodes + channels) if plan.pairs else 0
    outputs = len(plan.readouts)
    held = (1 + outputs) * padded(shapes.d_k) + (2 + outputs) * schedule.b_v
    values = walking * held + schedule.b_v * chunk
    operand = max(32 * max(nodes, channels), max(walking, schedule.b_v) * chunk)
    return Footprint(
        shared=operand * STAGED_BYTES[schedule.precision],
        live=max(unknowns, values),
        warps=schedule.warps,
    )
