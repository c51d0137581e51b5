"""The part of the CUDA driver that a launch needs, through ctypes: no compiler, no toolkit.

The launch entry points are called without releasing the interpreter lock: they return within
microseconds, and releasing it would cost more than the call. The names of structures and numbers
follow NVIDIA, CUDA Driver API ("Module Management", "Execution Control").
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable
from ctypes import c_int, c_uint, c_void_p
from typing import Any, Protocol

from boleir.errors import LaunchError

PROGRAMMATIC_STREAM_SERIALIZATION = 6
"""Identifier of the launch attribute for programmatic dependent launch."""

MAX_DYNAMIC_SHARED = 8
"""Identifier of the function attribute that opts in to large shared memory."""

DEFAULT_SHARED = 48 * 1024
"""Dynamic shared memory a kernel may use without opting in, bytes."""

NO_CONTEXT = 201
"""CUDA_ERROR_INVALID_CONTEXT: the calling thread has no current context."""


class LaunchAttribute(ctypes.Structure):
    """CUlaunchAttribute: an identifier, padding, and a union of 64 bytes."""

    _fields_ = (("id", c_int), ("pad", ctypes.c_char * 4), ("value", c_int * 16))


class LaunchConfig(ctypes.Structure):
    """CUlaunchConfig: grid, block, shared memory, stream and attributes of one launch."""

    _fields_ = (
        ("grid_x", c_uint),
        ("grid_y", c_uint),
        ("grid_z", c_uint),
        ("block_x", c_uint),
        ("block_y", c_uint),
        ("block_z", c_uint),
        ("shared", c_uint),
        ("stream", c_void_p),
        ("attributes", ctypes.POINTER(LaunchAttribute)),
        ("count", c_uint),
    )


Launch = Callable[[int, int, int, None], int]
"""Takes the address of a `LaunchConfig`, a kernel's handle, the address of pointers to its values,
and no further options; the driver's status, 0 for success."""


class Driver(Protocol):
    """What the loader and the launcher ask of a driver; tests provide their own."""

    def load(self, binary: bytes, device: int) -> int:
        """Load a binary into the primary context of `device`; a module handle."""

    def use(self, device: int) -> None:
        """Make the primary context of `device` current in this thread."""

    def function(self, module: int, entry: str) -> int:
        """Handle of a kernel of a module."""

    def allow_shared(self, function: int, size: int) -> None:
        """Let a kernel use `size` bytes of dynamic shared memory."""

    @property
    def launch(self) -> Launch:
        """Starts a kernel, as cuLaunchKernelEx does."""

    def explain(self, status: int) -> str:
        """The name of a status."""


class CudaDriver:
    """The real driver. Use `cuda_driver()`, which opens it once."""

    def __init__(self) -> None:
        try:
            self._library = ctypes.PyDLL("libcuda.so.1")
        except OSError:
            raise LaunchError("no CUDA driver on this machine (libcuda.so.1)") from None
        entry = self._library.cuLaunchKernelEx
        entry.argtypes = (c_void_p, c_void_p, c_void_p, c_void_p)
        entry.restype = c_int
        self.launch: Launch = entry  # itself, not a method: a call less on the way
        self._call("cuInit", c_uint(0))

    def _call(self, name: str, *arguments: Any) -> None:
        status = getattr(self._library, name)(*arguments)
        if status:
            raise LaunchError(f"{name} failed: {self.explain(status)}")

    def version(self) -> tuple[int, int]:
        """The CUDA version the driver supports, major and minor."""
        number = c_int()
        self._call("cuDriverGetVersion", ctypes.byref(number))
        return number.value // 1000, number.value % 1000 // 10

    def use(self, device: int) -> None:
        """Make the primary context of `device` current, unless a context of it already is."""
        wanted, current = c_int(), c_int(-1)
        self._call("cuDeviceGet", ctypes.byref(wanted), c_int(device))
        if self._library.cuCtxGetDevice(ctypes.byref(current)) == 0 and current.value == (
            wanted.value
        ):
            return
        context = c_void_p()
        self._call("cuDevicePrimaryCtxRetain", ctypes.byref(context), wanted)
        self._call("cuCtxSetCurrent", context)

    def load(self, binary: bytes, device: int) -> int:
        """Load a cubin into the primary context of `device`."""
        self.use(device)
        module = c_void_p()
        self._call("cuModuleLoadData", ctypes.byref(module), ctypes.c_char_p(binary))
        assert module.value is not None
        return module.value

    def function(self, module: int, entry: str) -> int:
        """Handle of the kernel `entry`."""
        found = c_void_p()
        name = entry.encode()
        self._call("cuModuleGetFunction", ctypes.byref(found), c_void_p(module), name)
        assert found.value is not None
        return found.value

    def allow_shared(self, function: int, size: int) -> None:
        """Opt in to more than the default 48 KiB of shared memory, where it is needed."""
        if size > DEFAULT_SHARED:
            self._call(
                "cuFuncSetAttribute", c_void_p(function), c_int(MAX_DYNAMIC_SHARED), c_int(size)
            )

    def explain(self, status: int) -> str:
        """The driver's name for a status, or its number."""
        text = ctypes.c_char_p()
        if self._library.cuGetErrorName(c_int(status), ctypes.byref(text)) or text.value is None:
            return f"status {status}"
        return text.value.decode()


@functools.cache
def cuda_driver() -> CudaDriver:
    """The driver of this machine. Raises `LaunchError` where there is none."""
    return CudaDriver()
