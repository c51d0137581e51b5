"""The commit kernel: the accepted path of every request, all layers, one launch.

State programs walk the path from the committed state and the inputs of its nodes: the recurrence
itself, token by token, with the tile in registers (`replay`), or with the unknowns that
verification stored (`factors`). Window programs move the convolution window to the end of the path.
Either can also write the state at one interior node of the path (the track node) to a second slot.
Pointers come from a table, one row per layer.
"""

from __future__ import annotations

from itertools import pairwise

from boleir.codegen.emit.commit_path import emit_nodes, emit_path, most_steps, picked
from boleir.codegen.emit.commit_scalars import emit_scalars
from boleir.codegen.emit.commit_step import LOCALS, Step
from boleir.codegen.emit.commit_table import pointer, table_columns
from boleir.codegen.emit.commit_tile import Tile
from boleir.codegen.emit.commit_token import Token
from boleir.codegen.emit.commit_window import emit_windows, window_tiles
from boleir.codegen.emit.context import Context
from boleir.codegen.emit.state import ONCE
from boleir.codegen.emit.text import bracket
from boleir.codegen.emit.writer import EmittedKernel, Writer
from boleir.ir import Kind

WHEN = ("now", "next")
"""When the rows that are held are needed: those of the next step are on their way."""

CONVOLVED = 128
"""Registers per thread of one-warp programs beside those that move windows, enough for a tile and
two vectors: sixteen of them share a multiprocessor then. Left alone, ptxas takes more for the
windows."""


def emit_commit(context: Context) -> EmittedKernel:
    """The commit kernel."""
    w, tile = Writer((*context.inputs, *LOCALS)), Tile(context)
    made = _Commit(context, w, tile)
    made.emit()
    few = window_tiles(context) and tile.warps == 1 and made.vectors <= 2
    return w.kernel(
        "commit",
        "Advance state and convolution window along the accepted path; all layers in one launch.",
        (f"{tile.programs + window_tiles(context)} * batch * layers", "1", "1"),
        warps=tile.warps,
        registers=CONVOLVED if few else 0,
    )


class _Commit:
    def __init__(self, context: Context, writer: Writer, tile: Tile) -> None:
        self.context = context
        self.writer = writer
        self.tile = tile
        self.token = Token(context, writer, tile)
        self.step = Step(context, writer, tile, self.token)

    def emit(self) -> None:
        """The whole body."""
        w, states = self.writer, self.tile.programs
        units = states + window_tiles(self.context)
        emit_path(self.context, w, units)
        if window_tiles(self.context):
            with w.block(f"if (unit < {states}) & valid:"):
                self._state()
            with w.block(f"if (unit >= {states}) & valid:"):
                emit_windows(self.context, w, states)
        else:
            with w.block("if valid:"):
                self._state()

    @property
    def vectors(self) -> int:
        """Vectors that a step of the walk uses, after `emit`."""
        parameters = [x for x in self.context.plan.parameters if x.kind is not Kind.HEAD]
        return len(self.token.rows) + len(parameters)

    def _state(self) -> None:
        w, c, tile = self.writer, self.context, self.tile
        w.let("head", f"unit // {tile.per_head}")
        w.let("key_head", "head // GROUP" if c.shapes.group > 1 else "head")
        for name, channels in tile.channels().items():
            w.let(name, channels)
        pool, stride = pointer(c, w, "state", c.state_dtype), w.arg("state_stride", "i64")
        if tile.pieces > 1:
            w.comment("[key pieces, rows, keys of a piece]: the hint has lanes lie along rows next")
        w.let("cell", tile.cell())
        mask = tile.mask()
        other = ", other=0.0" if mask else ""
        load = f"tl.load({pool} + slot.to(tl.int64) * {stride} + cell{mask}{other}, {ONCE})"
        w.let("tile", f"{load}.to(tl.float32)")
        self._outside()
        self._walk()
        self._store("target_slot")

    def _store(self, slot: str) -> None:
        """The tile goes to a slot of the pool."""
        w, c = self.writer, self.context
        pool, stride = pointer(c, w, "state", c.state_dtype), w.arg("state_stride", "i64")
        rounded = f"{bracket(self.step.state)}.to({pool}.dtype.element_ty)"
        at = f"{pool} + {slot}.to(tl.int64) * {stride} + cell"
        w.line(f"tl.store({at}, {rounded}{self.tile.mask()}, {ONCE})")

    def _outside(self) -> None:
        """Pointers and parameters are loaded once, outside the loop."""
        c, w = self.context, self.writer
        columns = table_columns(c)
        for item in c.plan.tokens:
            name = "mixed" if c.plan.is_mixed(item) else item.name
            if name in columns:
                pointer(c, w, name, c.dtype)
        for parameter in c.plan.parameters:
            self.token.parameter(parameter)
        if "unknowns" in columns:
            pointer(c, w, "unknowns", c.unknown_dtype)

    def _walk(self) -> None:
        """The loop over the path; the rows of the next node are on their way while a node is worked
        on."""
        w, token = self.writer, self.token
        emit_nodes(self.context, w)
        scalars = w.apart(lambda: emit_scalars(token))
        body = self._body()
        for distance, when in enumerate(WHEN[:-1]):
            self._rows(when, str(distance))
        w.lines += scalars
        self.step.start()
        with w.block("for step in range(length):"):
            last = most_steps(self.context) - 1
            self._rows(WHEN[-1], f"tl.minimum(step + {len(WHEN) - 1}, {last})")
            w.comment("one token of the recurrence")
            w.lines += body
            with w.block("if step == track_step:"):
                self._store("track_slot")
            for name in token.rows:
                for earlier, later in pairwise(WHEN):
                    w.let(f"{name}_{earlier}", f"{name}_{later}")

    def _rows(self, when: str, step: str) -> None:
        """Load the rows of the node at a step."""
        w = self.writer
        w.let("row", f"first + {picked('nodes', step)}")
        for name, load in self.token.rows.items():
            w.let(f"{name}_{when}", load)

    def _body(self) -> list[str]:
        """Lines of one step, written apart: they decide which rows a node needs."""

        def step() -> None:
            with self.writer.block("for step in range(length):"):
                self.step.emit()

        return self.writer.apart(step)[1:]
