"""Kernels of one layer, prepared to be started one after the other with values that they share.

Every value of a call has one place in a block of memory, and every kernel an array of pointers to
the places it reads, which is what the driver wants. What stays the same between calls (trees,
scratch, pool, strides, grids) is written once; a call writes the addresses that have changed and
enters the driver once per kernel.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from boleir.codegen.kernel_spec import SCRATCH_POINTERS
from boleir.errors import LaunchError
from boleir.runtime.driver import NO_CONTEXT

if TYPE_CHECKING:
    from boleir.runtime.launcher import Launcher

SLOT = 8
"""Bytes of a value's place."""

WORDS = frozenset({"i8", "u8", "i16", "u16", "i32", "u32", "i64", "u64"})
"""Types beside pointers that kernels may share places for: in little-endian order a narrow integer
is the beginning of the wide one."""


class Launches(Protocol):
    """What a call of a layer starts. One thread at a time may use it."""

    def fill(self, values: Sequence[Any], batch: int, layers: int) -> None:
        """Write all values, and the grids. Raises `LaunchError` for a value that does not fit."""

    def readdress(self, addresses: Sequence[int]) -> None:
        """Write the first values anew: as many addresses as were agreed on."""

    def start(self) -> None:
        """Start the kernels on the current stream. Raises `LaunchError`."""


class KernelSequence:
    """`launchers` in their order; `names` says what the values are, the first `changing` of them
    being addresses that differ from call to call."""

    def __init__(
        self,
        launchers: Sequence[Launcher],
        names: Sequence[str],
        changing: int,
        stream: Callable[[], int],
    ) -> None:
        for launcher in launchers:
            _require_shareable(launcher, names)
        self._launchers = launchers
        self._stream_now = stream
        self._launch = launchers[0].driver.launch if launchers else None
        self._places = {name: at for at, name in enumerate(names)}
        self._block = ctypes.create_string_buffer((len(names) + 1) * SLOT)  # the last stays null
        self._write_all = struct.Struct(f"={len(names)}q").pack_into
        self._write_first = struct.Struct(f"={changing}Q").pack_into
        base = ctypes.addressof(self._block)
        self._pointers = []
        for launcher in launchers:
            at = [self._places[name] for name in launcher.spec.arguments]
            at += [len(names)] * SCRATCH_POINTERS
            kind = ctypes.c_void_p * len(at)
            self._pointers.append(kind(*(base + SLOT * place for place in at)))
        self._configs = [launcher.new_config() for launcher in launchers]
        self._calls: list[tuple[int, int, int]] = []
        self._stream = -1

    def fill(self, values: Sequence[Any], batch: int, layers: int) -> None:
        """See `Launches.fill`."""
        for launcher in self._launchers:
            launcher.check(*(values[self._places[name]] for name in launcher.spec.arguments))
        self._write_all(self._block, 0, *map(_signed, values))
        self._calls = []
        pairs = zip(self._launchers, self._configs, self._pointers, strict=True)
        for launcher, config, pointers in pairs:
            config.grid_x, config.grid_y, config.grid_z = launcher.grid(batch, layers)
            if config.grid_x * config.grid_y * config.grid_z:
                call = (ctypes.addressof(config), launcher.function, ctypes.addressof(pointers))
                self._calls.append(call)

    def readdress(self, addresses: Sequence[int]) -> None:
        """See `Launches.readdress`."""
        self._write_first(self._block, 0, *addresses)

    def start(self) -> None:
        """See `Launches.start`."""
        stream = self._stream_now()
        if stream != self._stream:
            for config in self._configs:
                config.stream = stream
            self._stream = stream
        launch: Any = self._launch
        for at, function, pointers in self._calls:
            status = launch(at, function, pointers, None)
            if status:
                self._retry(status, at, function, pointers)

    def _retry(self, status: int, config: int, function: int, pointers: int) -> None:
        """A fresh thread gets its context; everything else is an error."""
        at = [ctypes.addressof(known) for known in self._configs].index(config)
        launcher, seen = self._launchers[at], self._configs[at]
        if status == NO_CONTEXT:
            launcher.driver.use(launcher.device)
            status = launcher.driver.launch(config, function, pointers, None)
        if status:
            raise launcher.failed(status, (seen.grid_x, seen.grid_y, seen.grid_z))


def _signed(value: int) -> int:
    """Addresses in the upper half, as eight signed bytes."""
    return value - (1 << 64) if value >= 1 << 63 else value


def _require_shareable(launcher: Launcher, names: Sequence[str]) -> None:
    spec = launcher.spec
    for name, kind in zip(spec.arguments, spec.types, strict=True):
        if name not in names:
            raise LaunchError(f"kernel {spec.kernel} takes {name!r}, which no call provides")
        if not kind.startswith("*") and kind not in WORDS:
            raise LaunchError(
                f"kernel {spec.kernel}: {name} is a {kind}; kernels of a layer take pointers and "
                "integers"
            )
