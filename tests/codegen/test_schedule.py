"""Every refusal of a schedule, the error bound of the product, defaults and footprints."""

from __future__ import annotations

import re
from dataclasses import replace
from math import comb
from pathlib import Path
from typing import Any

import pytest

import boleir
from boleir.codegen.defaults import default_schedule
from boleir.codegen.plan import NoKernel, Plan
from boleir.codegen.planner import make_plan
from boleir.codegen.request import RequestError, Shapes
from boleir.codegen.resources import SharedMemoryLimit, check
from boleir.codegen.schedule import InvalidSchedule, Schedule, block_depth, blocks, looped, padded
from boleir.codegen.schedule_footprint import footprint
from boleir.codegen.schedule_limits import PRODUCT_TOLERANCE, product_error, validate
from boleir.codegen.targets import target
from boleir.derive.derive import derive
from tests.codegen import convolved_recurrences
from tests.codegen.recurrences import TEXTS

SHAPES = Shapes(2, 4, 128, 64, 40, 6)
GOOD = Schedule(b_v=32, b_k=64, node_block=64)


def plan_of(name: str, shapes: Shapes = SHAPES) -> Plan:
    recurrence = boleir.parse(TEXTS[name]) if name in TEXTS else boleir.load(name)
    form = derive(recurrence).normal
    return make_plan(form, shapes.d_k, shapes.d_v, shapes.key_heads, shapes.value_heads)


def has_kernel(name: str) -> bool:
    try:
        plan_of(name)
    except NoKernel:
        return False
    return True


WITH_KERNELS = [name for name in boleir.names() if has_kernel(name)]


def test_a_good_schedule_passes() -> None:
    validate(GOOD, plan_of("gdn"), SHAPES)


def test_products_that_are_compiled_wrongly_are_refused_where_they_are() -> None:
    plan, hopper = plan_of("gdn"), target("sm_90")
    narrow = replace(GOOD, orientation="nodes")
    with pytest.raises(InvalidSchedule, match="b_v 32 with orientation nodes, node_block 64 and"):
        validate(narrow, plan, SHAPES, hopper)
    validate(narrow, plan, SHAPES)
    validate(narrow, plan, SHAPES, target("sm_80"))
    for other in ({"b_v": 64}, {"orientation": "values"}, {"warps": 2}, {"node_block": 32}):
        validate(replace(narrow, **other), plan, SHAPES, hopper)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        (
            {"fusion": "none"},
            "fusion must be one of fused, split, joined, walked, staged, not 'none'",
        ),
        ({"solver": "lu"}, "solver must be one of horner"),
        ({"gates": "later"}, "gates must be one of"),
        ({"precision": "fp8"}, "precision must be one of"),
        ({"orientation": "keys"}, "orientation must be one of"),
        ({"commit": "never"}, "commit must be one of"),
        ({"path_sum": "scan"}, "path_sum must be one of"),
        ({"warps": 3}, "warps must be one of 1, 2, 4, 8, 16, not 3"),
        ({"factor_warps": 32}, "factor_warps must be one of"),
        ({"b_v": 24}, "b_v must be a power of two from 16 to 512, not 24"),
        ({"b_k": 8}, "b_k must be a power of two"),
        ({"node_block": 1024}, "node_block must be a power of two"),
        ({"registers": 100}, "registers must be 0 or a multiple of 8"),
        ({"registers": 256}, "registers must be 0 or a multiple of 8"),
        ({"stages": 0}, "stages must lie in 1..8"),
        ({"stages": 9}, "stages must lie in 1..8"),
        ({"node_block": 128}, "node_block 128 is above 64"),
        ({"b_v": 128}, "b_v 128 is above the padded size 64"),
        ({"b_k": 256}, "b_k 256 is above the padded size 128"),
        (
            {"fusion": "joined", "solver": "inverse", "node_block": 32},
            "joined needs all 40 nodes",
        ),
        (
            {"fusion": "split", "solver": "inverse", "node_block": 32, "gates": "inline"},
            "gates must be prepare",
        ),
        ({"node_block": 32, "gates": "inline"}, "gates must be prepare"),
        ({"fusion": "split", "solver": "inverse", "commit": "factors"}, "commit must be replay"),
        ({"fusion": "split", "solver": "inverse", "commit": "factors16"}, "has no U to store"),
        ({"node_block": 16, "commit": "factors16"}, "commit factors16: 40 nodes in blocks of 16"),
        ({"fusion": "staged", "commit": "deferred"}, "staged is for updates from the right"),
        ({"fusion": "split", "solver": "horner"}, "solver must be inverse or product"),
        ({"lead": -1}, "lead must be 0 or more"),
        ({"persistent": -1}, "persistent must be 0 or more"),
        ({"persistent": 8, "fusion": "joined"}, "persistent 8: programs of a joined kernel"),
        ({"persistent": 8, "stages": 2}, "persistent 8: stages 2 asks for loads ahead"),
        ({"lead": 8, "order": "heads"}, "lead 8: .* order must be tiles"),
    ],
)
def test_impossible_schedules_are_refused(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidSchedule, match=message):
        validate(replace(GOOD, **fields), plan_of("gdn"), SHAPES)


