"""Window programs of the commit: the convolution window moves to the end of the accepted path."""

from __future__ import annotations

from boleir.codegen.emit.commit_table import pointer, pointer_at, table_columns
from boleir.codegen.emit.context import Context
from boleir.codegen.emit.inputs_alike import Alike, alike
from boleir.codegen.emit.writer import Writer
from boleir.codegen.plan import Mixed

CONV_TILE = 128
"""Channels per window program."""


def window_tiles(context: Context) -> int:
    """Window programs per request and layer."""
    return sum(_tiles(m) for m in context.plan.mixed)


def emit_windows(context: Context, w: Writer, first: int) -> None:
    """The branches of the window programs, whose units start with `first`."""
    words, ancestors = context.shapes.words, w.arg("ancestors", "*i64")
    pointer(context, w, "window", context.dtype)
    w.comment("the track node counts where it lies on the path")
    w.let("tracked", "(track_slot >= 0) & (track_node >= 0) & (track_node < count)")
    w.let("bit", "tl.where(tracked, track_node, 0)")
    at = f"last * {words} + bit // 64" if words > 1 else "last"
    on_path = f"(tl.load({ancestors} + {at}) >> (bit & 63).to(tl.int64)) & 1"
    w.let("tracked", f"tracked & (({on_path}) != 0)")
    for group in alike(context.plan.mixed, lambda m: m.width, _tiles, "part"):
        last = first + group.ends[-1]
        with w.block(f"if (unit >= {first}) & (unit < {last}):"):
            _window(context, w, group, first)
        first = last


def _tiles(m: Mixed) -> int:
    """Window programs of one input."""
    return -(-m.channels // CONV_TILE)


def _window(context: Context, w: Writer, group: Alike, first: int) -> None:
    """The windows of some inputs."""
    window, width = pointer(context, w, "window", context.dtype), group.inputs[0].width
    stride = w.arg("window_stride", "i64")
    w.comment(f"window of {group.names}")
    w.let("part", f"unit - {first}")
    w.let("column", f"({group.own_unit}) * {CONV_TILE} + tl.arange(0, {CONV_TILE})")
    w.let("channels", group.choose(lambda m: str(m.channels)))
    whole = all(m.channels % CONV_TILE == 0 for m in group.inputs)
    if not whole:
        w.let("live", "column < channels")
    offset = group.choose(lambda m: str(m.offset))
    column = "column" if offset == "0" else f"({offset} + column)"
    w.let("place", f"{column} * {width - 1}")
    columns = table_columns(context)
    index = group.choose(lambda m: str(columns.index(m.source.name)))
    w.let("source", pointer_at(context, w, index, context.dtype))
    w.let("source_stride", group.choose(lambda m: w.arg(f"{m.source.name}_stride", "i64")))
    w.let("old", f"{window} + slot.to(tl.int64) * {stride} + place")
    with w.block("for goal in range(2):"):
        w.comment("first the window at the track node, then that of the accepted node")
        w.let("end", "tl.where(goal == 0, track_node, accepted_node)")
        w.let("end_slot", "tl.where(goal == 0, track_slot, target_slot)")
        w.let("wanted", "tl.where(goal == 0, tracked, end >= 0)")
        with w.block("if wanted:"):
            _entries(context, w, width)
            w.let("new", f"{window} + end_slot.to(tl.int64) * {stride} + place")
            for back in range(width - 1):
                entry = width - 2 - back
                at = f"new + {entry}" if entry else "new"
                w.line(f"tl.store({at}, entry_{back}{'' if whole else ', mask=live'})")


def _entries(context: Context, w: Writer, width: int) -> None:
    """entry_0 .. entry_{width-2}: the newest entries, `end` itself first. An entry is a row of the
    input, or where the path ends one of the old window."""
    near, entries = w.arg("near", "*i32"), context.plan.conv_width - 1
    w.let("back_0", "tl.minimum(tl.maximum(end, 0), count - 1)")
    w.let("end_row", "first + back_0")
    for back in range(width - 1):
        name = f"back_{back}"
        if back:
            at = f"{near} + end_row * {entries}" + (f" + {back - 1}" if back > 1 else "")
            w.let(name, f"tl.load({at})")
        kept = f"({name} < 0) & ({name} >= -{width - 1})"
        w.let("inside", f"column < tl.where({name} >= 0, channels, 0)")
        w.let("kept", f"column < tl.where({kept}, channels, 0)")
        at = f"source + (first + {name}) * source_stride + column"
        w.let(f"entry_{back}", f"tl.load({at}, mask=inside, other=0.0)")
        w.let("moved", f"tl.load(old + {width - 1} + {name}, mask=kept, other=0.0)")
        w.let(f"entry_{back}", f"tl.where(inside, entry_{back}, moved)")
