"""Several node blocks under the split schedule: values, independence of branches, refusals."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

import boleir
from boleir.codegen.pipeline import Lowered, lower
from boleir.codegen.request import Shapes
from boleir.codegen.schedule import InvalidSchedule, Schedule
from tests.codegen.interpreted_blocked import SCHEDULE

CHILD = "tests.codegen.interpreted_blocked"
LIMIT = 2e-5
NAMES = ("gated_delta_rule", "gdn", "comba", "mamba2", "linear_attention")
READS_ONLY = """
recurrence reads_only(q: key, a: head)
  S = exp(-exp(a)) * S
  out S^T q
"""
CHAIN, STAR = list(range(-1, 34)), [-1, *[0] * 34]


def made(name: str, nodes: int = 128, **fields: Any) -> Lowered:
    schedule = replace(Schedule(**{**SCHEDULE, "node_block": 64}), **fields)
    recurrence = boleir.parse(READS_ONLY) if name == "reads_only" else boleir.load(name)
    return lower(recurrence, Shapes(2, 4, 64, 64, nodes, 7), schedule=schedule)


def case(name: str, seed: int = 1, **fields: Any) -> dict[str, Any]:
    named = ("tree", "nodes", "depth", "shape")
    own = {key: fields.pop(key) for key in list(fields) if key in named}
    return {
        "name": name, "shape": [1, 1, 32, 16], "nodes": 0 if "tree" in own else 37,
        "depth": 0 if "tree" in own else 6, "seed": seed,
        "schedule": {**SCHEDULE, **fields}, **own,
    }  # fmt: skip


def test_blocks_agree_with_the_walk(run_interpreted: Callable[..., Any]) -> None:
    cases = [case(name, precision="ieee") for name in NAMES]
    cases += [
        case("gated_delta_rule", seed=2),
        case("iplr", precision="ieee", nodes=20, shape=[1, 1, 48, 20]),
        case("gated_delta_rule", precision="ieee", orientation="nodes", b_k=16),
        case("gated_delta_rule", precision="ieee", node_block=32),
        case("iplr", precision="ieee", nodes=20, orientation="nodes", prefetch=True),
        *(case("gated_delta_rule", precision="ieee", tree=tree) for tree in (CHAIN, STAR)),
    ]
    for which, report in zip(cases, run_interpreted(f"{CHILD}:rounded", cases=cases), strict=True):
        assert "refused" not in report, (which, report)
        assert report["output"] <= LIMIT, (which, report)
        assert report["state"] <= LIMIT, (which, report)


@pytest.mark.parametrize("name", ["gated_delta_rule", "mamba2"])
def test_branches_do_not_touch_each_other(name: str, run_interpreted: Callable[..., Any]) -> None:
    assert run_interpreted(f"{CHILD}:spoiled", name=name) == []


MUTATIONS = {
    "later blocks forgotten": (r"for later in range\(block \+ 1,", "for later in range(block + 2,"),
    "earlier blocks forgotten": (r"for earlier in range\(0, block\)", "for earlier in range(0, 0)"),
    "blocks without an ancestor read, too": (r"if reached != 0\.0:", "if reached >= 0.0:"),
    "no block has ancestors": (r"if reached != 0\.0:", "if reached > 2.0:"),
    "no scale of the column": (r"tl\.where\(finite, beta, 0\.0\)", "tl.where(finite, 1.0, 0.0)"),
    "unknowns unseen": (r"(seen_slot = [^\n]*?)earlier\n", r"\1earlier * 0\n"),
    "another place": (r"read_slot = block \* \(block \+ 1\) // 2 \+ earlier", "read_slot = 0"),
    "right sides of another block": (r"\(node_earlier \* \(VALUE_HEADS \* D_V\)\)", "(node * 0)"),
}  # fmt: skip


def test_changes_of_the_text_are_noticed(run_interpreted: Callable[..., Any]) -> None:
    errors = run_interpreted(f"{CHILD}:mutants", name="gated_delta_rule", mutations=MUTATIONS)
    assert errors.pop("") <= LIMIT
    for label, error in errors.items():
        assert not error <= 50 * LIMIT, (label, error)


def test_a_program_of_the_factors_takes_a_block() -> None:
    lowered = made("gated_delta_rule", nodes=200)
    assert lowered.kernel("factors").grid[0] == "16 * batch"
    assert [kernel.name for kernel in lowered.kernels] == ["prepare", "factors", "values", "commit"]


@pytest.mark.parametrize(
    ("name", "fields", "message"),
    [
        ("gated_delta_rule", {"gates": "inline"}, "gates must be prepare"),
        ("gated_delta_rule", {"fusion": "joined"}, "joined needs all 128 nodes in one block"),
        ("kda", {}, "split needs all 128 nodes in one block"),
        ("reads_only", {}, "writes nothing"),
    ],
)
def test_refusals(name: str, fields: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidSchedule, match=message):
        made(name, **fields)
