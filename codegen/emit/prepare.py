"""The prepare kernel: what every later kernel of the layer starts from.

One launch, two kinds of program. *Convolution* programs take one head of one convolved input and
one block of nodes: each node reads its nearest ancestors and, where its path ends, the committed
window; activations follow, and row scalars that depend on that input alone (its norm). *Scalar*
programs take one value head and one block of nodes and compute the other row scalars and the
log-decay summed along each path.
"""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass, replace

from boleir.codegen.emit.context import LOG2_E, Context, place, plane_of
from boleir.codegen.emit.convolution import emit_convolution
from boleir.codegen.emit.handover import handed_planes
from boleir.codegen.emit.tiles import Tiles, bounded_below, eighths
from boleir.codegen.emit.writer import EmittedKernel, Writer
from boleir.codegen.plan import Scalar
from boleir.codegen.schedule import padded
from boleir.ir import Kind

NODES = 16
"""Nodes per program."""


def needs_prepare(context: Context) -> bool:
    """Whether there is anything to prepare."""
    plan = context.plan
    scalars = bool(plan.scalars) or plan.log_decay is not None
    return bool(plan.mixed) or (context.schedule.gates == "prepare" and scalars)


def prepared_planes(context: Context) -> int:
    """Planes of the row buffer that hold row scalars: one per scalar, then c and g."""
    plan = context.plan
    return len(plan.scalars) + (3 if plan.log_decay is not None else 0)


def planes(context: Context) -> int:
    """All planes of the row buffer, those included that the factors kernel hands to the value
    kernel."""
    handed = handed_planes(context) if context.schedule.folds else 0
    return first_handed_plane(context) + handed


def first_handed_plane(context: Context) -> int:
    """The first plane that the factors kernel hands to the value kernel: behind row scalars and
    what walks keep."""
    return prepared_planes(context) + len(context.walk_planes)


def emit_prepare(context: Context, *, pdl: bool = False) -> EmittedKernel:
    """The prepare kernel."""
    size = min(NODES, padded(context.shapes.max_nodes))
    inner = _with_block(context, size)
    prepared = context.schedule.gates == "prepare"
    plan, w = context.plan, Writer(context.reserved)
    heads = [context.shapes.heads(m.item.kind) for m in plan.mixed]
    scalars = [s for s in plan.scalars if plan.source(s) is None]
    with_rows = prepared and (bool(scalars) or plan.log_decay is not None)
    total = sum(heads) + (context.shapes.value_heads if with_rows else 0)
    _decode(w, total, inner.blocks, pdl)
    Tiles(inner, w).node_range()
    _nodes(w, size, inner.blocks)
    first = 0
    for m, number in zip(plan.mixed, heads, strict=True):
        last = f"unit < {first + number}"
        with w.block(f"if (unit >= {first}) & ({last}):" if first else f"if {last}:"):
            emit_convolution(inner, w, m, first, prepared)
        first += number
    if with_rows:
        with w.block(f"if unit >= {first}:") if first else nullcontext():
            w.comment("row scalars of one value head")
            w.let("head", f"unit - {first}" if first else "unit")
            _scalars(inner, w, scalars)
    return w.kernel(
        "prepare",
        _doc(context, with_rows),
        (f"{total * inner.blocks} * batch", "1", "1"),
        warps=8 if plan.mixed else 4,  # convolutions keep many rows in flight
        pdl=pdl,
    )


def _doc(context: Context, with_rows: bool) -> str:
    parts = ["convolutions along the paths"] * bool(context.plan.mixed)
    parts += ["norms, gates and their sums along the paths"] * with_rows
    return f"Before the tree is solved: {', '.join(parts)}."


def _with_block(context: Context, size: int) -> Context:
    schedule = replace(context.schedule, node_block=size, gates="inline", orientation="values")
    return Context(context.plan, context.shapes, schedule)


