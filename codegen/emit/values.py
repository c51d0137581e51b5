"""The value kernel of the split schedule: the state read once, times what the factors kernel
left."""

from __future__ import annotations

from boleir.codegen.emit.context import Context, place, unknown_place
from boleir.codegen.emit.factors import CELL, piece_at
from boleir.codegen.emit.handover import folded_dtype, folded_pieces, folded_tiles, handover
from boleir.codegen.emit.output import DECODE, store_output, value_grid
from boleir.codegen.emit.precision import Pieces, Precision
from boleir.codegen.emit.prepare import prepared_planes
from boleir.codegen.emit.state import load_state, state_pieces
from boleir.codegen.emit.system import System
from boleir.codegen.emit.text import product
from boleir.codegen.emit.tiles import Tiles
from boleir.codegen.emit.verify import written_pieces
from boleir.codegen.emit.writer import EmittedKernel, Writer
from boleir.codegen.naming import leaf
from boleir.ir import Kind


def emit_values(context: Context, *, pdl: bool) -> EmittedKernel:
    """One program per value tile: read the state, multiply by the folded factors."""
    w, s = Writer(context.reserved), context.schedule
    tiles = Tiles(context, w)
    system = System(tiles, Precision(s.precision))
    tiles.request(DECODE)
    w.let("value", "value_tile * B_V + tl.arange(0, B_V)")
    tiles.channels()
    tiles.node_block(0)
    loaded = load_state(tiles)
    if s.prefetch:
        tiles.prefetch(frozenset({Kind.KEY, Kind.VALUE}))
    w.section("products with the committed state, before any row scalar is needed")
    products = _state_products(context, system, state_pieces(tiles, system.precision, loaded))
    tiles.prefetch(frozenset({Kind.VALUE}))
    if pdl:
        w.section("what follows reads results of the factors kernel")
        w.line("tl.extra.cuda.gdc_wait()")
    for number, name in enumerate(handover(context).names):
        w.let(name, tiles.plane(prepared_planes(context) + number, name, "head", 0))
        for scalar in context.plan.scalars:
            if scalar.name == name:
                w.memo["scalar", scalar.expr.key, 0] = name
    _finish(context, tiles, system, products)
    return w.kernel(
        "values",
        "One value tile per program: the state read once, times the folded factors.",
        value_grid(context),
        warps=s.warps,
        stages=s.stages,
        registers=s.registers,
        pdl=pdl,
    )


def _state_products(context: Context, system: System, state: list[Pieces]) -> dict[int, str]:
    """base^T S_pre for every operand that reads the state."""
    plan, w = context.plan, system.writer
    products: dict[int, str] = {}
    for operand in [pair.erase for pair in plan.pairs] + [plan.query]:
        if operand.base.key in products:
            continue
        name, start = w.fresh(f"state_dot_{leaf(operand.base)}"), None
        for chunk, pieces in enumerate(state):
            keys = system.key_pieces(operand.base, 0, chunk)
            start = system.precision.dot(w, name, pieces, keys.transposed(), start)
        products[operand.base.key] = name
    return products


def _finish(context: Context, tiles: Tiles, system: System, products: dict[int, str]) -> None:
    """Right sides and written values, then the output."""
    plan, w = context.plan, tiles.writer
    count = folded_tiles(context) * folded_pieces(context)
    folded = w.arg("folded", "*" + folded_dtype(context))
    head = "(program // VALUE_TILES).to(tl.int64)"
    w.let("place", f"{folded} + {head} * {count} * (NODE_BLOCK * NODE_BLOCK)")
    w.let("cell", CELL)
    if context.watches_values:
        w.let("bad", "tl.zeros([], tl.int64)")
    right = _right_operands(context, tiles, system, products)
    if context.watches_values:
        with w.block("if bad != 0:"):
            poisoned = f"({tiles.ancestors(0, 0)} & bad) != 0"
            w.let("out_row", f'tl.where({poisoned}, float("nan"), out_row)')
    w.section("output: P (q^T S_pre) + F (r - e^T S_pre)")
    w.origin("readout", place(plan.form.recurrence.output))
    out = w.let("out_tile", f"out_row[None, :] * {products[plan.query.base.key]}")
    for number, pieces in enumerate(right):
        system.apply(out, pieces, _load_folded(context, w, number), out)
    if plan.gain is not None:
        w.let(out, product(out, tiles.value(plan.gain, 0)))
    if plan.direct is not None:
        w.let(out, f"{out} + {tiles.value(plan.direct, 0)}")
    store_output(tiles, 0, out)


def _right_operands(
    context: Context, tiles: Tiles, system: System, products: dict[int, str]
) -> list[Pieces]:
    """What the folded tiles multiply: r - e^T S of the pair, then the values of pure writes."""
    plan, w, precision = context.plan, tiles.writer, system.precision
    right = []
    target = handover(context).target
    if target is not None:
        w.section("right side: R = r - P (e^T S_pre)")
        w.origin("u", unknown_place(plan.form, 0))
        erased = f"erase_row[None, :] * {products[plan.pairs[0].erase.base.key]}"
        name = tiles.absorb(f"{tiles.value(target, 0)} - {erased}", "right", 0)
        right.append(precision.pieces(w, name))
    for write in plan.writes:
        value = tiles.finite_value(write.value, 0)
        right.append(written_pieces(tiles, precision, write.value, value))
    return right


def _load_folded(context: Context, w: Writer, tile: int) -> Pieces:
    names = []
    for piece in range(folded_pieces(context)):
        number = tile * folded_pieces(context) + piece
        names.append(w.let(f"folded_{tile}_{piece}", f"tl.load({piece_at(number)})"))
    return Pieces(tuple(names)).transposed()
