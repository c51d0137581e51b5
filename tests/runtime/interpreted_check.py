"""Called where Triton interprets kernels: what `boleir.check` says of them."""

from __future__ import annotations

from typing import Any

import boleir
from boleir.check.check import check
from boleir.check.inputs import Case
from boleir.ir import Recurrence
from boleir.runtime.check_kernel import kernels_here

TAKEN = """
recurrence taken(rows: key, k: key, v: value)
  S = S + k v^T
  out S^T rows
"""
"""An input is called like a buffer of the kernels."""


def checked() -> dict[str, Any]:
    """The findings for gdn, and the reason why there are no kernels for `TAKEN`."""
    return {
        "gdn": _findings(boleir.load("gdn")),
        "none": kernels_here(boleir.parse(TAKEN)).reason,
    }


def _findings(recurrence: Recurrence) -> list[tuple[str, bool, float]]:
    here = kernels_here(recurrence)
    over = [
        Case("roots", "cosine", log_decay=-0.03),
        Case("chain", log_decay=-100.0),
        Case("roots", "identical", 1.0, -100.0),  # here an output nearly vanishes
    ]
    report = check(
        recurrence,
        trees=1,
        over=over,
        kernels=here.kernels,
        kernel_shape=here.shape,
        kernel_nodes=here.nodes,
    )
    return [(str(f.subject), f.passed, f.worst) for f in report.findings]
