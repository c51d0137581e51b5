"""The commit of one round: all layers in one launch, checked once per combination of arguments."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch

from boleir.errors import LaunchError
from boleir.runtime.arguments import check_pool, check_requests, misaligned
from boleir.runtime.pool import PoolLayer, StatePool
from boleir.runtime.verification import POOL, Factors

if TYPE_CHECKING:
    from boleir.codegen.interface import Interface
    from boleir.runtime.program import Program

ROWS = ("accepted_node", "slots", "target_slots", "track_slots", "track_nodes")
"""Arguments with one whole number per request."""

KEPT = 1024
"""Checked combinations that are remembered."""


class Commitment:
    """The commit kernel behind one call."""

    def __init__(self, face: Interface, program: Program) -> None:
        self._face = face
        self._interpreted = program.interpreted
        tensors = ("table", "accepted", *ROWS[1:], "cu_nodes", "ancestors", "near")
        strides = tuple(f"{item.name}_stride" for item in face.inputs)
        integers = ("batch", *strides, "state_stride", "window_stride", "capacity")
        self._start = program.bind("commit", (*tensors, *integers))
        self._state = face.table.index("state")
        self._window = face.table.index("window") if "window" in face.table else None
        self._known: dict[tuple[object, ...], tuple[int, ...]] = {}

    def __call__(
        self,
        factors: Sequence[Factors],
        accepted_node: torch.Tensor,
        pool: StatePool | PoolLayer | Sequence[PoolLayer],
        slots: torch.Tensor,
        target_slots: torch.Tensor | None,
        track_nodes: torch.Tensor | None,
        track_slots: torch.Tensor | None,
    ) -> None:
        """See `Kernel.commit`."""
        if not factors:
            return
        first = factors[0]
        tree, workspace = first.tree, first.workspace
        layers = _layers(pool, factors)
        rows = [
            accepted_node,
            slots,
            slots if target_slots is None else target_slots,
            workspace.nothing if track_slots is None else track_slots,
            workspace.nothing if track_nodes is None else track_nodes,
        ]
        key: list[object] = [tree.num_requests, first.call, workspace.max_total_nodes]
        for row in rows:
            key += (row.shape, row.dtype, row.is_contiguous(), row.get_device())
        for f, layer in zip(factors, layers, strict=True):
            if f.call is not first.call or f.tree is not tree or f.workspace is not workspace:
                raise _other_round(f, first)
            key.append(layer.kind)
        found = self._known.get(tuple(key))
        if found is None:
            found = self._check(tuple(key), factors, layers, rows)
        table = workspace.tables.get(self._table(factors, layers))
        tensors = [table, *rows, tree.cu_nodes, tree.ancestors, tree.near]
        values: list[Any] = tensors
        if not self._interpreted:
            values = [tensor.data_ptr() for tensor in tensors]
            every = 0
            for address in values:
                every |= address
            if every & 15:
                raise misaligned(("table", *ROWS, "cu_nodes", "ancestors", "near"), tensors)
        values = [*values, tree.num_requests, *found]
        self._start(tree.num_requests, len(factors), values)

    def _check(
        self,
        key: tuple[object, ...],
        factors: Sequence[Factors],
        layers: Sequence[PoolLayer],
        rows: Sequence[torch.Tensor],
    ) -> tuple[int, ...]:
        first = factors[0]
        for name, row in zip(ROWS, rows, strict=True):
            check_requests(name, row, first.tree)
        for layer in layers:
            check_pool(self._face, layer, first.tree.device)
            if not self._interpreted and any(x & 15 for x in layer.pointers):
                raise misaligned(POOL, layer.tensors)
        if len({layer.strides for layer in layers}) > 1:
            raise LaunchError(
                "the pool's layers have different distances between slots",
                mend="commit such layers in calls of their own",
            )
        integers = (*first.call.strides, *layers[0].strides, first.workspace.max_total_nodes)
        if len(self._known) >= KEPT:
            self._known.clear()
        self._known[key] = integers
        return integers

    def _table(
        self, factors: Sequence[Factors], layers: Sequence[PoolLayer]
    ) -> tuple[tuple[int, ...], ...]:
        """One row of pointers per layer."""
        return tuple(
            [
                f.pointers if layer is f.pool_layer else self._moved(f.pointers, layer)
                for f, layer in zip(factors, layers, strict=True)
            ]
        )

    def _moved(self, pointers: tuple[int, ...], layer: PoolLayer) -> tuple[int, ...]:
        """A row that commits into another pool than the one that was read."""
        row = list(pointers)
        row[self._state] = layer.pointers[0]
        if self._window is not None:
            row[self._window] = layer.pointers[1]
        return tuple(row)


def _layers(
    pool: StatePool | PoolLayer | Sequence[PoolLayer], factors: Sequence[Factors]
) -> Sequence[PoolLayer]:
    if isinstance(pool, StatePool):
        return [pool.layer(f.layer) for f in factors]
    found = [pool] if isinstance(pool, PoolLayer) else pool
    if len(found) != len(factors):
        raise LaunchError(f"pool has {len(found)} layers, factors has {len(factors)}")
    return found


def _other_round(one: Factors, first: Factors) -> LaunchError:
    if one.call is not first.call:
        return LaunchError(
            f"the inputs of layer {one.layer} have other shapes or token strides than those of "
            f"layer {first.layer}",
            mend="commit such layers in calls of their own",
        )
    return LaunchError(
        "the factors of one commit come from one round: the same trees, the same workspace"
    )
