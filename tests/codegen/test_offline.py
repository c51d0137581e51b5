"""Offline compilation: real kernels, every target, every way to fail."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from boleir.codegen.binary_facts import never_returns
from boleir.codegen.kernel_spec import (
    CompiledKernel,
    CompilerCrash,
    CompilerTimeout,
    Job,
    KernelError,
    KernelSpec,
)
from boleir.codegen.offline import (
    CompilePool,
    all_compiled,
    compile_kernels,
    compiler_environment,
)
from boleir.codegen.resources import SharedMemoryLimit
from boleir.codegen.targets import TARGETS
from boleir.errors import BoleirError, CompileError
from tests.codegen.sample import ADD, PRODUCT, SOURCE

SM90 = TARGETS["sm_90"]


@pytest.fixture(scope="module")
def everywhere(pool: CompilePool) -> dict[str, CompiledKernel]:
    jobs = [Job(SOURCE, PRODUCT, target) for target in TARGETS.values()]
    return {kernel.target: kernel for kernel in all_compiled(pool.run(jobs))}


@pytest.mark.parametrize("name", TARGETS)
def test_every_target_compiles(everywhere: dict[str, CompiledKernel], name: str) -> None:
    kernel = everywhere[name]
    assert kernel.binary.startswith(b"\x7fELF")
    assert kernel.entry == "product"
    assert kernel.registers is not None
    assert 0 < kernel.registers <= TARGETS[name].registers_per_thread
    assert kernel.spills == 0
    assert (f".target {name}" if name.startswith("sm_") else name) in kernel.assembly
    assert (kernel.assembler != "") == name.startswith("sm_")


def test_facts_are_plain_and_leave_the_binary_out(everywhere: dict[str, CompiledKernel]) -> None:
    facts = everywhere["sm_90"].facts
    assert facts["size"] == len(everywhere["sm_90"].binary)
    assert {"registers", "spills", "shared", "seconds", "num_warps"} <= set(facts)
    assert all(isinstance(value, str | int | float | None) for value in facts.values())


def test_binaries_do_not_depend_on_paths_or_processes() -> None:
    first, second = (compile_kernels(SOURCE, [ADD], SM90)[0] for _ in range(2))
    assert first.binary == second.binary
    assert b"boleir-" not in first.binary


def test_results_come_in_the_order_asked_for(pool: CompilePool) -> None:
    seen: list[tuple[int, int]] = []
    kernels = compile_kernels(
        SOURCE,
        [PRODUCT, ADD, PRODUCT],
        SM90,
        pool=pool,
        progress=lambda done, total, _: seen.append((done, total)),
    )
    assert [kernel.name for kernel in kernels] == ["product", "add", "product"]
    assert seen == [(1, 3), (2, 3), (3, 3)]


def test_options_reach_the_compiler(pool: CompilePool) -> None:
    wide = pool.compile(Job(SOURCE, replace(ADD, num_warps=8), SM90))
    assert wide.num_warps == 8
    assert ".reqntid 256" in wide.assembly or ".maxntid 256" in wide.assembly
    fused = pool.compile(Job(SOURCE, ADD, SM90)).assembly
    plain = pool.compile(Job(SOURCE, replace(ADD, fp_fusion=False), SM90)).assembly
    assert "fma.rn.f32" in fused
    assert "fma.rn.f32" not in plain


def test_arguments_are_never_specialised_away(pool: CompilePool) -> None:
    assembly = pool.compile(Job(SOURCE, ADD, SM90)).assembly
    header = assembly[assembly.index(".entry") : assembly.index("{", assembly.index(".entry"))]
    assert header.count(".param") == len(ADD.signature) + 2


def _fails(pool: CompilePool, spec: KernelSpec, source: str = SOURCE, target=SM90) -> KernelError:
    with pytest.raises(KernelError) as caught:
        pool.compile(Job(source, spec, target))
    message = str(caught.value)
    assert len(message.splitlines()) == 1
    assert message.startswith(f"{spec.name} for {target.name}")
    assert len(message) < 700
    return caught.value


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"name": "nothing"}, "no kernel called nothing"),
        ({"name": "ROWS"}, "no kernel called ROWS"),
        ({"constants": {}}, "arguments without a type: BLOCK"),
        ({"constants": {"BLOCK": 256, "EXTRA": 1}}, "no such argument: EXTRA"),
        ({"options": {"warp_count": 4}}, "unknown compiler option: warp_count"),
    ],
)
def test_wrong_specifications(pool: CompilePool, change: dict[str, object], reason: str) -> None:
    assert reason in _fails(pool, replace(ADD, **change)).reason


def test_a_mistake_in_a_kernel_names_the_line(pool: CompilePool) -> None:
    source = SOURCE.replace("return x * 2.0", "return x * missing")
    error = _fails(pool, ADD, source)
    assert error.line == source[: source.index("missing")].count("\n") + 1
    assert "missing" in error.reason


def test_types_that_do_not_fit(pool: CompilePool) -> None:
    spec = replace(PRODUCT, signature={**PRODUCT.signature, "b_ptr": "*fp32"})
    error = _fails(pool, spec)
    assert error.line == SOURCE[: SOURCE.index("tl.dot")].count("\n") + 1
    assert "dtype" in error.reason


def test_the_schedule_is_named(pool: CompilePool) -> None:
    assert "(blocks of 256)" in str(_fails(pool, replace(ADD, constants={"BLOCK": 100})))


def test_modules_that_do_not_import(pool: CompilePool) -> None:
    assert "syntax error" in _fails(pool, ADD, "def broken(:\n").reason
    assert "ZeroDivisionError" in _fails(pool, ADD, "1 / 0").reason


def test_the_assemblers_complaint_is_one_line(pool: CompilePool) -> None:
    error = _fails(pool, replace(ADD, options={"ptx_options": "--no-such-option"}))
    assert "ptxas" in error.reason
    assert ".visible" not in error.reason


def test_too_much_shared_memory_is_refused_after_compiling(pool: CompilePool) -> None:
    source = SOURCE.replace("constexpr(32)", "constexpr(256)")
    with pytest.raises(SharedMemoryLimit, match=r"product: shared memory per block"):
        pool.compile(Job(source, replace(PRODUCT, num_warps=8, num_stages=1), TARGETS["sm_120"]))


def test_a_crash_of_the_compiler_is_an_error_and_the_pool_goes_on(pool: CompilePool) -> None:
    source = SOURCE + "\nimport os, sys\nprint('LLVM ERROR: no', file=sys.stderr)\nos.abort()\n"
    with pytest.raises(CompilerCrash, match="SIGABRT: LLVM ERROR: no"):
        pool.compile(Job(source, ADD, SM90))
    assert pool.compile(Job(SOURCE, ADD, SM90)).name == "add"


def test_a_hang_of_the_compiler_ends() -> None:
    job = Job("import time\ntime.sleep(600)\n", ADD, SM90)
    with (
        CompilePool(workers=1, timeout=1.0) as pool,
        pytest.raises(CompilerTimeout, match="no result after 1 s"),
    ):
        pool.compile(job)


def test_failures_keep_their_place(pool: CompilePool) -> None:
    bad = replace(ADD, name="nothing")
    results = pool.run([Job(SOURCE, spec, SM90) for spec in (ADD, bad, ADD)])
    assert [isinstance(result, BoleirError) for result in results] == [False, True, False]
    with pytest.raises(KernelError, match="nothing"):
        all_compiled(results)
    with pytest.raises(KernelError, match="nothing"):
        compile_kernels(SOURCE, [ADD, bad], SM90, pool=pool)


def test_nothing_to_do(pool: CompilePool) -> None:
    assert compile_kernels(SOURCE, [], SM90, pool=pool) == []


@pytest.mark.parametrize(
    "change",
    [
        {"signature": {"x_ptr": "*float"}},
        {"signature": {"x_ptr": "bf16"}},
        {"aligned": ("nowhere",)},
    ],
)
def test_specifications_are_checked_when_made(change: dict[str, object]) -> None:
    with pytest.raises(CompileError, match="kernel add"):
        replace(ADD, **change)


def test_the_users_debugging_switches_do_not_reach_the_compiler(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in ("TRITON_INTERPRET", "TRITON_OVERRIDE_ARCH", "MLIR_ENABLE_DUMP", "USE_IR_LOC"):
        monkeypatch.setenv(name, "1")
    monkeypatch.setenv("TRITON_PTXAS_PATH", "/opt/ptxas")
    monkeypatch.setenv("TRITON_CACHE_DIR", "/somewhere")
    made = compiler_environment(tmp_path)
    assert "TRITON_INTERPRET" not in made
    assert "TRITON_OVERRIDE_ARCH" not in made
    assert "MLIR_ENABLE_DUMP" not in made
    assert "USE_IR_LOC" not in made
    assert made["TRITON_PTXAS_PATH"] == "/opt/ptxas"
    assert made["TRITON_CACHE_DIR"].startswith(str(tmp_path))
    assert made["PATH"] == os.environ["PATH"]


def test_an_interpreting_parent_still_compiles(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRITON_INTERPRET", "1")
    assert compile_kernels(SOURCE, [ADD], SM90)[0].size > 0


def test_what_is_compiled_to_a_trap_is_noticed() -> None:
    """Compilers do that with code that they take for impossible."""
    head = ".visible .entry verify(\n)\n{\n// %bb.0:\n"
    assert never_returns(head + "\ttrap;\n}\n")
    assert not never_returns(head + "\tst.global.b32 \t[%rd1], %r1;\n\tret;\n}\n")
