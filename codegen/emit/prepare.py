"""The prepare kernel: what every later kernel of the layer starts from.

One launch, two kinds of program. *Convolution* programs take one head of one convolved input and one block of nodes:
each node reads its nearest ancestors and, where its path ends, the committed window; activations follow, and row
scalars that depend on that input alone (its norm). *Scalar* programs take one value head and one block of nodes and
compute the other row scalars and the log-decay summed along each path.
"""

from __future__ import annotations

from dataclasses import replace

from boleir.codegen.emit.tiles import Context, Tiles
from boleir.codegen.emit.writer import EmittedKernel, Writer
from boleir.codegen.plan import Mixed, NoKernel, Scalar
from boleir.codegen.schedule import padded
from boleir.functions import FUNCTIONS
from boleir.ir import Dot, Input, Kind, Per, walk

NODES = 16
"""Nodes per program."""

DECODE = """\
program = tl.program_id(0)
unit = program % UNITS
node_block = program // UNITS % NODE_BLOCKS
request = program // (UNITS * NODE_BLOCKS)"""


def needs_prepare(context: Context) -> bool:
    """Whether there is anything to prepare."""
    plan = context.plan
    scalars = bool(plan.scalars) or plan.log_decay is not None
    return bool(plan.mixed) or (context.schedule.gates == "prepare" and scalars)


def scalar_source(context: Context, scalar: Scalar) -> Mixed | None:
    """The mixed input whose convolution program computes `scalar`; None for a scalar program."""
    plan = context.plan
    sources = {
        m.item.key: m
        for node in walk(scalar.expr)
        if isinstance(node, Input) and (m := plan.is_mixed(node)) is not None
    }
    if not sources:
        return None
    others = [n for n in walk(scalar.expr) if isinstance(n, Input) and n.key not in sources]
    if len(sources) > 1 or others:
        raise NoKernel(
            f"the scalar {scalar.name} needs several inputs of which some are convolved; prepare cannot compute it",
            mend="schedule gates=inline",
        )
    return next(iter(sources.values()))


def prepared_planes(context: Context) -> int:
    """Planes of the row buffer that hold row scalars: one per scalar, then c and g."""
    plan = context.plan
    return len(plan.scalars) + (2 if plan.log_decay is not None else 0)


def planes(context: Context) -> int:
    """All planes of the row buffer, those included that the factors kernel hands to the value kernel."""
    from boleir.codegen.emit.split import handed_planes

    handed = handed_planes(context) if context.schedule.fusion == "split" else 0
    return prepared_planes(context) + handed


def emit_prepare(context: Context, *, pdl: bool = False) -> EmittedKernel:
    """The prepare kernel."""
    schedule = replace(context.schedule, node_block=min(NODES, padded(context.shapes.max_nodes)), gates="inline")
    inner = Context(context.plan, context.shapes, schedule)
    w = Writer()
    units = [m for m in context.plan.mixed]
    heads = [context.shapes.heads(m.item.kind) for m in units]
    scalars = [s for s in context.plan.scalars if scalar_source(context, s) is None]
    with_rows = context.schedule.gates == "prepare" and (bool(scalars) or context.plan.log_decay is not None)
    total = sum(heads) + (context.shapes.value_heads if with_rows else 0)
    for text in DECODE.splitlines():
        w.line(text.replace("UNITS", str(total)).replace("NODE_BLOCKS", str(inner.blocks)))
    if pdl:
        w.line("tl.extra.cuda.gdc_wait()")
        w.comment("after the wait: a kernel that starts early knows that all before this one is done")
        w.line("tl.extra.cuda.gdc_launch_dependents()")
    cu = w.arg("cu_nodes", "*i32")
    w.let("start", f"tl.load({cu} + request)")
    w.let("count", f"tl.minimum(tl.load({cu} + request + 1) - start, MAX_NODES)")
    w.let("first", "start.to(tl.int64)")
    first = 0
    for m, number in zip(units, heads, strict=True):
        with w.block(f"if (unit >= {first}) & (unit < {first + number}):"):
            w.comment(f"{m.source.name}: convolution, then {', '.join(m.functions) or 'nothing'}")
            _convolution(inner, w, m, first, context.schedule.gates == "prepare")
        first += number
    if with_rows:
        with w.block(f"if unit >= {first}:"):
            w.comment("row scalars of one value head")
            _scalars(inner, w, scalars, first)
    return w.kernel(
        "prepare",
        "Convolution along each path, activations, norms, gates.",
        (f"{total * inner.blocks} * batch", "1", "1"),
        warps=4,
        pdl=pdl,
    )


