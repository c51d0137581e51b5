"""Window programs of the commit: the convolution window moves to the end of the accepted path."""

from __future__ import annotations

from boleir.codegen.emit.commit_table import pointer
from boleir.codegen.emit.context import Context
from boleir.codegen.emit.writer import Writer
from boleir.codegen.plan import Mixed

CONV_TILE = 128
"""Channels per window program."""


def window_tiles(context: Context) -> int:
    """Window programs per request and layer."""
    return sum(-(-m.channels // CONV_TILE) for m in context.plan.mixed)


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
    for m in context.plan.mixed:
        tiles = -(-m.channels // CONV_TILE)
        with w.block(f"if (unit >= {first}) & (unit < {first + tiles}):"):
            _window(context, w, m, first)
        first += tiles


def _window(context: Context, w: Writer, m: Mixed, first: int) -> None:
    """The window of one input."""
    window = pointer(context, w, "window", context.dtype)
    stride, width = w.arg("window_stride", "i64"), m.width
    w.comment(f"window of {m.source.name}")
    w.let("column", f"(unit - {first}) * {CONV_TILE} + tl.arange(0, {CONV_TILE})")
    w.let("live", f"column < {m.channels}")
    column = f"({m.offset} + column)" if m.offset else "column"
    w.let("place", f"{column} * {width - 1}")
    pointer(context, w, m.source.name, context.dtype)
    w.let("old", f"{window} + slot.to(tl.int64) * {stride} + place")
    with w.block("for goal in tl.static_range(2):"):
        w.comment("first the window at the track node, then that of the accepted node")
        w.let("end", "track_node if goal == 0 else accepted_node")
        w.let("end_slot", "track_slot if goal == 0 else target_slot")
        w.let("wanted", "tracked if goal == 0 else end >= 0")
        _entries(context, w, m)
        with w.block("if wanted:"):
            w.let("new", f"{window} + end_slot.to(tl.int64) * {stride} + place")
            for back in range(width - 1):
                entry = width - 2 - back
                at = f"new + {entry}" if entry else "new"
                w.line(f"tl.store({at}, entry_{back}, mask=live)")


def _entries(context: Context, w: Writer, m: Mixed) -> None:
    """entry_0 .. entry_{width-2}: the newest entries, `end` itself first. An entry is a row of the
    input, or where the path ends one of the old window."""
    width, near = m.width, w.arg("near", "*i32")
    entries = context.plan.conv_width - 1
    source = pointer(context, w, m.source.name, context.dtype)
    stride = w.arg(f"{m.source.name}_stride", "i64")
    w.let("back_0", "tl.minimum(tl.maximum(end, 0), count - 1)")
    w.let("end_row", "first + back_0")
    for back in range(width - 1):
        name = f"back_{back}"
        if back:
            at = f"{near} + end_row * {entries}" + (f" + {back - 1}" if back > 1 else "")
            w.let(name, f"tl.load({at})")
        kept = f"({name} < 0) & ({name} >= -{width - 1})"
        w.let("inside", f"column < tl.where({name} >= 0, {m.channels}, 0)")
        w.let("kept", f"column < tl.where({kept}, {m.channels}, 0)")
        at = f"{source} + (first + {name}) * {stride} + column"
        w.let(f"entry_{back}", f"tl.load({at}, mask=inside, other=0.0)")
        w.let("moved", f"tl.load(old + {width - 1} + {name}, mask=kept, other=0.0)")
        w.let(f"entry_{back}", f"tl.where(inside, entry_{back}, moved)")
