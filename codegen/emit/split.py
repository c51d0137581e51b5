"""The split schedule: factors once per head, then value tiles that share them.

For one pair per token the solve folds into the readout: with A = (I+G)^-1 and F = C A,

    O = D_P Q S + F (r - e^T S) + (N - F M) nu        (N, M: the Gram tiles of pure writes)

so the factors kernel computes F (and N - F M) per head, and the value kernel only reads the state and multiplies.
Folded tiles are stored as two bfloat16 pieces, ready for tensor cores.
"""

from __future__ import annotations

from dataclasses import replace

from boleir.codegen.emit.precision import Pieces, Precision
from boleir.codegen.emit.state import load_state
from boleir.codegen.emit.system import System
from boleir.codegen.emit.tiles import Context, Tiles
from boleir.codegen.emit.verify import DECODE, store_output
from boleir.codegen.emit.writer import EmittedKernel, Writer
from boleir.codegen.plan import Operand
from boleir.codegen.topology_facts import sweeps_of_block
from boleir.ir import Input, Per

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


def emit_factors(context: Context, *, wait: bool, launch_dependents: bool) -> EmittedKernel:
    """One program per request and value head: G, C, (I+G)^-1 and their product."""
    w = Writer()
    tiles = Tiles(context, w)
    precision = Precision(context.schedule.precision)
    system = System(tiles, precision)
    tiles.request(FACTORS_DECODE)
    tiles.channels()
    tiles.node_block(0)
    if wait:
        w.line("tl.extra.cuda.gdc_wait()")
    if launch_dependents:
        w.comment("after the wait: a value program that runs knows that all before this kernel is done")
        w.line("tl.extra.cuda.gdc_launch_dependents()")
    tiles.scalars(0)
    if not tiles.rows_ready:
        _hand_over_rows(context, tiles)
    _folded(context, tiles, system)
    return w.kernel(
        "factors",
        "Once per head: the system of the tree, solved and folded into the readout.",
        (f"{context.shapes.value_heads} * batch", "1", "1"),
        warps=context.schedule.factor_warps,
        pdl=wait,
    )


def _hand_over_rows(context: Context, tiles: Tiles) -> None:
    """Store the row scalars that the value kernel needs (they were computed here)."""
    w, plan = tiles.writer, context.plan
    capacity, rows = w.arg("capacity", "i64"), w.arg("rows", "*fp32")
    names = [(index, s.name, "key_head" if s.per_key_head else "head") for index, s in enumerate(plan.scalars)]
    if plan.log_decay is not None:
        names += [(len(plan.scalars), "c", "head"), (len(plan.scalars) + 1, "g", "head")]
    for index, name, head in names:
        value = f'tl.where(finite, {name}, float("nan"))'
        w.line(f"tl.store({rows} + ({index} * VALUE_HEADS + {head}) * {capacity} + row, {value}, mask=inside)")


def _folded(context: Context, tiles: Tiles, system: System) -> None:
    plan, w, precision = context.plan, tiles.writer, system.precision
    results = []
    fold = None
    if plan.pairs:
        pair = plan.pairs[0]
        minus_g = system.coupling("minus_g", 0, 0, pair.erase, pair.write, pair.after_decay, sign="-", strict=True)
        readout = _readout_tile(context, system, "readout", pair.write, None if plan.inclusive else plan.own_pairs[0] or "0.0")
        fold = _fold(context, system, minus_g, readout)
        results.append(fold)
    for m, write in enumerate(plan.writes):
        own = None if plan.inclusive else plan.own_writes[m] or "0.0"
        tile = _readout_tile(context, system, f"write_readout{m or ''}", write.key, own)
        if fold is not None:
            pair = plan.pairs[0]
            seen = system.coupling(f"minus_seen{m or ''}", 0, 0, pair.erase, write.key, pair.after_decay, sign="-", strict=True)
            precision.dot(w, tile, precision.pieces(w, seen), precision.pieces(w, fold), tile)
        results.append(tile)
    folded = w.arg("folded", "*" + folded_dtype(context))
    w.let("place", f"program.to(tl.int64) * {len(results) * folded_pieces(context)} * (NODE_BLOCK * NODE_BLOCK)")
    w.let("cell", "tl.arange(0, NODE_BLOCK)[:, None] * NODE_BLOCK + tl.arange(0, NODE_BLOCK)[None, :]")
    number = 0
    for tile in results:
        for piece in precision.pieces(w, tile).names:
            where = f"{number} * (NODE_BLOCK * NODE_BLOCK) + " if number else ""
            w.line(f"tl.store({folded} + place + {where}cell, {piece})")
            number += 1


def _readout_tile(context: Context, system: System, name: str, written: Operand, own: str | None) -> str:
    plan = context.plan
    return system.coupling(
        name, 0, 0, plan.query, written, plan.query_after_decay, strict=own is not None,
        own=None if own in (None, "0.0") else own,
    )  # fmt: skip