def _convolution(context: Context, w: Writer, m: Mixed, first: int, scalars: bool) -> None:
    shapes, dtype = context.shapes, context.dtype
    width, padded_width = shapes.width(m.source.kind), padded(shapes.width(m.source.kind))
    w.let("node", f"node_block * {context.schedule.node_block} + tl.arange(0, {context.schedule.node_block})")
    w.let("inside", "node < count")
    w.let("row", "start.to(tl.int64) + node")
    w.let("channel", f"tl.arange(0, {padded_width})")
    w.let("column", f"(unit - {first}) * {width} + channel")
    w.let("exists", f"inside[:, None] & (channel < {width})[None, :]")
    w.let("live", f"channel < {width}")
    pointer, stride = w.arg(m.source.name, "*" + dtype), w.arg(f"{m.source.name}_stride", "i64")
    weights = w.arg("conv_weight", "*" + dtype)
    weight = f"{weights} + ({m.offset} + column) * {m.width}"
    source = f"tl.load({pointer} + row[:, None] * {stride} + column[None, :], mask=exists, other=0.0)"
    w.let("slot", f"tl.maximum(tl.load({w.arg('slots', '*i32')} + request), 0).to(tl.int64)")
    window = f"{w.arg('window', '*' + dtype)} + slot * {w.arg('window_stride', 'i64')}"
    window = f"{window} + ({m.offset} + column)[None, :] * {m.width - 1}"
    near = w.arg("near", "*i32")
    w.comment("all loads first: one latency instead of one for each tap")
    for tap in range(m.width - 1):
        w.let(f"near_{tap}", f"tl.load({near} + row * {context.plan.conv_width - 1} + {tap}, mask=inside, other=-1)")
    w.let("own", source)
    for tap in range(m.width):
        w.let(f"weight_{tap}", f"tl.load({weight} + {m.width - 1 - tap}, mask=live, other=0.0).to(tl.float32)")
    for tap in range(m.width - 1):
        w.let("in_tree", f"exists & (near_{tap} >= 0)[:, None]")
        w.let("in_window", f"exists & ((near_{tap} < 0) & (near_{tap} >= -{m.width - 1}))[:, None]")
        at = f"(first + near_{tap})[:, None] * {stride} + column[None, :]"
        w.let(f"tap_{tap}", f"tl.load({pointer} + {at}, mask=in_tree, other=0.0)")
        w.let(f"old_{tap}", f"tl.load({window} + ({m.width - 1} + near_{tap})[:, None], mask=in_window, other=0.0)")
    w.let("total", "weight_0[None, :] * own.to(tl.float32)")
    for tap in range(m.width - 1):
        value = f"tap_{tap}.to(tl.float32) + old_{tap}.to(tl.float32)"
        w.let("total", f"total + weight_{tap + 1}[None, :] * ({value})")
    for fn in m.functions:
        w.let("total", FUNCTIONS[fn].to_triton("total", axis=1))
    w.let("stored", f"total.to({w.arg('mixed', '*' + dtype)}.dtype.element_ty)")
    w.line(f"tl.store(mixed + row[:, None] * CONV_CHANNELS + {m.offset} + column[None, :], stored, mask=exists)")
    if scalars:
        _norms(context, w, m, first)


def _norms(context: Context, w: Writer, m: Mixed, first: int) -> None:
    """Row scalars that depend on the input just convolved, from the values as stored."""
    mine = [s for s in context.plan.scalars if scalar_source(context, s) == m]
    if not mine:
        return
    w.let("value", "stored.to(tl.float32)")
    for scalar in mine:
        if m.item.kind is Kind.VALUE and scalar.per_key_head:
            raise AssertionError("a value vector belongs to a value head")
        index = context.plan.scalars.index(scalar)
        spelled = _vector_scalar(context, w, m, scalar)
        capacity = w.arg("capacity", "i64")
        at = f"({index} * VALUE_HEADS + unit - {first}) * {capacity} + row"
        w.line(f"tl.store({w.arg('rows', '*fp32')} + {at}, {spelled}, mask=inside)")


