"""Run in child processes under Triton's interpreter: each output of a kernel against its walk."""

from __future__ import annotations

from typing import Any

import boleir
from boleir.check.check import KERNEL_LIMIT, node_errors, trust
from boleir.check.inputs import Case, Shape, sample
from boleir.derive.derive import derive
from boleir.oracle import sequential
from boleir.runtime.check_kernel import KernelUnderCheck
from tests.codegen.several_outputs import TEXTS

SHAPE, NODES = Shape(1, 2, 32, 24), 9
SIZES = {"key_heads": 1, "value_heads": 2, "d_k": 32, "d_v": 24, "max_nodes": NODES}


def errors(names: list[str]) -> dict[str, dict[str, Any]]:
    """Worst errors of the nodes of one tree, by output, and of the state after the commit."""
    return {name: _errors(name) for name in names}


def _errors(name: str) -> dict[str, Any]:
    recurrence = boleir.parse(TEXTS[name])
    form = derive(recurrence)
    run = KernelUnderCheck(boleir.compile(recurrence, **SIZES))
    drawn = sample(form, Case("random", "cosine", None, None), SHAPE, nodes=NODES, seed=3)
    found, worst = run(drawn), []
    for number, (one, output) in enumerate(zip((form, *form.more), found.outputs, strict=True)):
        walk = sequential(recurrence.with_output(number), **drawn.arguments)
        shown = node_errors(output, walk.output)
        shown *= trust(one, drawn, walk.output, KERNEL_LIMIT)
        worst.append(float(shown.max()))
    assert found.state is not None
    state = node_errors(found.state[None], walk.states[drawn.accepted][None])
    return {"outputs": worst, "state": float(state[0])}
