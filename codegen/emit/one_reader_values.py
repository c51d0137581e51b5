"""Value tiles where one vector of each output stands for all that reads the state.

The state is multiplied by what the factors kernel has left (see `boleir.codegen.emit.one_reader`),
right sides are what nodes write, known before either: products that do not wait for each other.
"""

from __future__ import annotations

from collections.abc import Callable

from boleir.codegen.emit.context import place
from boleir.codegen.emit.handover import handover
from boleir.codegen.emit.key_pieces import PieceSystem
from boleir.codegen.emit.output import finish_output, store_output
from boleir.codegen.emit.precision import Pieces
from boleir.codegen.emit.system import System
from boleir.codegen.emit.tiles import Tiles
from boleir.codegen.emit.verify import written_pieces
from boleir.codegen.rewrite import is_number
from boleir.ir import Expr, Input, Kind, Per, walk

Right = list[Pieces | None]
"""What the folded tiles multiply, None for zero."""


def right_of_targets(system: System) -> Right:
    """What pairs write but for what they erase, then the values of pure writes."""
    w, context = system.writer, system.context
    if context.watches_values:
        w.let("bad", "tl.zeros([], tl.int64)")
    w.section("right side: r, what is erased is in the vectors that read the state")
    values = [*handover(context).targets, *(write.value for write in context.plan.writes)]
    return [None if is_number(value, 0) else _target(system, value) for value in values]


def _target(system: System, value: Expr) -> Pieces:
    """The pieces of a value, whose tile may be narrower than those of outputs where all nodes, or
    all channels, have the same."""
    tiles, w = system.tiles, system.writer
    inputs = [x for x in walk(value) if isinstance(x, Input)]
    if any(x.kind is Kind.VALUE and x.per is Per.TOKEN for x in inputs):
        return written_pieces(system, value, tiles.finite_value(value, 0))
    shape = "[NODE_BLOCK, B_V]" if tiles.nodes_on_rows else "[B_V, NODE_BLOCK]"
    wide = f"{tiles.value(value, 0)} + tl.zeros({shape}, tl.float32)"
    return system.precision.pieces(w, tiles.absorb(wide, w.fresh("same"), 0))


def emit_outputs(
    system: PieceSystem, state: list[Pieces], right: Right, folded: Callable[[int], Pieces]
) -> None:
    """All outputs from the pieces of the state, by key chunk; `folded` gives a folded tile."""
    w, tiles = system.writer, system.tiles
    for readout in system.context.plan.readouts:
        w.section("output: (P q - F e)^T S_pre + F r")
        w.origin("readout", place(readout.output))
        out, start = f"out_tile{readout.mark}", None
        for chunk, pieces in enumerate(state):
            reader = system.folded_reader(readout.number, readout.mark, chunk)
            start = system.read(out, reader, pieces, start)
        for number, right_side in enumerate(right, readout.number * len(right)):
            if right_side is not None:
                system.apply(out, right_side, folded(number), out)
        if system.context.watches_values:
            _poison(tiles, out)
        finish_output(tiles, 0, readout, out)
        store_output(tiles, 0, readout, out)


def _poison(tiles: Tiles, out: str) -> None:
    """NaN in nodes at or below one whose right side is not finite: a branch rarely taken."""
    w = tiles.writer
    with w.block("if bad != 0:"):
        poisoned = tiles.across(f"({tiles.ancestors(0, 0)} & bad) != 0")
        w.let(out, f'tl.where({poisoned}, float("nan"), {out})')
