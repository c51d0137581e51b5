"""Random valid schedules, recurrences, shapes and trees, interpreted against the float64 walk; and
changes of the emitted text, which must not go unnoticed."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import boleir
from boleir.codegen.pipeline import lower
from boleir.codegen.planner import make_plan
from boleir.codegen.request import Shapes
from boleir.codegen.schedule import (
    COMMITS,
    GATES,
    ORDERS,
    ORIENTATIONS,
    READERS,
    SOLVERS,
    STORED_ERROR,
    Schedule,
)
from boleir.codegen.schedule_limits import validate
from boleir.derive.derive import derive
from tests.codegen.recurrences import TEXTS, recurrence

CHILD = "tests.codegen.interpreted_variants"
LIMIT = 2e-5
LEFT_OUT = ("computed", "watched", "two_gains", "three_steps", "pairs_and_writes")
"""Recurrences that other tests are about."""
NAMES = [
    "gdn",
    "gated_delta_rule",
    "comba",
    "delta_rule",
    "iplr",
    "gated_delta_product",
    "linear_attention",
    "mamba2",
    *(name for name in TEXTS if name not in LEFT_OUT),
]
GROWING = ("iplr",)
"""Nothing bounds their states, so that deep trees cost digits whatever the kernel."""
PER_NAME = 5
SEED = 20


def draw(name: str, rng: random.Random) -> dict[str, Any]:
    """A case whose schedule is valid."""
    given = recurrence(name)
    form = derive(given)
    while True:
        group = rng.choice([1, 1, 2, 3])
        keys = rng.choice([1, 1, 2])
        shape = [keys, keys * group, rng.choice([16, 20, 32, 40]), rng.choice([16, 24, 32])]
        nodes = rng.choice([1, 2, 7, 12, 16, 17, 30, 33, 70])
        deepest = 5 if name in GROWING else 9
        depth = min(nodes - 1, deepest, rng.choice([0, 1, 3, 5, 9]))
        schedule = Schedule(
            fusion=rng.choice(["fused", "fused", "split", "joined"]),
            solver=rng.choice(SOLVERS),
            b_v=rng.choice([16, 32]),
            b_k=rng.choice([16, 32]),
            node_block=rng.choice([16, 32, 64]),
            orientation=rng.choice(ORIENTATIONS),
            gates=rng.choice(GATES),
            commit=rng.choice(COMMITS),
            precision="ieee",
            prefetch=rng.random() < 0.5,
            stages=rng.choice([1, 1, 2, 3]),
            factor_heads=rng.choice([1, 1, group]),
            order=rng.choice(ORDERS),
            lead=rng.choice([0, 0, 1, 5]),
            readers=rng.choice(READERS),
        )
        shapes = Shapes(*shape, nodes, depth, dtype="float32")
        plan = make_plan(form.normal, shapes.d_k, shapes.d_v, shape[0], shape[1])
        try:
            validate(schedule, plan, shapes)
            lower(given, shapes, schedule=schedule)
        except boleir.BoleirError:
            continue
        return {
            "name": name,
            "shape": shape,
            "nodes": nodes,
            "depth": depth,
            "seed": rng.randrange(1000),
            "schedule": schedule.to_json(),
        }


def test_random_variants_agree_with_the_walk(run_interpreted: Callable[..., Any]) -> None:
    rng = random.Random(SEED)
    cases = [draw(name, rng) for name in NAMES for _ in range(PER_NAME)]
    reports = run_interpreted(f"{CHILD}:variants", cases=cases)
    for case, report in zip(cases, reports, strict=True):
        assert "refused" not in report, (case, report)
        assert report["output"] <= LIMIT, (case, report)
        stored = (4 if case["name"] in GROWING else 2) * STORED_ERROR
        rounded = case["schedule"]["commit"] == "factors16"
        assert report["state"] <= (stored if rounded else LIMIT), (case, report)


def test_static_trees_of_several_blocks(run_interpreted: Callable[..., Any]) -> None:
    chain, star = list(range(-1, 39)), [-1, *[0] * 39]
    ragged = [-1, 0, 0, 1, 1, 2, -1, 6, 3, *range(8, 34)]
    cases = [
        {
            "name": "gated_delta_rule",
            "shape": [1, 2, 32, 24],
            "nodes": 0,
            "depth": 0,
            "seed": 1,
            "tree": tree,
            "schedule": {"precision": "ieee", "b_v": 16, "b_k": 16, "node_block": 16, **schedule},
        }
        for tree in (chain, star, ragged)
        for schedule in ({"gates": "inline", "solver": "inverse"}, {"orientation": "nodes"})
    ]
    for case, report in zip(cases, run_interpreted(f"{CHILD}:variants", cases=cases), strict=True):
        assert report["output"] <= LIMIT, (case, report)
        assert report["state"] <= LIMIT, (case, report)


def test_pairs_that_write_nothing(run_interpreted: Callable[..., Any]) -> None:
    """One block, several blocks, a loop over blocks; commits that leave such pairs out."""
    common = {"precision": "ieee", "b_v": 16, "b_k": 16, "gates": "prepare", "node_block": 16}
    drawn = (
        ("watched", 9, 4, {"solver": "levels", "commit": "deferred"}),
        ("two_gains", 20, 6, {"solver": "horner", "commit": "replay"}),
        ("watched", 20, 6, {"solver": "horner", "commit": "factors"}),
        ("watched", 70, 5, {"solver": "horner", "node_block": 32}),
    )
    cases = [
        {
            "name": name, "shape": [1, 2, 16, 16], "nodes": nodes, "depth": depth, "seed": 1,
            "schedule": common | choices,
        }
        for name, nodes, depth, choices in drawn
    ]  # fmt: skip
    for case, report in zip(cases, run_interpreted(f"{CHILD}:variants", cases=cases), strict=True):
        assert "refused" not in report, (case, report)
        assert report["output"] <= LIMIT, (case, report)
        assert report["state"] <= LIMIT, (case, report)


def test_row_scalars_that_the_factors_kernel_keeps(run_interpreted: Callable[..., Any]) -> None:
    """Path sums by walks, on deep trees over pairs; a single node; a static chain; no solve."""
    sizes = ((20, 5, None), (24, 20, None), (1, 0, None), (0, 0, list(range(-1, 15))))
    cases = [
        {
            "name": name,
            "shape": [1, 2, 24, 24],
            "nodes": nodes,
            "depth": depth,
            "seed": 1,
            **({"tree": tree} if tree else {}),
            "schedule": {
                "fusion": fusion, "solver": "inverse", "gates": "inline", "precision": "ieee",
                "b_v": 16, "b_k": 16, "node_block": 16 if tree or nodes == 1 else 32,
            },
        }
        for name, fusion in (("gated_delta_rule", "split"), ("mamba2", "joined"))
        for nodes, depth, tree in sizes
    ]  # fmt: skip
    for case, report in zip(cases, run_interpreted(f"{CHILD}:variants", cases=cases), strict=True):
        assert "refused" not in report, (case, report)
        assert report["output"] <= LIMIT, (case, report)
        assert report["state"] <= LIMIT, (case, report)


def test_computed_vectors_end_with_the_last_channel(run_interpreted: Callable[..., Any]) -> None:
    """A sigmoid is a half where a channel that is none was loaded as zero."""
    cases = [
        {
            "name": "computed",
            "shape": [1, 2, 20, 24],
            "nodes": 7,
            "depth": 3,
            "seed": 1,
            "schedule": {**schedule, "precision": "ieee", "b_v": 16, "b_k": 16, "node_block": 16},
        }
        for schedule in ({"gates": "prepare"}, {"gates": "inline", "commit": "factors"})
    ]
    for case, report in zip(cases, run_interpreted(f"{CHILD}:variants", cases=cases), strict=True):
        assert report["output"] <= LIMIT, (case, report)
        assert report["state"] <= LIMIT, (case, report)


MUTATIONS = {
    "depth one too small": (
        r"    u = tl\.dot\(u, minus_g, right, input_precision=\"ieee\"\)\n(?=\n)",
        "",
    ),
    "every earlier node is an ancestor": (
        r"related = [^\n]*!= 0",
        "related = (node[:, None] <= node[None, :]) & inside[None, :]",
    ),
    "a gate too few": (r"decay = tl\.exp2\([^\n]*\) \*", "decay ="),
    "a gate too many": (r"decay = tl\.exp2\(", "decay = tl.exp2(c[None, :] - c[:, None] + "),
    "the wrong sign": (r"minus_g = (.*?)-beta", r"minus_g = \1beta"),
    "a node couples to itself": (
        r"related & \(node\[None, :\] > node\[:, None\]\)",
        "related",
    ),
    "no decay of the state": (r"erased = \(tl\.exp2\(c \+ c_rest\) \*", "erased = (1.0 *"),
    "the wrong head": ("key_head = head // GROUP", "key_head = head % 2"),
    "no scale of the query": (r"scaled_norm_q = [\d.]+ \*", "scaled_norm_q = 1.0 *"),
}


def test_changes_of_the_text_are_noticed(run_interpreted: Callable[..., Any]) -> None:
    schedule = {"precision": "ieee", "b_v": 16, "b_k": 32, "node_block": 32}
    errors = run_interpreted(
        f"{CHILD}:mutants", name="gated_delta_rule", schedule=schedule, mutations=MUTATIONS
    )
    assert errors.pop("") <= LIMIT
    for label, error in errors.items():
        assert error > 50 * LIMIT, (label, error)


LOOP_MUTATIONS = {
    "earlier blocks forgotten": (r"for earlier in range\(0, block\)", "for earlier in range(0, 0)"),
    "the block before only": (
        r"for earlier in range\(0, block\)",
        "for earlier in range(block - 1 if block else 0, block)",
    ),
    "unknowns of another block": (r"\(node_earlier \* \(VALUE_HEADS \* D_V\)\)", "(node * 0)"),
}


def test_changes_of_the_loop_are_noticed(run_interpreted: Callable[..., Any]) -> None:
    schedule = {"precision": "ieee", "b_v": 16, "b_k": 32, "node_block": 16}
    errors = run_interpreted(
        f"{CHILD}:mutants",
        name="gated_delta_rule",
        schedule=schedule,
        mutations=LOOP_MUTATIONS,
        nodes=50,
    )
    assert errors.pop("") <= LIMIT
    for label, error in errors.items():
        assert error > 50 * LIMIT, (label, error)
