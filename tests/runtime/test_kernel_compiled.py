"""Kernels compiled for a GPU that is not there: saved, loaded without a compiler, started."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

import boleir
from boleir.errors import CacheError, CompileError, LaunchError, ScheduleError, SpecError
from boleir.runtime.kernel import Kernel
from tests.codegen.several_outputs import TEXTS

ROOT = Path(__file__).resolve().parent.parent.parent

SIZES = {"key_heads": 1, "value_heads": 2, "d_k": 32, "d_v": 32, "max_nodes": 16, "max_depth": 4}

_SERVE = """
import json, sys
from tests.runtime.serving import serve
print(json.dumps(serve(sys.argv[1])))
"""


@pytest.fixture(scope="module", params=["gdn", "two_queries"])
def kernel(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Kernel:
    """GDN, with one output and with two, for sm_90, with a cache folder of its own."""
    from boleir.runtime import cache_root

    name = request.param
    recurrence = boleir.parse(TEXTS[name]) if name in TEXTS else name
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("BOLEIR_CACHE", str(tmp_path_factory.mktemp("cache")))
        patch.delenv("TRITON_INTERPRET", raising=False)
        cache_root.cache_root.cache_clear()
        made = boleir.compile(recurrence, target="sm_90", **SIZES)
        again = boleir.compile(recurrence, target="sm_90", **SIZES)
    cache_root.cache_root.cache_clear()
    assert made.artifact is not None and again.artifact is not None
    assert made.artifact.files == again.artifact.files
    assert len(made.interface.outputs) == 1 + (name in TEXTS)
    return made


@pytest.fixture(scope="module")
def served(kernel: Kernel, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What a serving process without a compiler reports."""
    folder = kernel.save(tmp_path_factory.mktemp("saved") / "kernels")
    child = subprocess.run(
        [sys.executable, "-c", _SERVE, str(folder)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert child.returncode == 0, child.stderr[-3000:]
    found: dict[str, Any] = json.loads(child.stdout.splitlines()[-1])
    return found


def test_a_serving_process_imports_no_compiler(served: dict[str, Any]) -> None:
    assert served["imported"] == []


def test_kernels_start_in_order_and_commit_once(served: dict[str, Any], kernel: Kernel) -> None:
    layer = [name for name in kernel.interface.stages if name != "commit"]
    assert served["started"] == ["topology", *layer, *layer, "commit"]
    assert all(grid[0] > 0 and grid[1:] == [1, 1] for grid in served["grids"])


def test_kernels_get_the_addresses_of_the_tensors(served: dict[str, Any]) -> None:
    assert served["arguments"] == []


def test_a_kernel_for_an_absent_gpu_can_be_looked_at_but_not_run(kernel: Kernel) -> None:
    if torch.cuda.is_available():
        pytest.skip("the GPU may be present")
    assert "def commit(" in kernel.text
    assert "sm_90" in repr(kernel)
    tree = boleir.TreeBatch.from_parents([-1], max_nodes=16, max_depth=4)
    with pytest.raises(LaunchError, match="compiled for sm_90 and cannot run on this machine"):
        kernel.verify(tree, {}, kernel.pool(1, 1).layer(0), torch.zeros(1, dtype=torch.int32))


def test_loading_needs_binaries_for_the_target(kernel: Kernel, tmp_path: Path) -> None:
    folder = kernel.save(tmp_path / "kernels")
    with pytest.raises(CacheError, match="was not compiled for sm_80"):
        boleir.load_compiled(folder, target="sm_80")


def test_what_cannot_be_compiled_is_refused_with_a_mend(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TRITON_INTERPRET", raising=False)
    if not torch.cuda.is_available():
        with pytest.raises(CompileError, match="no GPU is present") as refused:
            boleir.compile("gdn", **SIZES)
        assert "TRITON_INTERPRET=1" in str(refused.value)
    with pytest.raises(CompileError, match="come from the tree"):
        boleir.compile("gdn", target="sm_90", tree="chain(4)", **SIZES)
    unbounded = {name: size for name, size in SIZES.items() if not name.startswith("max_")}
    with pytest.raises(CompileError, match="tree is a tuple") as refused:
        boleir.compile("gdn", target="sm_90", tree=(-1, 0, 0), **unbounded)
    assert "boleir.parents(-1, 0, 0)" in str(refused.value)
    with pytest.raises(ScheduleError, match="schedule is a int, expected a Schedule"):
        boleir.compile("gdn", target="sm_90", schedule=3, **SIZES)  # type: ignore[arg-type]
    with pytest.raises(SpecError, match="a function is no recurrence") as unknown:
        boleir.compile(lambda S, q: (S, S.T @ q), target="sm_90", **SIZES)  # type: ignore[arg-type]
    assert "@boleir.recurrence" in str(unknown.value)
    monkeypatch.setenv("TRITON_INTERPRET", "1")
    with pytest.raises(CompileError, match="bfloat16: the interpreter computes wrong numbers"):
        boleir.compile("gdn", dtype=torch.bfloat16, **SIZES)
    with pytest.raises(CompileError, match="bfloat16: the interpreter computes wrong numbers"):
        boleir.compile("gdn", dtype="bfloat16", **SIZES)


def test_interpreting_must_begin_before_triton_does() -> None:
    program = (
        "import os, triton, boleir\n"
        "os.environ['TRITON_INTERPRET'] = '1'\n"
        f"boleir.compile('gated_delta_rule', **{SIZES!r})"
    )
    environment = {k: v for k, v in os.environ.items() if k != "TRITON_INTERPRET"}
    child = subprocess.run(
        [sys.executable, "-c", program],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert "TRITON_INTERPRET was set after Triton was imported" in child.stderr
