"""Decays per key channel as differences of sums of 16-bit inputs: log-decays that enter sums as
they lie in memory, products of a node's own vectors as the diagonal of a matrix."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

import boleir
from boleir.codegen.pipeline import lower
from boleir.codegen.request import Shapes
from boleir.codegen.targets import target
from tests.codegen.test_key_sums import BASE, LIMIT, WIDE

CHILD = "tests.codegen.interpreted_short_sums"
MASK = (r"\(path_pairs & 0x10001\)", "(path_pairs * 0 + 0x10001)")
RATE = (r"(tl.dot\(path_\w+, g\w*\)) \* 1.44", r"\1 * 1.43")
MUTATIONS: dict[str, dict[str, tuple[str, str]]] = {
    "gla": {
        "siblings in the sums": MASK,
        "another rate": RATE,
        "no own product": (r"own_q_k = tl.dot\(q_tile, tl.trans\(k_tile\), own_q_k\)", "pass"),
    },
    "rwkv6": {
        "siblings in the sums": MASK,
        "another rate": RATE,
        "the node itself above it": (r"path_above = tl.where\(.*, 0.0, ", "path_above = (1.0 * "),
    },
}


@pytest.mark.parametrize(("name", "schedule"), [("gla", WIDE), ("rwkv6", BASE)])
def test_short_inputs(
    name: str, schedule: dict[str, Any], run_interpreted: Callable[..., Any]
) -> None:
    report = run_interpreted(f"{CHILD}:error_and_spoilt", name=name, schedule=schedule)
    assert report["output"] <= LIMIT, report
    assert report["spoilt"] == [], report
    errors = run_interpreted(
        f"{CHILD}:mutants", name=name, schedule=schedule, mutations=MUTATIONS[name]
    )
    assert errors.pop("") <= LIMIT
    for label, error in errors.items():
        assert not -1.0 <= error <= 5 * LIMIT, (label, error)


@pytest.mark.parametrize(
    ("name", "d_k", "sums"), [("gla", 64, 1), ("rwkv6", 64, 2), ("kda", 32, 2)]
)
def test_rows_of_a_single_step_are_reduced_in_a_block(name: str, d_k: int, sums: int) -> None:
    """Triton 3.6 fails for sm_100 where these rows are reduced again in the same block."""
    shapes = Shapes(16, 16, d_k, 64, 64, 8, "bfloat16")
    made = lower(boleir.load(name), shapes, target=target("sm_100"), batch=16)
    assert made.context.key_sums
    reduced = re.findall(r"^( +)\w+ = .*(?:tl.abs\(c\w*\)|c \* 0.0), axis=1\)", made.text, re.M)
    assert len(reduced) >= sums and all(len(x) > 4 for x in reduced), reduced
