"""The two launches that deferred commits have for all layers: *record* takes the place of the
commit, *flush* does what the next verification would do (see `boleir.codegen.emit.deferred`)."""

from __future__ import annotations

from dataclasses import replace

from boleir.codegen.emit.commit_inputs import step_inputs
from boleir.codegen.emit.commit_path import emit_path
from boleir.codegen.emit.commit_table import pointer
from boleir.codegen.emit.commit_window import emit_windows, window_tiles
from boleir.codegen.emit.context import Context
from boleir.codegen.emit.deferred import (
    Waiting,
    emit_replay,
    input_channels,
    pending_counts,
    recorded_places,
)
from boleir.codegen.emit.writer import EmittedKernel, Writer
from boleir.codegen.schedule import padded
from boleir.ir import Input

COPY_TILE = 256
"""Channels that a program of the record kernel copies."""

POSITIONS = 16
"""Positions of the path that it copies at a time."""


def with_deferred(context: Context, kernels: list[EmittedKernel]) -> list[EmittedKernel]:
    """The kernels of a layer and the commit, with what deferring takes: the function that reading
    kernels call, and the launches that record and flush."""
    *before, reads, commit = kernels
    reads = replace(reads, text=f"{emit_replay(context).text}\n\n{reads.text}")
    return [*before, reads, commit, emit_record(context), emit_flush(context)]


def emit_flush(context: Context) -> EmittedKernel:
    """Whatever waits for some slots walked now, in all layers."""
    c, w = context, Writer(context.inputs)
    tiles = c.value_tiles * c.shapes.value_heads
    w.arg("table", "*i64")
    batch = w.arg("batch", "i32")
    w.let("program", "tl.program_id(0)")
    w.let("value_tile", "program % VALUE_TILES")
    w.let("head", "program // VALUE_TILES % VALUE_HEADS")
    w.let("request", f"program // {tiles} % {batch}")
    w.let("layer", f"program // ({tiles} * {batch})")
    w.let("slot", f"tl.load({w.arg('slots', '*i32')} + request)")
    formats = {"state": c.state_dtype, "pending": "i32", "recorded": c.dtype}
    formats |= {x.name: "fp32" for x in step_inputs(c.plan)[1]}
    pointers = {name: pointer(c, w, name, kind) for name, kind in formats.items()}
    waiting = Waiting(c, w, pointers, w.arg("recorded_stride", "i64"))
    waiting.expect()
    with w.block("if steps > 0:"):
        w.let("value", "value_tile * B_V + tl.arange(0, B_V)")
        row, stride = "(head * D_V + value) * D_K", w.arg("state_stride", "i64")
        w.let("state_row", f"{pointers['state']} + slot.to(tl.int64) * {stride} + {row}")
        waiting.load("state_row")
        waiting.advance()
        waiting.store()
    return w.kernel(
        "flush",
        "Walk the recorded tokens of some slots in all layers, for whoever reads states.",
        (f"{tiles} * batch * layers", "1", "1"),
        warps=c.schedule.warps,
    )


def emit_record(context: Context) -> EmittedKernel:
    """The commit that is deferred: the tokens of the accepted paths copied, the windows moved."""
    c, w = context, Writer(context.inputs)
    copies, moves = _copy_programs(c), window_tiles(c)
    emit_path(c, w, copies + moves)
    with w.block(f"if (unit < {copies}) & valid:" if moves else "if valid:"):
        _copies(c, w)
    if moves:
        with w.block(f"if (unit >= {copies}) & valid:"):
            emit_windows(c, w, copies)
    return w.kernel(
        "record",
        "Keep the tokens of the accepted path for the next verification; move the window.",
        (f"{copies + moves} * batch * layers", "1", "1"),
        warps=4,
    )


def _copy_programs(context: Context) -> int:
    return sum(-(-input_channels(context, x) // COPY_TILE) for x in recorded_places(context))


def _copies(c: Context, w: Writer) -> None:
    """The tokens of the path, from the root on, and how many there are."""
    number = pending_counts(c)
    counts, tokens = pointer(c, w, "pending", "i32"), pointer(c, w, "recorded", c.dtype)
    with w.block("if unit == 0:"):
        w.let("place", f"tl.arange(0, {padded(number)})")
        at = f"{counts} + slot.to(tl.int64) * {number} + place"
        w.line(f"tl.store({at}, length, mask=place < {number})")
    w.let("kept", f"{tokens} + slot.to(tl.int64) * {w.arg('recorded_stride', 'i64')}")
    for item in recorded_places(c):
        _source(c, w, item)
    with w.block(f"for start_position in range(0, length, {POSITIONS}):"):
        _nodes_at(c, w)
        first = 0
        for item, place in recorded_places(c).items():
            last = first + -(-input_channels(c, item) // COPY_TILE)
            test = f"unit < {last}"
            with w.block(f"if (unit >= {first}) & ({test}):" if first else f"if {test}:"):
                _copy(c, w, item, place, first)
            first = last


def _nodes_at(c: Context, w: Writer) -> None:
    """The rows of the nodes at some positions of the path: a node's position is its depth."""
    depths = w.arg("depths", "*i32")
    w.let("position", f"start_position + tl.arange(0, {POSITIONS})")
    for word in range(c.shapes.words):
        w.let("bit", f"tl.arange(0, {min(64, padded(c.shapes.max_nodes - 64 * word))})")
        w.let("node", f"{64 * word} + bit" if word else "bit")
        w.let("on_path", f"((path_{word} >> bit.to(tl.int64)) & 1) != 0")
        w.let("depth", f"tl.load({depths} + first + node, mask=on_path, other=-1)")
        here = "depth[None, :] == position[:, None]"
        found = f"tl.sum(tl.where({here}, node[None, :], 0), axis=1)"
        w.let("node_there", f"node_there + {found}" if word else found)
    w.let("row", "first + node_there")


def _source(c: Context, w: Writer, item: Input) -> str:
    """The pointer to an input's rows."""
    mixed = c.plan.is_mixed(item)
    return pointer(c, w, item.name if mixed is None else mixed.buffer, c.dtype)


def _copy(c: Context, w: Writer, item: Input, place: int, first: int) -> None:
    """Some channels of one input of these nodes."""
    w.comment(f"rows of {item.hint or item.name}")
    unit = f"(unit - {first})" if first else "unit"
    w.let("column", f"{unit} * {COPY_TILE} + tl.arange(0, {COPY_TILE})")
    mixed = c.plan.is_mixed(item)
    size = w.arg(f"{item.name}_stride", "i64") if mixed is None else mixed.row_size
    at = f"{_source(c, w, item)} + row[:, None] * {size}"
    if mixed is not None and mixed.column:
        at += f" + {mixed.column}"
    inside = f"(column < {input_channels(c, item)})[None, :]"
    w.let("live", f"(position < length)[:, None] & {inside}")
    w.let("entries", f"tl.load({at} + column[None, :], mask=live, other=0.0)")
    to = "kept + position[:, None] * RECORDED" + (f" + {place}" if place else "")
    w.line(f"tl.store({to} + column[None, :], entries, mask=live)")
