"""The table of addresses that one commit of all layers reads: one row per layer."""

from __future__ import annotations

from boleir.codegen.emit.context import Context
from boleir.codegen.emit.writer import Writer

_ELEMENTS = {"bf16": "bfloat16", "fp16": "float16", "fp32": "float32", "i32": "int32"}


def table_columns(context: Context) -> tuple[str, ...]:
    """Names of the pointers in a row of the table."""
    plan = context.plan
    columns = ["state"]
    columns += [x.name for x in plan.tokens if plan.is_mixed(x) is None]
    columns += ["mixed"] if plan.kept_channels else []
    columns += [x.name for x in plan.parameters]
    columns += [m.source.name for m in plan.mixed if m.source.name not in columns]
    columns += ["window"] if plan.mixed else []
    if context.schedule.stores_unknowns and plan.pairs:
        columns.append("unknowns")
    if context.schedule.commit == "deferred":
        columns += ["recorded", "pending"]
    return tuple(columns)


def pointer(context: Context, w: Writer, name: str, dtype: str) -> str:
    """The address of one buffer of the program's layer, as a pointer."""
    known = ("pointer", name)
    if known not in w.memo:
        index = str(table_columns(context).index(name))
        w.memo[known] = w.temp(pointer_at(context, w, index, dtype), f"{name}_at")
    return w.memo[known]


def pointer_at(context: Context, w: Writer, index: str, dtype: str) -> str:
    """The same for a column whose number is given as text."""
    at = f"{w.arg('table', '*i64')} + layer * {len(table_columns(context))} + {index}"
    return f"tl.multiple_of(tl.load({at}).to(tl.pointer_type(tl.{_ELEMENTS[dtype]})), 16)"
