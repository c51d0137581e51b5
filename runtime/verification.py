"""The verification of one layer: arguments to addresses to launches, checked once, then fast.

Three ways, each for what the one before it does not know. A call like the last one of its layer
(the same trees, pool and parameters, tensors of the same formats) takes the addresses that have
changed and starts the kernels, which were prepared for it. Another call whose formats were checked
before prepares them anew. Whatever else comes is checked. What was checked and prepared lives in
the workspace, and as long as it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import torch

from boleir.runtime.arguments import (
    Call,
    check_inputs,
    check_outs,
    check_pool,
    check_requests,
    check_slots,
    check_static,
    check_tree,
    input_names,
    misaligned,
    named,
    output_buffers,
)
from boleir.runtime.call_records import BoundTrees, Checked, Factors, Prepared, new_factors
from boleir.runtime.deferred import attach
from boleir.runtime.formats import formats, same_formats
from boleir.runtime.pool import PoolLayer
from boleir.runtime.tree_batch import TreeBatch
from boleir.runtime.workspace import Workspace, check_workspace

if TYPE_CHECKING:
    from boleir.codegen.interface import Interface
    from boleir.runtime.program import Program

TREE = ("cu_nodes", "ancestors", "depths", "near")
SCRATCH = (
    "mixed", "passing", "rows", "folded", "vectors", "decayed", "products", "signals", "unknowns"
)  # fmt: skip
ROW_PLANES = SCRATCH.index("rows")
"""The buffer whose rows tell how many nodes fit."""
POOL = ("state", "window", "recorded", "pending")
POOL_STRIDES = ("state_stride", "window_stride", "recorded_stride")

_ADDRESS = torch.Tensor.data_ptr

KEPT = 4096
"""Checked combinations that a workspace remembers; beyond, all are checked anew."""


class Verification:
    """The kernels of one layer behind one call."""

    def __init__(
        self,
        face: Interface,
        program: Program,
        device: torch.device,
        stages: Sequence[str] | None = None,
    ) -> None:
        """`stages`: only these kernels of a layer are started, for measurements."""
        self._face = face
        self._device = device
        self._interpreted = program.interpreted
        self._names = input_names(face)
        self._tokens = len(face.inputs)
        self._single = len(face.outputs) == 1
        self._out_dtype: torch.dtype = getattr(torch, face.out_dtype)
        tensors = (*self._names, "slots", *face.outputs, *TREE, *SCRATCH, *POOL)
        strides = tuple(f"{item.name}_stride" for item in face.inputs)
        out_strides = tuple(f"{name}_stride" for name in face.outputs)
        names = (*tensors, *strides, *POOL_STRIDES, *out_strides, "capacity", "batch")
        kernels = [x for x in face.verifying if stages is None or x in stages]
        self._stages = [program.bind(name, names) for name in kernels]
        self._tensor_names = tensors
        self._row = itemgetter(*(tensors.index(name) for name in face.table))
        self._calls: dict[Call, Call] = {}
        self._trees = BoundTrees(None, (), 0, [])
        self._program = program
        self._kernels, self._value_names = kernels, names
        self._take = itemgetter(*self._names, self._names[0])  # a tuple, even of one

    def __call__(
        self,
        tree: TreeBatch,
        inputs: Mapping[str, torch.Tensor],
        pool_layer: PoolLayer,
        slots: torch.Tensor,
        workspace: Workspace,
        layer: int,
        out: Any,
    ) -> tuple[Any, Factors]:
        """See `Kernel.verify`."""
        given: tuple[torch.Tensor, ...]
        outs = () if out is None else (out,) if self._single else output_buffers(self._face, out)
        last: Prepared | None
        try:
            given = self._take(inputs)[:-1]
            last = workspace.prepared.get((layer, self))
        except (KeyError, TypeError, AttributeError):
            given, last = tuple(named(self._face, inputs)), None
        if (
            last is not None
            and last.pool_layer is pool_layer
            and last.count == len(inputs)
            and last.with_out is (out is not None)
        ):
            tensors = (*given, slots, *outs)
            if last.bound.same(*tensors) and (last.trees.tree is tree or self._renew(last, tree)):
                return self._repeat(last, given, tensors, workspace, layer, outs)
        return self._first(tree, inputs, given, pool_layer, slots, workspace, layer, outs)

    def empty(self, call: Call) -> tuple[torch.Tensor, ...]:
        """New buffers for the outputs of a call."""
        first = torch.empty(call.out_shape, dtype=self._out_dtype, device=self._device)
        if self._single:
            return (first,)
        return (first, *(torch.empty_like(first) for _ in self._face.outputs[1:]))

    def _repeat(
        self,
        last: Prepared,
        given: tuple[torch.Tensor, ...],
        tensors: tuple[torch.Tensor, ...],
        workspace: Workspace,
        layer: int,
        outs: tuple[torch.Tensor, ...],
    ) -> tuple[Any, Factors]:
        """The last call again, with other tensors of the same formats."""
        call = last.bound.call
        if not outs:
            outs = self.empty(call)
            tensors = (*tensors, *outs)
        addresses = tuple(map(_ADDRESS, tensors))
        if addresses != last.addresses:
            self._require_aligned(addresses, tensors)
            last.addresses = ()  # until all is written: an interrupt must not leave half of it
            last.launches.readdress((*addresses, *last.trees.values))
            last.pointers = self._row([*addresses, *last.fixed])
            last.addresses = addresses
        last.launches.start()
        kept = (last.trees.tree, workspace, last.pool_layer, layer, call, last.pointers, given)
        return outs[0] if self._single else outs, new_factors(Factors, kept)

    def _renew(self, last: Prepared, tree: TreeBatch) -> bool:
        """Take other trees than in the layer's last call, if they are as many and as large."""
        trees = self._trees
        if trees.tree is not tree:
            trees = self._bind_tree(tree)
        if trees.key != last.trees.key:
            return False
        last.addresses = ()
        last.trees = trees
        return True

    def _first(
        self,
        tree: TreeBatch,
        inputs: Mapping[str, torch.Tensor],
        given: tuple[torch.Tensor, ...],
        pool_layer: PoolLayer,
        slots: torch.Tensor,
        workspace: Workspace,
        layer: int,
        outs: tuple[torch.Tensor, ...],
    ) -> tuple[Any, Factors]:
        """A call unlike the last one of its layer."""
        trees = self._trees
        if trees.tree is not tree:
            trees = self._bind_tree(tree)
        check_workspace(self._face, workspace, tree)
        scratch = workspace.layer(layer)
        if self._face.recorded and isinstance(pool_layer, PoolLayer):
            attach(self._face, pool_layer)
        tensors = (*given, slots, *outs)
        try:
            key = (id(self), trees.key, id(pool_layer), len(inputs), *formats(tensors))
        except (AttributeError, TypeError):  # not even tensors: say which
            self._check_tensors(tree, given, slots, outs)
            raise
        bound = workspace.checked.get(key)
        if bound is None:
            named(self._face, inputs)
            bound = self._check(key, trees, given, pool_layer, slots, workspace, outs)
        with_out = bool(outs)
        outs = outs or self.empty(bound.call)
        own: list[Any] = [*given, slots, *outs]
        if self._interpreted:
            check_slots("slots", slots, trees.requests, pool_layer)
            values = [*own, *trees.values, *scratch.tensors, *pool_layer.tensors, *bound.integers]
            for start in self._stages:
                start(trees.requests, 1, values)
            pointers = tuple(map(_ADDRESS, self._row(values)))
        else:
            addresses = tuple(map(_ADDRESS, own))
            self._require_aligned(addresses, own)
            fixed = [*trees.values, *scratch.pointers, *pool_layer.pointers, *bound.integers]
            last = self._prepared(workspace, layer)
            last.launches.fill([*addresses, *fixed], trees.requests, 1)
            last.trees, last.pool_layer, last.bound, last.fixed = trees, pool_layer, bound, fixed
            last.count, last.with_out, last.addresses = len(inputs), with_out, addresses
            last.pointers = pointers = self._row([*addresses, *fixed])
            workspace.prepared[layer, self] = last
            last.launches.start()
        out = outs[0] if self._single else outs
        return out, Factors(tree, workspace, pool_layer, layer, bound.call, pointers, given)

    def _prepared(self, workspace: Workspace, layer: int) -> Prepared:
        """What the layer's calls are prepared in, taken out of the workspace until complete."""
        last: Prepared | None = workspace.prepared.pop((layer, self), None)
        if last is None:
            last = Prepared()
            changing = len(self._names) + 1 + len(self._face.outputs) + len(TREE)
            last.launches = self._program.prepare(self._kernels, self._value_names, changing)
        return last

    def _require_aligned(self, addresses: Sequence[int], tensors: Sequence[torch.Tensor]) -> None:
        every = 0
        for address in addresses:
            every |= address
        if every & 15:
            raise misaligned((*self._names, "slots", *self._face.outputs), tensors)

    def describe(
        self,
        tree: TreeBatch,
        given: Sequence[torch.Tensor],
        pool_layer: PoolLayer,
        workspace: Workspace,
        layer: int,
    ) -> Factors:
        """The factors of a call that an operator makes: without addresses."""
        call = check_inputs(self._face, given, tree.num_nodes, tree.device)
        return Factors(tree, workspace, pool_layer, layer, call, (), tuple(given))

    def row(
        self,
        given: Sequence[torch.Tensor],
        scratch: Sequence[torch.Tensor],
        pool: Sequence[torch.Tensor],
    ) -> tuple[int, ...]:
        """A layer's row of the table that the commit reads, from its tensors."""
        others = 1 + len(self._face.outputs) + len(TREE)
        blank = [given[0]] * others  # slots, outputs and trees are in no table
        return tuple(map(_ADDRESS, self._row([*given, *blank, *scratch, *pool])))

    def run(
        self,
        given: Sequence[torch.Tensor],
        slots: torch.Tensor,
        outs: Sequence[torch.Tensor],
        tree: Sequence[torch.Tensor],
        scratch: Sequence[torch.Tensor],
        pool_layer: PoolLayer,
    ) -> None:
        """One layer from bare tensors, checked every time: the operator's way."""
        face, requests, nodes = self._face, tree[0].numel() - 1, tree[1].shape[0]
        call = check_inputs(face, given, nodes, self._device)
        check_pool(face, pool_layer, self._device)
        check_requests("slots", slots, requests, self._device)
        strides = check_outs(face, outs, call, self._device)
        capacity = scratch[ROW_PLANES].shape[-1]
        integers = (*call.strides, *pool_layer.strides, *strides, capacity, requests)
        tensors = [*given, slots, *outs, *tree, *scratch, *pool_layer.tensors]
        values: list[Any] = tensors
        if not self._interpreted:
            values = [*map(_ADDRESS, tensors)]
            if any(address & 15 for address in values):
                raise misaligned(self._tensor_names, tensors)
        values = [*values, *integers]
        for start in self._stages:
            start(requests, 1, values)

    def _bind_tree(self, tree: TreeBatch) -> BoundTrees:
        """Check a batch that has not been seen in the last call."""
        face = self._face
        check_tree(face, tree, self._device)
        check_static(face, tree)
        tensors = [tree.cu_nodes, tree.ancestors, tree.depth, tree.near]
        values: list[Any] = tensors
        if not self._interpreted:
            values = [tensor.data_ptr() for tensor in tensors]
            if any(address & 15 for address in values):
                raise misaligned(TREE, tensors)
        key = (tree.num_requests, tree.num_nodes)
        self._trees = BoundTrees(tree, key, tree.num_requests, values)
        return self._trees

    def _check_tensors(
        self,
        tree: TreeBatch,
        given: Sequence[torch.Tensor],
        slots: torch.Tensor,
        outs: Sequence[torch.Tensor],
    ) -> Call:
        """Check what changes from call to call."""
        call = check_inputs(self._face, given, tree.num_nodes, self._device)
        call = self._calls.setdefault(call, call)
        check_requests("slots", slots, tree.num_requests, self._device)
        if outs:
            check_outs(self._face, outs, call, self._device)
        return call

    def _check(
        self,
        key: tuple[object, ...],
        trees: BoundTrees,
        given: Sequence[torch.Tensor],
        pool_layer: PoolLayer,
        slots: torch.Tensor,
        workspace: Workspace,
        outs: Sequence[torch.Tensor],
    ) -> Checked:
        """The slow path: everything about the arguments but their addresses."""
        face, device, tree = self._face, self._device, trees.tree
        assert tree is not None
        call = self._check_tensors(tree, given, slots, outs)
        check_pool(face, pool_layer, device)
        if not face.recorded:
            pool_layer.require_flushed()
        if not self._interpreted and any(x & 15 for x in pool_layer.pointers):
            raise misaligned(POOL, pool_layer.tensors)
        strides = (face.value_heads * face.d_v,) * len(face.outputs)
        if outs:
            strides = check_outs(face, outs, call, device)
        sizes = (workspace.max_total_nodes, trees.requests)
        integers = (*call.strides, *pool_layer.strides, *strides, *sizes)
        if len(workspace.checked) >= KEPT:
            workspace.checked.clear()
        tensors = (*given, slots, *outs)
        # The key holds ids: what they stand for lives as long as the key.
        bound = Checked(call, integers, same_formats(tensors), (self, pool_layer))
        workspace.checked[key] = bound
        return bound
