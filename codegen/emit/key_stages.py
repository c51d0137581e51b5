"""Which kernels the split and the joined schedule consist of."""

from __future__ import annotations

from boleir.codegen.emit.context import Context
from boleir.codegen.emit.factors import emit_factors
from boleir.codegen.emit.head_groups import emit_group_factors
from boleir.codegen.emit.key_factors import emit_key_factors
from boleir.codegen.emit.key_summed import emit_summed_factors
from boleir.codegen.emit.writer import EmittedKernel


def emit_head_factors(context: Context, *, pdl: bool) -> EmittedKernel:
    """What all value tiles of a head share."""
    if context.key_sums:
        return emit_summed_factors(context, pdl=pdl)
    if context.schedule.factor_heads > 1:
        return emit_group_factors(context, pdl=pdl)
    per_key = context.plan.key_decay is not None
    return (emit_key_factors if per_key else emit_factors)(context, pdl=pdl)
