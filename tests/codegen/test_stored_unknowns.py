"""Unknowns that verification stores for the commit in 16 bits: outputs do not see it, committed
states do, as much as is stated."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import boleir
from boleir.codegen.interface import interface_of
from boleir.codegen.pipeline import Lowered, lower
from boleir.codegen.request import Shapes
from boleir.codegen.schedule import STORED_ERROR, Schedule
from boleir.runtime.spot_check import state_limit
from boleir.runtime.tuning.fragments import FRAGMENTS
from tests.codegen.test_head_groups import case

CHILD = "tests.codegen.interpreted_groups"
LIMIT = 2e-5
FUSED = {"fusion": "fused", "solver": "horner", "commit": "factors16"}
CASES = [
    case("gated_delta_rule", [1, 2, 20, 24], **FUSED),
    case(
        "gdn", [1, 2, 16, 16], **{**FUSED, "solver": "levels"}, orientation="nodes", gates="inline"
    ),
    case("two_pairs", [1, 1, 16, 16], **FUSED),
]


def made(**fields: Any) -> Lowered:
    schedule = Schedule(b_v=32, b_k=64, node_block=16, **fields)
    return lower(boleir.load("gdn"), Shapes(2, 4, 64, 64, 16, 7), schedule=schedule)


def test_states_are_off_by_the_rounding_and_outputs_are_not(
    run_interpreted: Callable[..., Any],
) -> None:
    reports = run_interpreted(f"{CHILD}:rounded", cases=CASES)
    for which, report in zip(CASES, reports, strict=True):
        assert "refused" not in report, (which, report)
        assert report["output"] <= LIMIT, (which, report)
        assert STORED_ERROR / 20 < report["state"] <= 2 * STORED_ERROR, (which, report)


@pytest.mark.parametrize(("commit", "bytes_each"), [("factors", 4), ("factors16", 2)])
def test_they_take_half_the_bytes(commit: str, bytes_each: int) -> None:
    lowered = made(commit=commit)
    face = interface_of(lowered)
    assert (face.unknowns, face.unknown_dtype) == (1, {4: "float32", 2: "bfloat16"}[bytes_each])
    kind = dict(lowered.kernel("verify").arguments)["unknowns"]
    assert kind == {4: "*fp32", 2: "*bf16"}[bytes_each]
    assert (
        "tl.bfloat16)" in lowered.kernel("commit").text.split("unknowns_at")[1].split("\n")[0]
    ) == (bytes_each == 2)


def test_the_error_is_allowed_where_it_was_asked_for_alone() -> None:
    for commit, most in (("replay", LIMIT), ("factors", LIMIT), ("factors16", 2 * STORED_ERROR)):
        assert state_limit(interface_of(made(commit=commit)), LIMIT) == most
    face = interface_of(made(commit="factors16"))
    assert state_limit(face, 1.0) == 1.0
    assert "factors16" not in FRAGMENTS["commit"].values
