"""Oracles in numpy: the sequential walk of a tree, and the closed form, in float64 or exactly.

`sequential` follows the recurrence node by node and knows nothing of the derivation; `closed_form`
evaluates the theorem. Their agreement is what `boleir.check` checks, and kernels are compared with
the former. Neither needs torch.
"""

from __future__ import annotations

from boleir.oracle.closed import Solution, closed_form
from boleir.oracle.sequential import Walk, sequential
from boleir.oracle.stored import stored_expressions
from boleir.oracle.values import Exact, Floats, Values, evaluate

__all__ = [
    "Exact",
    "Floats",
    "Solution",
    "Values",
    "Walk",
    "closed_form",
    "evaluate",
    "sequential",
    "stored_expressions",
]
