"""The commit of one round: all layers in one launch, checked once per combination of arguments."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch

from boleir.errors import LaunchError
from boleir.runtime.arguments import (
    ArgumentError,
    check_inputs,
    check_pool,
    check_requests,
    check_slots,
    misaligned,
    require,
)
from boleir.runtime.call_records import Factors
from boleir.runtime.deferred import hold
from boleir.runtime.pointer_table import PointerTables
from boleir.runtime.pool import PoolLayer, StatePool
from boleir.runtime.verification import POOL, POOL_STRIDES, ROW_PLANES, TREE, Verification

if TYPE_CHECKING:
    from boleir.codegen.interface import Interface
    from boleir.runtime.program import Program, Start

ROWS = ("accepted_node", "slots", "target_slots", "track_slots", "track_nodes")
"""Arguments with one whole number per request."""

KEPT = 1024
"""Checked combinations that are remembered."""


class Commitment:
    """The commit kernel behind one call."""

    def __init__(
        self, face: Interface, program: Program, verification: Verification, device: torch.device
    ) -> None:
        self._face = face
        self._verification = verification
        self._device = device
        self._interpreted = program.interpreted
        tensors = ("table", "accepted", *ROWS[1:], *TREE)
        strides = tuple(f"{item.name}_stride" for item in face.inputs)
        integers = ("batch", *strides, *POOL_STRIDES, "capacity")
        names = (*tensors, *integers)
        self._commit = program.bind("commit", names)
        self._record = program.bind("record", names) if face.recorded else None
        self._known: dict[tuple[object, ...], tuple[int, ...]] = {}
        self._tables: dict[int, PointerTables] = {}

    def __call__(
        self,
        factors: Sequence[Factors],
        pool: StatePool | PoolLayer | Sequence[PoolLayer],
        rows: Sequence[torch.Tensor],
        now: bool = True,
    ) -> None:
        """See `Kernel.commit`; `rows` are the arguments that `ROWS` names."""
        if not factors:
            return
        first = factors[0]
        tree, workspace = first.tree, first.workspace
        layers = layers_of(pool, factors)
        key: list[object] = [tree.num_requests, first.call, workspace.max_total_nodes]
        for name, row in zip(ROWS, rows, strict=True):
            if not isinstance(row, torch.Tensor):
                check_requests(name, row, tree.num_requests, self._device)
            key += (row.shape, row.dtype, row.is_contiguous(), row.get_device())
        for f, layer in zip(factors, layers, strict=True):
            if f.tree is not tree or f.workspace is not workspace:
                raise _other_round(f, first)
            if f.call is not first.call and f.call != first.call:
                raise _other_round(f, first)
            key.append(layer.kind)
        found = self._known.get(tuple(key))
        if found is None:
            found = self._check(tuple(key), factors, layers, rows)
        if self._interpreted:
            for name, row in zip(ROWS[1:4], rows[1:4], strict=True):
                check_slots(name, row, tree.num_requests, layers[0])
        start = self._commit
        if self._record is not None and not now:
            hold(self._face, factors, layers)
            start = self._record
        pointers = self._table(factors, layers)
        table = workspace.tables.get(pointers, lambda: _require_once(factors, layers))
        trees = (tree.cu_nodes, tree.ancestors, tree.depth, tree.near)
        self._run(start, table, len(factors), rows, trees, found)

    def run(
        self,
        pool: Sequence[PoolLayer],
        given: Sequence[Sequence[torch.Tensor]],
        scratch: Sequence[Sequence[torch.Tensor]],
        rows: Sequence[torch.Tensor],
        tree: Sequence[torch.Tensor],
    ) -> None:
        """All layers from bare tensors, checked every time: the operator's way. `tree`: the tensors
        that `TREE` names."""
        requests, nodes = tree[0].numel() - 1, tree[1].shape[0]
        for name, row in zip(ROWS, rows, strict=True):
            check_requests(name, row, requests, self._device)
        calls = {check_inputs(self._face, layer, nodes, self._device) for layer in given}
        strides = self._pool_strides(pool)
        if len(calls) > 1:
            raise LaunchError("the layers' inputs have different shapes or token strides")
        integers = (*calls.pop().strides, *strides, scratch[0][ROW_PLANES].shape[-1])
        key = tuple(
            self._verification.row(inputs, buffers, layer.tensors)
            for inputs, buffers, layer in zip(given, scratch, pool, strict=True)
        )
        if len(pool) not in self._tables:
            entries = len(pool) * len(self._face.table)
            self._tables[len(pool)] = PointerTables(entries, self._device)
        table = self._tables[len(pool)].get(key)
        self._run(self._commit, table, len(pool), rows, tree, integers)

    def _run(
        self,
        start: Start,
        table: torch.Tensor,
        count: int,
        rows: Sequence[torch.Tensor],
        tree: Sequence[torch.Tensor],
        integers: tuple[int, ...],
    ) -> None:
        """Start a kernel for `count` layers; `tree`: cu_nodes, ancestors, depths, near."""
        tensors = [table, *rows, *tree]
        values: list[Any] = tensors
        if not self._interpreted:
            values = [tensor.data_ptr() for tensor in tensors]
            every = 0
            for address in values:
                every |= address
            if every & 15:
                raise misaligned(("table", *ROWS, *TREE), tensors)
        batch = tree[0].numel() - 1
        start(batch, count, [*values, batch, *integers])

    def _check(
        self,
        key: tuple[object, ...],
        factors: Sequence[Factors],
        layers: Sequence[PoolLayer],
        rows: Sequence[torch.Tensor],
    ) -> tuple[int, ...]:
        first = factors[0]
        for name, row in zip(ROWS, rows, strict=True):
            check_requests(name, row, first.tree.num_requests, first.tree.device)
        integers = (
            *first.call.strides,
            *self._pool_strides(layers),
            first.workspace.max_total_nodes,
        )
        if len(self._known) >= KEPT:
            self._known.clear()
        self._known[key] = integers
        return integers

    def _pool_strides(self, layers: Sequence[PoolLayer]) -> tuple[int, ...]:
        """Distances between slots, checked to be the same in all layers."""
        for layer in layers:
            check_pool(self._face, layer, self._device)
            if not self._interpreted and any(x & 15 for x in layer.pointers):
                raise misaligned(POOL, layer.tensors)
        if len({layer.strides for layer in layers}) > 1:
            raise LaunchError(
                "the pool's layers have different distances between slots",
                mend="commit such layers in calls of their own",
            )
        return layers[0].strides

    def _table(
        self, factors: Sequence[Factors], layers: Sequence[PoolLayer]
    ) -> tuple[tuple[int, ...], ...]:
        """One row of pointers per layer."""
        return tuple(
            [
                f.pointers
                if layer is f.pool_layer and f.pointers
                else self._moved(f, layer, layers)
                for f, layer in zip(factors, layers, strict=True)
            ]
        )

    def _moved(self, f: Factors, layer: PoolLayer, layers: Sequence[PoolLayer]) -> tuple[int, ...]:
        """A row that commits into another pool than the one that was read, or of factors that
        came without addresses. Another layer of the same pool is a mistake."""
        if layer is not f.pool_layer and f.pool_layer in layers:
            raise LaunchError(
                f"the factors of layer {f.layer} of the workspace were verified with layer "
                f"{layers.index(f.pool_layer)} of the pool, and would be committed to layer "
                f"{layers.index(layer)}",
                mend="give factors and layers in one order: verify(..., pool.layer(i), layer=i)",
            )
        scratch = f.workspace.layer(f.layer).tensors
        return self._verification.row(f.inputs, scratch, layer.tensors)


def check_factors(face: Interface, factors: Sequence[Factors]) -> None:
    """Refuse what a verification of this kernel did not give: the commit reads buffers as this
    kernel lays them out."""
    require("factors", factors, (list, tuple), "what verify gave, of one layer or a list of them")
    for f in factors:
        require("factors", f, Factors, "what verify gave for each layer")
        if f.workspace.face is not face and f.workspace.face != face:
            raise ArgumentError("factors", "come from the verification of another kernel")


def layers_of(
    pool: StatePool | PoolLayer | Sequence[PoolLayer], factors: Sequence[Factors]
) -> Sequence[PoolLayer]:
    """The layer of a pool for each of the factors. Raises `LaunchError`."""
    if isinstance(pool, StatePool):
        layers = pool.layers
        if len(factors) != len(layers):
            raise _not_every_layer(factors, len(layers))
        for at, f in enumerate(factors):
            if f.layer != at:
                return _sorted_out(factors, layers)
        return layers
    found = [pool] if isinstance(pool, PoolLayer) else pool
    require("pool", found, (list, tuple), "a StatePool, one of its layers, or a list of layers")
    if len(found) != len(factors):
        raise LaunchError(f"pool has {len(found)} layers, factors has {len(factors)}")
    require("pool", found[0], PoolLayer, "layers of a StatePool")
    return found


def _sorted_out(factors: Sequence[Factors], layers: Sequence[PoolLayer]) -> Sequence[PoolLayer]:
    """The layers of factors that come in another order."""
    if sorted(f.layer for f in factors) != list(range(len(layers))):
        raise _not_every_layer(factors, len(layers))
    return [layers[f.layer] for f in factors]


def _not_every_layer(factors: Sequence[Factors], layers: int) -> LaunchError:
    numbers = ", ".join(str(f.layer) for f in factors)
    return LaunchError(
        f"factors are of layers {numbers} of the workspace, and the pool has {layers}: "
        "each of its layers takes part once",
        mend="give all that one round verified, or as pool a list of the layers that are meant",
    )


def _require_once(factors: Sequence[Factors], layers: Sequence[PoolLayer]) -> None:
    """Refuse a list in which a layer comes twice: the second would undo the first."""
    if len({f.layer for f in factors}) < len(factors):
        numbers = ", ".join(str(f.layer) for f in factors)
        raise LaunchError(
            f"factors are of layers {numbers} of the workspace: each can take part once",
            mend="verify every layer with a layer=... of its own",
        )
    if len(set(map(id, layers))) < len(layers):
        raise LaunchError("pool names a layer twice: each can take part once")


def _other_round(one: Factors, first: Factors) -> LaunchError:
    if one.call != first.call:
        return LaunchError(
            f"the inputs of layer {one.layer} have other shapes or token strides than those of "
            f"layer {first.layer}",
            mend="commit such layers in calls of their own",
        )
    return LaunchError(
        "the factors of one commit come from one round: the same trees, the same workspace"
    )
