"""Seeded cases of random trials: recurrence, shapes, formats, a valid schedule, a ragged round.

A case is plain data, so that it passes to a child process, prints, and can be shrunk field by
field. Valid means that the compiler takes it: what it refuses is drawn anew.
"""

from __future__ import annotations

import random
from typing import Any

import boleir
from boleir.check.inputs import COSINE, KEYS, LOG_DECAYS, STRENGTHS
from boleir.codegen.pipeline import lower
from boleir.codegen.request import Shapes
from boleir.codegen.schedule import (
    COMMITS,
    FUSIONS,
    GATES,
    ORDERS,
    ORIENTATIONS,
    PATH_SUMS,
    PREPARES,
    READERS,
    SOLVERS,
    Schedule,
    padded,
)
from boleir.trees import shapes
from tests.runtime import fuzz_recurrences

FORMATS = ("float32", "bfloat16", "float16")
NODES = (1, 2, 3, 5, 8, 9, 15, 16, 17, 20, 31, 32, 33, 48, 64, 65, 80)
WIDTHS = (16, 17, 20, 24, 32, 33, 40, 48, 60, 64)
TWISTS = ("none", "none", "none", "zero", "tiny", "large", "scalars", "subnormal")
"""What happens to one node of a request: every input zero, small or large vectors, saturated
scalars, subnormal numbers."""
SPOILED = ("nan", "inf", "-inf")
FREE = -1

assert COSINE < 1


def draw(seed: int) -> dict[str, Any]:
    """A case that the compiler takes."""
    rng = random.Random(seed)
    while True:
        spelled = fuzz_recurrences.draw(rng)
        for _ in range(30):
            case = _compiled_part(rng, spelled)
            if accepted(case):
                return {"seed": seed} | case | _round(rng, case)


def accepted(case: dict[str, Any]) -> bool:
    """Whether the compiler takes recurrence, shapes and schedule."""
    try:
        lower(
            fuzz_recurrences.load(case["recurrence"]),
            shapes_of(case),
            schedule=Schedule(**case["schedule"]),
        )
    except boleir.BoleirError:
        return False
    except Exception:
        return True  # to be reported by the trial, which meets it again
    return True


def shapes_of(case: dict[str, Any]) -> Shapes:
    """What the compiler is told."""
    static = case["static"]
    return Shapes(
        *case["shape"], case["nodes"], case["depth"], case["dtype"], case["state_dtype"],
        None if static is None else tuple(static), case["out_dtype"],
    )  # fmt: skip


def _compiled_part(rng: random.Random, spelled: str) -> dict[str, Any]:
    keys, group = rng.choice([1, 1, 2]), rng.choice([1, 1, 2, 3, 4])
    nodes = rng.choice(NODES)
    depth = min(nodes - 1, rng.choice([0, 1, 2, 3, 5, 7, 9, 12, 80]))
    static = None
    if rng.random() < 0.15:
        static = _tree(rng, nodes, depth)
        depth = _depth(static)
    dtype = rng.choice(FORMATS)
    return {
        "recurrence": spelled,
        "shape": [keys, keys * group, rng.choice(WIDTHS), rng.choice(WIDTHS)],
        "nodes": nodes,
        "depth": depth,
        "static": static,
        "dtype": dtype,
        "state_dtype": rng.choice(["float32", "float32", *FORMATS]),
        "out_dtype": rng.choice(["float32", "float32", dtype]),
        "schedule": _schedule(rng, nodes, group).to_json(),
    }


def _schedule(rng: random.Random, nodes: int, group: int) -> Schedule:
    return Schedule(
        fusion=rng.choice(FUSIONS),
        solver=rng.choice(SOLVERS),
        b_v=rng.choice([16, 32, 64]),
        b_k=rng.choice([16, 32, 64]),
        node_block=rng.choice([16, 32, 64, min(64, padded(nodes))]),
        orientation=rng.choice(ORIENTATIONS),
        gates=rng.choice(GATES),
        precision=rng.choice(["ieee", "ieee", "ieee", "fp32", "fp32", "fp32", "tf32", "bf16"]),
        commit=rng.choice(COMMITS),
        warps=rng.choice([1, 4]),
        factor_warps=rng.choice([1, 2, 4, 8]),
        prefetch=rng.random() < 0.5,
        path_sum=rng.choice(PATH_SUMS),
        factor_heads=rng.choice([1, 1, group]),
        order=rng.choice(ORDERS),
        persistent=rng.choice([0, 0, 0, 1, 3]),
        walk_nodes=rng.choice([0, 0, 4, 8, 16]),
        readers=rng.choice(READERS),
        prepare=rng.choice(PREPARES),
        prepare_nodes=rng.choice([16, 16, 16, 32]),
        prepare_warps=rng.choice([0, 0, 0, 2]),
        pdl=False,
    )


def _tree(rng: random.Random, nodes: int, depth: int) -> list[int]:
    """Any shape within the bounds, numbered in any order that puts parents first."""
    kind = rng.choice(["random", "random", "roots", "chain", "star"])
    if kind == "chain" and nodes <= depth + 1:
        return list(shapes.chain(nodes))
    if kind == "star" and depth:
        return list(shapes.star(nodes))
    roots = nodes if not depth else min(nodes, 3) if kind == "roots" else 1
    seed = rng.randrange(2**31)
    return list(shapes.random(nodes, seed=seed, roots=roots, max_depth=depth))


def _depth(parents: list[int]) -> int:
    depth: list[int] = []
    for parent in parents:
        depth.append(0 if parent < 0 else depth[parent] + 1)
    return max(depth, default=0)


def _round(rng: random.Random, case: dict[str, Any]) -> dict[str, Any]:
    """Requests in slots out of order, what is accepted of them, what is spoiled."""
    requests = [_request(rng, case) for _ in range(rng.choice([1, 2, 2, 3]))]
    slots = rng.sample(range(9), 9)
    for request in requests:
        own = slots.pop()
        request["slot"] = FREE if rng.random() < 0.1 else own
        request["target"] = own if rng.random() < 0.7 else slots.pop()
        request["track"] = slots.pop() if rng.random() < 0.3 else FREE
    if rng.random() < 0.2 and case["static"] is None:
        empty = {"parents": [], "slot": slots.pop(), "target": 0, "track": FREE}
        requests.insert(rng.randrange(len(requests) + 1), _blank() | empty)
        requests = requests[:3]
    if not any(request["parents"] for request in requests):
        requests.append(_request(rng, case) | {"slot": slots.pop(), "target": FREE, "track": FREE})
    return {"requests": requests, "spoil": rng.random() < 0.6}


def _blank() -> dict[str, Any]:
    return {
        "keys": "random", "strength": None, "log_decay": None, "twist": "none", "accepted": -1,
        "track_node": -1,
    }  # fmt: skip


def _request(rng: random.Random, case: dict[str, Any]) -> dict[str, Any]:
    static = case["static"]
    nodes = rng.choice([case["nodes"], case["nodes"], rng.randint(1, case["nodes"])])
    parents = static or _tree(rng, nodes, min(case["depth"], nodes - 1))
    count = len(parents)
    beyond = [-1, count, 2**31 - 1, -(2**31)]
    last = rng.randrange(count)
    return {
        "parents": parents,
        "keys": rng.choice(KEYS),
        "strength": rng.choice(STRENGTHS),
        "log_decay": rng.choice(LOG_DECAYS),
        "twist": rng.choice(TWISTS),
        "accepted": rng.choice([count - 1, last, last, last, rng.choice(beyond)]),
        "track_node": rng.choice([rng.randrange(count), parents[last], -1, count]),
    }
