"""Key chunks in a loop whose loads run ahead: values, what is emitted, what is refused."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

import boleir
from boleir.codegen.defaults import key_loop
from boleir.codegen.kernel_spec import Job
from boleir.codegen.offline import CompilePool, all_compiled
from boleir.codegen.pipeline import Lowered, lower
from boleir.codegen.request import Shapes
from boleir.codegen.schedule import InvalidSchedule, Schedule
from boleir.codegen.schedule_footprint import footprint
from boleir.codegen.targets import target
from tests.codegen.recurrences import TEXTS

CHILD = "tests.codegen.interpreted_variants"
LIMIT = 2e-5
QWEN = Shapes(16, 32, 128, 128, 64, 8)
LOOP = Schedule(fusion="split", solver="inverse", orientation="nodes", b_k=32, stages=4)
SMALL = Schedule(
    fusion="split", solver="inverse", b_v=16, b_k=16, node_block=16, precision="ieee", stages=3
)
INLINE = replace(SMALL, gates="inline", orientation="nodes")
CASES = {
    "gdn": SMALL,  # convolved keys: Grams after the wait
    "gated_delta_rule": replace(SMALL, stages=2),  # keys as they come: Grams before it
    "comba": replace(INLINE, fusion="joined"),
    "iplr": INLINE,
    "mamba2": replace(SMALL, orientation="nodes"),  # no pair: one vector reads the state
}


def made(name: str, schedule: Schedule, shapes: Shapes = QWEN) -> Lowered:
    recurrence = boleir.parse(TEXTS[name]) if name in TEXTS else boleir.load(name)
    return lower(recurrence, shapes, schedule=schedule, target=target("sm_90"))


def test_loops_agree_with_the_walk(run_interpreted: Callable[..., Any]) -> None:
    cases = [
        {
            # the last of three chunks is half empty
            "name": name, "shape": [1, 2, 40, 24], "nodes": 12, "depth": 4, "seed": 3,
            "schedule": schedule.to_json(),
        }
        for name, schedule in CASES.items()
    ]  # fmt: skip
    for case, report in zip(cases, run_interpreted(f"{CHILD}:variants", cases=cases), strict=True):
        assert "refused" not in report, (case, report)
        assert report["output"] <= LIMIT, (case, report)
        assert report["state"] <= LIMIT, (case, report)


def test_state_and_keys_are_loaded_in_the_loop_alone() -> None:
    for name in ("gdn", "gated_delta_rule"):
        lowered = made(name, LOOP)
        for kernel in (lowered.kernel("factors"), lowered.kernel("values")):
            before, loop = kernel.text.split("for chunk in tl.range(0, D_K, B_K, num_stages=4):")
            body = loop[: loop.index("\n\n")]
            assert "k_tile = tl.load(" in body
            assert "q_tile = tl.load(" in body
            assert ("state_tile = tl.load(" in body) == (kernel.name == "values")
            assert "[None, :], mask=inside[:, None]" not in before.replace("value[None, :]", "")


def test_loads_of_the_loop_are_asynchronous(pool: CompilePool) -> None:
    lowered = made("gated_delta_rule", LOOP)
    specs = [spec for spec in lowered.specs() if spec.name in ("factors", "values")]
    compiled = all_compiled(pool.run([Job(lowered.text, x, target("sm_90")) for x in specs]))
    for kernel in compiled:
        assert "cp.async" in kernel.assembly
        assert kernel.spills == 0
        assert kernel.shared <= target("sm_90").shared_per_block
    values = compiled[-1]
    assert values.shared == footprint(LOOP, lowered.plan, QWEN).shared


def test_the_default_loops_where_operands_take_registers(pool: CompilePool) -> None:
    recurrence = boleir.load("gdn")
    for name in ("sm_80", "sm_120"):
        lowered = lower(recurrence, QWEN, target=target(name))
        assert (lowered.schedule.b_k, lowered.schedule.stages) == (32, 2)
    for name in ("sm_90", "sm_100", "gfx942"):
        assert lower(recurrence, QWEN, target=target(name)).schedule.stages == 1
    lowered = lower(recurrence, QWEN, target=target("sm_80"))
    (values,) = (spec for spec in lowered.specs() if spec.name == "verify")
    (compiled,) = all_compiled(pool.run([Job(lowered.text, values, target("sm_80"))]))
    assert (compiled.spills or 0) <= 16


def test_not_everything_can_loop() -> None:
    plan = made("gated_delta_rule", LOOP).plan
    base = replace(LOOP, b_k=128, stages=1)
    assert key_loop(base, plan, QWEN, 4) == LOOP
    assert key_loop(base, plan, replace(QWEN, d_k=64), 4) is None  # two chunks
    assert key_loop(base, plan, replace(QWEN, d_k=32), 2) is None  # one
    assert key_loop(base, plan, replace(QWEN, max_nodes=100), 2) is None
    assert key_loop(replace(base, fusion="fused"), plan, QWEN, 2) is None
    assert key_loop(base, made("kda", replace(base, b_k=32)).plan, QWEN, 2) is None
    assert key_loop(base, made("computed", base).plan, QWEN, 2) is None


@pytest.mark.parametrize(
    ("name", "fields", "message"),
    [
        ("gated_delta_rule", {"b_k": 128, "stages": 2}, "128 key channels are 1 key chunk of 128"),
        ("gated_delta_rule", {"b_k": 64, "stages": 4}, "128 key channels are 2 key chunks of 64"),
        ("gated_delta_rule", {"commit": "deferred"}, "deferred commits advance it"),
        ("kda", {}, "decays per key channel need all channels"),
        ("entangled", {"gates": "inline"}, "vectors of entangled are computed from sums over all"),
    ],
)
def test_loops_without_chunks_are_refused(name: str, fields: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidSchedule, match=message):
        made(name, replace(LOOP, **fields))


def test_loops_that_are_compiled_wrongly_are_refused() -> None:
    values = replace(LOOP, orientation="values")
    with pytest.raises(InvalidSchedule, match="stages 4 with orientation values and 4 warps") as it:
        made("gated_delta_rule", values)
    assert "orientation nodes" in it.value.mend
    made("gated_delta_rule", replace(values, warps=2))
    lower(boleir.load("gated_delta_rule"), QWEN, schedule=values, target=target("sm_80"))
