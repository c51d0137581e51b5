"""Convolution programs of the prepare kernel: one head of one input, one block of nodes.

Inputs that differ in nothing but their place share a branch.
"""

from __future__ import annotations

from contextlib import nullcontext

from boleir.codegen.emit.context import Context, place, plane_of
from boleir.codegen.emit.inputs_alike import Alike, alike
from boleir.codegen.emit.shares import Share
from boleir.codegen.emit.text import arithmetic, bracket, call, conjunction, product
from boleir.codegen.emit.writer import Writer
from boleir.codegen.naming import stem
from boleir.codegen.plan import Mixed
from boleir.codegen.rewrite import constant_value, is_constant, vanishes, zero_stays
from boleir.codegen.schedule import padded
from boleir.ir import Call, Dot, Expr, Kind


def convolved_alike(context: Context) -> list[Alike]:
    """Inputs that one branch convolves; their units are their heads."""
    shapes = context.shapes

    def key(m: Mixed) -> tuple[object, ...]:
        return shapes.width(m.source.kind), m.width, m.functions

    return alike(context.plan.mixed, key, lambda m: shapes.heads(m.item.kind))


def emit_convolution(
    context: Context, w: Writer, group: Alike, share: Share, scalars: bool
) -> None:
    """The body of the branch for some inputs: what depends on channels alone, then the nodes."""
    m = group.inputs[0]
    width = context.shapes.width(m.source.kind)
    w.comment(f"{group.names}: convolution, then {', '.join(m.functions) or 'nothing'}")
    share.decode(w)
    w.let("head", group.own_unit)
    w.let("channel", f"tl.arange(0, {padded(width)})")
    w.let("packed", f"{m.offset} + unit * {width}" if m.offset else f"unit * {width}")
    if padded(width) != width:
        w.let("live", f"channel < {width}")
    _load_places(context, w, m)
    _point_at_rows(context, w, group, width)
    _load_rows(context, w, m)
    _load_channels(context, w, m)
    _convolve(context, w, m)
    if scalars:
        for at, member in enumerate(group.inputs):
            _vector_scalars(context, w, member, group.test(at))


def _load_places(context: Context, w: Writer, m: Mixed) -> None:
    """Numbers that addresses depend on: the nearest ancestors, the slot."""
    near, entries = w.arg("near", "*i32"), context.plan.conv_width - 1
    w.comment("loads first, those of addresses before all: else each waits for the one before")
    w.let("slot", f"tl.maximum(tl.load({w.arg('slots', '*i32')} + request), 0).to(tl.int64)")
    for tap in range(m.width - 1):
        at = _plus(f"{near} + row * {entries}", tap)
        w.let(f"near_{tap}", f"tl.load({at}, mask=inside, other=-1)")


def _load_rows(context: Context, w: Writer, m: Mixed) -> None:
    """The inputs of the nodes and of their nearest ancestors."""
    live = _live(context, m)
    own = "from_rows + ((node * from_step)[:, None] + channel[None, :])"
    w.let("own", f"tl.load({own}, mask=inside[:, None]{live}, other=0.0)")
    for tap in range(m.width - 1):
        at = f"from_rows + ((near_{tap} * from_step)[:, None] + channel[None, :])"
        w.let(f"tap_{tap}", f"tl.load({at}, mask=(near_{tap} >= 0)[:, None]{live}, other=0.0)")


def _load_channels(context: Context, w: Writer, m: Mixed) -> None:
    """Weights, and what the committed window adds to nodes whose path is shorter than the
    convolution.

    That depends on the channel and on how many ancestors a node has, so there are `width - 1`
    vectors of it, from which a node takes one.
    """
    dtype, entries = context.dtype, m.width - 1
    size, live = 1 << (m.width - 1).bit_length(), [] if _whole(context, m) else ["live[:, None]"]
    w.comment("rows of weights by threads of their own, which then share the columns with all")
    w.let("lane", f"tl.arange(0, {size})[None, :]")
    w.let("channels", "(packed + channel)[:, None]")
    at = f"{w.arg('conv_weight', '*' + dtype)} + channels * {m.width} + lane"
    tests = live + ([f"lane < {m.width}"] if size > m.width else [])
    w.let("weights", f"tl.load({at}{_mask(tests)})")
    window = f"{w.arg('window', '*' + dtype)} + slot * {w.arg('window_stride', 'i64')}"
    w.let("window_rows", f"{window} + channels * {entries} + lane")
    for ancestors in range(entries):
        at = _plus("window_rows", ancestors)
        mask = _mask([*live, f"lane < {entries - ancestors}"])
        w.let(f"old_{ancestors}", f"tl.load({at}{mask})")
    w.let("weights", "weights.to(tl.float32)")
    for tap in range(m.width):
        picked = f"tl.where(lane == {m.width - 1 - tap}, weights, 0.0)"
        w.let(f"weight_{tap}", f"tl.sum({picked}, axis=1)")
    for ancestors in range(entries):
        old = f"old_{ancestors}.to(tl.float32)"
        w.let(f"window_{ancestors}", f"tl.sum(weights * {old}, axis=1)")


