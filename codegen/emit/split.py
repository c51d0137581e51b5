"""The split schedule: factors once per head, then value tiles that share them.

For one pair per token the solve folds into the readout: with A = (I+G)^-1 and F = C A,

    O = D_P Q S + F (r - e^T S) + (N - F M) nu        (N, M: the Gram tiles of pure writes)

so the factors kernel computes F (and N - F M) per head, and the value kernel only reads the state and multiplies.
Folded tiles are stored as two bfloat16 pieces, ready for tensor cores.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from boleir.codegen.emit.precision import Pieces, Precision
from boleir.codegen.emit.prepare import prepared_planes
from boleir.codegen.emit.state import load_state, state_pieces
from boleir.codegen.emit.system import System
from boleir.codegen.emit.tiles import Context, Tiles
from boleir.codegen.emit.verify import DECODE, poisoned, store_output
from boleir.codegen.emit.writer import EmittedKernel, Writer
from boleir.codegen.plan import Operand
from boleir.codegen.rewrite import split_factors, split_scale
from boleir.codegen.topology_facts import sweeps_of_block
from boleir.ir import Expr, Input, Kind, Mul, Per, walk

FACTORS_DECODE = """\
program = tl.program_id(0)
head = program % VALUE_HEADS
request = program // VALUE_HEADS"""


def folded_tiles(context: Context) -> int:
    """T x T tiles that the factors kernel hands over."""
    return (1 if context.plan.pairs else 0) + len(context.plan.writes)


def folded_pieces(context: Context) -> int:
    """Pieces a folded tile is stored in."""
    return 2 if context.schedule.precision == "fp32" else 1


def folded_dtype(context: Context) -> str:
    """Element type of the stored pieces."""
    return "bf16" if context.schedule.precision in ("fp32", "bf16") else "fp32"


