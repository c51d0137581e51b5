"""Start a kernel with little work on the host: everything that can be prepared is.

A launcher owns one block of memory that holds the kernel's parameters, eight bytes each, and an
array of pointers into it, which is what the driver wants. A call packs all values in one go, fills
in grid and stream, and calls the driver. Packing checks the values for number and range by itself.

The binary's parameters are the arguments in order, then two scratch pointers of the compiler, which
are null: kernels that need scratch are refused when they are compiled.
"""

from __future__ import annotations

import ctypes
import struct
import threading
from collections.abc import Callable
from typing import Any

from boleir.codegen.kernel_spec import SCRATCH_POINTERS
from boleir.codegen.launch_spec import LaunchSpec, compile_grid
from boleir.errors import LaunchError
from boleir.runtime.driver import (
    NO_CONTEXT,
    PROGRAMMATIC_STREAM_SERIALIZATION,
    Driver,
    LaunchAttribute,
    LaunchConfig,
)

SLOT = 8
"""Bytes of a parameter slot; every type fits into one."""

MAX_GRID_YZ = 65535
MAX_GRID_X = 2**31 - 1

_CODES = {
    "i1": "?7x",
    "i8": "b7x",
    "u8": "B7x",
    "i16": "h6x",
    "u16": "H6x",
    "i32": "i4x",
    "u32": "I4x",
    "i64": "q",
    "u64": "Q",
    "fp32": "f4x",
    "fp64": "d",
}


class Launcher:
    """A kernel ready to be started: `launcher(grid, stream, *values)`.

    `sizes` names the integers the grid is computed from; `values` are the arguments in the order of
    `spec.arguments`, pointers as integers (`tensor.data_ptr()`). Safe to call from several threads.
    """

    __slots__ = (
        "_attributes",
        "_block",
        "_buffer",
        "_config",
        "_config_at",
        "_keep",
        "_lock",
        "_pack",
        "_parameters_at",
        "_start",
        "device",
        "driver",
        "function",
        "grid",
        "sizes",
        "spec",
    )

    def __init__(
        self,
        spec: LaunchSpec,
        function: int,
        driver: Driver,
        *,
        sizes: tuple[str, ...],
        device: int = 0,
        warp_size: int = 32,
    ) -> None:
        self.spec = spec
        self.sizes = sizes
        self.driver = driver
        self.function = function
        self.device = device
        self.grid: Callable[..., tuple[int, int, int]] = compile_grid(spec.grid, sizes)
        self._start = driver.launch
        self._lock = threading.Lock()
        count = len(spec.arguments) + SCRATCH_POINTERS
        self._buffer = ctypes.create_string_buffer(count * SLOT)
        base = ctypes.addressof(self._buffer)
        pointers = (ctypes.c_void_p * count)(*(base + SLOT * i for i in range(count)))
        self._parameters_at = ctypes.addressof(pointers)
        self._pack = struct.Struct("=" + "".join(map(_code, spec.types))).pack_into
        self._block = spec.num_warps * warp_size
        self._attributes = (LaunchAttribute * 1)()
        if spec.pdl:
            self._attributes[0].id = PROGRAMMATIC_STREAM_SERIALIZATION
            self._attributes[0].value[0] = 1
        self._config = self.new_config()
        self._config_at = ctypes.addressof(self._config)
        self._keep = pointers

    def new_config(self) -> LaunchConfig:
        """What the driver is told beside the values; grid and stream are still to be set."""
        config = LaunchConfig(block_x=self._block, block_y=1, block_z=1, shared=self.spec.shared)
        if self.spec.pdl:
            config.attributes = self._attributes
            config.count = 1
        return config

    def __call__(self, grid: tuple[int, ...], stream: int, *values: float) -> None:
        """Start the kernel on `stream` (a handle) with the grid that `grid` (as `sizes`) gives.

        An empty grid starts nothing. Raises `LaunchError`.
        """
        x, y, z = self.grid(*grid)
        if x * y * z == 0:
            return
        config = self._config
        with self._lock:
            try:
                self._pack(self._buffer, 0, *values)
            except struct.error as error:
                raise self._wrong_values(values, error) from None
            config.grid_x = x
            config.grid_y = y
            config.grid_z = z
            config.stream = stream
            status = self._start(self._config_at, self.function, self._parameters_at, None)
            if status == NO_CONTEXT:  # the first launch of a fresh thread
                self.driver.use(self.device)
                status = self._start(self._config_at, self.function, self._parameters_at, None)
        if status:
            raise self.failed(status, (x, y, z))

    def check(self, *values: float) -> None:
        """Refuse values that are too many, too few or too large. Raises `LaunchError`."""
        try:
            self._pack(bytearray(len(self._buffer)), 0, *values)
        except struct.error as error:
            raise self._wrong_values(values, error) from None

    def _wrong_values(self, values: tuple[Any, ...], error: struct.error) -> LaunchError:
        spec = self.spec
        if len(values) != len(spec.arguments):
            return LaunchError(
                f"kernel {spec.kernel}: {len(values)} values for {len(spec.arguments)} arguments "
                f"({', '.join(spec.arguments)})"
            )
        for name, spelled, value in zip(spec.arguments, spec.types, values, strict=True):
            try:
                struct.pack("=" + _code(spelled), value)
            except struct.error:
                return LaunchError(f"kernel {spec.kernel}: {name} is {value!r}, not a {spelled}")
        return LaunchError(f"kernel {spec.kernel}: {error}")

    def failed(self, status: int, grid: tuple[int, int, int]) -> LaunchError:
        """The error for a status of the driver."""
        x, y, z = grid
        name = self.driver.explain(status)
        reason = ""
        if min(grid) < 0 or x > MAX_GRID_X or y > MAX_GRID_YZ or z > MAX_GRID_YZ:
            reason = f" (a grid may have at most {MAX_GRID_X} x {MAX_GRID_YZ} x {MAX_GRID_YZ})"
        return LaunchError(f"kernel {self.spec.kernel} with grid {x} x {y} x {z}: {name}{reason}")


def _code(spelled: str) -> str:
    """The packing of one argument type."""
    return "Q" if spelled.startswith("*") else _CODES[spelled]