def _mask(tests: list[str]) -> str:
    """The arguments of a load that depends on `tests`."""
    return f", mask={conjunction(*tests)}, other=0.0" if tests else ""


def _point_at_rows(context: Context, w: Writer, group: Alike, width: int) -> None:
    """Pointers to the first row of the request; offsets of others are small."""
    shapes, kind = context.shapes, "*" + context.dtype
    whole = all(shapes.channels(m.source) % 16 == 0 for m in group.inputs)
    row_sizes = {
        m.row_size: sum(x.channels for x in context.plan.mixed if x.kept == m.kept)
        for m in group.inputs
    }
    w.let("source", group.choose_aligned(lambda m: w.arg(m.source.name, kind)))
    stride = group.choose_aligned(lambda m: w.arg(f"{m.source.name}_stride", "i64"), whole)
    w.let("source_stride", stride)
    w.let("from_rows", f"source + first * source_stride + head * {width}")
    w.let("from_step", "source_stride.to(tl.int32)")
    w.let("stored_in", group.choose_aligned(lambda m: w.arg(m.buffer, kind)))
    sixteens = all(size % 16 == 0 for size in row_sizes.values())
    w.let("stored_step", group.choose_aligned(lambda m: m.row_size, sixteens))
    columns = all(m.column % 16 == 0 for m in group.inputs)
    w.let("column", group.choose_aligned(lambda m: str(m.column), columns))
    w.let("to_rows", f"stored_in + first * stored_step + column + head * {width}")


def _convolve(context: Context, w: Writer, m: Mixed) -> None:
    """The convolution of a block of nodes."""
    taps, live = range(m.width - 1), _live(context, m)
    w.let("total", "weight_0[None, :] * own.to(tl.float32)")
    for tap in taps:
        w.let("total", f"total + weight_{tap + 1}[None, :] * tap_{tap}.to(tl.float32)")
    w.comment("a short path goes on in the committed window")
    for tap in taps:
        above = [f"near_{tap - 1} >= 0"] if tap else []
        w.let("ends", conjunction(*above, f"near_{tap} < 0"))
        longer = f"total + window_{tap}[None, :]"
        w.let("total", f"tl.where(ends[:, None], {longer}, total)")
    for fn in m.functions:
        w.let("total", call(fn, "total", w))
    w.let("stored", f"total.to({w.arg(m.buffer, '*' + context.dtype)}.dtype.element_ty)")
    at = "to_rows + ((node * stored_step)[:, None] + channel[None, :])"
    w.line(f"tl.store({at}, stored, mask=inside[:, None]{live})")


def _whole(context: Context, m: Mixed) -> bool:
    """Whether a head's channels fill a tile."""
    width = context.shapes.width(m.source.kind)
    return padded(width) == width


def _live(context: Context, m: Mixed) -> str:
    """What the mask of a tile [nodes, channels] has besides its rows."""
    return "" if _whole(context, m) else " & live[None, :]"


def _plus(text: str, number: int) -> str:
    return f"{text} + {number}" if number else text


def _vector_scalars(context: Context, w: Writer, m: Mixed, test: str | None) -> None:
    """Row scalars that depend on one of the inputs just convolved, from the values as stored."""
    mine = [s for s in context.plan.scalars if context.plan.source(s) == m]
    if not mine:
        return
    with w.block(f"if {test}:") if test else nullcontext():
        w.let("value", "stored.to(tl.float32)")
        width = context.shapes.width(m.source.kind)
        if padded(width) != width and not all(zero_stays(fn) for fn in m.functions):
            w.let("value", "tl.where(live[None, :], value, 0.0)")
        for scalar in mine:
            w.origin(scalar.name, place(scalar.expr))
            value = w.let(scalar.name, _spell(context, w, m, scalar.expr))
            plane = plane_of(context.plan.scalars.index(scalar), "head")
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
