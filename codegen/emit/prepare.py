"""The prepare kernel: what every later kernel of the layer starts from.

One launch, two kinds of program. *Convolution* programs take one head of one convolved input and
one block of nodes: each node reads its nearest ancestors and, where its path ends, the committed
window; activations follow, and row scalars that depend on that input alone (its norm). *Scalar*
programs compute the other row scalars: those of vectors for one head and one block of nodes, the
others, and the log-decay summed along each path, for all nodes of a request.
"""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace

from boleir.codegen.emit.context import Context
from boleir.codegen.emit.convolution import convolved_alike, emit_convolution
from boleir.codegen.emit.handover import first_handed_plane, handed_planes
from boleir.codegen.emit.key_rows import emit_row_walks
from boleir.codegen.emit.key_spread import emit_spread_walks, spread_programs
from boleir.codegen.emit.row_scalars import ScalarGroup, emit_row_scalars, scalar_groups
from boleir.codegen.emit.shares import Share
from boleir.codegen.emit.signals import announce_prepared
from boleir.codegen.emit.tiles import Tiles
from boleir.codegen.emit.writer import EmittedKernel, Writer
from boleir.codegen.schedule import has_rows, padded

CONVOLVING = {16: 80, 32: 128}
"""Registers per thread that convolutions of so many entries get along with, of 16-bit inputs with
up to four taps: 24 warps share a multiprocessor then, or 16."""


def needs_prepare(context: Context) -> bool:
    """Whether there is anything to prepare."""
    plan = context.plan
    rows = context.schedule.gates == "prepare" and has_rows(plan)
    return bool(plan.mixed) or rows or context.spread_walks


def planes(context: Context) -> int:
    """All planes of the row buffer, those included that the factors kernel hands to the value
    kernel."""
    handed = handed_planes(context) if context.schedule.folds else 0
    return first_handed_plane(context) + handed


def emit_prepare(context: Context, *, pdl: bool = False) -> EmittedKernel:
    """The prepare kernel."""
    if context.leaves_rows:
        return emit_row_walks(context)
    if context.spread_walks:
        return emit_spread_walks(context, pdl=pdl)
    prepared = context.schedule.gates == "prepare"
    w = Writer(context.reserved)
    groups = _groups(context)
    scalar, convolved, total = _shares(context, groups)
    _decode(context, w, total, pdl)
    Tiles(context, w).node_range()
    for group, share in zip(groups, scalar, strict=True):
        with w.block(f"if {share.test}:") if total > share.end - share.first else nullcontext():
            emit_row_scalars(
                _with_block(context, share.nodes), w, group, share, context.path_planes
            )
    for inputs, share in zip(convolved_alike(context), convolved, strict=True):
        with w.block(f"if {share.test}:"):
            emit_convolution(context, w, inputs, share, prepared)
    if context.prepares_first:
        announce_prepared(w)
    return w.kernel(
        "prepare",
        _doc(context, bool(groups)),
        (f"{total} * batch", "1", "1"),
        warps=_warps(context),
        pdl=pdl,
        registers=_registers(context),
    )


def preparing(context: Context) -> int:
    """Programs that prepare one request."""
    if context.spread_walks:
        return spread_programs(context)
    return _shares(context, _groups(context))[2]


def _groups(context: Context) -> list[ScalarGroup]:
    """Groups of row scalars that are prepared."""
    return scalar_groups(context.plan) if context.schedule.gates == "prepare" else []


def _shares(context: Context, groups: list[ScalarGroup]) -> tuple[list[Share], list[Share], int]:
    """The programs of each group of row scalars and of each convolved input, and their number.

    What takes longest, sums along paths, begins first.
    """
    shapes, end = context.shapes, 0
    nodes = context.schedule.prepare_nodes
    scalar, convolved = [], []
    for group in groups:
        scalar.append(group.share(end, shapes, nodes))
        end = scalar[-1].end
    for inputs in convolved_alike(context):
        convolved.append(Share(end, sum(inputs.units), shapes.max_nodes, nodes))
        end = convolved[-1].end
    return scalar, convolved, end


def _warps(context: Context) -> int:
    """Enough threads for the channels of a head: each takes a few of them for several nodes."""
    return context.schedule.prepare_warps or (8 if _widest(context) > 128 else 4)


def _widest(context: Context) -> int:
    """Most channels of a head that is convolved."""
    widths = [context.shapes.width(m.source.kind) for m in context.plan.mixed]
    return max(widths, default=0)


def _registers(context: Context) -> int:
    """A cap where the convolution of as many entries as a thread has is known to get along with
    it. That of more nodes than 16 is left to schedules that say how many warps there are."""
    schedule = context.schedule
    if context.dtype == "fp32" or not 1 < context.plan.conv_width <= 4:
        return 0
    if not schedule.prepare_warps:
        return CONVOLVING[16] if schedule.prepare_nodes == 16 else 0
    entries = schedule.prepare_nodes * padded(_widest(context)) // (32 * schedule.prepare_warps)
    return next((cap for most, cap in CONVOLVING.items() if entries <= most), 0)


def _doc(context: Context, with_rows: bool) -> str:
    parts = ["convolutions along the paths"] * bool(context.plan.mixed)
    parts += ["norms, gates and their sums along the paths"] * with_rows
    return f"Before the tree is solved: {', '.join(parts)}."


def _with_block(context: Context, size: int) -> Context:
    schedule = replace(context.schedule, node_block=size, gates="inline", orientation="values")
    return Context(context.plan, context.shapes, schedule)


def _decode(context: Context, w: Writer, total: int, pdl: bool) -> None:
    """Which request a program works on, and which of its tasks it has."""
    if context.prepares_first:
        w.arg("program", "i32")
    else:
        w.let("program", "tl.program_id(0)")
    w.let("task", f"program % {total}")
    w.let("request", f"program // {total}")
    if pdl:
        w.line("tl.extra.cuda.gdc_wait()")
        w.comment("after the wait: a kernel that starts early knows that all before this is done")
        w.line("tl.extra.cuda.gdc_launch_dependents()")


__all__ = ["emit_prepare", "needs_prepare", "planes", "preparing"]
