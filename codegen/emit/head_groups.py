"""The factors kernel of a split schedule for several value heads of a key head.

Key vectors belong to key heads, and decays, norms and strengths multiply products of them
afterwards. So one program loads the vectors and multiplies them once, then takes one value head
after the other: its row scalars, masks, inverse and fold, put where a program of its own would put
them. In a loop, so that a longer program does not have to be fetched.
"""

from __future__ import annotations

from boleir.codegen.emit.context import Context
from boleir.codegen.emit.factors import (
    begin,
    emit_folded,
    factors_kernel,
    hand_over,
    load_and_multiply,
    nodes_on_rows,
)
from boleir.codegen.emit.handover import place_folded
from boleir.codegen.emit.kept_rows import keep_rows, keep_scalars, keeps_rows
from boleir.codegen.emit.key_vectors import readers, written_bases
from boleir.codegen.emit.precision import Precision
from boleir.codegen.emit.system import System
from boleir.codegen.emit.tiles import Tiles
from boleir.codegen.emit.writer import EmittedKernel, Writer
from boleir.ir import Kind

DECODE = """\
groups = VALUE_HEADS // FACTOR_HEADS
first_head = program % groups * FACTOR_HEADS
request = program // groups"""


def emit_group_factors(context: Context, *, pdl: bool) -> EmittedKernel:
    """One program per request and `factor_heads` value heads of a key head."""
    w, context = Writer(context.reserved), nodes_on_rows(context)
    tiles = Tiles(context, w)
    system = System(tiles, Precision(context.schedule.precision))
    _share(tiles, system, pdl=pdl)
    w.section("one value head after the other")
    with w.block("for member in range(FACTOR_HEADS):"):
        w.let("head", "first_head + member")
        _own_rows(tiles)
        hand_over(context, tiles)
        place_folded(context, w, "(request * VALUE_HEADS + head).to(tl.int64)")
        emit_folded(context, tiles, system)
    return factors_kernel(context, w, pdl=pdl)


def _share(tiles: Tiles, system: System, *, pdl: bool) -> None:
    """What value heads of a key head have in common: ancestors, key vectors and products of them.

    Row scalars of the key head are read again for each: they would wait in registers.
    """
    context, plan = tiles.context, tiles.context.plan

    def early() -> None:
        load_and_multiply(context, tiles, system)

    begin(tiles, early, DECODE, "first_head", pdl=pdl)
    if plan.mixed or not tiles.rows_ready:
        early()
    if keeps_rows(tiles):
        keep_scalars(tiles, [x for x in context.scalars_needed if x.per_key_head])
    for reader, _ in readers(plan):
        for base in written_bases(plan):
            system.gram(0, 0, reader, base)


def _own_rows(tiles: Tiles) -> None:
    """Row scalars of one value head."""
    if tiles.rows_ready:
        tiles.prefetch_rows(0)
    else:
        tiles.prefetch(frozenset({Kind.HEAD}))
    if keeps_rows(tiles):
        keep_rows(tiles)
    tiles.scalars(0)
