"""Loading compiled folders, without a GPU and on one."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from boleir.codegen.artifact import TargetBuild, collect
from boleir.codegen.artifact_folder import ArtifactError, write
from boleir.codegen.launch_spec import LaunchSpec
from boleir.codegen.offline import CompilePool, compile_kernels
from boleir.errors import CacheError, LaunchError
from boleir.runtime.loader import device_target, load
from tests.codegen.sample import ADD, PRODUCT, SOURCE, artifact
from tests.runtime.fake_driver import FakeDriver

SIZES = ("batch", "count")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write(artifact("sm_80", "sm_90"), tmp_path / "out")


def test_the_binaries_of_the_target_reach_the_driver(folder: Path) -> None:
    driver = FakeDriver(8)
    kernels = load(folder, SIZES, target="sm_90", driver=driver)
    assert driver.binaries == [b"add sm_90", b"product sm_90"]
    assert driver.entries == ["add_entry", "product_entry"]
    assert driver.shared == {101: 1024, 102: 1024}
    kernels["add"]((2, 300), 5, 16, 32, 48, 300, 1, 2.0)
    assert driver.launches[0].function == 101
    assert driver.launches[0].grid == (2, 2, 1)


def test_sizes_may_differ_between_kernels(folder: Path) -> None:
    names = {"add": SIZES, "product": ("count", "other", "batch")}
    kernels = load(folder, names, target="sm_90", driver=FakeDriver())
    assert kernels["product"].sizes == names["product"]


def test_an_artifact_in_memory_loads_too() -> None:
    kernels = load(artifact("sm_90"), SIZES, target="sm_90", driver=FakeDriver())
    assert set(kernels.launchers) == {"add", "product"}
    assert kernels.artifact.files == {}


def test_unknown_kernels_are_named_with_the_known_ones(folder: Path) -> None:
    kernels = load(folder, SIZES, target="sm_90", driver=FakeDriver())
    with pytest.raises(LaunchError, match=r"no kernel 'solve'[\s\S]*add, product"):
        kernels["solve"]


def test_refusals(folder: Path) -> None:
    with pytest.raises(CacheError, match="not compiled for sm_120"):
        load(folder, SIZES, target="sm_120", driver=FakeDriver())
    with pytest.raises(LaunchError, match="only CUDA devices"):
        load(artifact("gfx942"), SIZES, target="gfx942", driver=FakeDriver())
    with pytest.raises(ArtifactError, match="not a compiled folder"):
        load(folder / "kernels", SIZES, target="sm_90", driver=FakeDriver())


def test_without_a_gpu_the_target_must_be_named(monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(LaunchError, match="no GPU"):
        device_target()


def test_loading_imports_no_compiler_and_no_algebra() -> None:
    program = (
        "import sys, boleir.runtime.loader\n"
        "heavy = {'triton', 'sympy', 'lark', 'networkx', 'torch', 'numpy'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout.strip() == "[]", done.stderr


@pytest.mark.gpu
def test_compiled_kernels_run(pool: CompilePool, tmp_path: Path) -> None:
    import torch

    from boleir.runtime.streams import stream_getter

    target = device_target()
    compiled = compile_kernels(SOURCE, [ADD, PRODUCT], target, pool=pool)
    grids = (("cdiv(count, 256)", "1", "1"), ("1", "1", "1"))
    launches = [
        LaunchSpec.of(spec, kernel, grid)
        for spec, kernel, grid in zip((ADD, PRODUCT), compiled, grids, strict=True)
    ]
    build = TargetBuild(target.name, SOURCE, {}, list(zip(launches, compiled, strict=True)))
    made = collect([build], name="s", recurrence="", closed_form="", shapes={}, dtypes={})
    kernels = load(write(made, tmp_path / "out"), ("count",))
    stream = stream_getter()(0)

    x, y = torch.randn(1000, device="cuda"), torch.randn(2000, device="cuda")
    out = torch.full((1000,), float("nan"), device="cuda")
    pointers = (x.data_ptr(), y.data_ptr(), out.data_ptr())
    kernels["add"]((1000,), stream, *pointers, 1000, 2, 3.0)
    torch.testing.assert_close(out, 6 * x + y[::2])

    a, b = (torch.randint(-2, 3, (32, 32), device="cuda").bfloat16() for _ in range(2))
    product = torch.full((32, 32), float("nan"), device="cuda")
    kernels["product"]((0,), stream, a.data_ptr(), b.data_ptr(), product.data_ptr())
    torch.testing.assert_close(product, a.float() @ b.float(), rtol=0, atol=0)
