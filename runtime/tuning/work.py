"""How much each kernel of a schedule has to do: bytes, operations, dependent steps, programs.

Counted from the schedule alone, before anything is emitted; the cost model turns it into time.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from boleir.codegen.emit.context import Context
from boleir.codegen.plan import Plan
from boleir.codegen.request import Shapes
from boleir.codegen.resources import Footprint
from boleir.codegen.schedule import Schedule, block_depth, blocks, loops_keys
from boleir.codegen.schedule_footprint import BYTES, STAGED_BYTES, footprint

PASSES = {"fp32": 3, "tf32": 1, "bf16": 1, "ieee": 8}
"""Matrix passes that one product of float32 operands costs under each precision plan."""


@dataclass(frozen=True, slots=True)
class Work:
    """One kernel, for one layer."""

    kernel: str
    programs: int
    warps: int
    rows: int
    """Rows of the products' larger side: a warp wants sixteen of its own."""
    dram: float
    """Bytes that must come from or go to memory, all programs together."""
    read: float
    """Bytes that one program reads, mostly out of the caches."""
    operations: float
    """Floating-point operations of the matrix products of one program."""
    steps: int
    """Products of one program that wait for the one before."""
    footprint: Footprint
    cap: int = 0
    """Most registers per thread, 0 for no cap."""
    chunks: int = 1
    """Pieces of the key dimension, one loaded after the other."""
    gated: int = 0
    """Nodes whose row scalars every program computes for itself."""


def works(schedule: Schedule, plan: Plan, shapes: Shapes, batch: int) -> tuple[Work, ...]:
    """The kernels of a layer's verification in launch order, for `batch` full requests."""
    prepared = schedule.gates == "prepare" or plan.mixed
    found = [_prepare(schedule, plan, shapes, batch)] if prepared else []
    if schedule.walk_nodes:
        found = [_spread(schedule, plan, shapes, batch)]
    if schedule.fusion == "staged":
        from boleir.runtime.tuning.staged_work import staged_works

        found += staged_works(schedule, plan, shapes, batch)
    elif schedule.folds:
        if not Context(plan, shapes, schedule).leaves_rows:
            found.append(_factors(schedule, plan, shapes, batch))
        found.append(_values(schedule, plan, shapes, batch))
    else:
        if schedule.fusion == "walked" and not schedule.walk_nodes:
            found += _walked(schedule, plan, shapes, batch)
        found.append(_verify(schedule, plan, shapes, batch))
    return tuple(found)


def floor_bytes(plan: Plan, shapes: Shapes, batch: int) -> float:
    """Bytes that any verification moves: states and inputs in once, outputs out once."""
    states = shapes.value_heads * shapes.d_k * shapes.d_v * BYTES[shapes.state_dtype]
    channels = sum(shapes.channels(item) for item in plan.tokens)
    out = shapes.value_heads * shapes.d_v * BYTES[shapes.out_dtype or shapes.dtype]
    per_node = channels * BYTES[shapes.dtype] + len(plan.readouts) * out
    return batch * (states + shapes.max_nodes * per_node)