@pytest.mark.parametrize(
    ("name", "fields", "message"),
    [
        ("value_gate", {"solver": "inverse"}, "one inverse per head"),
        ("two_pairs", {"solver": "inverse"}, "one erase/write pair per token, two_pairs has 2"),
    ],
)
def test_schedules_must_fit_the_recurrence(name: str, fields: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidSchedule, match=message):
        validate(replace(GOOD, **fields), plan_of(name), SHAPES)


def test_sweeps_that_overflow_are_refused() -> None:
    plan, shapes = plan_of("gated_delta_product"), replace(SHAPES, max_nodes=64, max_depth=35)
    schedule = replace(GOOD, node_block=64)
    validate(schedule, plan, shapes)
    deeper = replace(shapes, max_depth=36)
    with pytest.raises(InvalidSchedule, match="73 sweeps over 2 steps per token"):
        validate(schedule, plan, deeper)
    validate(replace(schedule, solver="levels"), plan, deeper)
    several = replace(deeper, max_nodes=128)
    assert default_schedule(plan, several).solver == "levels"
    assert default_schedule(plan, replace(several, max_depth=35)).solver == "horner"


def test_commits_are_deferred_only_where_each_program_reads_the_state_once() -> None:
    deferred = replace(GOOD, commit="deferred")
    validate(deferred, plan_of("gdn"), SHAPES)
    with pytest.raises(InvalidSchedule, match=r"commit deferred .* up to 64 nodes, not for 65"):
        validate(deferred, plan_of("gdn"), replace(SHAPES, max_nodes=65))
    walked = replace(deferred, fusion="walked")
    with pytest.raises(InvalidSchedule, match=r"commit deferred .* not for walked"):
        validate(walked, plan_of("kda"), SHAPES)
    fixed = boleir.parse(
        "recurrence fixed(q: key, v: value; A: head)\n  S = sigmoid(A) * S\n  out S^T q + v\n"
    )
    normal = derive(fixed).normal
    plan = make_plan(normal, SHAPES.d_k, SHAPES.d_v, SHAPES.key_heads, SHAPES.value_heads)
    with pytest.raises(InvalidSchedule, match="states of fixed depend on none"):
        validate(deferred, plan, SHAPES)
    staged = replace(deferred, fusion="staged")
    with pytest.raises(InvalidSchedule, match="commit must be replay, not deferred"):
        validate(staged, plan_of("gated_oja"), SHAPES)


def test_node_blocks_beyond_the_tree_are_refused() -> None:
    with pytest.raises(InvalidSchedule, match="node_block 64 is above the padded size 16"):
        validate(GOOD, plan_of("gdn"), replace(SHAPES, max_nodes=9, max_depth=3))


