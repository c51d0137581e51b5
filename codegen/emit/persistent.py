"""Persistent grids: as many programs as run at the same time, each taking tile after tile.

The kernel of one value tile becomes a function of the tile's number, and the kernel that is
launched a loop around it. Neighbouring programs work on neighbouring tiles all along, and no
program is started for a tile that waits: what a launch saves by this depends on how long tiles
take.
"""

from __future__ import annotations

from dataclasses import replace

from boleir.codegen.emit.context import Context
from boleir.codegen.emit.writer import EmittedKernel, Writer

TILE = "one_tile"
"""Name of the function that works on one tile."""


def with_persistent(context: Context, kernel: EmittedKernel) -> EmittedKernel:
    """The kernel as it is launched, where `kernel` has one program per value tile; the same where
    the schedule has no persistent grid."""
    if not context.schedule.persistent:
        return kernel
    tiles = context.value_tiles * context.shapes.value_heads
    tile = kernel.part(TILE)
    (first, _), *others = tile.arguments
    assert first == "program"
    w = Writer(context.reserved)
    w.comment("the tiles of all requests, dealt out to the programs in turn")
    w.let("tiles", f"{w.arg('batch', 'i32')} * {tiles}")
    w.let("turns", "tl.cdiv(tiles - tl.program_id(0), tl.num_programs(0))")
    with w.block("for turn in range(turns):"):
        w.let("program", "tl.program_id(0) + turn * tl.num_programs(0)")
        given = [w.arg(*argument) for argument in others]
        w.line(f"{TILE}({', '.join(['program', *given])})")
    looping = w.kernel(
        kernel.name,
        kernel.doc,
        (f"min({context.schedule.persistent}, {tiles} * batch)", "1", "1"),
        warps=kernel.warps,
        stages=kernel.stages,
        registers=kernel.registers,
        pdl=kernel.pdl,
    )
    return replace(looping, text="\n\n".join((tile.text, looping.text)))
