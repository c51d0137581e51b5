"""Run in child processes under Triton's interpreter: programs that prepare for others of their
launch."""

from __future__ import annotations

from typing import Any

import torch

from boleir.check.inputs import Shape
from boleir.codegen import pipeline
from boleir.runtime.workspace import Workspace
from tests.runtime.kernel_harness import Batch, Harness, bits, poison

TREES = ((-1, 0, 0, 1), (), (-1, 0, 1, 2, 2))
WAITING = "        pass\n"
"""What a program does while what it waits for is not there."""


class Early(Exception):
    """A program has found that it must wait, which under the interpreter it would do for ever."""


def _impatient(*arguments: Any) -> str:
    """The text of a module whose programs raise instead of waiting."""
    text = _ORIGINAL(*arguments)
    assert WAITING in text
    return text.replace(WAITING, f"        raise {Early.__name__}\n")


_ORIGINAL = pipeline.module_text


def launches(schedules: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """For each schedule what the counters are after some launches, and which launches would wait
    when one program less of a request had prepared."""
    pipeline.module_text = _impatient  # type: ignore[assignment]
    return [_launches(schedule) for schedule in schedules]


def _launches(schedule: dict[str, Any]) -> dict[str, Any]:
    made = Harness("gdn", Shape(1, 2, 16, 32), max_nodes=5, max_depth=3, schedule=schedule)
    batch = made.batch(TREES, [2, 1, 0])
    space = made.kernel.workspace(4, 20)
    (counters,) = (x for x in space.layer(0).tensors if x.dtype == torch.int32)
    report: dict[str, Any] = {"kernels": made.kernel.interface.verifying, "counters": []}
    first = None
    for _ in range(3):
        poison(space.layer(0).tensors)
        out = bits(made.verify(batch, workspace=space)[0].clone())
        first = out if first is None else first
        assert torch.equal(out, first)
        report["counters"].append(counters.tolist())
    report["error"] = made.output_error(batch, batch.out.view)
    report["waits"] = [_waits(made, batch, space, counters, at) for at in range(3)]
    return report


def _waits(
    made: Harness, batch: Batch, space: Workspace, counters: torch.Tensor, request: int
) -> bool:
    """Whether a launch waits where one program of a request has not prepared."""
    before = counters.clone()
    counters[request, 0] -= 1
    try:
        made.verify(batch, workspace=space)
    except Exception as stopped:
        if Early.__name__ not in repr(stopped):
            raise
        return True
    finally:
        counters.copy_(before)
    return False
