"""The joined schedule: factors and value tiles in one launch.

The first programs compute the factors of a head each, the others read the state meanwhile and wait
for the factors of theirs (see `boleir.codegen.emit.signals`): one launch, and no head waits for
another. For few requests, where all programs run at the same time.
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
    factors = emit_head_factors(context, pdl=False)
    values = emit_values(context, pdl=False)
    w = Writer(context.reserved)
    if pdl:
        w.line("tl.extra.cuda.gdc_wait()")
        w.line("tl.extra.cuda.gdc_launch_dependents()")
    w.let("program", "tl.program_id(0)")
    w.let("systems", "tl.num_programs(0) // (1 + VALUE_TILES)")
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


def _call(w: Writer, part: EmittedKernel, program: str) -> str:
    """A call of one of the two parts, whose first argument is its program's number."""
    (first, _), *others = part.arguments
    assert first == "program"
    return f"{part.name}({', '.join([program, *(w.arg(*argument) for argument in others)])})"
