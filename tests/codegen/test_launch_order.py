"""Launches that overlap: what a kernel may touch before it waits for the one before it.

Under programmatic dependent launch a kernel begins when every program of its predecessor has said
so (`gdc_launch_dependents`) or ended, and sees what was written before only after `gdc_wait`. So

- the first kernel of a layer touches no memory before its wait: what runs before it is not ours;
- a kernel says that its successor may begin only after its own wait: whoever begins then knows
  that all but its direct predecessor has ended;
- before its wait, a kernel reads only what its direct predecessor does not write, and writes
  nothing: buffers that layers share may still be read by the layer before. Where commits are
  deferred, a value tile writes its rows of the state, which nobody shares;
- every program waits: the wait stands in no branch;
- commits overlap nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

import boleir
from boleir.codegen.emit.writer import EmittedKernel
from boleir.codegen.pipeline import Lowered, lower
from boleir.codegen.request import Shapes
from boleir.codegen.schedule import Schedule
from boleir.codegen.targets import target
from boleir.errors import ScheduleError

WAIT = "    tl.extra.cuda.gdc_wait()"
RELEASE = "    tl.extra.cuda.gdc_launch_dependents()"
SCRATCH = {"mixed", "passing", "rows", "folded", "vectors", "unknowns"}
SCHEDULES = {
    "fused": Schedule(b_v=16, b_k=32, node_block=16),
    "fused inline": Schedule(b_v=16, b_k=32, node_block=16, gates="inline"),
    "stored": Schedule(b_v=16, b_k=32, node_block=16, commit="factors"),
    "split": Schedule(b_v=16, b_k=32, node_block=16, fusion="split", solver="inverse"),
    "split early": Schedule(
        b_v=16, b_k=32, node_block=16, fusion="split", solver="inverse", prefetch=True
    ),
    "fused deferred": Schedule(b_v=16, b_k=32, node_block=16, commit="deferred"),
    "split deferred": Schedule(
        b_v=16, b_k=32, node_block=16, fusion="split", solver="inverse", commit="deferred"
    ),
    "split deferred in chunks": Schedule(
        b_v=16, b_k=16, node_block=16, fusion="split", solver="inverse", commit="deferred"
    ),
    "split inline": Schedule(
        b_v=16, b_k=32, node_block=16, fusion="split", solver="inverse", gates="inline"
    ),
}
NAMES = ("gdn", "gated_delta_rule", "kda", "gla", "iplr", "mamba2", "linear_attention")


def _variants() -> Iterator[tuple[str, Lowered]]:
    for name in NAMES:
        for label, schedule in SCHEDULES.items():
            for nodes in (16, 100):
                shapes = Shapes(1, 2, 32, 32, nodes, 5)
                try:
                    made = lower(
                        boleir.load(name), shapes, schedule=schedule, target=target("sm_90")
                    )
                except ScheduleError:
                    continue
                yield f"{name} {label} {nodes}", made


@pytest.fixture(scope="module")
def variants() -> dict[str, Lowered]:
    return dict(_variants())


def _early(text: str) -> str:
    """What stands before the wait."""
    return text.partition(WAIT)[0].rpartition("@triton.jit")[2]


def _touched(part: str, kinds: dict[str, str]) -> set[str]:
    """Pointer arguments that a part of a kernel names after its docstring."""
    body = part.split('"""', 2)[-1]
    pointers = {name for name, kind in kinds.items() if kind.startswith("*")}
    return {name for name in pointers if re.search(rf"\b{name}\b", body)}


def _divided(made: Lowered) -> tuple[list[EmittedKernel], list[EmittedKernel]]:
    """The kernels of a layer, and those of commits."""
    at = [kernel.name for kernel in made.kernels].index("commit")
    return list(made.kernels[:at]), list(made.kernels[at:])


def test_there_is_something_to_look_at(variants: dict[str, Lowered]) -> None:
    kinds = {tuple(kernel.name for kernel in made.kernels) for made in variants.values()}
    assert kinds >= {
        ("prepare", "verify", "commit"),
        ("verify", "commit"),
        ("prepare", "factors", "values", "commit"),
        ("factors", "values", "commit"),
    }


def test_the_first_kernel_of_a_layer_touches_nothing_before_it_waits(
    variants: dict[str, Lowered],
) -> None:
    for label, made in variants.items():
        first = made.kernels[0]
        if not first.pdl:
            assert "gdc" not in first.text
            continue
        assert not _touched(_early(first.text), dict(first.arguments)), label


def test_every_program_waits_once_and_before_it_releases(variants: dict[str, Lowered]) -> None:
    for label, made in variants.items():
        layer, rest = _divided(made)
        for commit in rest:
            assert "gdc" not in commit.text and not commit.pdl, label
        for at, kernel in enumerate(layer):
            assert kernel.pdl, label
            lines = kernel.text.splitlines()
            assert lines.count(WAIT) == 1 and kernel.text.count("gdc_wait") == 1, label
            last = at == len(layer) - 1
            assert lines.count(RELEASE) == kernel.text.count("gdc_launch") == (not last), label
            if not last:
                assert lines.index(WAIT) < lines.index(RELEASE), label


def test_what_is_read_early_is_not_written_by_the_kernel_before(
    variants: dict[str, Lowered],
) -> None:
    for label, made in variants.items():
        for kernel in _divided(made)[0]:
            early = _early(kernel.text)
            for stored in re.findall(r"tl\.store\((\w+)", early):
                assert stored in ("tile_at", "waiting"), (label, kernel.name)
                assert made.schedule.commit == "deferred", (label, kernel.name)
            written = SCRATCH | {"out"}
            if kernel.name == "values":  # of the prepare kernel, which the factors kernel awaited
                written -= {"mixed", "passing"}
            assert not _touched(early, dict(kernel.arguments)) & written, (label, kernel.name)
