"""Run in child processes under Triton's interpreter: each output of a kernel against its walk."""

from __future__ import annotations

from typing import Any

import boleir
from boleir.check.check import KERNEL_LIMIT, node_errors, trust
from boleir.check.inputs import Case, Shape, sample
from boleir.codegen.schedule import Schedule
from boleir.derive.derive import derive
from boleir.oracle import sequential
from boleir.runtime.check_kernel import KernelUnderCheck
from tests.codegen.several_outputs import TEXTS

SHAPE = Shape(1, 2, 32, 24)
SIZES = {"key_heads": 1, "value_heads": 2, "d_k": 32, "d_v": 24}


def errors(
    names: list[str], nodes: int = 9, schedule: dict[str, Any] | None = None
) -> dict[str, dict[str, Any]]:
    """Worst errors of the nodes of one tree, by output, and of the state after the commit."""
    return {name: _errors(name, nodes, schedule) for name in names}


def _errors(name: str, nodes: int, schedule: dict[str, Any] | None) -> dict[str, Any]:
    recurrence = boleir.parse(TEXTS[name])
    form = derive(recurrence)
    chosen = None if schedule is None else Schedule(**schedule)
    run = KernelUnderCheck(boleir.compile(recurrence, **SIZES, max_nodes=nodes, schedule=chosen))
    drawn = sample(form, Case("random", "cosine", None, None), SHAPE, nodes=nodes, seed=3)
    found, worst = run(drawn), []
    for number, (one, output) in enumerate(zip((form, *form.more), found.outputs, strict=True)):
        walk = sequential(recurrence.with_output(number), **drawn.arguments)
        shown = node_errors(output, walk.output)
        shown *= trust(one, drawn, walk.output, KERNEL_LIMIT)
        worst.append(float(shown.max()))
    assert found.state is not None
    state = node_errors(found.state[None], walk.states[drawn.accepted][None])
    return {"outputs": worst, "state": float(state[0])}
