"""Which products `bolec doctor` tries, and how the process that tries them works.

The process (`python -m boleir.runtime.probes`, a `WorkerProcess`) is separate because a bad kernel
poisons the GPU context of its process, or hangs it. It also answers what GPUs torch sees, since a
broken driver can hang that as well.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from boleir.codegen.kernel_spec import KernelSpec
from boleir.codegen.launch_spec import LaunchSpec
from boleir.codegen.worker_process import serve

SIDE = 64
SEED = 20240


@dataclass(frozen=True, slots=True)
class Probe:
    """One kernel of `probe_kernels` with the inputs it gets and the error it may have.

    Small integers make every product and sum exact in every precision tried, so their tolerance is
    zero; `reals` (normal deviates) test the precision itself. Errors are relative (Frobenius norm).
    """

    kernel: str
    inputs: str
    tolerance: float
    answer: Callable[[Any, Any], Any]
    """The result from float64 matrices."""


def _product(a: Any, b: Any) -> Any:
    return a @ b


PROBES = (
    Probe("ieee", "reals", 1e-6, _product),
    Probe("tf32", "integers", 0.0, _product),
    Probe("bf16", "integers", 0.0, _product),
    Probe("split", "reals", 5e-5, _product),
    Probe("transposed", "integers", 0.0, lambda a, b: (a @ b).T @ b),
    Probe("chained", "integers", 0.0, lambda a, b: a @ b + b @ a),
)
WARPS = (4, 8)
SIGNATURE = {"a": "*fp32", "b": "*fp32", "out": "*fp32"}


def probe_specs() -> list[KernelSpec]:
    """Every probe with every number of warps, ready to be compiled."""
    return [
        KernelSpec(
            probe.kernel, SIGNATURE, aligned=("a", "b", "out"), num_warps=warps, num_stages=2
        )
        for probe in PROBES
        for warps in WARPS
    ]


def probe_source() -> str:
    """The text of the kernels."""
    return Path(__file__).with_name("probe_kernels.py").read_text(encoding="utf-8")


def relative_error(result: Any, expected: Any) -> float:
    """Frobenius norm of the difference over that of `expected`; infinite when not finite."""
    error = float((result.double() - expected).norm() / expected.norm())
    return error if error == error else float("inf")


def run_probe(request: Mapping[str, Any]) -> dict[str, Any]:
    """Run one compiled probe on the GPU; `error` is how far off it was."""
    import torch

    from boleir.runtime.loader import load_kernel
    from boleir.runtime.streams import stream_getter

    launch = LaunchSpec.from_json(request["launch"])
    probe = next(found for found in PROBES if found.kernel == launch.kernel)
    generator = torch.Generator().manual_seed(SEED)
    if probe.inputs == "integers":
        a, b = torch.randint(-2, 3, (2, SIDE, SIDE), generator=generator).float()
    else:
        a, b = torch.randn((2, SIDE, SIDE), generator=generator)
    left, right = a.cuda(), b.cuda()
    out = torch.full((SIDE, SIDE), float("nan"), device="cuda")
    launcher = load_kernel(launch, Path(request["binary"]).read_bytes(), ())
    launcher((), stream_getter()(0), left.data_ptr(), right.data_ptr(), out.data_ptr())
    torch.cuda.synchronize()
    return {"error": relative_error(out.cpu(), probe.answer(a.double(), b.double()))}


def list_gpus() -> dict[str, Any]:
    """What torch sees: its own version, CUDA's, and one entry per device."""
    import torch

    devices = []
    if torch.cuda.is_available():
        for index in range(torch.cuda.device_count()):
            facts = torch.cuda.get_device_properties(index)
            devices.append(
                {
                    "name": facts.name,
                    "capability": [facts.major, facts.minor],
                    "memory": facts.total_memory,
                    "multiprocessors": facts.multi_processor_count,
                }
            )
    return {"torch": torch.__version__, "cuda": torch.version.cuda, "devices": devices}


def answer(request: dict[str, Any]) -> dict[str, Any]:
    """One request: `{"do": "gpus"}` or `{"do": "probe", ...}`."""
    return list_gpus() if request["do"] == "gpus" else run_probe(request)


if __name__ == "__main__":
    serve(answer)
