"""Which values an implementation keeps between its stages, where digits may be lost.

Kernels store convolved inputs in the format of the activations, as engines do. To judge what comes
after, the oracle starts from the very values that were stored.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from boleir.functions import FUNCTIONS
from boleir.ir import Call, Conv, Expr, Input, Kind, Recurrence, walk

if TYPE_CHECKING:
    from boleir.derive.normal_form import NormalForm


def stored_expressions(recurrence: Recurrence) -> dict[str, Expr]:
    """For every convolved input, by name: its convolution with the functions that follow wherever
    it is used."""
    from boleir.derive.derive import derive

    tops = convolved_parts(derive(recurrence).normal)
    nodes = [x for x in walk(recurrence.update, *recurrence.outputs) if isinstance(x, Conv)]
    return {str(x.arg.name): tops[x.key] for x in nodes if isinstance(x.arg, Input)}


def convolved_parts(form: NormalForm) -> dict[int, Expr]:
    """What is stored of each convolution, by its key: with the elementwise functions above it that
    all its uses share, in the recurrence as written and in its normal form."""
    recurrence = form.recurrence
    roots = [recurrence.update, *recurrence.outputs, *_parts(form)]
    users: dict[int, dict[int, Expr | None]] = {}
    for root in roots:
        users.setdefault(root.key, {})[-1] = None
    nodes = list(walk(*roots))
    for node in nodes:
        for child in node.children:
            users.setdefault(child.key, {})[node.key] = node
    found: dict[int, Expr] = {}
    for node in nodes:
        if isinstance(node, Conv):
            top: Expr = node
            while (above := _only_function(users[top.key])) is not None:
                top = above
            found[node.key] = top
    return found


def _only_function(users: dict[int, Expr | None]) -> Expr | None:
    """The one user, if it is an elementwise function."""
    if len(users) != 1:
        return None
    (user,) = users.values()
    return user if isinstance(user, Call) and FUNCTIONS[user.fn].elementwise else None


def _parts(form: NormalForm) -> list[Expr]:
    """All expressions that kernels are made of."""
    parts: list[Expr | None] = [form.log_decay, *(x.query.vector for x in form.readouts)]
    if form.decay.kind is not Kind.HEAD:
        parts.append(form.decay)  # channels take the decay itself, heads its logarithm alone
    for readout in form.readouts:
        parts += [*readout.pairs, *readout.writes, readout.direct, readout.gain]
    for pair in form.pairs:
        parts += [pair.write, pair.erase.vector, pair.target, pair.gain, *pair.coupling]
    for write in form.writes:
        parts += [write.key, write.value]
    return [part for part in parts if part is not None]
