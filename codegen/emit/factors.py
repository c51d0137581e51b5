"""The factors kernel of the split schedule: once per head, what all value tiles share.

The solve folds into the readout: with A = (I+G)^-1 and F = C A,

    O = D_P Q S + F (r - e^T S) + (N - F M) nu        (N, M: the Gram tiles of pure writes)

so this kernel computes F (and N - F M) per head, and the value kernel only reads the state and
multiplies. Several pairs have an F each (see `boleir.codegen.emit.elimination`). Folded tiles are
stored as two bfloat16 pieces, ready for tensor cores.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from boleir.codegen.emit.context import Context
from boleir.codegen.emit.elimination import Elimination, erasures, readout_tile, readouts
from boleir.codegen.emit.frame import DECODE, DECODE_SHARED
from boleir.codegen.emit.handover import (
    CELL,
    first_handed_plane,
    folded_pieces,
    handover,
    piece_at,
    place_folded,
)
from boleir.codegen.emit.inverses import inverse, is_direct, product_form, rough_inverse
from boleir.codegen.emit.kept_rows import keep_rows, keeps_rows
from boleir.codegen.emit.key_loop import multiply_keys
from boleir.codegen.emit.key_vectors import written
from boleir.codegen.emit.one_reader import fold_readers
from boleir.codegen.emit.output import path_decay, poisoned
from boleir.codegen.emit.precision import Pieces, Precision
from boleir.codegen.emit.prepare import needs_prepare
from boleir.codegen.emit.signals import announce, expect_prepared, wait_prepared
from boleir.codegen.emit.system import System
from boleir.codegen.emit.text import product
from boleir.codegen.emit.tiles import Tiles
from boleir.codegen.emit.writer import EmittedKernel, Writer
from boleir.codegen.plan import Operand, Plan
from boleir.codegen.rewrite import is_number
from boleir.codegen.schedule import loops_keys
from boleir.codegen.topology_facts import sweeps_of_block
from boleir.ir import Expr, Kind


def emit_factors(context: Context, *, pdl: bool) -> EmittedKernel:
    """One program per request and value head: G, C, (I+G)^-1 and their product, nodes on rows.

    With nodes on rows a thread tests few ancestor words against constant bits, which is cheaper
    than the transpose.
    """
    w, context = Writer(context.reserved), nodes_on_rows(context)
    tiles = Tiles(context, w)
    system = System(tiles, Precision(context.schedule.precision))
    open_kernel(tiles, lambda: load_and_multiply(context, tiles, system), pdl=pdl)
    hand_over(context, tiles)
    emit_folded(context, tiles, system)
    return factors_kernel(context, w, pdl=pdl)


def nodes_on_rows(context: Context) -> Context:
    """The context of a kernel whose tiles of pairs have the reading nodes on rows."""
    return replace(context, schedule=replace(context.schedule, orientation="nodes"))


def open_kernel(tiles: Tiles, early: Callable[[], None], *, pdl: bool) -> None:
    """Indices, loads, row scalars. `early` emits what needs no row scalars: before the wait where
    the prepare kernel has nothing to do with it."""
    begin(tiles, early, decode_system(tiles.context), "head", pdl=pdl)
    if tiles.rows_ready:
        tiles.prefetch_rows(0)
        if tiles.context.plan.mixed:
            early()
    else:
        tiles.prefetch(frozenset({Kind.KEY, Kind.HEAD}))
    if keeps_rows(tiles):
        keep_rows(tiles)
    tiles.scalars(0)


def decode_system(context: Context) -> str:
    """Lines that find the system of a program, and its request."""
    return DECODE_SHARED if context.shares_systems else DECODE


def begin(tiles: Tiles, early: Callable[[], object], decode: str, head: str, *, pdl: bool) -> None:
    """Indices and the first loads: what comes before row scalars. `decode` finds `head`."""
    w, context = tiles.writer, tiles.context
    prepared, first = needs_prepare(context), context.prepares_first
    if pdl and not prepared:
        w.line("tl.extra.cuda.gdc_wait()")
    given = context.schedule.fusion == "joined"
    tiles.program(decode, head, given=given, shared=context.shares_systems)
    if first:
        expect_prepared(context, w)
    tiles.channels()
    tiles.node_block(0)
    if tiles.context.spread_walks:
        w.section("meanwhile other programs walk")
        early()
    elif tiles.rows_ready and not tiles.context.plan.mixed:
        w.section("not from the prepare kernel, which writes row scalars only")
        early()
    if pdl:
        if prepared:
            w.line("tl.extra.cuda.gdc_wait()")
        w.comment("after the wait: a value program that runs knows that all before this is done")
        w.line("tl.extra.cuda.gdc_launch_dependents()")
    tiles.ancestors(0, 0)
    if first:
        wait_prepared(w)


def factors_kernel(context: Context, w: Writer, *, pdl: bool) -> EmittedKernel:
    """The finished kernel."""
    if context.schedule.fusion == "joined":
        announce(context, w)
    heads = context.schedule.factor_heads
    each = f" for {heads} heads in turn" if heads > 1 else ""
    head = "key head" if context.shares_systems else "head"
    return w.kernel(
        "factors",
        f"Once per {head}{each}: the system of the tree, solved and folded into the readout.",
        (f"{context.systems // heads} * batch", "1", "1"),
        warps=context.schedule.factor_warps,
        registers=context.schedule.factor_registers,
        pdl=pdl,
    )


def load_and_multiply(context: Context, tiles: Tiles, system: System) -> None:
    """Ancestor words, key tiles, and the Gram matrices of those that are inputs."""
    tiles.ancestors(0, 0)
    if loops_keys(context.schedule, context.shapes):
        multiply_keys(system, _stored_pairs(context.plan))
        return
    tiles.prefetch(frozenset({Kind.KEY}))
    if not _waits(context, system):
        _grams(context, system)


def _waits(context: Context, system: System) -> bool:
    """Whether products of vectors wait until they are needed: operands of large tiles are kept in
    shared memory, those of small ones in registers, which so many products would fill up."""
    return system.crowded and context.schedule.node_block >= 64


def _grams(context: Context, system: System) -> None:
    for reader, base in _stored_pairs(context.plan):
        system.gram(0, 0, reader, base)


def _stored_pairs(plan: Plan) -> list[tuple[Expr, Expr]]:
    """Readers and written vectors that are inputs, each with each."""
    return [(r.base, x.base) for r in plan.reading for x in written(plan) if r.stored and x.stored]


def hand_over(context: Context, tiles: Tiles, anchored: str | None = None) -> None:
    """Store what the value kernel multiplies rows by; NaN for the output of nodes below a
    non-finite input. `anchored`: a row that takes a factor out of the vectors that read the
    state."""
    w, plan, parts = tiles.writer, context.plan, handover(context)
    w.section("for the value kernel: what multiplies rows, NaN below a non-finite input")
    values = {name: name for name in parts.others}
    for readout, name in zip(plan.readouts, parts.out_rows, strict=True):
        decay = path_decay(context, readout.after_decay, 0)
        out = [f for f in (decay, tiles.scale(readout.query, 0), anchored) if f]
        if not readout.number:
            w.let("poisoned", poisoned(tiles, 0))
        values[name] = f'tl.where(poisoned, float("nan"), {product(*out) if out else "1.0"})'
    for p, (pair, name) in enumerate(zip(plan.pairs, parts.erase_rows, strict=True)):
        scale = tiles.scale(erase_of_pair(context, p), 0)
        erase = [f for f in (path_decay(context, pair.after_decay, 0), scale, anchored) if f]
        values[name] = product(*erase) if erase else "inside.to(tl.float32)"
        if context.folds_readers:
            values[name] = f"tl.where(poisoned, 0.0, {values[name]})"
    first = first_handed_plane(context)
    for number, name in enumerate(parts.names):
        at = tiles.plane_at(first + number, name, "head", 0)
        w.line(f"tl.store({at}, {values[name]}, mask=inside)")


def emit_folded(context: Context, tiles: Tiles, system: System) -> None:
    """G, C, the solve, what pure writes contribute; the folded tiles are stored."""
    plan, w = context.plan, tiles.writer
    if len(plan.pairs) > 1:
        _fold_pairs(context, system)
        return
    columns = [_pair_folds(context, system)] if plan.pairs else []
    folds = columns[0] if columns else []
    for m in range(len(plan.writes)):
        w.section("pure writes: N - F M")
        columns.append(_write_folds(context, system, m, folds))
    shown: list[list[str | None]] = [[*column] for column in columns]
    if context.folds_readers and is_number(plan.pairs[0].target, 0):
        shown[0] = [None] * len(folds)  # it would multiply zero
    _store_folded(context, system, [tile for row in zip(*shown, strict=True) for tile in row])
    if context.folds_readers:
        fold_readers(system, folds)


def _write_folds(context: Context, system: System, m: int, folds: list[str]) -> list[str]:
    """N - F M of a pure write, for every output; no `folds` where there is no pair."""
    w, precision = system.writer, system.precision
    tiles = [readouts(system, readout, 0, 0)[1](m) for readout in context.plan.readouts]
    if folds:
        seen, right = erasures(system, 0, 0, 0, erase_of_pair(context))[1](m), None
        for tile, fold in zip(tiles, folds, strict=True):
            left = precision.pieces(w, fold)
            right = right or precision.pieces(w, seen)
            precision.dot(w, tile, left, right, tile)
    return tiles


def _fold_pairs(context: Context, system: System) -> None:
    """F for each of several pairs, then N less what the pairs erase for each pure write."""
    plan = context.plan
    if not _waits(context, system) and plan.key_decay is None:
        _grams(context, system)
    elimination = Elimination(system, 0, sweeps_of_block(context, 0))
    elimination.solve([erasures(system, p, 0, 0, x.erase) for p, x in enumerate(plan.pairs)])
    for readout in plan.readouts:
        system.writer.section("C, and what each pair takes of it: F = C (I+G)^-1")
        elimination.reread([readout.query], readout.own)
        names = [f"fold{p or ''}{readout.mark}" for p in range(len(plan.pairs))]
        row = elimination.fold(*readouts(system, readout, 0, 0), names)
        _store_folded(context, system, row, readout.number * len(row))


def erase_of_pair(context: Context, p: int = 0) -> Operand:
    """The erase vector of a pair without what it has in common with the target."""
    return replace(context.plan.pairs[p].erase, scalars=handover(context).erase_scalars[p])


def _pair_folds(context: Context, system: System) -> list[str]:
    """F D of every output for the scalars D common to target and erase vector: C (I + D G)^-1 D is
    (C D) (I + G D)^-1, so that they multiply what is written, once for all tiles."""
    plan, common = context.plan, handover(context).common
    pair = plan.pairs[0]
    written = replace(pair.write, scalars=(*common, *pair.write.scalars))
    system.writer.section("G (with a minus sign) and C")
    minus_g = system.coupling(
        "minus_g", 0, 0, erase_of_pair(context), written, pair.after_decay, sign="-", strict=True
    )
    tiles = []
    for readout in plan.readouts:
        own = None if readout.inclusive else readout.own_pairs[0] or "0.0"
        if own not in (None, "0.0"):
            own = product(own, *common)
        name = f"readout{readout.mark}"
        tiles.append(readout_tile(system, readout, name, written, own))
    return _folds(context, system, minus_g, tiles)


def _store_folded(
    context: Context, system: System, results: Sequence[str | None], first: int = 0
) -> None:
    """Put tiles where the value kernel looks for them, behind `first` others; none for None."""
    w, count = system.writer, folded_pieces(context)
    w.section("store the folded tiles, piece by piece")
    place_folded(context, w)
    w.let("cell", CELL)
    split = system.precision.thirds if count == 3 else system.precision.pieces
    pieces = [split(w, tile).names if tile else () for tile in results]
    for place, names in enumerate(pieces, first):
        for number, piece in enumerate(names, place * count):
            w.line(f"tl.store({piece_at(number)}, {piece})")


def _folds(context: Context, system: System, minus_g: str, tiles: list[str]) -> list[str]:
    """F = C (I+G)^-1 for the tile C of every output."""
    w, precision = system.writer, system.precision
    sweeps = sweeps_of_block(context, 0)
    if not sweeps:
        return tiles
    names = [f"fold{readout.mark}" for readout in context.plan.readouts]
    right, inverted = None, context.schedule.solver == "inverse"
    if inverted and is_direct(system, sweeps):
        rough, _, correction = rough_inverse(system, "inverse", minus_g, sweeps)
        w.section("F = C (I + Z) (I + E + E^2), with Z exact in bfloat16")
        for name, tile in zip(names, tiles, strict=True):
            precision.dot(w, name, precision.thirds(w, tile), Pieces((rough,)), tile)
            pieces = precision.pieces(w, name)
            right = right or precision.pieces(w, correction)
            precision.dot(w, name, pieces, right, name)
        return names
    built = (inverse if inverted else product_form)(system, "inverse", 0, minus_g, sweeps)
    split = precision.thirds if inverted else precision.pieces
    w.section("F = C (I+G)^-1")
    for name, tile in zip(names, tiles, strict=True):
        pieces = split(w, tile)
        right = right or split(w, built)
        precision.dot(w, name, pieces, right)
    return names
