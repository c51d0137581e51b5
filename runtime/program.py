"""Two ways to run the kernels of a layer: started as binaries, or interpreted on the CPU.

Both take the arguments of a call as one flat list, tensors first, from which every kernel picks its
own. For binaries a tensor in that list is its address.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from operator import itemgetter
from typing import Any, Protocol

from boleir.codegen.launch_spec import compile_grid
from boleir.errors import LaunchError
from boleir.runtime.launcher import Launcher
from boleir.runtime.launches import KernelSequence, Launches

SIZES = ("batch", "layers")
"""The integers a grid is computed from."""

Values = list[Any]
"""Arguments of one call: addresses (or tensors, interpreted), then integers."""

Start = Callable[[int, int, Values], None]
"""Starts one kernel: batch, layers, the values of the call."""


class Program(Protocol):
    """The kernels of one variant on one device."""

    interpreted: bool
    """Kernels take tensors, not addresses."""
    kernels: frozenset[str]
    """Names of the kernels there are."""

    def bind(self, kernel: str, names: Sequence[str]) -> Start:
        """How `kernel` is started with values that stand for `names`. Raises `LaunchError`."""

    def prepare(self, kernels: Sequence[str], names: Sequence[str], changing: int) -> Launches:
        """Kernels that start in a row with values for `names`, of which the first `changing` are
        addresses that differ from call to call. Not for interpreted kernels."""

    def on_device(self) -> bool:
        """Whether the calling thread's current device is the one the kernels were loaded on."""


class BinaryProgram:
    """Kernels loaded from binaries on one GPU; they start on torch's current stream."""

    interpreted = False

    def __init__(
        self,
        launchers: Mapping[str, Launcher],
        device: int,
        *,
        stream: Callable[[int], int] | None = None,
    ) -> None:
        self.kernels = frozenset(launchers)
        self._launchers = launchers
        self._device = device
        self._current: Callable[[], int] = lambda: device
        if stream is None:
            from boleir.runtime.streams import device_getter, stream_getter

            stream, self._current = stream_getter(), device_getter()
        self._stream = stream

    def bind(self, kernel: str, names: Sequence[str]) -> Start:
        """See `Program.bind`."""
        launcher = self._launchers.get(kernel)
        if launcher is None:
            raise LaunchError(f"no kernel {kernel!r} was loaded")
        pick = _picker(kernel, launcher.spec.arguments, names)
        stream, device = self._stream, self._device

        def start(batch: int, layers: int, values: Values) -> None:
            launcher((batch, layers), stream(device), *pick(values))

        return start

    def prepare(self, kernels: Sequence[str], names: Sequence[str], changing: int) -> Launches:
        """See `Program.prepare`."""
        launchers = [self._launchers[kernel] for kernel in kernels]
        return KernelSequence(launchers, names, changing, partial(self._stream, self._device))

    def on_device(self) -> bool:
        """See `Program.on_device`."""
        return self._current() == self._device


class InterpretedProgram:
    """The functions of an emitted module, run by Triton's interpreter."""

    interpreted = True

    def __init__(
        self,
        module: Any,
        arguments: Mapping[str, tuple[str, ...]],
        grids: Mapping[str, tuple[str, str, str]],
    ) -> None:
        self.kernels = frozenset(arguments)
        self._module = module
        self._arguments = arguments
        self._grids = grids

    def bind(self, kernel: str, names: Sequence[str]) -> Start:
        """See `Program.bind`."""
        function = getattr(self._module, kernel)
        pick = _picker(kernel, self._arguments[kernel], names)
        grid = compile_grid(self._grids[kernel], SIZES)

        def start(batch: int, layers: int, values: Values) -> None:
            size = grid(batch, layers)
            if size[0] * size[1] * size[2]:
                function[size](*pick(values))

        return start

    def prepare(self, kernels: Sequence[str], names: Sequence[str], changing: int) -> Launches:
        """See `Program.prepare`."""
        raise LaunchError("interpreted kernels take tensors: nothing can be prepared for them")

    def on_device(self) -> bool:
        """See `Program.on_device`."""
        return True


def _picker(kernel: str, wanted: Sequence[str], names: Sequence[str]) -> Callable[[Values], Any]:
    """Picks a kernel's arguments, in its order, out of the values of a call."""
    places = {name: place for place, name in enumerate(names)}
    missing = [name for name in wanted if name not in places]
    if missing:
        raise LaunchError(f"kernel {kernel} takes {missing[0]!r}, which no call provides")
    return itemgetter(*(places[name] for name in wanted))
