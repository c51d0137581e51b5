"""Predicted microseconds of a schedule, good enough to decide what to try first.

A kernel's time is what a program must wait for (start, dependent steps, its own loads and products
with the warps it has), times how often the GPU is filled with programs, but never less than what
memory and matrix units need for all programs together. The kernel of the value tiles loads states
while the factors are still computed. The model knows nothing of the instructions that are emitted;
its order is what counts.

The constants were fitted to measurements on an NVIDIA H200 (16/32 heads, 128x128): above all to the
283 candidates of six tunings of the gated delta rule and of kda (`h200-autotune.json` in
`benchmarks/results`), less to earlier kernels and to schedules chosen by hand. Rank correlation
with the measurements (Spearman), on the very data of the fit:

    nodes, batch                  16, 1   64, 1   32, 16   64, 16
    candidates of tunings          0.85    0.86     0.03     0.76
    the same, kda                          0.46              0.57
    earlier kernels                0.72    0.35     0.62     0.82

The best candidate, or one within 1 %, is among the ten that the model puts first. Times themselves
are off by up to a factor of two: the order is what was fitted.
Other GPUs are scaled by multiprocessors, bandwidth and matrix throughput.
"""

from __future__ import annotations

from dataclasses import dataclass

from boleir.codegen.plan import Plan
from boleir.codegen.request import Shapes
from boleir.codegen.resources import occupancy, registers_available
from boleir.codegen.schedule import Schedule
from boleir.codegen.targets import Target
from boleir.runtime.tuning.work import Work, works


@dataclass(frozen=True, slots=True)
class Constants:
    """Microseconds and rates of the H200; found by the fit described above."""

    start: float = 0.04
    """Microseconds from one kernel's end until a program of the next has its first data."""
    bandwidth: float = 2.62e6
    """Bytes per microsecond of the whole GPU."""
    warp_read: float = 4.99e3
    """Bytes per microsecond that the loads of one warp reach."""
    warp_rate: float = 0.422e6
    """Operations per microsecond of one warp alone."""
    sm_rate: float = 47e6
    """Operations per microsecond of one multiprocessor."""
    step: float = 0.779
    """Microseconds that a product waits for the one before it."""
    gate: float = 0.445
    """Microseconds for the row scalars of 64 nodes inside a kernel."""
    chunk: float = 3.33
    """Microseconds that each further piece of the keys is waited for."""
    spill: float = 8.47
    """Exponent of (registers wanted / registers there)."""
    greed: float = 2.36
    """Registers the assembler takes where nothing stops it, relative to the estimate."""
    idle: float = 1.11
    """Exponent of (warps / warps with sixteen rows): what the others cost."""
    crowd: float = 0.0563
    """The same exponent for what a step costs more with them."""
    overlap: float = 60.7
    """Microseconds that the value tiles begin before the factors are there."""


H200 = Constants()

BANDWIDTH = {
    "sm_80": 0.42, "sm_86": 0.19, "sm_89": 0.18, "sm_90": 1.0, "sm_100": 1.67, "sm_120": 0.37,
    "sm_121": 0.06, "gfx942": 1.1,
}  # fmt: skip
"""Memory bandwidth relative to the H200's 4.8 TB/s, from the makers' data sheets."""

MATRIX_RATE = {
    "sm_80": 0.32, "sm_86": 0.22, "sm_89": 0.17, "sm_90": 1.0, "sm_100": 2.0, "sm_120": 0.17,
    "sm_121": 0.17, "gfx942": 0.57,
}  # fmt: skip
"""Dense 16-bit matrix throughput of one multiprocessor relative to the H200's."""


@dataclass(frozen=True, slots=True)
class Prediction:
    """Predicted microseconds of one layer, and of each kernel alone."""

    us: float
    kernels: dict[str, float]
    occupancy: int
    """Programs of the last kernel that share a multiprocessor."""


KernelTimes = dict[Work, tuple[float, int]]
"""What `kernel_us` gave, for one target and one set of constants."""


def predict(
    schedule: Schedule,
    plan: Plan,
    shapes: Shapes,
    target: Target,
    batch: int = 1,
    constants: Constants = H200,
    known: KernelTimes | None = None,
) -> Prediction:
    """How long one layer's verification takes for `batch` full requests on `target`. Kernels that
    are in `known` are not computed again, and new ones are added."""
    known = {} if known is None else known
    kernels: dict[str, float] = {}
    total, before, resident = 0.0, 0.0, 0
    for work in works(schedule, plan, shapes, batch):
        if work not in known:
            known[work] = kernel_us(work, target, constants)
        us, resident = known[work]
        joined, pdl = schedule.fusion == "joined", target.pdl and schedule.pdl
        early = work.kernel == "values" and schedule.folds and (joined or pdl)
        total += us - (min(before, us, constants.overlap) if early else 0.0)
        started = {"values": joined, "prepare": schedule.prepare != "launch"}
        total -= constants.start if started.get(work.kernel) else 0.0
        kernels[work.kernel] = before = us
    return Prediction(total, kernels, resident)


def kernel_us(work: Work, target: Target, constants: Constants = H200) -> tuple[float, int]:
    """Microseconds of one kernel, and how many of its programs share a multiprocessor."""
    available = registers_available(work.warps, target)
    allowed = min(available, work.cap) if work.cap else available
    wanted = work.footprint.registers(target)
    used = min(int(wanted * constants.greed), allowed)
    resident = max(1, occupancy(work.footprint, target, registers=used).blocks)
    spilling = max(1.0, wanted / allowed) ** constants.spill
    rate = MATRIX_RATE[target.name]
    useful = min(work.warps, max(1, work.rows // 16))
    waste = spilling * (work.warps / useful) ** constants.idle
    own = (
        constants.start
        + constants.gate * work.gated / 64
        + constants.chunk * (work.chunks - 1)
        + work.steps * constants.step * (work.warps / useful) ** constants.crowd
        + work.read / (constants.warp_read * work.warps)
        + waste * work.operations / (constants.warp_rate * rate * work.warps)
    )
    waves = max(1.0, work.programs / (target.multiprocessors * resident))
    memory = work.dram / (constants.bandwidth * BANDWIDTH[target.name])
    busy = work.programs * waste * work.operations
    matrix = busy / (constants.sm_rate * rate * min(target.multiprocessors, work.programs))
    return max(own * waves, memory + constants.start, matrix + constants.start), resident
