"""How far off a node of a random trial may be: random recurrences may be ill-conditioned.

It follows from how much the node's walk moves when all numbers move by the round-off of the
precision plan, and from how far off the walk is when it is rounded after every operation.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

LIMIT = {"ieee": 2e-5, "fp32": 2e-5, "tf32": 2e-3, "bf16": 3e-2}
"""Error that a well-conditioned node may have."""
UNIT = {"ieee": 2.0**-22, "fp32": 2.0**-17, "tf32": 2.0**-11, "bf16": 2.0**-8}
"""How far numbers are moved to see how much a node moves."""
SLACK = 10.0
ROUNDED = 4.0
"""How many times as far off as the walk itself, rounded after every operation, a kernel may be:
what is written and erased again within a token cancels whatever its inputs are, its rounding does
not."""
HIGHEST = {"float32": 1e30, "bfloat16": 1e30, "float16": 2e4}
"""Larger numbers are not compared: the formats of outputs and states end."""
TAME = 1e6
"""States below this are far from an overflow, even where powers of G exceed its inverse."""


def allowed(
    reference: Any,
    moved: Sequence[Any],
    rounded: Sequence[Any],
    dtype: str,
    precision: str,
    more: float = 0.0,
) -> Any:
    """Largest distance from `reference` along its last axis, for numbers stored as `dtype`.

    `moved`: the same of inputs that are slightly off; `rounded`: of these inputs, in float32;
    `more`: a relative error that is allowed besides.
    """
    limit = LIMIT[precision] + torch.finfo(getattr(torch, dtype)).eps + more
    size = np.linalg.norm(reference, axis=-1)
    change = np.max([np.linalg.norm(m - reference, axis=-1) for m in moved], axis=0)
    off = [np.linalg.norm(r - m, axis=-1) for r, m in zip(rounded, moved, strict=True)]
    lost = np.nan_to_num(np.max(off, axis=0), nan=0.0, posinf=0.0)
    fair = np.maximum(
        limit * size + SLACK * change, ROUNDED * lost * UNIT[precision] / UNIT["ieee"]
    )
    tiny = {"float16": 1e-6}.get(dtype, 1e-35)
    return fair + tiny + 1e-10 * limit * np.max(size, initial=0.0)
