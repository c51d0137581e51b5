"""Kernels that come before those of the value tiles where every key channel decays on its own.

Up to one node block, one program per head walks all paths; under the split schedule it also solves
the system, as `factors` does where channels decay together. More blocks are walked by a program
each. A walk passes nodes of any block, so another kernel computes their decays before.
"""

from __future__ import annotations

from boleir.codegen.emit.context import BlockContext, Context
from boleir.codegen.emit.factors import (
    begin,
    decode_system,
    emit_folded,
    factors_kernel,
    hand_over,
    nodes_on_rows,
    open_kernel,
)
from boleir.codegen.emit.key_vectors import readers
from boleir.codegen.emit.key_walks import PathTiles, WalkedSystem, Walks
from boleir.codegen.emit.precision import Precision
from boleir.codegen.emit.writer import EmittedKernel, Writer
from boleir.codegen.rewrite import head_factors
from boleir.ir import Kind

DECODE_BLOCK = """\
program = tl.program_id(0)
head = program % VALUE_HEADS
block = program // VALUE_HEADS % NODE_BLOCKS
request = program // (VALUE_HEADS * NODE_BLOCKS)"""


def emit_key_factors(context: Context, *, pdl: bool) -> EmittedKernel:
    """Split: one program per request and value head: walks, G, C, the solve; nodes on rows."""
    w, context = Writer(context.reserved), nodes_on_rows(context)
    tiles = PathTiles(context, w)
    system = WalkedSystem(tiles, Precision(context.schedule.precision))
    if context.spread_walks:
        _take_products(context, tiles, system, pdl=pdl)
    else:
        _open(tiles, pdl=pdl)
        hand_over(context, tiles)
        _walk_here(tiles)
        w.comment("products that other threads have stored are read below")
        w.line("tl.debug_barrier()")
    emit_folded(context, tiles, system)
    return factors_kernel(context, w, pdl=pdl)


def _take_products(context: Context, tiles: PathTiles, system: WalkedSystem, *, pdl: bool) -> None:
    """What programs have left that walk for this one; meanwhile its row scalars, unless they are
    prepared, too."""

    def early() -> None:
        tiles.ancestors(0, 0)
        if not tiles.rows_ready:
            tiles.prefetch(frozenset({Kind.KEY, Kind.HEAD}))
            tiles.scalars(0)
            hand_over(context, tiles)

    begin(tiles, early, decode_system(context), "head", pdl=pdl)
    system.load_products()
    if tiles.rows_ready:
        tiles.prefetch_rows(0)
        tiles.scalars(0)
        hand_over(context, tiles)


def emit_walked(context: Context, *, pdl: bool) -> list[EmittedKernel]:
    """Walked: the kernels that leave to the verify kernel what its node blocks do to each other."""
    if context.blocks == 1:
        return [_all_walks(context, pdl=pdl)]
    return [_decays(context, pdl=pdl), _block_walks(context, pdl=pdl)]


def _all_walks(context: Context, *, pdl: bool) -> EmittedKernel:
    w, context = Writer(context.reserved), nodes_on_rows(context)
    tiles = PathTiles(context, w)
    _open(tiles, pdl=pdl)
    _walk_here(tiles)
    return _kernel(context, w, "factors", _WALKS, pdl=pdl)


_WALKS = "Once per head: walks up the paths, products of vectors with the decays in between."


def _open(tiles: PathTiles, *, pdl: bool) -> None:
    def early() -> None:
        tiles.ancestors(0, 0)
        tiles.prefetch(frozenset({Kind.KEY}))

    open_kernel(tiles, early, pdl=pdl)


def _walk_here(tiles: PathTiles) -> None:
    """Everything about the walks in one program."""
    w = tiles.writer
    tiles.store_walk_planes()
    w.comment("rows that other threads have stored are read below")
    w.line("tl.debug_barrier()")
    Walks(tiles).emit()


def _decays(context: Context, *, pdl: bool) -> EmittedKernel:
    """What walks gather, for one node block."""
    tiles = _block_tiles(context, pdl=pdl)
    kinds = {Kind.KEY} if tiles.rows_ready else {Kind.KEY, Kind.HEAD}
    tiles.prefetch(frozenset(kinds))
    tiles.finite_nodes(0)
    tiles.store_walk_planes()
    doc = "What walks up the paths gather: parents, decays, vectors that are no inputs."
    return _kernel(context, tiles.writer, "decays", doc, pdl=pdl)


def _block_walks(context: Context, *, pdl: bool) -> EmittedKernel:
    """The walks of one node block."""
    tiles, plan = _block_tiles(context, pdl=pdl), context.plan
    inside = {factor.key for base, _ in readers(plan) for factor in head_factors(base)}
    for scalar in plan.scalars:
        if scalar.expr.key in inside:
            tiles.row_scalar(scalar, 0)
    Walks(tiles).emit()
    return _kernel(context, tiles.writer, "factors", _WALKS, pdl=pdl)


def _block_tiles(context: Context, *, pdl: bool) -> PathTiles:
    """The opening of a kernel whose programs take one head and node block each."""
    block = BlockContext(context.plan, context.shapes, nodes_on_rows(context).schedule)
    tiles = PathTiles(block, Writer(context.reserved))
    w = tiles.writer
    if pdl:  # at once: where nothing is prepared, what runs before is not ours
        w.line("tl.extra.cuda.gdc_wait()")
        w.comment("after the wait: a program that starts early knows that all before this is done")
        w.line("tl.extra.cuda.gdc_launch_dependents()")
    tiles.request(DECODE_BLOCK)
    tiles.channels()
    tiles.node_block(0)
    return tiles


def _kernel(context: Context, w: Writer, name: str, doc: str, *, pdl: bool) -> EmittedKernel:
    programs = context.shapes.value_heads * context.blocks
    return w.kernel(
        name,
        doc,
        (f"{programs} * batch", "1", "1"),
        warps=context.schedule.factor_warps,
        pdl=pdl,
    )
