"""From a request to the content of a compiled folder."""

from __future__ import annotations

import pytest

import boleir
from boleir.codegen.artifact import Artifact
from boleir.codegen.build import build
from boleir.codegen.offline import CompilePool
from boleir.codegen.pipeline import STEPS
from boleir.codegen.request import Request, Shapes
from boleir.codegen.resources import SharedMemoryLimit
from boleir.codegen.schedule import InvalidSchedule
from boleir.codegen.targets import TARGETS, UnknownTarget
from boleir.errors import LaunchError
from boleir.runtime.loader import load
from tests.runtime.fake_driver import FakeDriver

SMALL = Shapes(key_heads=1, value_heads=2, d_k=32, d_v=16, max_nodes=8, max_depth=3)


def request(*targets: str, shapes: Shapes = SMALL) -> Request:
    return Request(boleir.load("gated_delta_rule"), shapes, targets)


@pytest.fixture(scope="module")
def seen() -> dict[str, list[str]]:
    return {"steps": [], "progress": []}


@pytest.fixture(scope="module")
def made(pool: CompilePool, seen: dict[str, list[str]]) -> Artifact:
    return build(
        request("sm_80", "sm_90"),
        progress=seen["progress"].append,
        show=lambda step, text: seen["steps"].append(step),
        assembly=True,
        pool=pool,
    )


def test_every_target_has_every_kernel(made: Artifact) -> None:
    assert [variant.target for variant in made.variants] == ["sm_80", "sm_90"]
    for variant in made.variants:
        names = [launch.kernel for launch in variant.launches]
        assert "commit" in names
        assert set(names) == set(variant.binaries) == set(variant.report)
        for name in names:
            assert made.binary(variant.target, name).startswith(b"\x7fELF")
            own = made.source(variant.target)
            text = made.files["topology.py"].decode() if name == "topology" else own
            assert f"def {name}(" in text


def test_the_folder_says_what_was_compiled(made: Artifact) -> None:
    assert made.name == "gated_delta_rule"
    assert boleir.parse(made.recurrence) == boleir.load("gated_delta_rule")
    assert "Theorem" in made.closed_form
    assert made.shapes["d_k"] == 32
    assert made.dtypes == {"vectors": "bfloat16", "state": "float32"}
    assert made.variants[0].schedule["b_k"] == 32


def test_programmatic_launch_only_where_the_target_has_it(made: Artifact) -> None:
    assert not any(launch.pdl for launch in made.variant("sm_80").launches)
    assert made.variant("sm_80").schedule["pdl"] is False


def test_listings_are_kept_when_asked_for(made: Artifact) -> None:
    assert b".entry commit(" in made.files["kernels/commit.sm_90.ptx"]


def test_steps_are_shown_once_and_progress_for_each_target(
    made: Artifact, seen: dict[str, list[str]]
) -> None:
    assert seen["steps"] == list(STEPS)
    assert {"lowering for sm_80", "lowering for sm_90"} <= set(seen["progress"])


def test_what_was_built_loads(made: Artifact) -> None:
    driver = FakeDriver()
    kernels = load(made, ("batch", "layers"), target="sm_90", driver=driver)
    assert set(kernels.launchers) == set(made.variant("sm_90").binaries)
    with pytest.raises(LaunchError, match="arguments"):
        kernels["commit"]((1, 1), 0)


def test_choices_replace_fields_of_the_default(pool: CompilePool) -> None:
    choices = {"warps": 1, "fusion": "fused", "solver": "levels"}
    made = build(request("sm_90"), choices=choices, pool=pool)
    schedule = made.variants[0].schedule
    assert (schedule["warps"], schedule["solver"], schedule["b_k"]) == (1, "levels", 32)


def test_impossible_requests_are_refused_before_compiling() -> None:
    class Untouchable(CompilePool):
        def run(self, *_: object, **__: object) -> list[object]:
            raise AssertionError("compiled")

    pool = Untouchable()
    with pytest.raises(UnknownTarget):
        build(request("sm_12"), pool=pool)
    with pytest.raises(InvalidSchedule, match="solver"):
        build(request("sm_90"), choices={"solver": "magic"}, pool=pool)
    wide = Shapes(key_heads=1, value_heads=1, d_k=512, d_v=512, max_nodes=64, max_depth=8)
    large = {"b_v": 512, "b_k": 512, "precision": "ieee"}
    with pytest.raises(SharedMemoryLimit, match=r"gated_delta_rule .*b_v=512") as caught:
        build(request("sm_120", shapes=wide), choices=large, pool=pool)
    assert caught.value.limit == TARGETS["sm_120"].shared_per_block