@dataclass(frozen=True, slots=True)
class Handover:
    """How row scalars are divided between the two kernels of the split schedule.

    Scalars common to the target and the erase vector of the pair multiply columns of F. What else scales the erased
    part and the output is multiplied out by the factors kernel, one plane each; scalars inside value vectors follow.
    """

    common: tuple[str, ...]
    target: Expr | None
    erase_scalars: tuple[str, ...]
    others: tuple[str, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """Variables of the value kernel, in the order of their planes."""
        return ("out_row", *(("erase_row",) if self.target is not None else ()), *self.others)


def handover(context: Context) -> Handover:
    """Divide the row scalars of a plan."""
    plan = context.plan
    by_expr = {s.expr: s.name for s in plan.scalars}
    common: list[str] = []
    target: Expr | None = None
    erase: tuple[str, ...] = ()
    if plan.pairs:
        pair = plan.pairs[0]
        factors, base = split_scale(pair.target)
        rest = list(pair.erase.scalars)
        kept = []
        for factor in factors:
            name = by_expr.get(factor)
            if name in rest:
                common.append(name)
                rest.remove(name)
            else:
                kept.append(factor)
        target = base
        for factor in reversed(kept):
            target = Mul(base.kind, factor, target)
        erase = tuple(rest)
    inside = [x for x in (target, plan.direct, plan.gain, *(w.value for w in plan.writes)) if x is not None]
    used = {n.key for x in inside for v in walk(x) if v.kind is not Kind.HEAD for n in v.children}
    factors_used = {f.key for x in inside for v in walk(x) for n in v.children if n.kind is Kind.HEAD for f in split_factors(n)}
    others = tuple(s.name for s in plan.scalars if s.expr.key in used | factors_used)
    return Handover(tuple(common), target, erase, others)


def handed_planes(context: Context) -> int:
    """Planes of the row buffer that the factors kernel writes for the value kernel."""
    return len(handover(context).names)


def emit_factors(context: Context, *, pdl: bool) -> EmittedKernel:
    """One program per request and value head: G, C, (I+G)^-1 and their product, nodes on rows.

    With nodes on rows a thread tests few ancestor words against constant bits, which is cheaper than the transpose.
    """
    w = Writer()
    context = Context(context.plan, context.shapes, replace(context.schedule, orientation="nodes"))
    tiles = Tiles(context, w)
    system = System(tiles, Precision(context.schedule.precision))
    tiles.request(FACTORS_DECODE)
    tiles.channels()
    tiles.node_block(0)
    if pdl:
        w.line("tl.extra.cuda.gdc_wait()")
        w.comment("after the wait: a value program that runs knows that all before this kernel is done")
        w.line("tl.extra.cuda.gdc_launch_dependents()")
    for word in range(context.shapes.words):
        tiles.ancestors(0, word)
    tiles.prefetch(frozenset({Kind.KEY}) if tiles.rows_ready else frozenset({Kind.KEY, Kind.HEAD}))
    tiles.scalars(0)
    _hand_over(context, tiles)
    _folded(context, tiles, system)
    return w.kernel(
        "factors",
        "Once per head: the system of the tree, solved and folded into the readout.",
        (f"{context.shapes.value_heads} * batch", "1", "1"),
        warps=context.schedule.factor_warps,
        pdl=pdl,
    )


def _hand_over(context: Context, tiles: Tiles) -> None:
    """Store what the value kernel multiplies rows by; NaN for the output of nodes below a non-finite input."""
    w, plan, parts = tiles.writer, context.plan, handover(context)
    values = {name: name for name in parts.others}
    out = [f for f in (path_decay(context, plan.query_after_decay), tiles.scale(plan.query, 0)) if f]
    w.let("poisoned", poisoned(tiles, 0))
    values["out_row"] = f'tl.where(poisoned, float("nan"), {" * ".join(out) or "1.0"})'
    if plan.pairs:
        pair = plan.pairs[0]
        operand = replace(pair.erase, scalars=parts.erase_scalars)
        erase = [f for f in (path_decay(context, pair.after_decay), tiles.scale(operand, 0)) if f]
        values["erase_row"] = " * ".join(erase) or "inside.to(tl.float32)"
    first = prepared_planes(context)
    for number, name in enumerate(parts.names):
        w.line(f"tl.store({tiles.plane_at(first + number, 'head', 0)}, {values[name]}, mask=inside)")


def path_decay(context: Context, after_decay: bool) -> str | None:
    """P of a node, or of its parent, for the single block of the split schedule."""
    if context.plan.log_decay is None:
        return None
    return "tl.exp(c)" if after_decay else "tl.exp(c - g)"


def _folded(context: Context, tiles: Tiles, system: System) -> None:
    plan, w, precision = context.plan, tiles.writer, system.precision
    results = []
    fold = None
    if plan.pairs:
        pair = plan.pairs[0]
        own = None if plan.inclusive else plan.own_pairs[0] or "0.0"
        minus_g = system.coupling("minus_g", 0, 0, pair.erase, pair.write, pair.after_decay, sign="-", strict=True)
        fold = _fold(context, system, minus_g, _readout_tile(context, system, "readout", pair.write, own))
    for m, write in enumerate(plan.writes):
        own = None if plan.inclusive else plan.own_writes[m] or "0.0"
        tile = _readout_tile(context, system, f"write_readout{m or ''}", write.key, own)
        if fold is not None:
            pair = plan.pairs[0]
            seen = system.coupling(
                f"minus_seen{m or ''}", 0, 0, pair.erase, write.key, pair.after_decay, sign="-", strict=True
            )
            precision.dot(w, tile, precision.pieces(w, fold), precision.pieces(w, seen), tile)
        results.append(tile)
    if fold is not None:
        common = handover(context).common
        if common:
            product = " * ".join(common)
            # a bad node has a zero column in F, which NaN must not spoil
            w.let(fold, f"{fold} * tl.where(finite, {product}, 0.0)[None, :]")
        results.insert(0, fold)
    _store_folded(context, tiles, precision, results)


def _store_folded(context: Context, tiles: Tiles, precision: Precision, results: list[str]) -> None:
    w = tiles.writer
    folded = w.arg("folded", "*" + folded_dtype(context))
    count = len(results) * folded_pieces(context)
    w.let("place", f"{folded} + program.to(tl.int64) * {count} * (NODE_BLOCK * NODE_BLOCK)")
    w.let("cell", "tl.arange(0, NODE_BLOCK)[:, None] * NODE_BLOCK + tl.arange(0, NODE_BLOCK)[None, :]")
    number = 0
    for tile in results:
        for piece in precision.pieces(w, tile).names:
            where = f"{number} * (NODE_BLOCK * NODE_BLOCK) + " if number else ""
            w.line(f"tl.store(place + {where}cell, {piece})")
            number += 1


def _readout_tile(context: Context, system: System, name: str, written: Operand, own: str | None) -> str:
    plan = context.plan
    return system.coupling(
        name, 0, 0, plan.query, written, plan.query_after_decay, strict=own is not None,
        own=None if own in (None, "0.0") else own,
    )  # fmt: skip


def _fold(context: Context, system: System, minus_g: str, readout: str) -> str:
    """F = C (I+G)^-1."""
    w, precision = system.writer, system.precision
    sweeps = sweeps_of_block(context, 0)
    if not sweeps:
        return readout
    if context.schedule.solver == "inverse" and precision.plan == "fp32":
        # C Y (I + E + E^2), with the rough inverse Y exact in bfloat16
        rough, correction = system.rough_inverse("inverse", 0, minus_g, sweeps)
        precision.dot(w, "fold", precision.thirds(w, readout), Pieces((rough,)))
        return precision.dot(w, "fold", precision.pieces(w, "fold"), precision.pieces(w, correction), "fold")
    build = system.inverse if context.schedule.solver == "inverse" else system.product
    inverse = build("inverse", 0, minus_g, sweeps)
    return precision.dot(w, "fold", precision.pieces(w, readout), precision.pieces(w, inverse))


def emit_values(context: Context, *, pdl: bool) -> EmittedKernel:
    """One program per value tile: read the state, multiply by the folded factors."""
    w = Writer()
    tiles = Tiles(context, w)
    precision = Precision(context.schedule.precision)
    system = System(tiles, precision)
    tiles.request(DECODE)
    w.let("value", "value_tile * B_V + tl.arange(0, B_V)")
    tiles.channels()
    tiles.node_block(0)
    loaded = load_state(tiles)
    products = _state_products(context, tiles, system, state_pieces(tiles, precision, loaded))
    tiles.prefetch(frozenset({Kind.VALUE}))
    if pdl:
        w.comment("what follows reads results of the factors kernel")
        w.line("tl.extra.cuda.gdc_wait()")
    for number, name in enumerate(handover(context).names):
        w.let(name, tiles.plane(prepared_planes(context) + number, "head", 0))
        for scalar in context.plan.scalars:
            if scalar.name == name:
                tiles.named[scalar.expr.key, 0] = name
    _finish(context, tiles, system, products)
    return w.kernel(
        "values",
        "One value tile per program: the state read once, times the folded factors.",
        (f"{-(-context.shapes.d_v // context.schedule.b_v) * context.shapes.value_heads} * batch", "1", "1"),
        warps=context.schedule.warps,
        stages=context.schedule.stages,
        registers=context.schedule.registers,
        pdl=pdl,
    )


def _state_products(context: Context, tiles: Tiles, system: System, state: list[Pieces]) -> dict[int, str]:
    """base^T S_pre for every operand that reads the state, before any row scalar is needed."""
    plan, w = context.plan, tiles.writer
    products: dict[int, str] = {}
    for operand in [pair.erase for pair in plan.pairs] + [plan.query]:
        if operand.base.key in products:
            continue
        name, start = f"state_product{len(products)}", None
        for chunk, pieces in enumerate(state):
            keys = system.key_pieces(operand.base, 0, chunk)
            start = system.precision.dot(w, name, pieces, keys.transposed(), start)
        products[operand.base.key] = name
    return products


def _finish(context: Context, tiles: Tiles, system: System, products: dict[int, str]) -> None:
    plan, w, precision = context.plan, tiles.writer, system.precision
    parts = handover(context)
    count = folded_tiles(context) * folded_pieces(context)
    folded = w.arg("folded", "*" + folded_dtype(context))
    w.let("place", f"{folded} + (program // VALUE_TILES).to(tl.int64) * {count} * (NODE_BLOCK * NODE_BLOCK)")
    w.let("cell", "tl.arange(0, NODE_BLOCK)[:, None] * NODE_BLOCK + tl.arange(0, NODE_BLOCK)[None, :]")
    if context.watches_values:
        w.let("bad", "tl.zeros([], tl.int64)")
    right = []
    if plan.pairs:
        assert parts.target is not None
        erased = f"erase_row[None, :] * {products[plan.pairs[0].erase.base.key]}"
        w.let("right", f"{tiles.value(parts.target, 0)} - {erased}")
        right.append(precision.pieces(w, tiles.absorb("right", 0)))
    for write in plan.writes:
        value = tiles.finite_value(write.value, 0)
        stored = isinstance(write.value, Input) and write.value.per is Per.TOKEN and context.dtype == "bf16"
        exact = stored and precision.plan in ("fp32", "bf16")
        right.append(Pieces((w.let(f"{value}16", f"{value}.to(tl.bfloat16)"),)) if exact else precision.pieces(w, value))
    if context.watches_values:
        with w.block("if bad != 0:"):
            w.let("out_row", f'tl.where(({tiles.ancestors(0, 0)} & bad) != 0, float("nan"), out_row)')
    out = w.let("out_tile", f"out_row[None, :] * {products[plan.query.base.key]}")
    for number, pieces in enumerate(right):
        system.apply(out, pieces, _load_folded(context, w, number), out)
    if plan.gain is not None:
        w.let(out, f"{out} * {tiles.value(plan.gain, 0)}")
    if plan.direct is not None:
        w.let(out, f"{out} + {tiles.value(plan.direct, 0)}")
    store_output(tiles, 0, out)


def _load_folded(context: Context, w: Writer, tile: int) -> Pieces:
    names = []
    for piece in range(folded_pieces(context)):
        number = tile * folded_pieces(context) + piece
        where = f"{number} * (NODE_BLOCK * NODE_BLOCK) + " if number else ""
        names.append(w.let(f"folded_{tile}_{piece}", f"tl.load(place + {where}cell)"))
    return Pieces(tuple(names)).transposed()
