"""The lowering as a whole: its steps, its kernels, what they take."""

from __future__ import annotations

import pytest

import boleir
from boleir.codegen.interface import interface_of
from boleir.codegen.kernel_spec import CompiledKernel, Job
from boleir.codegen.launch_spec import evaluate_grid
from boleir.codegen.offline import CompilePool
from boleir.codegen.pipeline import STEPS, Lowered, lower
from boleir.codegen.request import Shapes
from boleir.codegen.schedule import Schedule
from boleir.codegen.targets import target

QWEN = Shapes(16, 32, 128, 128, 64, 8)
SPLIT = {"fusion": "split", "solver": "inverse"}


def made(name: str, shapes: Shapes = QWEN, on: str = "sm_90", **fields: object) -> Lowered:
    schedule = Schedule(**fields) if fields else None  # type: ignore[arg-type]
    return lower(boleir.load(name), shapes, schedule=schedule, target=target(on))


def test_every_step_is_shown_in_order() -> None:
    seen: list[str] = []
    lower(boleir.load("gdn"), QWEN, watch=lambda step, _: seen.append(step))
    assert tuple(seen) == STEPS


def test_kernels_come_in_launch_order() -> None:
    split = made("gdn", **SPLIT)
    assert [k.name for k in split.kernels] == ["prepare", "factors", "values", "commit"]
    assert [k.name for k in made("gdn").kernels] == ["prepare", "verify", "commit"]
    small = Shapes(16, 32, 128, 128, 16, 5)
    assert [k.name for k in made("gdn", small).kernels] == ["prepare", "verify", "commit"]
    inline = made("gated_delta_rule", small, b_v=32, node_block=16, gates="inline")
    assert [k.name for k in inline.kernels] == ["verify", "commit"]
    with pytest.raises(KeyError):
        inline.kernel("prepare")


def test_programs_of_a_launch() -> None:
    lowered = made("gdn", **SPLIT)
    grids = {k.name: evaluate_grid(k.grid, {"batch": 3, "layers": 2})[0] for k in lowered.kernels}
    tiles = -(-128 // lowered.schedule.b_v)
    assert grids["factors"] == 32 * 3
    assert grids["values"] == 32 * tiles * 3
    assert grids["prepare"] == ((16 + 16 + 32) * 4 + 32 // 2) * 3
    assert grids["commit"] % (3 * 2) == 0


def test_programmatic_launch_only_where_the_target_has_it() -> None:
    assert "gdc_wait" in made("gdn").text
    for name in ("sm_80", "gfx942"):
        lowered = made("gdn", on=name)
        assert not lowered.schedule.pdl and "gdc" not in lowered.text
    assert "gdc" not in lower(boleir.load("gdn"), QWEN).text


def test_specifications_name_aligned_arguments() -> None:
    for spec in made("gdn").specs():
        assert set(spec.aligned) <= set(spec.signature)
        assert all(n in spec.aligned for n, kind in spec.signature.items() if kind[0] == "*")
    prepare = made("gdn").specs()[0]
    assert "q_stride" in prepare.aligned and "a_stride" not in prepare.aligned


def test_looped_kernels_keep_unknowns_whatever_the_commit() -> None:
    big = Shapes(4, 12, 96, 60, 200, 12)
    face = interface_of(made("gdn", big))
    assert face.unknowns == 1 and "unknowns" not in face.table
    stored = interface_of(made("gdn", big, b_v=32, b_k=128, commit="factors"))
    assert stored.unknowns == 1 and "unknowns" in stored.table
    assert interface_of(made("gdn")).unknowns == 0
    assert interface_of(made("mamba2", big)).unknowns == 0
    product = interface_of(made("gated_delta_product", big))
    assert product.unknowns == 2


@pytest.mark.parametrize("on", ["sm_80", "sm_90", "sm_100", "sm_120", "sm_121", "gfx942"])
def test_gdn_compiles_for_every_target(on: str, pool: CompilePool) -> None:
    lowered = made("gdn", Shapes(16, 32, 128, 128, 16, 5), on)
    jobs = [Job(lowered.text, spec, target(on)) for spec in lowered.specs()]
    for result in pool.run(jobs):
        assert isinstance(result, CompiledKernel), result


def test_many_nodes_compile_in_seconds(pool: CompilePool) -> None:
    lowered = made("gdn", Shapes(4, 12, 96, 60, 256, 12))
    specs = [spec for spec in lowered.specs() if spec.name in ("factors", "values")]
    jobs = [Job(lowered.text, spec, target("sm_90")) for spec in specs]
    for result in pool.run(jobs):
        assert isinstance(result, CompiledKernel), result
        assert result.size < 200_000
        assert result.seconds < 40
        assert result.spills is None or result.spills < 1500
