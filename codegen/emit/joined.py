"""Several kinds of program in one launch, some of which wait for others.

The joined schedule: the first programs compute the factors of a head each, the others read the
state meanwhile and wait for the factors of theirs (see `boleir.codegen.emit.signals`): one launch,
and no head waits for another. Where more programs than run at the same time, the factors of some
heads come first and those of one more follow the value tiles of each: factors mostly wait for their
own products, value tiles for memory, and side by side they wait together.

What a layer prepares, convolutions above all, can be the work of the very first programs, also of a
fused schedule; only what was prepared for its own request does a program wait for.
"""

from __future__ import annotations

from dataclasses import replace

from boleir.codegen.emit.context import Context
from boleir.codegen.emit.key_stages import emit_head_factors
from boleir.codegen.emit.prepare import emit_prepare, preparing
from boleir.codegen.emit.signals import tiles_of_system
from boleir.codegen.emit.values import emit_values
from boleir.codegen.emit.verify import emit_verify
from boleir.codegen.emit.writer import EmittedKernel, Writer

DOC = {
    (False, True): "Factors of the heads by the first programs; the others take a value tile each.",
    (True, False): "The first programs prepare; the others take a value tile each.",
    (True, True): "The first programs prepare, the next compute the factors of a head each; the "
    "others take a value tile each.",
}
"""By whether programs prepare, and whether they compute factors."""


def emit_joined(context: Context, *, pdl: bool) -> EmittedKernel:
    """Programs that prepare, if they belong to this launch; one per request and head, if factors
    do; then one per value tile."""
    schedule = context.schedule
    context = replace(context, schedule=replace(schedule, factor_warps=schedule.warps))
    first, folds = context.prepares_first, schedule.folds and not context.leaves_rows
    overlapped = context.spread_walks or schedule.prepare == "overlapped"
    apart = pdl and overlapped and not first
    parts = [emit_prepare(context).part("one_preparation")] if first else []
    parts += [emit_head_factors(context, pdl=apart).part("one_system")] if folds else []
    tile = emit_values(context, pdl=apart) if schedule.folds else emit_verify(context)
    parts.append(tile.part("one_tile"))
    w = Writer(context.reserved)
    if pdl and not apart:
        w.line("tl.extra.cuda.gdc_wait()")
        w.line("tl.extra.cuda.gdc_launch_dependents()")
    w.let("program", "tl.program_id(0)")
    if first:
        _prepare_first(context, w, parts)
    else:
        w.let("systems", f"tl.num_programs(0) // (1 + {tiles_of_system(context)})")
        _systems_and_tiles(context, w, "program", parts)
    tiles = context.value_tiles * context.shapes.value_heads
    programs = tiles + (context.systems if folds else 0)
    programs += preparing(context) if first else 0
    kernel = w.kernel(
        "verify",
        DOC[first, folds],
        (f"{programs} * batch", "1", "1"),
        warps=schedule.warps,
        stages=schedule.stages,
        registers=schedule.registers,
        pdl=pdl,
    )
    return replace(kernel, text="\n\n".join(part.text for part in (*parts, kernel)))


def _prepare_first(context: Context, w: Writer, parts: list[EmittedKernel]) -> None:
    """Of `parts` the first prepares, and its programs come before those of the others."""
    preparation, *others = parts
    tiles, heads = tiles_of_system(context), context.system_heads
    each = tiles if len(others) == 1 else f"(1 + {tiles})"
    w.let("requests", f"tl.num_programs(0) // (PREPARING + {heads} * {each})")
    w.let("ready", "requests * PREPARING")
    with w.block("if program < ready:"):
        w.line(_call(w, preparation, "program"))
    with w.block("else:"):
        if len(others) == 1:
            w.line(_call(w, others[0], "program - ready"))
        else:
            w.let("later", "program - ready")
            w.let("systems", f"requests * {heads}")
            _systems_and_tiles(context, w, "later", others)


def _systems_and_tiles(
    context: Context, w: Writer, program: str, parts: list[EmittedKernel]
) -> None:
    """The factors of a head, or a value tile: the two `parts`."""
    factors, values = parts
    if context.schedule.lead:
        _take_turns(context, w, program)
        with w.block("if is_system:"):
            w.line(_call(w, factors, "system"))
        with w.block("else:"):
            w.line(_call(w, values, "tile"))
    else:
        with w.block(f"if {program} < systems:"):
            w.line(_call(w, factors, program))
        with w.block("else:"):
            w.line(_call(w, values, f"{program} - systems"))


def _take_turns(context: Context, w: Writer, program: str) -> None:
    """Which system or which value tile is the program's: those of a system come after it."""
    tiles = tiles_of_system(context)
    w.comment("some systems first, then the tiles of a head and one more system, the other tiles")
    w.let("ahead", f"tl.minimum(systems, {context.schedule.lead})")
    w.let("behind", f"tl.maximum({program} - ahead, 0)")
    w.let("turn", f"behind // (1 + {tiles})")
    w.let("place", f"behind % (1 + {tiles})")
    w.let("shared", "turn < systems - ahead")
    w.let("is_system", f"({program} < ahead) | (shared & (place == {tiles}))")
    w.let("system", f"tl.where({program} < ahead, {program}, ahead + turn)")
    w.let("tile", "behind - tl.minimum(turn, systems - ahead)")


def _call(w: Writer, part: EmittedKernel, program: str) -> str:
    """A call of one of the parts, whose first argument is its program's number."""
    (first, _), *others = part.arguments
    assert first == "program"
    return f"{part.name}({', '.join([program, *(w.arg(*argument) for argument in others)])})"
