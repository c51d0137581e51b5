"""A driver that records launches by reading the memory it is given, as the real one would."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass, field
from typing import Any

from boleir.runtime.driver import LaunchConfig


@dataclass(frozen=True)
class Launch:
    """One launch as the driver saw it; `parameters` are the raw eight bytes of each."""

    function: int
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    shared: int
    stream: int | None
    attributes: tuple[tuple[int, int], ...]
    parameters: tuple[bytes, ...]


@dataclass
class FakeDriver:
    """Reads `parameter_count` parameters of each launch, answers with the next status (or 0)."""

    parameter_count: int = 0
    statuses: list[int] = field(default_factory=list)
    launches: list[Launch] = field(default_factory=list)
    binaries: list[bytes] = field(default_factory=list)
    entries: list[str] = field(default_factory=list)
    shared: dict[int, int] = field(default_factory=dict)
    used: list[int] = field(default_factory=list)

    def load(self, binary: bytes, device: int) -> int:
        """Remember the binary."""
        self.binaries.append(binary)
        return len(self.binaries)

    def use(self, device: int) -> None:
        """Remember the device."""
        self.used.append(device)

    def function(self, module: int, entry: str) -> int:
        """Remember the entry."""
        self.entries.append(entry)
        return 100 + module

    def allow_shared(self, function: int, size: int) -> None:
        """Remember the size."""
        self.shared[function] = size

    def launch(self, config: Any, function: int, parameters: Any, extra: None) -> int:
        """Read everything through the raw addresses."""
        seen = LaunchConfig.from_address(config)
        pointers = (ctypes.c_void_p * self.parameter_count).from_address(parameters)
        self.launches.append(
            Launch(
                function,
                (seen.grid_x, seen.grid_y, seen.grid_z),
                (seen.block_x, seen.block_y, seen.block_z),
                seen.shared,
                seen.stream,
                tuple(
                    (seen.attributes[i].id, seen.attributes[i].value[0]) for i in range(seen.count)
                ),
                tuple(ctypes.string_at(pointer, 8) for pointer in pointers),
            )
        )
        return self.statuses.pop(0) if self.statuses else 0

    def explain(self, status: int) -> str:
        """A name."""
        return f"CUDA_ERROR_{status}"
