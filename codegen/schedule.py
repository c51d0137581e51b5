"""A schedule: everything the mathematics leaves open, as one value.

The closed form says what the outputs are. A schedule says how many value columns one program takes,
in which pieces the key dimension is walked, how the nilpotent system is solved, which stages share
a launch, and in which precision products are taken. Any schedule that passes `validate` gives a
correct kernel; which is fastest is measured.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from typing import Any

from boleir.codegen.plan import Plan
from boleir.codegen.request import Shapes
from boleir.errors import ScheduleError

FUSIONS = ("fused", "split", "joined", "walked", "staged")
SOLVERS = ("horner", "levels", "inverse", "product")
GATES = ("inline", "prepare")
PREPARES = ("launch", "overlapped", "joined")
PRECISIONS = ("fp32", "tf32", "bf16", "ieee")
ORIENTATIONS = ("values", "nodes")
COMMITS = ("replay", "factors", "factors16", "deferred")
PATH_SUMS = ("select", "dot")
ORDERS = ("tiles", "heads")
WALK_NODES = (0, 4, 8, 16, 32)
READERS = ("apart", "folded")
PREPARE_WARPS = (0, 1, 2, 4, 8, 16)


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
    prepare: str = "launch"
    """Where convolutions and prepared row scalars are computed: by a `launch` of their own;
    `overlapped`: the same, but programs of a joined kernel begin before it ends and wait where they
    need it, as those of other kernels do; `joined`: by the first programs of a fused or joined
    kernel, for which its others wait."""
    prepare_nodes: int = 16
    """Nodes that a program which convolves takes: more, and fewer programs come before those that
    wait for them."""
    prepare_warps: int = 0
    """Warps of the prepare kernel; 0: four, of heads of more than 128 channels eight. Fewer warps
    give each thread more nodes to share weights with; more for as many nodes find each other's
    inputs in the first-level cache."""
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
    factor_stages: int = 1
    """Steps over key channels whose loads the factors kernel keeps in shared memory, and one: more
    than one where it sums up decays per key channel (`path_sum="dot"`)."""
    factor_heads: int = 1
    """Value heads of one key head that a program of the factors kernel takes, one after the other:
    it loads their key vectors and multiplies them once. Split schedules of one node block."""
    prefetch: bool = False
    """Load all vectors of a value tile before the first product (of two node blocks: multiply both
    by the state before what comes from the factors; of walks without a solve: load all that they
    leave): less waiting, more registers."""
    lead: int = 0
    """Systems whose factors come before all value tiles of a joined kernel, those of the others
    after the tiles of a head each; 0: all of them."""
    path_sum: str = "select"
    """How the factors kernel sums gates along paths: `select` and add, or `dot` with the mask. Per
    key channel `select` walks up the paths and multiplies; `dot` has decays as differences of sums,
    and walks where those leave their bounds."""
    walk_nodes: int = 0
    """Nodes of a program of the prepare kernel, where that walks up their paths and multiplies
    decays per key channel: several programs of `factor_warps` share the nodes of a head, and
    inline gates are computed meanwhile. 0: the factors kernel walks, for all nodes of a head or of
    a block."""
    readers: str = "apart"
    """What value tiles multiply the state by: `apart`, the vectors that erase and those that read,
    so that right sides come first and then what outputs see of them; `folded`: one vector of each
    node and output, from which the factors kernel has taken what the path erases. Split and joined
    kernels of one pair and one node block."""
    order: str = "tiles"
    """Which programs of value tiles come after each other, to find in the caches what they share:
    the `tiles` of a head, or the `heads` of a request with one tile each."""
    persistent: int = 0
    """Programs of the kernel that reads the state, each of which takes one value tile after the
    other; 0: one program per tile."""
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


def single_inverse(plan: Plan) -> bool:
    """Whether one inverse per head solves the system: one pair, the same for all value channels."""
    return len(plan.pairs) <= 1 and all(pair.gain is None for pair in plan.pairs)


def has_rows(plan: Plan) -> bool:
    """Whether there are row scalars that could be prepared."""
    return bool(plan.scalars) or plan.log_decay is not None


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


HORNER_SWEEPS = 72
"""Most sweeps of Horner's rule: rows that are not final yet may grow threefold in each, where
write strengths come close to 2."""


def horner_sweeps(schedule: Schedule, plan: Plan, shapes: Shapes) -> int:
    """Sweeps of Horner's rule that solve a node block; none where it is not solved as a whole."""
    if not plan.pairs or plan.staged:
        return 0
    return plan.form.micro_steps * (block_depth(schedule, shapes) + 1) - 1


def loops_keys(schedule: Schedule, shapes: Shapes) -> bool:
    """Whether the value kernel takes the state and the key vectors in a loop over key chunks."""
    return schedule.folds and blocks(schedule, shapes) == 1 and schedule.stages > 1
