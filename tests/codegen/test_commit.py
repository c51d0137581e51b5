"""The commit kernel: how its programs share the state, and what a token costs a thread."""

from __future__ import annotations

import re

import pytest

import boleir
from boleir.codegen.emit.commit_path import most_steps
from boleir.codegen.emit.commit_tile import Tile
from boleir.codegen.emit.context import Context
from boleir.codegen.kernel_spec import CompiledKernel, Job
from boleir.codegen.offline import CompilePool
from boleir.codegen.pipeline import Lowered, lower
from boleir.codegen.request import Shapes
from boleir.codegen.targets import target


def made(name: str, d_k: int, d_v: int) -> Lowered:
    return lower(boleir.load(name), Shapes(16, 32, d_k, d_v, 64, 8))


def tile(name: str, d_k: int, d_v: int) -> Tile:
    lowered = made(name, d_k, d_v)
    return Tile(Context(lowered.plan, lowered.shapes, lowered.schedule))


@pytest.mark.parametrize(
    ("name", "d_k", "d_v", "sizes"),
    [
        ("gated_delta_rule", 128, 128, (16, 1, 4, 32)),
        ("gated_delta_rule", 256, 128, (8, 1, 4, 64)),
        ("gated_delta_rule", 96, 60, (16, 1, 4, 32)),
        ("gated_delta_rule", 64, 16, (16, 1, 4, 16)),
        ("gated_delta_rule", 16, 128, (128, 1, 1, 16)),
        ("kda", 128, 128, (64, 4, 4, 32)),
        ("kda", 32, 16, (16, 1, 2, 16)),
        ("gated_oja", 128, 128, (64, 4, 1, 128)),
    ],
)
def test_a_thread_holds_as_much_of_the_state_whatever_its_shape(
    name: str, d_k: int, d_v: int, sizes: tuple[int, ...]
) -> None:
    found = tile(name, d_k, d_v)
    assert (found.rows, found.warps, found.pieces, found.piece) == sizes
    assert found.rows * found.pieces * found.piece <= 2048 * found.warps


@pytest.mark.parametrize(("name", "d_k"), [("gated_delta_rule", 128), ("gdn", 96)])
def test_a_read_of_the_state_takes_few_steps_between_lanes(
    name: str, d_k: int, pool: CompilePool
) -> None:
    """Four rows per thread, three steps each, the key's norm, what is picked from the path. With
    all lanes along the keys it would be five steps for each of sixteen rows."""
    lowered = made(name, d_k, 128)
    spec = next(spec for spec in lowered.specs() if spec.name == "commit")
    (result,) = pool.run([Job(lowered.text, spec, target("sm_90"))])
    assert isinstance(result, CompiledKernel), result
    assert len(re.findall(r"shfl\.sync", result.assembly)) <= 4 * 3 + 24
    assert not result.spills


@pytest.mark.parametrize("name", ["gated_delta_rule", "gdn", "comba", "mamba2"])
def test_the_loop_over_the_path_picks_its_scalars(name: str) -> None:
    """Gates are computed for the whole path before it."""
    text = next(k.text for k in made(name, 128, 128).kernels if k.name == "commit")
    prologue, loop = text.rsplit("for step in range(length):", 1)
    loop = loop.split("if (unit >=")[0]
    assert "tl.exp(" in prologue
    assert "tl.exp(" not in loop and "tl.log(" not in loop
    assert "tl.gather(gates, " in loop


def test_the_tile_is_multiplied_by_decays_on_a_branch_alone() -> None:
    """Where it is stored, and on one branch, whose barrier keeps the assembler from turning it into
    predicated instructions of every step."""
    lowered = made("gated_delta_rule", 128, 128)
    text = next(k.text for k in lowered.kernels if k.name == "commit")
    assert text.count("tile * owed") == 3 and "tile * gate" not in text
    branch = text.split("if (owed < ")[1].split("# u: ")[0]
    assert "tl.debug_barrier()" in branch


@pytest.mark.parametrize("name", ["gated_delta_rule", "comba"])
def test_what_is_read_before_the_decay_is_read_before_the_tile_takes_it(name: str) -> None:
    text = next(k.text for k in made(name, 128, 128).kernels if k.name == "commit")
    loop = text.rsplit("for step in range(length):", 1)[1]
    early = re.search(r"seen = owed \* tl.sum", loop)
    plan = made(name, 128, 128).plan
    assert bool(early) == any(not pair.after_decay for pair in plan.pairs)
    if early:
        assert early.start() < loop.index("owed = owed * ")


def test_scalars_that_need_vectors_stay_in_the_loop() -> None:
    text = next(k.text for k in made("gated_delta_rule", 128, 128).kernels if k.name == "commit")
    loop = text.rsplit("for step in range(length):", 1)[1]
    assert "tl.rsqrt(" in loop


@pytest.mark.parametrize(("nodes", "depth", "lanes"), [(64, 8, 16), (32, 31, 32), (256, 63, 64)])
def test_a_lane_for_every_step_of_the_longest_path(nodes: int, depth: int, lanes: int) -> None:
    lowered = lower(boleir.load("delta_rule"), Shapes(1, 1, 32, 16, nodes, depth))
    context = Context(lowered.plan, lowered.shapes, lowered.schedule)
    assert most_steps(context) == lanes
