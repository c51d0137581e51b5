"""Deferred commits: what waits for a slot until a verification, or a flush, comes to it.

The tokens of an accepted path are kept in rows that belong to the slot, beside its state and
window, so that neither the next batch's composition nor the caller's inputs matter to them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch

from boleir.errors import LaunchError
from boleir.runtime.arguments import check_pool, check_requests, check_slots
from boleir.runtime.call_records import Factors
from boleir.runtime.pointer_table import PointerTables
from boleir.runtime.pool import PoolLayer, StatePool

if TYPE_CHECKING:
    from boleir.codegen.interface import Interface
    from boleir.runtime.program import Program


def attach(face: Interface, layer: PoolLayer) -> None:
    """Give a layer of a pool the rows that kernels of `face` record tokens in, if it has none.
    Raises `LaunchError` where it has others, or during graph capture."""
    wanted = _kind(face)
    if layer.recorded is not None:
        if layer.recorded_kind != wanted:
            raise LaunchError("the pool keeps tokens of another recurrence or of other shapes")
        if layer.recorded.shape[1] <= face.max_depth:
            raise LaunchError(
                f"the pool keeps up to {layer.recorded.shape[1]} accepted tokens per slot, the "
                f"kernel takes paths of {face.max_depth + 1}",
                mend="make the pool with the kernel that takes the deepest trees",
            )
        return
    state = layer.state
    if state.is_cuda and torch.cuda.is_current_stream_capturing():
        raise LaunchError(
            "the pool has no memory for deferred commits yet, and a graph is being captured",
            mend="make it by kernel.pool, or verify once before the capture",
        )
    shape = (layer.slots, face.max_depth + 1, face.recorded_channels)
    recorded = torch.zeros(shape, dtype=getattr(torch, face.dtype), device=state.device)
    pending = torch.zeros((layer.slots, face.pending), dtype=torch.int32, device=state.device)
    layer.keep(recorded, pending, wanted)


def _kind(face: Interface) -> tuple[object, ...]:
    """What kernels that share recorded tokens have in common."""
    sizes = (face.recorded_channels, face.pending, face.key_heads, face.value_heads)
    return (face.recurrence, face.recorded, face.dtype, face.d_k, face.d_v, *sizes)


def hold(face: Interface, factors: Sequence[Factors], layers: Sequence[PoolLayer]) -> None:
    """Before a commit is deferred: it stays with the layers that were verified, whose parameters a
    flush needs."""
    first = len(face.inputs)
    for f, layer in zip(factors, layers, strict=True):
        if layer is not f.pool_layer:
            raise LaunchError(
                "a deferred commit stays in the slots that were verified, the pool is another one",
                mend="now=True",
            )
        layer.parameters = f.inputs[first : first + len(face.parameters)]


class Flush:
    """The flush kernel behind one call."""

    def __init__(self, face: Interface, program: Program, device: torch.device) -> None:
        self._face = face
        self._device = device
        self._interpreted = program.interpreted
        names = ("table", "slots", "batch", "state_stride", "recorded_stride")
        self._start = program.bind("flush", names)
        self._tables: dict[int, PointerTables] = {}
        self._every: dict[int, torch.Tensor] = {}

    def __call__(
        self, pool: StatePool | PoolLayer | Sequence[PoolLayer], slots: torch.Tensor | None
    ) -> None:
        """See `Kernel.flush`."""
        layers = [x for x in _layers(pool) if x.parameters is not None]
        if not layers:
            return  # nothing has been recorded
        for layer in layers:
            check_pool(self._face, layer, self._device)
            attach(self._face, layer)
        strides = {(x.strides[0], x.strides[2]) for x in layers}
        if len(strides) > 1:
            raise LaunchError(
                "the pool's layers have different distances between slots",
                mend="flush such layers in calls of their own",
            )
        if slots is None:
            slots = self._all(layers[0].slots)
        check_requests("slots", slots, 0, self._device)
        if self._interpreted:
            check_slots("slots", slots, slots.numel(), layers[0])
        count = len(layers)
        if count not in self._tables:
            self._tables[count] = PointerTables(count * len(self._face.table), self._device)
        table = self._tables[count].get(tuple(map(self._row, layers)))
        values: list[Any] = [table, slots]
        if not self._interpreted:
            values = [tensor.data_ptr() for tensor in values]
        requests = slots.numel()
        self._start(requests, count, [*values, requests, *strides.pop()])

    def _all(self, slots: int) -> torch.Tensor:
        if slots not in self._every:
            self._every[slots] = torch.arange(slots, dtype=torch.int32, device=self._device)
        return self._every[slots]

    def _row(self, layer: PoolLayer) -> tuple[int, ...]:
        """A row of the table that all commits read: what a flush has no use for is zero."""
        assert layer.parameters is not None
        names = ("state", "window", "recorded", "pending")
        known = dict(zip(names, layer.pointers, strict=True))
        for item, tensor in zip(self._face.parameters, layer.parameters, strict=True):
            known[item.name] = tensor.data_ptr()
        return tuple(known.get(name, 0) for name in self._face.table)


def _layers(pool: StatePool | PoolLayer | Sequence[PoolLayer]) -> Sequence[PoolLayer]:
    if isinstance(pool, StatePool):
        return [pool.layer(at) for at in range(len(pool))]
    return [pool] if isinstance(pool, PoolLayer) else pool
