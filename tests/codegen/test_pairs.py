"""Several erase/write pairs under schedules that fold the solve: values, independence of branches,
changes of the text, refusals."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import boleir
from boleir.codegen.interface import interface_of
from boleir.codegen.pipeline import Lowered, lower
from boleir.codegen.request import Shapes
from boleir.codegen.schedule import InvalidSchedule, Schedule
from tests.codegen.recurrences import TEXTS
from tests.codegen.test_blocked import LIMIT
from tests.codegen.test_blocked import case as blocked

BLOCKED = "tests.codegen.interpreted_blocked"
CHILD = "tests.codegen.interpreted_pairs"

ONE = {
    "node_block": 32,
    "nodes": 20,
    "depth": 5,
    "precision": "ieee",
    "shape": [1, 1, 16, 16],
    "b_k": 16,
}
TWO = {"nodes": 20, "depth": 5, "shape": [1, 1, 16, 16], "precision": "ieee", "b_k": 16}
GAINED = """
recurrence gained(q: key, k: key, p: key, v: value, b: value)
  k, p = l2norm(k, p)
  S = S + k (v - S^T k)^T
  S = S + p (b * (v - S^T p))^T
  out S^T q
"""


def made(name: str, nodes: int = 64, **fields: Any) -> Lowered:
    schedule = Schedule(**{"fusion": "split", "solver": "inverse", "node_block": 64} | fields)
    recurrence = boleir.parse(TEXTS[name]) if name in TEXTS else boleir.load(name)
    return lower(recurrence, Shapes(2, 4, 64, 64, nodes, 7), schedule=schedule)


def test_pairs_agree_with_the_walk(run_interpreted: Callable[..., Any]) -> None:
    cases = [
        blocked(
            "gated_delta_product", **ONE | {"precision": "fp32", "shape": [1, 1, 32, 16], "b_k": 32}
        ),
        blocked("gated_delta_product", **ONE, fusion="joined", gates="inline", solver="product"),
        blocked("two_pairs", **ONE, gates="inline", orientation="nodes"),
        blocked("pairs_and_writes", **ONE, gates="inline", seed=3),
        blocked("pairs_and_writes", **TWO, prefetch=True),
        blocked("three_steps", **TWO | {"nodes": 36}, orientation="nodes"),
    ]
    for which, report in zip(
        cases, run_interpreted(f"{BLOCKED}:rounded", cases=cases), strict=True
    ):
        assert "refused" not in report, (which, report)
        assert report["output"] <= LIMIT, (which, report)
        assert report["state"] <= LIMIT, (which, report)


@pytest.mark.parametrize("node_block", [16, 32])
def test_branches_do_not_touch_each_other(
    node_block: int, run_interpreted: Callable[..., Any]
) -> None:
    given = {"name": "gated_delta_product", "inputs": ["k2", "v1", "b2"], "node_block": node_block}
    assert run_interpreted(f"{CHILD}:spoiled", **given) == []


MUTATIONS = {
    "no coupling within a token": (r"-scaled_b2\[:, None\], 0\.0\)", "0.0, 0.0)"),
    "coupling with the node before": (
        r"\(node\[None, :\] == node\[:, None\]\) & related, -scaled_b2",
        "(node[None, :] + 1 == node[:, None]) & related, -scaled_b2",
    ),
    "the second pair as it is": (r"minus_g11 = tl\.dot\([^\n]*", "pass"),
    "outputs of the second pair as they are": (r"readout1(_later|) = tl\.dot\([^\n]*", "pass"),
    "no share for the first pair": (r"fold = tl\.dot\(fold1,[^\n]*", "pass"),
    "tiles of the other pair": (r"seen_slot \+ 2\)", "seen_slot + 0)"),
    "another right side": (r"tl\.dot\(right1_0,", "tl.dot(right_0,"),
}  # fmt: skip


def test_changes_of_the_text_are_noticed(run_interpreted: Callable[..., Any]) -> None:
    name = "gated_delta_product"
    errors = run_interpreted(f"{CHILD}:mutants", name=name, mutations=MUTATIONS)
    assert errors.pop("") <= LIMIT
    for label, error in errors.items():
        assert not error <= 50 * LIMIT, (label, error)


@pytest.mark.parametrize(
    ("nodes", "tiles", "pieces"),
    [(64, 2, 2), (128, 2 * 3 + 2 * 2, 3), (200, 2 * 10 + 2 * 2 * 6, 3)],
)
def test_every_pair_has_its_tiles(nodes: int, tiles: int, pieces: int) -> None:
    folded = interface_of(made("gated_delta_product", nodes, b_k=64)).folded
    assert folded == 4 * tiles * pieces * 64 * 64


def test_a_gain_per_channel_has_no_shared_inverse() -> None:
    with pytest.raises(InvalidSchedule, match="a value-vector gain has one per channel"):
        lower(
            boleir.parse(GAINED),
            Shapes(1, 1, 64, 64, 64, 7),
            schedule=Schedule(fusion="split", solver="inverse", b_k=64),
        )


def test_levels_take_the_steps_of_a_token_where_no_node_has_an_ancestor() -> None:
    """The second step of a token sees the first, whatever the tree is."""
    schedule = Schedule(solver="levels", b_v=16, b_k=16, node_block=16)
    made = lower(boleir.load("gated_delta_product"), Shapes(1, 2, 32, 32, 4, 0), schedule=schedule)
    verify = next(kernel.text for kernel in made.kernels if kernel.name == "verify")
    assert "u1_swept" in verify and "minus_g10" in verify