def _decode(w: Writer, units: int, node_blocks: int, pdl: bool) -> None:
    """Which head, nodes and request a program works on."""
    w.let("program", "tl.program_id(0)")
    w.let("unit", f"program % {units}")
    if node_blocks > 1:
        w.let("node_block", f"program // {units} % {node_blocks}")
    w.let("request", f"program // {units * node_blocks}")
    if pdl:
        w.line("tl.extra.cuda.gdc_wait()")
        w.comment("after the wait: a kernel that starts early knows that all before this is done")
        w.line("tl.extra.cuda.gdc_launch_dependents()")


def _nodes(w: Writer, size: int, node_blocks: int) -> None:
    """The nodes of a program, and their rows in the buffers."""
    first = f"node_block * {size} + " if node_blocks > 1 else ""
    w.let("node", f"{first}tl.arange(0, {size})")
    w.let("inside", "node < count")
    w.let("row", "first + node")


def _scalars(context: Context, w: Writer, scalars: list[Scalar]) -> None:
    """Row scalars of one value head for one block of nodes; c needs the log-decays of all."""
    plan, size = context.plan, context.schedule.node_block
    w.let("key_head", "head // GROUP" if context.shapes.group > 1 else "head")
    alone = replace(context.shapes, max_nodes=size, max_depth=0, parents=None)
    own = Tiles(_PathContext(plan, alone, context.schedule), w)
    own.channels()
    if plan.log_decay is not None:
        words = context.shapes.words
        for word in range(words):
            at = f"row * {words} + {word}" if words > 1 else "row"
            load = f"tl.load({w.arg('ancestors', '*i64')} + {at}, mask=inside, other=0)"
            w.let(f"word_{word}", load)
    own.prefetch(frozenset({Kind.KEY, Kind.HEAD}))
    capacity, rows = w.arg("capacity", "i64"), w.arg("rows", "*fp32")
    for scalar in scalars:
        value = own.row_scalar(scalar, 0)
        head = "key_head" if scalar.per_key_head else "head"
        plane = plane_of(plan.scalars.index(scalar), head)
        w.line(f"tl.store({rows} + {plane} * {capacity} + row, {value}, mask=inside)")
    if plan.log_decay is not None:
        _path_sums(context, w, own, len(plan.scalars))


def _path_sums(context: Context, w: Writer, own: Tiles, plane: int) -> None:
    """g of the nodes, and its sums over the path, one ancestor word after the other."""
    plan, size = context.plan, context.schedule.node_block
    assert plan.log_decay is not None
    capacity, rows = w.arg("capacity", "i64"), w.arg("rows", "*fp32")
    w.origin("log-decay g, and c its sum over the path", place(plan.log_decay, plan.form.decay))
    bounded_below(w, "g", f"{own.per_node(plan.log_decay, 0)} * {LOG2_E}")
    for name in ("c", "c_rest"):
        w.let(name, f"tl.zeros([{size}], tl.float32)")
    for word in range(context.shapes.words):
        nodes = min(64, padded(context.shapes.max_nodes - 64 * word))
        bit = w.let("bit" if word else "node_path", f"tl.arange(0, {nodes})")
        if word:
            w.let("node_path", f"{64 * word} + bit")
        w.let("inside_path", "node_path < count")
        bounded_below(w, "g_path", f"{own.per_node(plan.log_decay, 1 + word)} * {LOG2_E}")
        w.let("g_eighths", eighths("g_path"))
        w.let("g_rest", "g_path - g_eighths")
        w.let("on_path", f"((word_{word}[:, None] >> {bit}.to(tl.int64)[None, :]) & 1) != 0")
        for name, step in (("c", "g_eighths"), ("c_rest", "g_rest")):
            w.let(name, f"{name} + tl.sum(tl.where(on_path, {step}[None, :], 0.0), axis=1)")
    for number, name in enumerate(("c", "c_rest", "g")):
        at = plane_of(plane + number, "head")
        w.line(f"tl.store({rows} + {at} * {capacity} + row, {name}, mask=inside)")


@dataclass(frozen=True, slots=True)
class _PathContext(Context):
    """Names for two groups of nodes: those of the program, and those on their paths."""

    def block(self, stem: str, number: int) -> str:
        """`stem`, marked when it belongs to the nodes on the path."""
        return f"{stem}_path" if number else stem


__all__ = ["emit_prepare", "first_handed_plane", "needs_prepare", "planes"]
