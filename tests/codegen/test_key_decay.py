"""Decays per key channel: against the float64 walk, with decays that overflow when divided, with
what is not finite; compiled for GPUs that are not there."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

import boleir
from boleir.codegen.interface import interface_of
from boleir.codegen.kernel_spec import Job
from boleir.codegen.offline import CompilePool
from boleir.codegen.pipeline import Lowered, lower
from boleir.codegen.request import Shapes
from boleir.codegen.schedule import InvalidSchedule, Schedule
from boleir.codegen.targets import target
from tests.codegen.key_decays import TEXTS

CHILD = "tests.codegen.interpreted_key_decay"
LIMIT = 2e-5
LIBRARY = ("kda", "kda_bounded", "gla", "rwkv6", "rwkv7", "dplr")
BASE: dict[str, Any] = {
    "fusion": "split",
    "solver": "inverse",
    "precision": "ieee",
    "b_v": 16,
    "b_k": 16,
    "node_block": 32,
    "factor_warps": 1,
}
"""With one warp for the factors walks take 32 key channels at a time."""
JOINED = {**BASE, "fusion": "joined", "gates": "inline"}
WIDE = {**BASE, "b_k": 32, "gates": "inline", "factor_warps": 4}
"""Walks take all key channels at once."""


def test_every_recurrence_agrees_with_the_walk(run_interpreted: Callable[..., Any]) -> None:
    cases = [[name, [1, 2, 32, 24], BASE] for name in (*LIBRARY, *TEXTS)]
    cases += [[name, [1, 1, 32, 16], WIDE] for name in ("kda", "rwkv7", "one_vector")]
    cases += [[name, [2, 4, 60, 20], BASE] for name in ("kda", "rwkv6", "dplr")]
    cases += [[name, [1, 2, 32, 24], JOINED] for name in ("kda", "rwkv6", "dplr")]
    reports = run_interpreted(f"{CHILD}:rounds_of_one", cases=cases)
    for case, report in zip(cases, reports, strict=True):
        assert report["output"] <= LIMIT, (case, report)
        assert report["states"] <= LIMIT, (case, report)
        assert report["windows"], (case, report)
        assert report["verify changed"] == report["commit changed"] == [], (case, report)


@pytest.mark.parametrize(("name", "gate"), [("gla", "g"), ("logged", "g"), ("rwkv6", "w")])
def test_decays_mixed_over_channels_cost_no_digits(
    name: str, gate: str, run_interpreted: Callable[..., Any]
) -> None:
    """exp(c_i) / exp(c_j) would be 0 / 0 here."""
    schedule = {**BASE, "node_block": 64}
    report = run_interpreted(f"{CHILD}:mixed_channels", name=name, schedule=schedule, gate=gate)
    assert report["output"] <= LIMIT


@pytest.mark.parametrize("name", ["kda", "rwkv6"])
def test_weak_and_strong_decays(name: str, run_interpreted: Callable[..., Any]) -> None:
    report = run_interpreted(f"{CHILD}:uniform_decays", name=name, schedule=BASE)
    assert max(report.values()) <= LIMIT, report


@pytest.mark.parametrize("name", ["kda", "rwkv7"])
def test_trees_fill_a_word(name: str, run_interpreted: Callable[..., Any]) -> None:
    schedule = {**BASE, "node_block": 64, "b_k": 32}
    report = run_interpreted(f"{CHILD}:all_bits_of_a_word", name=name, schedule=schedule)
    assert max(report.values()) <= LIMIT, report


def test_static_trees(run_interpreted: Callable[..., Any]) -> None:
    schedule = {**BASE, "node_block": 16}
    assert run_interpreted(f"{CHILD}:static_tree", name="kda", schedule=schedule) <= LIMIT


@pytest.mark.parametrize(
    ("name", "gates"), [("kda", "inline"), ("rwkv7", "prepare"), ("gla", "inline")]
)
def test_what_is_not_finite_reaches_descendants_only(
    name: str, gates: str, run_interpreted: Callable[..., Any]
) -> None:
    report = run_interpreted(f"{CHILD}:spoiled", name=name, schedule={**BASE, "gates": gates})
    assert all(report.values()), report


def test_siblings_change_no_bit(run_interpreted: Callable[..., Any]) -> None:
    assert run_interpreted(f"{CHILD}:siblings", name="kda", schedule=BASE)


@pytest.mark.parametrize("name", ["kda", "rwkv7"])
def test_rounds_follow_sequential_decoding(name: str, run_interpreted: Callable[..., Any]) -> None:
    worst = run_interpreted(f"{CHILD}:rounds", name=name, schedule=BASE, count=4)
    assert worst["output"] <= LIMIT
    assert worst["state"] <= LIMIT


MUTATIONS = {
    "a step too few": (r"range\(0, deepest \+ 1\)", "range(0, deepest)"),
    "decays forgotten": (r"passed = passed \* gates_reached", "passed = passed"),
    "the wrong parent": (r"reached = parent", "reached = reached - 1"),
    "a chunk forgotten": (r"for chunk in range\(0, 2\)", "for chunk in range(0, 1)"),
    "the last chunk alone": (r"\(chunk > 0\)", "(chunk < 0)"),
    "reads without decay": (
        r"tl.store\((decayed_.*), passed \*",
        r"tl.store(\1,",
    ),
    "another head": (r"decayed_0_rows = decayed \+ \(head", "decayed_0_rows = decayed + (0 * head"),
}


def test_changes_of_the_text_are_noticed(run_interpreted: Callable[..., Any]) -> None:
    errors = run_interpreted(f"{CHILD}:mutants", name="kda", schedule=BASE, mutations=MUTATIONS)
    assert errors.pop("") <= LIMIT
    for label, error in errors.items():
        assert not error <= 50 * LIMIT, (label, error)


# ---- schedules ---------------------------------------------------------------------------


def made(name: str, nodes: int = 16, **options: Any) -> Lowered:
    """A lowered kernel of small size."""
    text = TEXTS.get(name)
    recurrence = boleir.load(name) if text is None else boleir.parse(text)
    return lower(recurrence, Shapes(1, 2, 32, 32, nodes, min(5, nodes - 1)), **options)


def test_the_default_is_the_split_schedule() -> None:
    """But for one or two requests of more than 16 nodes, which share walks in one launch, and for
    few of as many nodes as a block has, where one pair is solved for or nothing."""
    for name in ("kda", "gla", "rwkv7"):
        for nodes in (4, 17, 64):
            for batch in (1, 4, 16):
                schedule = made(name, nodes, batch=batch).schedule
                shared = (nodes > 16 and batch == 1) or (name, nodes, batch) == ("gla", 64, 4)
                joined = shared or (name, nodes, batch) == ("kda", 64, 4)
                assert schedule.fusion == ("joined" if joined else "split"), (name, nodes, batch)
                assert bool(schedule.walk_nodes) == shared, (name, nodes, batch)


def test_sums_compute_their_gates_themselves() -> None:
    """With a kernel before them for that they took longer on an H200."""
    many = lower(boleir.load("kda"), Shapes(4, 4, 128, 128, 64, 8), batch=16)
    assert many.context.key_sums
    assert [kernel.name for kernel in many.kernels] == ["factors", "values", "commit"]
    factors = many.kernels[0].text
    assert factors.count("tl.load(q_rows") <= 3 and "tl.zeros([NODE_BLOCK]" in factors


@pytest.mark.parametrize(
    ("name", "d_v", "where", "expected"),
    [
        ("gla", 128, "sm_90", (128, 0, "nodes")),
        ("gla", 64, "sm_90", (64, 128, "nodes")),
        ("kda", 128, "sm_90", (64, 128, "nodes")),
        ("gla", 128, "sm_80", (32, 0, "values")),
    ],
)
def test_value_tiles_next_to_sums(
    name: str, d_v: int, where: str, expected: tuple[int, int, str]
) -> None:
    """Wide where nothing else is loaded for a head, as an H200 showed; narrow where warps multiply
    alone, whose operands take the registers of a tile."""
    shapes = Shapes(4, 4, 128, d_v, 64, 8)
    found = lower(boleir.load(name), shapes, batch=16, target=target(where)).schedule
    assert (found.b_v, found.registers, found.orientation) == expected


def test_other_schedules_are_refused_with_a_reason() -> None:
    with pytest.raises(
        InvalidSchedule, match="per key channel: fusion must be split, joined or walked"
    ):
        made("kda", schedule=Schedule(b_v=16, b_k=16, node_block=16))


def test_the_workspace_holds_the_vectors() -> None:
    found = interface_of(made("rwkv7"))
    planes = 2 + 3  # erase and query; the decay and two computed written vectors
    assert (found.decayed, found.products, found.columns) == (planes, 2 * 2, 16)
    assert interface_of(made("gla")).decayed == 1 + 1
    assert interface_of(lower(boleir.load("gdn"), Shapes(1, 2, 32, 32, 16, 5))).decayed == 0


def test_the_header_explains_the_vectors() -> None:
    text = " ".join(made("kda").text.split())
    assert "k times the decays of its path, q times the decays of its path, decay" in text


COMPILED = {
    "kda": (("sm_80", 64), ("sm_90", 16), ("sm_90", 64), ("sm_100", 16)),
    "gla": (("sm_80", 16),),
    "rwkv7": (("sm_80", 16), ("sm_100", 64)),
}
"""Targets and nodes. Fewer for recurrences that have much in common with the first."""


@pytest.mark.parametrize("name", COMPILED)
def test_kernels_compile_without_a_gpu(name: str, pool: CompilePool) -> None:
    jobs = []
    for where, nodes in COMPILED[name]:
        lowered = made(name, nodes, target=target(where))
        jobs += [Job(lowered.text, spec, target(where)) for spec in lowered.specs()]
    with ThreadPoolExecutor(2) as threads:
        for compiled in threads.map(pool.compile, jobs):
            assert not compiled.spills, compiled.facts
