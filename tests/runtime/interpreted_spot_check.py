"""Called where Triton interprets kernels: errors of small kernels."""

from __future__ import annotations

import boleir
from boleir.runtime.spot_check import errors_of


def errors(names: list[str]) -> list[tuple[float, float]]:
    """Those of the outputs and of the state, for each recurrence."""
    found = []
    for name in names:
        kernel = boleir.compile(
            name, key_heads=1, value_heads=2, d_k=32, d_v=24, max_nodes=9, max_depth=4
        )
        found.append(errors_of(kernel, boleir.load(name)))
    return found
