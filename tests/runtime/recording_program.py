"""A kernel whose launches are recorded instead of run, to test what stands before them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

import boleir
from boleir.codegen.interface import interface_of
from boleir.codegen.pipeline import lower
from boleir.codegen.request import Shapes
from boleir.codegen.schedule import Schedule
from boleir.runtime.kernel import Kernel
from boleir.runtime.program import Start, Values
from tests.codegen.several_outputs import TEXTS


class RecordingProgram:
    """Takes tensors as an interpreted program does, or addresses, and keeps what it is given."""

    def __init__(self, *, interpreted: bool = True) -> None:
        self.interpreted = interpreted
        self.kernels: frozenset[str] = frozenset()
        self.launches: list[tuple[str, int, int, dict[str, Any]]] = []

    def bind(self, kernel: str, names: Sequence[str]) -> Start:
        """Starting the kernel records its name, batch, layers and values by name."""

        def start(batch: int, layers: int, values: Values) -> None:
            found = dict(zip(names, values, strict=True))
            self.launches.append((kernel, batch, layers, found))

        return start

    def prepare(self, kernels: Sequence[str], names: Sequence[str], changing: int) -> _Launches:
        """Starting them records each, as `bind` does."""
        return _Launches([self.bind(kernel, names) for kernel in kernels], changing)

    def on_device(self) -> bool:
        """There is but one."""
        return True


class _Launches:
    """Keeps values as prepared launches do."""

    def __init__(self, starts: list[Start], changing: int) -> None:
        self._starts, self._changing = starts, changing
        self._values: Values = []
        self._sizes = (0, 0)

    def fill(self, values: Sequence[Any], batch: int, layers: int) -> None:
        self._values, self._sizes = list(values), (batch, layers)

    def readdress(self, addresses: Sequence[int]) -> None:
        assert len(addresses) == self._changing
        self._values[: self._changing] = addresses

    def start(self) -> None:
        for start in self._starts:
            start(*self._sizes, list(self._values))


def recorded(
    recurrence: str = "gdn", *, interpreted: bool = True, **schedule: Any
) -> tuple[Kernel, RecordingProgram]:
    """A kernel of 2/4 heads, 32 x 48, 8 nodes, depth 3, bfloat16."""
    lowered = lower(
        boleir.parse(TEXTS[recurrence]) if recurrence in TEXTS else boleir.load(recurrence),
        Shapes(2, 4, 32, 48, 8, 3),
        schedule=Schedule(b_v=16, b_k=32, node_block=16, **schedule),
    )
    program = RecordingProgram(interpreted=interpreted)
    face = interface_of(lowered)
    return Kernel(face, program, torch.device("cpu"), text=lowered.text), program


def inputs_for(kernel: Kernel, tokens: int) -> dict[str, torch.Tensor]:
    """Zeros of the right formats."""
    face = kernel.interface
    found = {x.name: torch.zeros(tokens, *x.shape, dtype=torch.bfloat16) for x in face.inputs}
    found |= {x.name: torch.zeros(x.shape) for x in face.parameters}
    if face.conv_channels:
        taps = (face.conv_channels, face.conv_width)
        found["conv_weight"] = torch.zeros(taps, dtype=getattr(torch, face.conv_dtype))
    return found
