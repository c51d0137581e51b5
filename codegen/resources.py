"""Does a kernel fit on a GPU? Asked before compiling, from estimates, and after, from facts.

The estimate knows nothing of schedules: whoever plans a kernel says how much shared memory, how
many live values and how many warps it needs, and gets back how many such blocks fit on a
multiprocessor, or an error that names the limit and both numbers.
"""

from __future__ import annotations

from dataclasses import dataclass

from boleir.codegen.targets import Target
from boleir.errors import ScheduleError

FIXED_REGISTERS = 32
"""Registers a thread spends on addresses, indices and control before it holds any tile."""


class ResourceLimit(ScheduleError):
    """A variant needs more of something than the architecture has."""

    def __init__(self, what: str, needed: int, limit: int, unit: str, target: Target) -> None:
        super().__init__(f"{what}: {needed:,}{unit} needed, {target.name} allows {limit:,}")
        self.needed = needed
        self.limit = limit


class SharedMemoryLimit(ResourceLimit):
    """More shared memory than one block can have."""


class RegisterLimit(ResourceLimit):
    """More live values than the registers of a block can hold."""


class ThreadLimit(ResourceLimit):
    """More threads than one block can have."""


class TensorMemoryLimit(ResourceLimit):
    """More accumulators than fit into a multiprocessor's tensor memory."""


@dataclass(frozen=True, slots=True)
class Footprint:
    """What one block needs.

    `shared` bytes of shared memory; `live` 32-bit values that the whole block holds in registers at
    the worst moment, without `accumulators`; `warps` of the target's own size.
    """

    shared: int
    live: int
    warps: int
    accumulators: int = 0
    """32-bit values held in tensor memory where the target has one, in registers elsewhere."""

    def threads(self, target: Target) -> int:
        """Threads of one block."""
        return self.warps * target.warp_size

    def registers(self, target: Target) -> int:
        """Estimated registers per thread."""
        held = self.live + (0 if target.tensor_memory else self.accumulators)
        return FIXED_REGISTERS + -(-held // self.threads(target))


@dataclass(frozen=True, slots=True)
class Occupancy:
    """How many blocks one multiprocessor holds, and what stops it from holding more."""

    blocks: int
    limited_by: str
    """`shared`, `registers`, `threads`, `blocks` or `tensor memory`."""
    registers: int
    """Registers per thread the count assumes."""

    def warps(self, footprint: Footprint) -> int:
        """Resident warps of one multiprocessor."""
        return self.blocks * footprint.warps


def _check_threads(warps: int, target: Target) -> int:
    if warps < 1 or warps & (warps - 1):
        raise ScheduleError(f"warps must be a power of two, not {warps}", mend="1, 2, 4, 8 or 16")
    threads = warps * target.warp_size
    if threads > target.threads_per_block:
        raise ThreadLimit("threads per block", threads, target.threads_per_block, "", target)
    return threads


def registers_available(warps: int, target: Target) -> int:
    """The most registers a thread can have in a block of `warps` warps (allocated in eights)."""
    share = target.registers_per_sm // (warps * target.warp_size)
    return min(target.registers_per_thread, share - share % 8)


def check(footprint: Footprint, target: Target, *, spill: float = 1.0) -> Occupancy:
    """Refuse a footprint that cannot run on `target`; otherwise say how densely it packs.

    `spill` is how far the estimated registers may exceed the available ones (1.25 tolerates a
    quarter). Raises `SharedMemoryLimit`, `RegisterLimit`, `ThreadLimit` or `TensorMemoryLimit`.
    """
    _check_threads(footprint.warps, target)
    if footprint.shared > target.shared_per_block:
        raise SharedMemoryLimit(
            "shared memory per block", footprint.shared, target.shared_per_block, " bytes", target
        )
    if 4 * footprint.accumulators > target.tensor_memory > 0:
        raise TensorMemoryLimit(
            "tensor memory", 4 * footprint.accumulators, target.tensor_memory, " bytes", target
        )
    registers = footprint.registers(target)
    available = registers_available(footprint.warps, target)
    if registers > available * spill:
        raise RegisterLimit("registers per thread", registers, available, "", target)
    return occupancy(footprint, target, registers=min(registers, available))


def occupancy(footprint: Footprint, target: Target, *, registers: int | None = None) -> Occupancy:
    """How many such blocks are resident at once, with `registers` per thread if they are known."""
    used = footprint.registers(target) if registers is None else registers
    threads = footprint.threads(target)
    rounded = -(-used // 8) * 8
    counts = {
        "shared": target.shared_per_sm // max(1, footprint.shared + target.shared_reserved),
        "registers": target.registers_per_sm // max(1, rounded * threads),
        "threads": target.threads_per_sm // threads,
        "blocks": target.blocks_per_sm,
    }
    if target.tensor_memory and footprint.accumulators:
        counts["tensor memory"] = target.tensor_memory // (4 * footprint.accumulators)
    limited_by = min(counts, key=lambda name: counts[name])
    return Occupancy(counts[limited_by], limited_by, used)


def check_compiled(shared: int, warps: int, target: Target) -> None:
    """Refuse a compiled kernel that the driver would refuse to launch.

    The compiler does not compare with the limits when no GPU is present. `warps` may be any number
    here: warp specialisation adds some. Raises `SharedMemoryLimit` or `ThreadLimit`.
    """
    threads = warps * target.warp_size
    if threads > target.threads_per_block:
        raise ThreadLimit("threads per block", threads, target.threads_per_block, "", target)
    if shared > target.shared_per_block:
        raise SharedMemoryLimit(
            "shared memory per block", shared, target.shared_per_block, " bytes", target
        )