def _vector_scalar(context: Context, w: Writer, m: Mixed, scalar: Scalar) -> str:
    from boleir.codegen.emit.tiles import arithmetic
    from boleir.codegen.rewrite import constant_value, is_constant

    def spell(expr: object) -> str:
        from boleir.ir import Call, Expr

        assert isinstance(expr, Expr)
        if is_constant(expr):
            return repr(constant_value(expr, context.dims))
        if isinstance(expr, Dot) and expr.left == m.item and expr.right == m.item:
            return w.temp("tl.sum(value * value, axis=1)", "square")
        if isinstance(expr, Call) and expr.fn == "sum" and expr.arg == m.item:
            return w.temp("tl.sum(value, axis=1)", "total")
        return arithmetic(expr, spell, w)

    return spell(scalar.expr)


def _scalars(context: Context, w: Writer, scalars: list[Scalar], first: int) -> None:
    """Row scalars of one value head for one block of nodes; c needs the log-decays of all blocks."""
    plan = context.plan
    w.let("head", f"unit - {first}")
    w.let("key_head", "head // GROUP" if context.shapes.group > 1 else "head")
    own = Tiles(Context(plan, replace(context.shapes, max_nodes=context.schedule.node_block, max_depth=0), context.schedule), w)
    w.let("node", f"node_block * {context.schedule.node_block} + tl.arange(0, {context.schedule.node_block})")
    w.let("inside", "node < count")
    w.let("row", "start.to(tl.int64) + node")
    own.channels()
    if plan.log_decay is not None:
        _load_words(context, w)
    own.prefetch(frozenset({Kind.KEY, Kind.HEAD}))
    capacity, rows = w.arg("capacity", "i64"), w.arg("rows", "*fp32")
    for scalar in scalars:
        head = "key_head" if scalar.per_key_head else "head"
        index = plan.scalars.index(scalar)
        w.line(f"tl.store({rows} + ({index} * VALUE_HEADS + {head}) * {capacity} + row, {own.per_node(scalar.expr, 0)}, mask=inside)")
    if plan.log_decay is not None:
        _path_sums(context, w, own, len(plan.scalars))


def _load_words(context: Context, w: Writer) -> None:
    words = context.shapes.words
    for word in range(words):
        at = f"row * {words} + {word}" if words > 1 else "row"
        w.let(f"word_{word}", f"tl.load({w.arg('ancestors', '*i64')} + {at}, mask=inside, other=0)")


def _path_sums(context: Context, w: Writer, own: Tiles, plane: int) -> None:
    plan, words, size = context.plan, context.shapes.words, context.schedule.node_block
    assert plan.log_decay is not None
    g = own.per_node(plan.log_decay, 0)
    w.line(f"tl.store(rows + ({plane + 1} * VALUE_HEADS + head) * capacity + row, {g}, mask=inside)")
    w.let("c", f"tl.zeros([{size}], tl.float32)")
    for word in range(words):
        nodes = min(64, padded(context.shapes.max_nodes - 64 * word))
        w.let("bit", f"tl.arange(0, {nodes})")
        other = Tiles(Context(plan, replace(context.shapes, max_nodes=nodes, max_depth=0), replace(context.schedule, node_block=nodes)), w)
        saved = ("node", "inside", "row")
        for name in saved:
            w.let(f"own_{name}", name)
        w.let("node", f"{64 * word} + bit" if word else "bit")
        w.let("inside", "node < count")
        w.let("row", "start.to(tl.int64) + node")
        step = w.let("step", other.per_node(plan.log_decay, 0))
        w.let("on_path", f"((word_{word}[None, :] >> bit.to(tl.int64)[:, None]) & 1) != 0")
        w.let("c", f"c + tl.sum(tl.where(on_path, {step}[:, None], 0.0), axis=0)")
        for name in saved:
            w.let(name, f"own_{name}")
    w.line(f"tl.store(rows + ({plane} * VALUE_HEADS + head) * capacity + row, c, mask=inside)")


__all__ = ["emit_prepare", "needs_prepare", "planes", "scalar_source", "Per"]