def test_product_is_refused_where_its_bound_exceeds_the_tolerance() -> None:
    plan = plan_of("gdn")
    schedule = replace(GOOD, solver="product")
    depths = range(1, 12)
    small = [depth for depth in depths if product_error("fp32", depth) <= PRODUCT_TOLERANCE]
    assert small == list(range(1, len(small) + 1)) and 1 <= len(small) < 11
    for depth in depths:
        shapes = replace(SHAPES, max_depth=depth)
        if depth in small:
            validate(schedule, plan, shapes)
        else:
            with pytest.raises(InvalidSchedule, match=r"(?s)error bound .* mend: solver inverse"):
                validate(schedule, plan, shapes)
    # an explicitly coarse plan states its error, so the user has chosen it
    validate(replace(schedule, precision="bf16"), plan, replace(SHAPES, max_depth=9))
    # nothing is solved, so nothing is lost
    validate(schedule, plan_of("linear_attention"), replace(SHAPES, max_depth=30))


@pytest.mark.parametrize("depth", [1, 2, 5, 8, 15])
def test_product_error_is_the_bound_of_the_powers(depth: int) -> None:
    largest = max(comb(depth - 1, p - 1) for p in range(1, depth + 1))
    assert product_error("ieee", depth) == pytest.approx(2.0**-24 * largest)
    assert (
        product_error("tf32", depth) > product_error("fp32", depth) > product_error("ieee", depth)
    )
    assert product_error("fp32", depth, beta=2.0) >= product_error("fp32", depth)
    assert product_error("fp32", 0) == 2.0**-17


def test_labels_and_json_round_trip() -> None:
    assert Schedule().label == "default"
    assert GOOD.label == "b_v=32 b_k=64"
    assert Schedule.from_json(GOOD.to_json()) == GOOD
    with pytest.raises(InvalidSchedule, match="unknown schedule field 'colour'"):
        Schedule.from_json({"colour": 1})


def test_every_field_is_in_the_documentation() -> None:
    text = (Path(__file__).parents[2] / "docs" / "tuning.md").read_text()
    table = text.split("| field |")[1].split("\n\n")[0]
    named = [
        name for row in table.splitlines() for name in re.findall(r"`(\w+)`", row.split("|")[1])
    ]
    assert sorted(named) == sorted(Schedule().to_json())


def test_sizes() -> None:
    assert [padded(n) for n in (1, 16, 17, 64, 65)] == [16, 16, 32, 64, 128]
    assert blocks(replace(GOOD, node_block=16), SHAPES) == 3
    assert block_depth(GOOD, SHAPES) == 6
    assert block_depth(replace(GOOD, node_block=16), replace(SHAPES, max_depth=39)) == 15
    assert looped(replace(GOOD, node_block=16), SHAPES)
    static = replace(SHAPES, parents=tuple(range(-1, 39)), max_depth=39)
    assert not looped(replace(GOOD, node_block=16), static)
    assert looped(replace(GOOD, node_block=16, fusion="split"), static)


def test_the_library_has_kernels() -> None:
    assert len(WITH_KERNELS) >= 9


@pytest.mark.parametrize("name", WITH_KERNELS)
@pytest.mark.parametrize("nodes", [1, 9, 16, 33, 64, 65, 256])
@pytest.mark.parametrize("batch", [1, 16])
def test_defaults_are_valid(name: str, nodes: int, batch: int) -> None:
    shapes = Shapes(4, 12, 96, 60, nodes, min(nodes - 1, 8))
    plan = plan_of(name, shapes)
    validate(default_schedule(plan, shapes, batch), plan, shapes)


def test_footprints_grow_with_what_a_program_holds() -> None:
    plan = plan_of("gdn")
    small = footprint(GOOD, plan, SHAPES)
    assert footprint(replace(GOOD, b_k=128), plan, SHAPES).shared > small.shared
    assert footprint(replace(GOOD, b_v=64), plan, SHAPES).live > small.live
    assert footprint(replace(GOOD, precision="bf16"), plan, SHAPES).shared == small.shared // 2
    assert footprint(replace(GOOD, warps=8), plan, SHAPES).warps == 8