def _prepare(schedule: Schedule, plan: Plan, shapes: Shapes, batch: int) -> Work:
    """Of programs of their own; those of another kernel share its warps and registers."""
    nodes = batch * shapes.max_nodes
    row = (2 * shapes.d_k + plan.conv_width * (2 * shapes.d_k + shapes.d_v)) * 2
    each, warps = schedule.prepare_nodes, schedule.prepare_warps or 4
    programs = -(-nodes // each) * shapes.value_heads
    moved = nodes * (plan.conv_channels * 4 + shapes.value_heads * 4 * len(plan.scalars))
    alone = Work(
        "prepare", programs, warps, 64, moved, each * row, 0, 1, Footprint(0, 256 * each, warps),
        gated=each,
    )  # fmt: skip
    if schedule.prepare != "joined":
        return alone
    needs = footprint(schedule, plan, shapes)
    return replace(alone, warps=schedule.warps, footprint=needs, cap=schedule.registers)


def _solve(schedule: Schedule, plan: Plan, shapes: Shapes) -> tuple[float, int]:
    """Operations and dependent steps of one block's solve in the fused kernel."""
    n, passes = schedule.node_block, PASSES[schedule.precision]
    depth = max(1, block_depth(schedule, shapes)) * plan.form.micro_steps
    if not plan.pairs:
        return 0.0, 0
    apply = 2 * n * n * schedule.b_v * passes * len(plan.pairs) ** 2
    if schedule.solver in ("horner", "levels"):
        return depth * apply, depth
    return _inverse(schedule, shapes)[0] + apply, _inverse(schedule, shapes)[1] + 1


def _inverse(schedule: Schedule, shapes: Shapes) -> tuple[float, int]:
    """Operations and dependent steps of (I+G)^-1: cheap sweeps and a correction, or a product."""
    n, passes = schedule.node_block, PASSES[schedule.precision]
    depth = max(1, block_depth(schedule, shapes))
    if schedule.solver == "product":
        rounds = max(1, depth.bit_length())
        return 2 * rounds * 2 * n**3 * passes, 2 * rounds
    return 2 * n**3 * (depth + 2 * passes), depth + 2


def _grams(schedule: Schedule, plan: Plan, shapes: Shapes) -> float:
    """Operations of the Grams, two for one pair: exact 16-bit operands take one pass."""
    pairs = max(1, len(plan.pairs))
    return pairs * (pairs + 1) * 2 * schedule.node_block**2 * shapes.d_k


def _vectors(schedule: Schedule, shapes: Shapes, *, values: bool) -> float:
    """Bytes of a block's keys and queries, and of its tile of values."""
    per_node = 2 * shapes.d_k + (schedule.b_v if values else 0)
    return schedule.node_block * per_node * BYTES[shapes.dtype]


def _state(schedule: Schedule, plan: Plan, shapes: Shapes) -> tuple[float, float]:
    """Bytes of one state tile, and operations of one block's products with it: of the queries and
    of what each pair erases."""
    tile = schedule.b_v * shapes.d_k
    readers = len(plan.readouts) + max(1, len(plan.pairs))
    products = readers * 2 * schedule.node_block * tile * PASSES[schedule.precision]
    return tile * BYTES[shapes.state_dtype], products


def _verify(schedule: Schedule, plan: Plan, shapes: Shapes, batch: int) -> Work:
    count = blocks(schedule, shapes)
    n = schedule.node_block
    tile, products = _state(schedule, plan, shapes)
    solve, steps = _solve(schedule, plan, shapes)
    pairs, outputs = max(1, len(plan.pairs)), len(plan.readouts)
    row = 2 * n * n * schedule.b_v * PASSES[schedule.precision] * pairs
    readout = outputs * row
    unknowns = 2 * batch * shapes.max_nodes * shapes.value_heads * shapes.d_v
    # written now, read by the commit
    stored = unknowns * {"factors": 4, "factors16": 2}.get(schedule.commit, 0)
    earlier = count * (count - 1) / 2 * (_grams(schedule, plan, shapes) + (outputs + pairs) * row)
    operations = count * (products + _grams(schedule, plan, shapes) + solve + readout) + earlier
    read = tile + count * (count + 1) / 2 * _vectors(schedule, shapes, values=True)
    if schedule.fusion == "walked":  # products come from memory, and vectors as float32
        grams = (count + count * (count - 1) / 2) * _grams(schedule, plan, shapes)
        operations -= grams
        read = tile + count * (count + 1) / 2 * n * (schedule.b_v + 2 * n) * 4
        read += count * n * 2 * shapes.d_k * 4
    return Work(
        "verify",
        batch * shapes.value_heads * -(-shapes.d_v // schedule.b_v),
        schedule.warps,
        schedule.b_v if schedule.orientation == "values" else n,
        floor_bytes(plan, shapes, batch) + stored,
        read,
        operations,
        count * (steps + 4) + count * (count - 1),
        footprint(schedule, plan, shapes),
        schedule.registers,
        -(-shapes.d_k // schedule.b_k),
        n if schedule.gates == "inline" else 0,
    )


def _factors(schedule: Schedule, plan: Plan, shapes: Shapes, batch: int) -> Work:
    n = schedule.node_block
    warps = schedule.warps if schedule.fusion == "joined" else schedule.factor_warps
    inverse, steps = _inverse(schedule, shapes)
    pairs, outputs = max(1, len(plan.pairs)), len(plan.readouts)
    folding = 2 * n**3 * PASSES[schedule.precision] * pairs**2  # a row of the readout, or of a pair
    eliminating = folding / pairs**2 * _eliminations(pairs)
    operand = max(n * min(schedule.b_k, shapes.d_k), n * n) * STAGED_BYTES[schedule.precision]
    operations, read, walked = _grams(schedule, plan, shapes), 0.0, 0
    if plan.key_decay is not None:
        operations, read, walked = _walk(schedule, plan, shapes)
    if schedule.walk_nodes:
        operations, read, walked = 0.0, float(_product_bytes(schedule, plan)), 0
    count = blocks(schedule, shapes)
    later = (count - 1) / 2  # blocks that a program finds behind its own, on average
    operations += later * (_grams(schedule, plan, shapes) + (outputs + pairs) * folding)
    tiles = outputs * pairs + later * pairs * (outputs + pairs)
    vectors = _vectors(schedule, shapes, values=False)
    heads = schedule.factor_heads
    systems = batch * Context(plan, shapes, schedule).systems
    return Work(
        "factors",
        systems // heads * count,
        warps,
        n,
        systems * count * tiles * n * n * 2.0,
        (1 + later) * vectors + read,
        operations + heads * (pairs * inverse + eliminating + outputs * folding),
        heads * (pairs * (steps + 3) + walked + 3 * (count - 1)),
        Footprint(operand, 5 * n * n, warps),
        gated=heads * n if schedule.gates == "inline" else 0,
    )


def _eliminations(pairs: int) -> int:
    """Products that eliminate the pairs before from the row of each: one with the inverse of every
    earlier pair, one for every column that this changes."""
    return sum(p + p * (pairs - 1) - p * (p - 1) // 2 for p in range(pairs))


ELEMENTWISE = 6.0
"""Operations of a matrix product that take as long as one operation on single numbers."""


def _walk(schedule: Schedule, plan: Plan, shapes: Shapes) -> tuple[float, float, int]:
    """Operations of the walks of one block as those of a product, bytes they gather, and steps that
    wait for each other; of sums of decays and products with them where these take their place."""
    written = len(plan.pairs) + len(plan.writes)
    if schedule.folds and schedule.path_sum == "dot":
        return _sums(schedule, plan, shapes)
    steps = shapes.max_depth + 1
    entries = schedule.node_block * shapes.d_k * steps
    readers = len(plan.pairs) + len(plan.readouts)
    operations = ELEMENTWISE * entries * (2 + written * (1 + 2 * readers))
    return operations, entries * (4.0 + 4 * written), steps


def _spread(schedule: Schedule, plan: Plan, shapes: Shapes, batch: int) -> Work:
    """Walks of a few nodes per program of the prepare kernel, which computes decays in each
    step."""
    nodes, warps = schedule.walk_nodes, schedule.factor_warps
    share = nodes / schedule.node_block
    operations, read, steps = _walk(schedule, plan, shapes)
    entries = nodes * shapes.d_k * steps
    systems = batch * Context(plan, shapes, schedule).systems
    return Work(
        "prepare", systems * -(-shapes.max_nodes // nodes), warps, 16 * warps, 0,
        share * (read / 2 + _vectors(schedule, shapes, values=True)),
        share * operations + ELEMENTWISE * DECAYING * entries, steps,
        Footprint(0, 8 * nodes * shapes.d_k, warps), gated=nodes,
    )  # fmt: skip


def _product_bytes(schedule: Schedule, plan: Plan) -> int:
    """Bytes of the products that walks leave of a node block."""
    written = len(plan.pairs) + len(plan.writes)
    readers = len(plan.pairs) + len(plan.readouts)
    return 4 * written * readers * schedule.node_block**2


def _sums(schedule: Schedule, plan: Plan, shapes: Shapes) -> tuple[float, float, int]:
    """The same for decays as differences of sums: three products with the ancestor mask, six for
    each pair of vectors in three pieces, and what takes vectors apart."""
    n, written = schedule.node_block, len(plan.pairs) + len(plan.writes)
    readers = len(plan.pairs) + len(plan.readouts)
    entries = n * shapes.d_k
    products = 2.0 * n * entries * (3 + SIX * written * readers)
    operations = products + ELEMENTWISE * entries * (PIECING * (written + readers) + DECAYING)
    return operations, entries * 4.0, 3


SIX = 6
"""Products that one of operands in three pieces each takes."""
PIECING, DECAYING = 8, 24
"""Operations on single numbers that take a vector apart, and that make a decay of an input."""


def _walked(schedule: Schedule, plan: Plan, shapes: Shapes, batch: int) -> list[Work]:
    """What comes before the verify kernel: decays where there are several blocks, then the
    walks."""
    n, count = schedule.node_block, blocks(schedule, shapes)
    programs = batch * shapes.value_heads * count
    operations, read, steps = _walk(schedule, plan, shapes)
    held = Footprint(0, 6 * n * shapes.d_k, schedule.factor_warps)
    vectors = n * shapes.d_k * 4.0
    walks = Work(
        "factors", programs, schedule.factor_warps, 16 * schedule.factor_warps, 0,
        _vectors(schedule, shapes, values=False) + read, operations, steps, held,
        gated=n if schedule.gates == "inline" else 0,
    )  # fmt: skip
    if count == 1:
        return [walks]
    decays = Work(
        "decays", programs, schedule.factor_warps, 16 * schedule.factor_warps,
        programs * vectors, vectors, ELEMENTWISE * 16 * n * shapes.d_k, 1, held,
    )  # fmt: skip
    return [decays, walks]


def _values(schedule: Schedule, plan: Plan, shapes: Shapes, batch: int) -> Work:
    n = schedule.node_block
    tile, products = _state(schedule, plan, shapes)
    pairs, outputs = max(1, len(plan.pairs)), len(plan.readouts)
    row = 2 * n * n * schedule.b_v * PASSES[schedule.precision] * pairs
    count = blocks(schedule, shapes)
    earlier = count * (count - 1) // 2
    right = n * schedule.b_v * 4 * pairs  # right sides of a block, written once and read back
    return Work(
        "values",
        batch * shapes.value_heads * -(-shapes.d_v // schedule.b_v),
        schedule.warps,
        schedule.b_v if schedule.orientation == "values" else n,
        floor_bytes(plan, shapes, batch),
        tile
        + count * (_vectors(schedule, shapes, values=True) + outputs * pairs * n * n * 4)
        + earlier * (pairs * (outputs + pairs) * n * n * 4 + right),
        count * (products + outputs * row) + (outputs + pairs) * earlier * row,
        (3 + pairs) * count + 2 * earlier,
        footprint(schedule, plan, shapes),
        schedule.registers,
        1 if loops_keys(schedule, shapes) else -(-shapes.d_k // schedule.b_k),
    )
