"""Parts of value tiles: what they load, what they multiply the state by, right sides, outputs."""

from __future__ import annotations

from dataclasses import replace

from boleir.codegen.emit.context import Context, place, unknown_place
from boleir.codegen.emit.folded import Folded
from boleir.codegen.emit.handover import first_handed_plane, handover
from boleir.codegen.emit.key_vectors import Reader, readers
from boleir.codegen.emit.output import finish_output, store_output
from boleir.codegen.emit.precision import Pieces
from boleir.codegen.emit.system import System
from boleir.codegen.emit.tiles import Tiles
from boleir.codegen.emit.verify import written_pieces
from boleir.codegen.naming import leaf


def load_rows(tiles: Tiles, b: int, names: tuple[str, ...]) -> None:
    """Some of the row scalars that the factors kernel has left for a block."""
    w, context = tiles.writer, tiles.context
    for number, name in enumerate(handover(context).names):
        if name not in names:
            continue
        own = context.block(name, b)
        w.let(own, tiles.plane(first_handed_plane(context) + number, name, context.system_head, b))
        for scalar in context.plan.scalars:
            if scalar.name == name:
                w.memo["scalar", scalar.expr.key, b] = own


def state_products(system: System, b: int, state: list[Pieces]) -> dict[Reader, str]:
    """base^T S_pre for every operand of a block that reads the state, before or after the decay."""
    w = system.writer
    products: dict[Reader, str] = {}
    for base in dict.fromkeys(base for base, _ in readers(system.context.plan)):
        name, start = w.fresh(f"state_dot_{leaf(base)}"), None
        for chunk, pieces in enumerate(state):
            keys = system.key_pieces(base, b, chunk)
            start = system.read(name, keys, pieces, start)
        products[base, False] = products[base, True] = name
    return products


def decayed_products(context: Context, system: System, state: list[Pieces]) -> dict[Reader, str]:
    """The same with vectors that the factors kernel has multiplied by the decays of their paths."""
    w = system.writer
    w.section("products of the committed state with what has decayed along the paths")
    products: dict[Reader, str] = {}
    for reader in readers(context.plan):
        name, start = w.fresh(f"state_dot_{leaf(reader[0])}"), None
        for chunk, pieces in enumerate(state):
            keys = system.state_reader(*reader, 0, chunk)
            start = system.read(name, keys, pieces, start)
        products[reader] = name
    return products


def finish(
    context: Context,
    tiles: Tiles,
    system: System,
    products: dict[Reader, str],
    folded: Folded,
    right: list[Pieces] | None = None,
) -> None:
    """Right sides and written values, unless they are there; then the outputs."""
    plan, w, rows = context.plan, tiles.writer, handover(context).out_rows
    right = right or right_operands(context, tiles, system, products)
    if context.leaves_rows:
        _spread_nan(context, tiles, rows)
    elif context.watches_values:
        with w.block("if bad != 0:"):
            poisoned = f"({tiles.ancestors(0, 0)} & bad) != 0"
            for row in rows:
                w.let(row, f'tl.where({poisoned}, float("nan"), {row})')
    for readout, row in zip(plan.readouts, rows, strict=True):
        w.section("output: P (q^T S_pre) + F (r - e^T S_pre)")
        w.origin("readout", place(readout.output))
        read = products[readout.query.base, readout.after_decay]
        out = w.let(f"out_tile{readout.mark}", f"{tiles.across(row)} * {read}")
        for number, pieces in enumerate(right, readout.number * len(right)):
            system.apply(out, pieces, folded.tile(number), out)
        finish_output(tiles, 0, readout, out)
        store_output(tiles, 0, readout, out)


def _spread_nan(context: Context, tiles: Tiles, rows: tuple[str, ...]) -> None:
    """NaN for all nodes below one with an input that is not finite: the program that walks from a
    node has seen its inputs alone (a branch rarely taken)."""
    w, own = tiles.writer, rows[0]
    w.comment("NaN where a node's own inputs are not finite: for all nodes below it, too")
    lost = w.temp(f"tl.sum({own} * 0.0, axis=0)", f"{own}_lost")
    some = f"({lost} != 0.0) | (bad != 0)" if context.watches_values else f"{lost} != 0.0"
    with w.block(f"if {some}:"):
        bits = f"tl.sum(tl.where({own} == {own}, 0, 1).to(tl.int64) << node.to(tl.int64), axis=0)"
        w.let("bad", f"bad | {bits}" if context.watches_values else bits)
        poisoned = w.let("poisoned", f"({tiles.ancestors(0, 0)} & bad) != 0")
        for row in rows:
            w.let(row, f'tl.where({poisoned}, float("nan"), {row})')


def right_operands(
    context: Context, tiles: Tiles, system: System, products: dict[Reader, str]
) -> list[Pieces]:
    """What the folded tiles multiply: r - e^T S of the pairs, then the values of pure writes."""
    plan, w, precision = context.plan, tiles.writer, system.precision
    right, parts = [], handover(context)
    if context.watches_values:
        w.let("bad", "tl.zeros([], tl.int64)")
    if plan.pairs:
        w.section("right side: R = r - P (e^T S_pre)")
    for p, (pair, target) in enumerate(zip(plan.pairs, parts.targets, strict=True)):
        w.origin(f"u{p or ''}", unknown_place(plan.form, p))
        read = products[pair.erase.base, pair.after_decay]
        erased = f"{tiles.across(parts.erase_rows[p])} * {read}"
        name = tiles.absorb(f"{tiles.value(target, 0)} - {erased}", f"right{p or ''}", 0)
        right.append(precision.pieces(w, name))
    for write in plan.writes:
        value = tiles.finite_value(write.value, 0)
        right.append(written_pieces(system, write.value, value))
    return right


def own_rows(context: Context, tiles: Tiles) -> None:
    """Row scalars of right sides that no factors kernel hands over."""
    plan, w, parts = context.plan, tiles.writer, handover(context)
    w.section("what multiplies rows of right sides")
    scalars_of_values(context, tiles)
    for p, name in enumerate(parts.erase_rows):
        erase = replace(plan.pairs[p].erase, scalars=parts.erase_scalars[p])
        for scale in erase.scalars:
            tiles.row_scalar(plan.scalar(scale), 0)
        w.let(name, tiles.scale(erase, 0) or "inside.to(tl.float32)")


def scalars_of_values(context: Context, tiles: Tiles) -> None:
    """Row scalars inside value vectors, where no factors kernel hands them over."""
    for scalar in context.plan.scalars:
        if scalar.name in handover(context).others:
            tiles.row_scalar(scalar, 0)
