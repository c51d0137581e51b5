"""The commit kernel: the accepted path of every request, all layers, one launch.

State programs walk the path from the committed state and the inputs of its nodes: the recurrence
itself, token by token, with the tile in registers (`replay`), or with the unknowns that
verification stored (`factors`). Window programs move the convolution window to the end of the path.
Either can also write the state at one interior node of the path (the track node) to a second slot.
Pointers come from a table, one row per layer.
"""

from __future__ import annotations

from boleir.codegen.emit.commit_path import emit_next_node, emit_path
from boleir.codegen.emit.commit_step import Step
from boleir.codegen.emit.commit_table import pointer, table_columns
from boleir.codegen.emit.commit_tile import NAMES, WIDTHS, Tile
from boleir.codegen.emit.commit_token import Token
from boleir.codegen.emit.commit_window import emit_windows, window_tiles
from boleir.codegen.emit.context import Context
from boleir.codegen.emit.text import conjunction
from boleir.codegen.emit.writer import EmittedKernel, Writer
from boleir.ir import Kind


def emit_commit(context: Context) -> EmittedKernel:
    """The commit kernel."""
    w, tile = Writer(context.inputs), Tile(context)
    _Commit(context, w, tile).emit()
    return w.kernel(
        "commit",
        "Advance state and convolution window along the accepted path; all layers in one launch.",
        (f"{tile.programs + window_tiles(context)} * batch * layers", "1", "1"),
        warps=tile.warps,
    )


class _Commit:
    def __init__(self, context: Context, writer: Writer, tile: Tile) -> None:
        self.context = context
        self.writer = writer
        self.tile = tile
        self.token = Token(context, writer, tile)

    def emit(self) -> None:
        """The whole body."""
        w, states = self.writer, self.tile.programs
        units = states + window_tiles(self.context)
        w.arg("table", "*i64")
        batch = w.arg("batch", "i32")
        w.let("program", "tl.program_id(0)")
        w.let("unit", f"program % {units}")
        w.let("request", f"program // {units} % {batch}")
        w.let("layer", f"program // ({units} * {batch})")
        emit_path(self.context, w)
        if window_tiles(self.context):
            with w.block(f"if (unit < {states}) & valid:"):
                self._state()
            with w.block(f"if (unit >= {states}) & valid:"):
                emit_windows(self.context, w, states)
        else:
            with w.block("if valid:"):
                self._state()

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
        mask = self._mask()
        other = ", other=0.0" if mask else ""
        load = f"tl.load({pool} + slot.to(tl.int64) * {stride} + cell{mask}{other})"
        w.let("tile", f"{load}.to(tl.float32)")
        self._outside()
        self._walk()
        self._store("target_slot")

    def _store(self, slot: str) -> None:
        """The tile goes to a slot of the pool."""
        w, c = self.writer, self.context
        pool, stride = pointer(c, w, "state", c.state_dtype), w.arg("state_stride", "i64")
        rounded = f"tile.to({pool}.dtype.element_ty)"
        at = f"{pool} + {slot}.to(tl.int64) * {stride} + cell"
        w.line(f"tl.store({at}, {rounded}{self._mask()})")

    def _mask(self) -> str:
        """The argument that keeps a load or store to channels that are there."""
        tests = [
            self.tile.across(f"({NAMES[kind]} < {WIDTHS[kind]})", kind)
            for kind in (Kind.VALUE, Kind.KEY)
            if not self.tile.exact(kind)
        ]
        return f", mask={conjunction(*tests)}" if tests else ""

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
            pointer(c, w, "unknowns", "fp32")

    def _walk(self) -> None:
        """The loop over the path; the rows of the next node are on their way while a node is worked
        on."""
        w, token = self.writer, self.token
        body = self._body()
        self._next_row()
        for name, load in token.rows.items():
            w.let(f"{name}_now", load)
        with w.block("for _ in range(length):"):
            w.let("here", "current")
            self._next_row()
            for name, load in token.rows.items():
                w.let(f"{name}_next", load)
            w.comment("one token of the recurrence")
            w.lines += body
            with w.block("if (here == track_node) & (track_slot >= 0):"):
                self._store("track_slot")
            for name in token.rows:
                w.let(f"{name}_now", f"{name}_next")

    def _next_row(self) -> None:
        emit_next_node(self.context, self.writer)
        self.writer.let("row", "first + current")

    def _body(self) -> list[str]:
        """Lines of one step, written apart: they decide which rows a node needs."""
        w, start = self.writer, len(self.writer.lines)
        with w.block("for _ in range(length):"):
            Step(self.context, w, self.tile, self.token).emit()
        body = w.lines[start + 1 :]
        del w.lines[start:]
        return body