def test_a_footprint_above_the_limit_is_refused_by_name() -> None:
    shapes = replace(SHAPES, d_k=512, d_v=512)
    huge = Schedule(b_v=512, b_k=512, node_block=64)
    with pytest.raises(SharedMemoryLimit, match="shared memory per block"):
        check(footprint(huge, plan_of("gdn", shapes), shapes), target("sm_90"))


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"value_heads": 3}, "value_heads 3 is not a multiple of key_heads 2"),
        ({"key_heads": 0}, "key_heads must be at least 1"),
        ({"max_nodes": 257}, "max_nodes 257 is above 256"),
        ({"max_depth": 40}, "max_depth must lie in 0..max_nodes-1"),
        ({"max_depth": -1}, "max_depth must lie in"),
        ({"d_v": "16"}, "d_v must be a whole number, not '16'"),
        ({"max_depth": None}, "max_depth must be a whole number, not None"),
        ({"d_k": 513}, "d_k 513 is above 512"),
        ({"dtype": "int8"}, "dtype 'int8' is not one of"),
        ({"out_dtype": "int8"}, "out_dtype 'int8' is not one of"),
    ],
)
def test_impossible_shapes_are_refused(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(RequestError, match=message):
        replace(SHAPES, **fields)


def test_scalars_of_several_convolved_inputs_are_computed_where_all_are_seen() -> None:
    """A prepare program sees one convolved input: there, the scalar once ended as a traceback, or
    in a refusal that no choice of gates could meet."""
    plan = plan_of("entangled")
    assert plan.entangled is not None
    assert default_schedule(plan, SHAPES).gates == "inline"
    validate(default_schedule(plan, SHAPES), plan, SHAPES)
    with pytest.raises(InvalidSchedule, match=r"rsqrt_k needs several inputs .* must be inline"):
        validate(replace(GOOD, gates="prepare"), plan, SHAPES)
    many = replace(SHAPES, max_nodes=100)
    for gates in ("inline", "prepare"):
        with pytest.raises(NoKernel, match="up to 64 nodes, not 100"):
            validate(replace(GOOD, gates=gates), plan, many)
    assert plan_of("gdn").entangled is None


@pytest.mark.parametrize("name", ["normed_in_scalars", "convolved_in_decays"])
def test_sums_of_decays_of_convolved_inputs_are_computed_where_all_are_seen(name: str) -> None:
    """Programs that sum up along paths once read what others were still convolving."""
    form = derive(convolved_recurrences.recurrence(name)).normal
    plan = make_plan(form, SHAPES.d_k, SHAPES.d_v, SHAPES.key_heads, SHAPES.value_heads)
    assert default_schedule(plan, SHAPES).gates == "inline"
    with pytest.raises(InvalidSchedule, match=r"sum of log-decays needs several .* be inline"):
        validate(replace(GOOD, gates="prepare"), plan, SHAPES)


@pytest.mark.parametrize(
    ("name", "nodes", "fusion"),
    [
        ("gated_delta_product", 64, "split"),
        ("two_pairs", 20, "split"),
        ("gated_delta_product", 65, "fused"),
        ("three_steps", 64, "fused"),
    ],
)
def test_two_pairs_are_folded_by_default(name: str, nodes: int, fusion: str) -> None:
    found = default_schedule(plan_of(name), replace(SHAPES, max_nodes=nodes), 16)
    assert (found.fusion, found.gates) == (fusion, "prepare")


@pytest.mark.parametrize(
    ("name", "on", "fusion"),
    [
        ("gated_delta_rule", "sm_90", "joined"),
        ("gdn", "sm_90", "joined"),
        ("mamba2", "sm_90", "joined"),
        ("iplr", "sm_90", "split"),  # products of four vectors
        ("gdn", "sm_80", "split"),  # whose warps multiply alone
    ],
)
def test_programs_take_turns_by_default(name: str, on: str, fusion: str) -> None:
    found = default_schedule(plan_of(name), SHAPES, 16, target(on))
    assert (found.fusion, found.lead > 0) == (fusion, fusion == "joined")
    few = default_schedule(plan_of(name), SHAPES, 1, target(on))
    assert (few.fusion, few.lead) == ("joined", 0)
