"""Convolution programs of the prepare kernel: one head of one input, one block of nodes."""

from __future__ import annotations

from boleir.codegen.emit.context import Context, place, plane_of
from boleir.codegen.emit.text import arithmetic, bracket, call, product
from boleir.codegen.emit.writer import Writer
from boleir.codegen.naming import stem
from boleir.codegen.plan import Mixed
from boleir.codegen.rewrite import constant_value, is_constant, vanishes, zero_stays
from boleir.codegen.schedule import padded
from boleir.ir import Call, Dot, Expr, Kind


def emit_convolution(context: Context, w: Writer, m: Mixed, first: int, scalars: bool) -> None:
    """The body of the branch for input `m`, whose programs start with unit `first`."""
    dtype, taps = context.dtype, range(m.width - 1)
    width = context.shapes.width(m.source.kind)
    w.comment(f"{m.source.name}: convolution, then {', '.join(m.functions) or 'nothing'}")
    unit = f"(unit - {first})" if first else "unit"
    w.let("channel", f"tl.arange(0, {padded(width)})")
    w.let("column", f"{unit} * {width} + channel")
    packed = w.let("packed", f"{m.offset} + column") if m.offset else "column"
    w.let("live", f"channel < {width}")
    w.let("exists", "inside[:, None] & live[None, :]")
    _loads(context, w, m, packed)
    w.let("total", "weight_0[None, :] * own.to(tl.float32)")
    for tap in taps:
        w.let("total", f"total + weight_{tap + 1}[None, :] * tap_{tap}.to(tl.float32)")
    _add_window(w, m.width - 1)
    for fn in m.functions:
        w.let("total", call(fn, "total", w))
    mixed = w.arg(m.buffer, "*" + dtype)
    w.let("stored", f"total.to({mixed}.dtype.element_ty)")
    stored = f"{m.column} + column[None, :]" if m.column else "column[None, :]"
    at = f"{mixed} + row[:, None] * {m.row_size} + {stored}"
    w.line(f"tl.store({at}, stored, mask=exists)")
    if scalars:
        _vector_scalars(context, w, m, first)


def _loads(context: Context, w: Writer, m: Mixed, packed: str) -> None:
    """The node's own entries, those of its nearest ancestors, weights and window."""
    dtype, taps = context.dtype, range(m.width - 1)
    pointer = w.arg(m.source.name, "*" + dtype)
    stride = w.arg(f"{m.source.name}_stride", "i64")
    w.let("slot", f"tl.maximum(tl.load({w.arg('slots', '*i32')} + request), 0).to(tl.int64)")
    window = f"{w.arg('window', '*' + dtype)} + slot * {w.arg('window_stride', 'i64')}"
    w.let("window_row", f"{window} + {packed} * {m.width - 1}")
    w.comment("all loads first: one latency instead of one for each tap")
    near, entries = w.arg("near", "*i32"), context.plan.conv_width - 1
    for tap in taps:
        at = f"{near} + row * {entries}" + (f" + {tap}" if tap else "")
        w.let(f"near_{tap}", f"tl.load({at}, mask=inside, other=-1)")
    own = f"{pointer} + row[:, None] * {stride} + column[None, :]"
    w.let("own", f"tl.load({own}, mask=exists, other=0.0)")
    weights = f"{w.arg('conv_weight', '*' + dtype)} + {packed} * {m.width}"
    for tap in range(m.width):
        back = m.width - 1 - tap
        at = f"{weights} + {back}" if back else weights
        w.let(f"weight_{tap}", f"tl.load({at}, mask=live, other=0.0).to(tl.float32)")
    for tap in taps:
        w.let("in_tree", f"exists & (near_{tap} >= 0)[:, None]")
        at = f"{pointer} + (first + near_{tap})[:, None] * {stride} + column[None, :]"
        w.let(f"tap_{tap}", f"tl.load({at}, mask=in_tree, other=0.0)")
    for entry in taps:
        at = f"window_row + {m.width - 2 - entry}" if entry < m.width - 2 else "window_row"
        w.let(f"old_{entry}", f"tl.load({at}, mask=live, other=0.0).to(tl.float32)")


def _add_window(w: Writer, entries: int) -> None:
    """What the committed window adds to nodes whose path is shorter than the convolution.

    It depends on the channel and on how many ancestors a node has, so there are `entries` vectors
    of it, from which a node takes one.
    """
    w.comment("a short path goes on in the committed window")
    w.let("in_tree", " + ".join(f"(near_{tap} >= 0).to(tl.int32)" for tap in range(entries)))
    window = "0.0"
    for ancestors in reversed(range(entries)):
        terms = (f"weight_{1 + tap} * old_{tap - ancestors}" for tap in range(ancestors, entries))
        part = w.let(f"window_{ancestors}", " + ".join(terms))
        window = f"tl.where((in_tree == {ancestors})[:, None], {part}[None, :], {window})"
    w.let("total", f"total + {window}")


def _vector_scalars(context: Context, w: Writer, m: Mixed, first: int) -> None:
    """Row scalars that depend on the input just convolved, from the values as stored."""
    mine = [s for s in context.plan.scalars if context.plan.source(s) == m]
    if not mine:
        return
    w.let("value", "stored.to(tl.float32)")
    width = context.shapes.width(m.source.kind)
    if padded(width) != width and not all(zero_stays(fn) for fn in m.functions):
        w.let("value", "tl.where(live[None, :], value, 0.0)")
    for scalar in mine:
        w.origin(scalar.name, place(scalar.expr))
        value = w.let(scalar.name, _spell(context, w, m, scalar.expr))
        plane = plane_of(context.plan.scalars.index(scalar), f"unit - {first}" if first else "unit")
        at = f"{w.arg('rows', '*fp32')} + {plane} * {w.arg('capacity', 'i64')} + row"
        w.line(f"tl.store({at}, {value}, mask=inside)")


def _spell(context: Context, w: Writer, m: Mixed, expr: Expr) -> str:
    """A scalar of the convolved values; sums inside it get names."""

    def vector(part: Expr) -> str:
        """A vector of the convolved values, [nodes, channels]."""
        if part == m.item:
            return "value"
        if is_constant(part):
            return repr(constant_value(part, context.dims))
        if part.kind is Kind.HEAD:
            return f"{bracket(inner(part))}[:, None]"
        return arithmetic(part, vector, w)

    def inner(child: Expr) -> str:
        text = _spell(context, w, m, child)
        return w.temp(text, stem(child)) if text.startswith("tl.sum") else text

    if is_constant(expr):
        return repr(constant_value(expr, context.dims))
    if isinstance(expr, Dot):
        summed, zero = product(vector(expr.left), vector(expr.right)), vanishes(expr.left)
        return _sum(context, m, summed, zero or vanishes(expr.right))
    if isinstance(expr, Call) and expr.fn == "sum":
        return _sum(context, m, vector(expr.arg), vanishes(expr.arg))
    return arithmetic(expr, inner, w)


def _sum(context: Context, m: Mixed, vector: str, vanishing: bool) -> str:
    """The sum over the channels that exist; `vanishing`: the others are zero anyway."""
    width = context.shapes.width(m.source.kind)
    if not vanishing and padded(width) != width:
        vector = f"tl.where(live[None, :], {vector}, 0.0)"
    return f"tl.sum({vector}, axis=1)"
