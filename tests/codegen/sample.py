"""A small emitted module and its specifications, for tests of what surrounds the compiler."""

from __future__ import annotations

from boleir.codegen.artifact import Artifact, TargetBuild, collect
from boleir.codegen.kernel_spec import CompiledKernel, KernelSpec
from boleir.codegen.launch_spec import LaunchSpec
from boleir.codegen.targets import TARGETS

SOURCE = '''"""Two kernels."""

import triton
import triton.language as tl

ROWS = tl.constexpr(32)


@triton.jit
def scaled(x):
    return x * 2.0


@triton.jit
def add(x_ptr, y_ptr, out_ptr, count, stride, factor, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < count)
    y = tl.load(y_ptr + at * stride, mask=at < count)
    tl.store(out_ptr + at, scaled(x) * factor + y, mask=at < count)


@triton.jit
def product(a_ptr, b_ptr, out_ptr):
    i = tl.arange(0, ROWS)
    at = i[:, None] * ROWS + i[None, :]
    tl.store(out_ptr + at, tl.dot(tl.load(a_ptr + at), tl.load(b_ptr + at)))
'''

ADD = KernelSpec(
    name="add",
    signature={
        "x_ptr": "*fp32",
        "y_ptr": "*fp32",
        "out_ptr": "*fp32",
        "count": "i32",
        "stride": "i64",
        "factor": "fp32",
    },
    constants={"BLOCK": 256},
    aligned=("x_ptr", "y_ptr", "out_ptr"),
    label="blocks of 256",
)
PRODUCT = KernelSpec(
    name="product",
    signature={"a_ptr": "*bf16", "b_ptr": "*bf16", "out_ptr": "*fp32"},
    aligned=("a_ptr", "b_ptr", "out_ptr"),
    num_warps=1,
)


def fake_kernel(spec: KernelSpec, target: str, binary: bytes = b"binary") -> CompiledKernel:
    """A compilation result without a compiler."""
    return CompiledKernel(
        name=spec.name,
        target=target,
        binary=binary,
        assembly="// assembly",
        entry=f"{spec.name}_entry",
        num_warps=spec.num_warps,
        shared=1024,
        registers=40,
        spills=0,
        seconds=0.25,
        triton="3.9.0",
        assembler="13.0" if TARGETS[target].backend == "cuda" else "",
    )


def launch(spec: KernelSpec, target: str = "sm_90") -> LaunchSpec:
    """How the fake result is launched."""
    return LaunchSpec.of(spec, fake_kernel(spec, target), ("cdiv(count, 256)", "batch", "1"))


def artifact(*targets: str, sources: dict[str, str] | None = None) -> Artifact:
    """A folder's content for both kernels, without a compiler."""
    builds = [
        TargetBuild(
            target,
            (sources or {}).get(target, SOURCE),
            {"b_v": 64},
            [
                (launch(spec, target), fake_kernel(spec, target, f"{spec.name} {target}".encode()))
                for spec in (ADD, PRODUCT)
            ],
        )
        for target in targets
    ]
    return collect(
        builds,
        name="sample",
        recurrence="recurrence sample()",
        closed_form="o = 0",
        shapes={"d_k": 64},
        dtypes={"input": "bfloat16"},
        extra={"steps": [1, 2]},
    )