def _fold(context: Context, system: System, minus_g: str, readout: str) -> str:
    """F = C (I+G)^-1, transposed: (I+G)^-T C^T."""
    w, precision = system.writer, system.precision
    sweeps = sweeps_of_block(context, 0)
    if not sweeps:
        return readout
    if context.schedule.solver == "inverse" and precision.plan == "fp32":
        rough, correction = system.rough_inverse("inverse", 0, minus_g, sweeps)
        precision.dot(w, "fold", Pieces((rough,)), precision.pieces(w, readout))
        return w.let("fold", f"tl.dot({correction}, fold.to(tl.bfloat16), fold)")
    build = system.inverse if context.schedule.solver == "inverse" else system.product
    inverse = build("inverse", 0, minus_g, sweeps)
    return precision.dot(w, "fold", precision.pieces(w, inverse), precision.pieces(w, readout))


def emit_values(context: Context, *, wait: bool) -> EmittedKernel:
    """One program per value tile: read the state, multiply by the folded factors."""
    w = Writer()
    tiles = Tiles(replace_gates(context), w)
    precision = Precision(context.schedule.precision)
    system = System(tiles, precision)
    tiles.request(DECODE)
    w.let("value", "value_tile * B_V + tl.arange(0, B_V)")
    tiles.channels()
    tiles.node_block(0)
    state = load_state(tiles, precision)
    products = _state_products(context, tiles, system, state)
    for item in context.plan.tokens:
        if item.kind.value == "value":
            tiles.prefetch_value(item, 0)
    if wait:
        w.comment("what follows reads results of the factors kernel")
        w.line("tl.extra.cuda.gdc_wait()")
    tiles.scalars(0)
    _finish(context, tiles, system, products)
    return w.kernel(
        "values",
        "One value tile per program: the state read once, times the folded factors.",
        (f"{-(-context.shapes.d_v // context.schedule.b_v) * context.shapes.value_heads} * batch", "1", "1"),
        warps=context.schedule.warps,
        stages=context.schedule.stages,
        pdl=wait,
    )


def replace_gates(context: Context) -> Context:
    """The context of the value kernel: row scalars are ready, whoever computed them."""
    return Context(context.plan, context.shapes, replace(context.schedule, gates="prepare"))


def _state_products(context: Context, tiles: Tiles, system: System, state: list[Pieces]) -> dict[int, str]:
    """base^T S_pre for every operand that reads the state, before any row scalar is needed."""
    plan, w = context.plan, tiles.writer
    products: dict[int, str] = {}
    for operand in [pair.erase for pair in plan.pairs] + [plan.query]:
        if operand.base.key in products:
            continue
        name, start = f"state_product{len(products)}", None
        for chunk, pieces in enumerate(state):
            keys = system.key_pieces(operand.base, 0, chunk, clean=False)
            start = system.precision.dot(w, name, pieces, keys.transposed(), start)
        products[operand.base.key] = name
    return products


def _finish(context: Context, tiles: Tiles, system: System, products: dict[int, str]) -> None:
    plan, w, precision = context.plan, tiles.writer, system.precision
    finite = tiles.across("finite")
    for name in products.values():
        w.let(name, f"tl.where({finite}, {name}, 0.0)")
    w.let("place", f"(program // VALUE_TILES).to(tl.int64) * {folded_tiles(context) * folded_pieces(context)} * (NODE_BLOCK * NODE_BLOCK)")
    w.let("cell", "tl.arange(0, NODE_BLOCK)[:, None] * NODE_BLOCK + tl.arange(0, NODE_BLOCK)[None, :]")
    out = w.let("out_tile", _scaled(context, tiles, plan.query, plan.query_after_decay, products, "out_scale"))
    tile = 0
    for pair in plan.pairs:
        erased = _scaled(context, tiles, pair.erase, pair.after_decay, products, "erase_scale")
        right = w.let("right", f"{tiles.value(pair.target, 0)} - {erased}")
        system.apply(out, precision.pieces(w, right), _load_folded(context, w, tile), out)
        tile += 1
    for m, write in enumerate(plan.writes):
        value = tiles.value(write.value, 0)
        stored = isinstance(write.value, Input) and write.value.per is Per.TOKEN and context.dtype == "bf16"
        exact = stored and precision.plan in ("fp32", "bf16")
        pieces = Pieces((w.let(f"{value}_16", f"{value}.to(tl.bfloat16)"),)) if exact else precision.pieces(w, value)
        system.apply(out, pieces, _load_folded(context, w, tile + m), out)
    if plan.gain is not None:
        w.let(out, f"{out} * {tiles.value(plan.gain, 0)}")
    if plan.direct is not None:
        w.let(out, f"{out} + {tiles.value(plan.direct, 0)}")
    store_output(tiles, 0, out)


def _scaled(
    context: Context, tiles: Tiles, operand: Operand, after_decay: bool, products: dict[int, str], stem: str
) -> str:
    factors = []
    if context.plan.log_decay is not None:
        factors.append("tl.exp(c)" if after_decay else "tl.exp(c - g)")
    scale = tiles.scale(operand, 0, stem)
    if scale:
        factors.append(scale)
    product = products[operand.base.key]
    return f"{tiles.across('(' + ' * '.join(factors) + ')')} * {product}" if factors else product


def _load_folded(context: Context, w: Writer, tile: int) -> Pieces:
    names = []
    for piece in range(folded_pieces(context)):
        number = tile * folded_pieces(context) + piece
        where = f"{number} * (NODE_BLOCK * NODE_BLOCK) + " if number else ""
        pointer = w.arg("folded", "*" + folded_dtype(context))
        names.append(w.let(f"folded_{tile}_{piece}", f"tl.load({pointer} + place + {where}cell)"))
    return Pieces(tuple(names))
