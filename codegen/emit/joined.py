"""The joined schedule: factors and value tiles in one launch.

The first programs compute the factors of a head each, the others read the state meanwhile and wait
for the factors of theirs (see `boleir.codegen.emit.signals`): one launch, and no head waits for
another. Where more programs than run at the same time, the factors of some heads come first and
those of one more follow the value tiles of each: factors mostly wait for their own products, value
tiles for memory, and side by side they wait together.
"""

from __future__ import annotations

from dataclasses import replace

from boleir.codegen.emit.context import Context
from boleir.codegen.emit.key_stages import emit_head_factors
from boleir.codegen.emit.values import emit_values
from boleir.codegen.emit.writer import EmittedKernel, Writer

DOC = "Factors of the heads by the first programs; the others take a value tile each."


def emit_joined(context: Context, *, pdl: bool) -> EmittedKernel:
    """One program per request and head, then one per value tile."""
    schedule = context.schedule
    context = replace(context, schedule=replace(schedule, factor_warps=schedule.warps))
    factors = emit_head_factors(context, pdl=False).part("one_system")
    values = emit_values(context, pdl=False).part("one_tile")
    w = Writer(context.reserved)
    if pdl:
        w.line("tl.extra.cuda.gdc_wait()")
        w.line("tl.extra.cuda.gdc_launch_dependents()")
    w.let("program", "tl.program_id(0)")
    w.let("systems", "tl.num_programs(0) // (1 + VALUE_TILES)")
    if schedule.lead:
        _take_turns(w, schedule.lead)
        with w.block("if is_system:"):
            w.line(_call(w, factors, "system"))
        with w.block("else:"):
            w.line(_call(w, values, "tile"))
    else:
        with w.block("if program < systems:"):
            w.line(_call(w, factors, "program"))
        with w.block("else:"):
            w.line(_call(w, values, "program - systems"))
    kernel = w.kernel(
        "verify",
        DOC,
        (f"{context.shapes.value_heads * (1 + context.value_tiles)} * batch", "1", "1"),
        warps=schedule.warps,
        stages=schedule.stages,
        registers=schedule.registers,
        pdl=pdl,
    )
    return replace(kernel, text="\n\n".join((factors.text, values.text, kernel.text)))


def _take_turns(w: Writer, lead: int) -> None:
    """Which system or which value tile is the program's: those of a head come after its system."""
    w.comment("some systems first, then the tiles of a head and one more system, the other tiles")
    w.let("ahead", f"tl.minimum(systems, {lead})")
    w.let("behind", "tl.maximum(program - ahead, 0)")
    w.let("turn", "behind // (1 + VALUE_TILES)")
    w.let("place", "behind % (1 + VALUE_TILES)")
    w.let("shared", "turn < systems - ahead")
    w.let("is_system", "(program < ahead) | (shared & (place == VALUE_TILES))")
    w.let("system", "tl.where(program < ahead, program, ahead + turn)")
    w.let("tile", "behind - tl.minimum(turn, systems - ahead)")


def _call(w: Writer, part: EmittedKernel, program: str) -> str:
    """A call of one of the two parts, whose first argument is its program's number."""
    (first, _), *others = part.arguments
    assert first == "program"
    return f"{part.name}({', '.join([program, *(w.arg(*argument) for argument in others)])})"
