"""Which values an implementation keeps between its stages, where digits may be lost.

Kernels store convolved inputs in the format of the activations, as engines do. To judge what comes
after, the oracle starts from the very values that were stored.
"""

from __future__ import annotations

from boleir.functions import FUNCTIONS
from boleir.ir import Call, Conv, Expr, Input, Recurrence, walk


def stored_expressions(recurrence: Recurrence) -> dict[str, Expr]:
    """For every convolved input, by name: its convolution with the functions right above it."""
    nodes = list(walk(recurrence.update, recurrence.output))
    above = {
        node.arg.key: node
        for node in nodes
        if isinstance(node, Call) and FUNCTIONS[node.fn].elementwise
    }
    found: dict[str, Expr] = {}
    for node in nodes:
        if isinstance(node, Conv) and isinstance(node.arg, Input):
            top: Expr = node
            while top.key in above:
                top = above[top.key]
            found[str(node.arg.name)] = top
    return found
