"""Two ways to run the kernels of a layer: started as binaries, or interpreted on the CPU.

Both take the arguments of a call as one flat list in the order of `ARGUMENTS`, from which every
kernel picks its own. For binaries a tensor in that list is its address.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from operator import itemgetter
from typing import Any, Protocol

import torch

from boleir.codegen.launch_spec import compile_grid
from boleir.errors import LaunchError
from boleir.runtime.launcher import Launcher

SIZES = ("batch", "layers")
"""The integers a grid is computed from."""

Values = Sequence[Any]
"""Arguments of one call: addresses (or tensors, interpreted), then integers."""


class Program(Protocol):
    """The kernels of one variant on one device."""

    interpreted: bool

    def bind(self, kernel: str, names: Sequence[str]) -> Callable[[int, int, Values], None]:
        """A function that starts `kernel` with batch, layers and the values called `names`."""


class BinaryProgram:
    """Kernels loaded from binaries."""

    interpreted = False

    def __init__(self, launchers: Mapping[str, Launcher], device: int) -> None:
        from boleir.runtime.streams import stream_getter

        self._launchers = launchers
        self._device = device
        self._stream = stream_getter()

    def bind(self, kernel: str, names: Sequence[str]) -> Callable[[int, int, Values], None]:
        """See `Program.bind`."""
        launcher = self._launchers.get(kernel)
        if launcher is None:
            raise LaunchError(f"no kernel {kernel!r} was loaded")
        pick = _picker(kernel, launcher.spec.arguments, names)
        stream, device = self._stream, self._device

        def start(batch: int, layers: int, values: Values) -> None:
            launcher((batch, layers), stream(device), *pick(values))

        return start


class InterpretedProgram:
    """The functions of an emitted module, run by Triton's interpreter."""

    interpreted = True

    def __init__(
        self,
        module: Any,
        arguments: Mapping[str, tuple[str, ...]],
        grids: Mapping[str, tuple[str, str, str]],
    ) -> None:
        self._module = module
        self._arguments = arguments
        self._grids = grids

    def bind(self, kernel: str, names: Sequence[str]) -> Callable[[int, int, Values], None]:
        """See `Program.bind`."""
        function = getattr(self._module, kernel)
        pick = _picker(kernel, self._arguments[kernel], names)
        grid = compile_grid(self._grids[kernel], SIZES)

        def start(batch: int, layers: int, values: Values) -> None:
            size = grid(batch, layers)
            if size[0] * size[1] * size[2]:
                function[size](*pick(values))

        return start


def addresses(tensors: Sequence[torch.Tensor]) -> list[int]:
    """Addresses of tensors. Raises `LaunchError` for one that is not a multiple of 16 bytes."""
    found = [tensor.data_ptr() for tensor in tensors]
    every = 0
    for address in found:
        every |= address
    if every & 15:
        raise LaunchError("misaligned")
    return found


def _picker(kernel: str, wanted: Sequence[str], names: Sequence[str]) -> Callable[[Values], Any]:
    """Picks a kernel's arguments, in its order, out of the values of a call."""
    places = {name: place for place, name in enumerate(names)}
    missing = [name for name in wanted if name not in places]
    if missing:
        raise LaunchError(f"kernel {kernel} takes {missing[0]!r}, which no caller provides")
    return itemgetter(*(places[name] for name in wanted))
