"""The committed states of all requests: one slot per request in every layer.

A state is stored transposed, [HV, d_v, d_k], so that what one value tile needs is contiguous.

A pool owns its memory or adopts an engine's: only the distance between slots is free, so that a
pool may be a strided view of something larger. Verification reads slots, commit overwrites them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, NamedTuple

import torch

from boleir.codegen.interface import Interface
from boleir.errors import LaunchError
from boleir.runtime.pool_layer import PoolLayer as PoolLayer
from boleir.runtime.whole import count, place

if TYPE_CHECKING:
    from boleir.ir import Recurrence
    from boleir.runtime.kernel import Kernel

ALIGNMENT = 256
"""Bytes; kernels need 16, and whole cache lines read faster."""


class SlotContent(NamedTuple):
    """What a pool holds for one request: `states` [layers, HV, d_v, d_k] and `windows` [layers,
    channels, width - 1] (None without a convolution)."""

    states: torch.Tensor
    windows: torch.Tensor | None


@dataclass(frozen=True, slots=True)
class SlotFormat:
    """What one slot of one layer holds: `state` [HV, d_v, d_k] and `window` [channels, width - 1],
    None without a convolution."""

    state: tuple[int, int, int]
    window: tuple[int, int] | None
    dtype: torch.dtype = torch.float32
    window_dtype: torch.dtype = torch.bfloat16

    @classmethod
    def of(cls, face: Interface) -> SlotFormat:
        """The slots of a kernel."""
        return cls(
            (face.value_heads, face.d_v, face.d_k),
            (face.conv_channels, face.conv_width - 1) if face.conv_channels else None,
            getattr(torch, face.state_dtype),
            getattr(torch, face.dtype),
        )

    @classmethod
    def of_recurrence(
        cls,
        recurrence: Recurrence,
        *,
        key_heads: int,
        value_heads: int,
        d_k: int,
        d_v: int,
        dtype: torch.dtype = torch.float32,
        window_dtype: torch.dtype = torch.bfloat16,
    ) -> SlotFormat:
        """The slots of any kernel for `recurrence` with these heads."""
        from boleir.codegen.planner import make_plan
        from boleir.derive.derive import derive

        plan = make_plan(derive(recurrence).normal, d_k, d_v, key_heads, value_heads)
        window = (plan.conv_channels, plan.conv_width - 1) if plan.conv_channels else None
        return cls((value_heads, d_v, d_k), window, dtype, window_dtype)


class StatePool:
    """States of `slots` requests in `layers` layers, zero at first.

    `kernel` (or a `SlotFormat`) says what a slot holds; `device` is by default the kernel's. Slot 0
    is as good as any other; -1 is none. Raises `LaunchError` for less than one slot or layer.
    """

    def __init__(
        self,
        slots: int,
        layers: int,
        kernel: Kernel | SlotFormat,
        *,
        device: torch.device | str | None = None,
    ) -> None:
        slots, layers = count("slots", slots, 1), count("layers", layers, 1)
        if isinstance(kernel, SlotFormat):
            slot = kernel
        elif isinstance(getattr(kernel, "interface", None), Interface):
            slot = SlotFormat.of(kernel.interface)
            device = kernel.device if device is None else device
        else:
            raise LaunchError(
                f"kernel is a {type(kernel).__name__}, expected a Kernel or a SlotFormat",
                mend="kernel.pool(slots, layers), where kernel = boleir.compile(...)",
            )
        states = _zeros(layers, (slots, *slot.state), slot.dtype, device)
        windows: Sequence[torch.Tensor | None] = [None] * layers
        if slot.window is not None:
            windows = _zeros(layers, (slots, *slot.window), slot.window_dtype, device)
        self.layers = [PoolLayer(*pair) for pair in zip(states, windows, strict=True)]
        """Every layer, in order."""

    @classmethod
    def adopt(
        cls,
        states: torch.Tensor | Sequence[torch.Tensor],
        windows: torch.Tensor | Sequence[torch.Tensor] | None = None,
    ) -> StatePool:
        """A pool over existing memory: one [slots, HV, d_v, d_k] tensor per layer (or one tensor
        with layers in front), any distance between slots; windows [slots, channels, width - 1]
        likewise. Raises `LaunchError` for other layouts."""
        self = cls.__new__(cls)
        for name, given, axes in (
            ("states", states, "layers, slots, HV, d_v, d_k"),
            ("windows", windows, "layers, slots, channels, width - 1"),
        ):
            if given is not None or name == "states":
                _require_layers(name, given, axes)
        if windows is not None and len(windows) != len(states):
            raise LaunchError(f"windows has {len(windows)} layers, states has {len(states)}")
        self.layers = [
            PoolLayer(states[i], None if windows is None else windows[i])
            for i in range(len(states))
        ]
        if not self.layers:
            raise LaunchError("states has no layer")
        if len({layer.slots for layer in self.layers}) > 1:
            raise LaunchError("states: all layers must have the same number of slots")
        return self

    def __len__(self) -> int:
        return len(self.layers)

    @property
    def slots(self) -> int:
        """Number of slots."""
        return self.layers[0].slots

    @property
    def device(self) -> torch.device:
        """Where the states live."""
        return self.layers[0].state.device

    def layer(self, index: int) -> PoolLayer:
        """One layer. Raises `LaunchError` when there is none of that number."""
        if type(index) is int and 0 <= index < len(self.layers):
            return self.layers[index]  # at once: every layer of every round comes here
        return self.layers[place("layer", index, len(self.layers), "pool")]

    def read(self, slot: int) -> SlotContent:
        """Copies of what all layers hold in `slot`. Raises `LaunchError` for no such slot, or for
        one with a deferred commit that has not been flushed."""
        self._require(slot)
        for layer in self.layers:
            layer.require_flushed(slot)
        windows = [layer.window[slot] for layer in self.layers if layer.window is not None]
        return SlotContent(
            torch.stack([layer.state[slot] for layer in self.layers]),
            torch.stack(windows) if windows else None,
        )

    def write(self, slot: int, states: torch.Tensor, windows: torch.Tensor | None = None) -> None:
        """Overwrite `slot` in all layers: what `read` gives, or states [layers, HV, d_v, d_k] with
        empty windows. Raises `LaunchError` for other shapes of states or no such slot."""
        self._require(slot)
        held = self.layers[0]
        _require_shape("states", states, (len(self.layers), *held.state.shape[1:]))
        if windows is not None and held.window is not None:
            _require_shape("windows", windows, (len(self.layers), *held.window.shape[1:]))
        for i, layer in enumerate(self.layers):
            layer.state[slot].copy_(states[i])
            layer.forget(slot)
            if layer.window is None:
                continue
            if windows is None:
                layer.window[slot].zero_()
            else:
                layer.window[slot].copy_(windows[i])

    def clear(self, slot: int) -> None:
        """Zero states and empty windows: the slot of a request that has not begun."""
        self._require(slot)
        for layer in self.layers:
            layer.state[slot].zero_()
            layer.forget(slot)
            if layer.window is not None:
                layer.window[slot].zero_()

    def bytes_per_request(self) -> int:
        """Bytes one slot takes in all layers, windows included."""
        tensors = [t for x in self.layers for t in (x.state, x.window) if t is not None]
        return sum(t[0].numel() * t.element_size() for t in tensors)

    def _require(self, slot: int) -> None:
        place("slot", slot, self.slots, "pool")


def _zeros(
    layers: int,
    shape: tuple[int, ...],
    dtype: torch.dtype,
    device: torch.device | str | None,
) -> list[torch.Tensor]:
    """One tensor per layer in one allocation, each at a multiple of `ALIGNMENT` bytes."""
    size = prod(shape)
    unit = ALIGNMENT // dtype.itemsize
    rows = torch.zeros(layers, -(-size // unit) * unit, dtype=dtype, device=device)
    return [row[:size].view(shape) for row in rows]


def _require_layers(name: str, given: object, axes: str) -> None:
    """Refuse what is neither a sequence with a tensor per layer nor one tensor with the axes."""
    if isinstance(given, torch.Tensor):
        if given.ndim != axes.count(",") + 1:
            raise LaunchError(
                f"{name} has {given.ndim} axes, expected [{axes}]",
                mend=f"a single layer is given in a list: [{name}]",
            )
    elif not isinstance(given, (list, tuple)):
        raise LaunchError(
            f"{name} is a {type(given).__name__}, expected one tensor per layer or [{axes}]"
        )


def _require_shape(name: str, tensor: torch.Tensor, wanted: tuple[int, ...]) -> None:
    if not isinstance(tensor, torch.Tensor):
        raise LaunchError(f"{name} is a {type(tensor).__name__}, expected a tensor {list(wanted)}")
    if tuple(tensor.shape) != wanted:
        raise LaunchError(f"{name} is {list(tensor.shape)}, expected {list(wanted)}")
