"""The verification of one layer: arguments to addresses to launches, checked once, then fast.

A call collects the formats of its tensors into a key. A known key needs no further check: strides
and everything else that follows from formats is looked up, and what remains is to take addresses
and start the kernels. Trees, workspaces and layers of a pool keep their addresses themselves.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import attrgetter, itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple

import torch

from boleir.runtime.arguments import (
    Call,
    check_inputs,
    check_out,
    check_pool,
    check_requests,
    check_slots,
    check_static,
    check_tree,
    input_names,
    misaligned,
    named,
)
from boleir.runtime.pool import PoolLayer
from boleir.runtime.tree_batch import TreeBatch
from boleir.runtime.workspace import Workspace, check_workspace

if TYPE_CHECKING:
    from boleir.codegen.interface import Interface
    from boleir.runtime.program import Program

TREE = ("cu_nodes", "ancestors", "depths", "near")
SCRATCH = ("mixed", "rows", "folded", "vectors", "unknowns")
POOL = ("state", "window")

# Reading a tensor's format through these is a third faster than by attribute in a comprehension.
_SHAPE, _DTYPE = attrgetter("shape"), attrgetter("dtype")
_STRIDE, _DEVICE = torch.Tensor.stride, torch.Tensor.get_device
_ADDRESS = torch.Tensor.data_ptr

KEPT = 4096
"""Checked combinations that are remembered; beyond, all are checked anew."""


class Factors(NamedTuple):
    """What a commit of one layer needs from its verification. It holds references and addresses, no
    copies: inputs and workspace must stay as they are until the commit."""

    tree: TreeBatch
    workspace: Workspace
    pool_layer: PoolLayer
    layer: int
    call: Call
    pointers: tuple[int, ...]
    """This layer's row of the table that the commit reads."""
    inputs: tuple[torch.Tensor, ...]


class _Trees(NamedTuple):
    """A checked `TreeBatch` and its addresses (or tensors)."""

    tree: TreeBatch | None
    key: tuple[object, ...]
    requests: int
    values: list[Any]


class _Bound(NamedTuple):
    """What follows from a checked combination; `held` keeps the objects whose ids are in the key
    alive, so that the ids stay theirs."""

    call: Call
    integers: tuple[int, ...]
    held: tuple[Any, ...]


class Verification:
    """The kernels of one layer behind one call."""

    def __init__(self, face: Interface, program: Program, device: torch.device) -> None:
        self._face = face
        self._device = device
        self._interpreted = program.interpreted
        self._names = input_names(face)
        self._tokens = len(face.inputs)
        self._out_dtype: torch.dtype = getattr(torch, face.out_dtype)
        tensors = (*self._names, "slots", "out", *TREE, *SCRATCH, *POOL)
        strides = tuple(f"{item.name}_stride" for item in face.inputs)
        names = (*tensors, *strides, "state_stride", "window_stride", "out_stride", "capacity")
        self._stages = [program.bind(name, names) for name in face.stages if name != "commit"]
        self._tensor_names = tensors
        self._row = itemgetter(*(tensors.index(name) for name in face.table))
        self._bound: dict[tuple[object, ...], _Bound] = {}
        self._calls: dict[Call, Call] = {}
        self._trees = _Trees(None, (), 0, [])

    def __call__(
        self,
        tree: TreeBatch,
        inputs: Mapping[str, torch.Tensor],
        pool_layer: PoolLayer,
        slots: torch.Tensor,
        workspace: Workspace,
        layer: int,
        out: torch.Tensor | None,
    ) -> tuple[torch.Tensor, Factors]:
        """See `Kernel.verify`."""
        try:
            given = [inputs[name] for name in self._names]
        except (KeyError, TypeError):
            given = named(self._face, inputs)
        trees = self._trees
        if trees.tree is not tree:
            trees = self._bind_tree(tree)
        try:
            key = self._key(given, slots, out, trees, pool_layer, workspace, len(inputs))
        except (AttributeError, TypeError):  # not even tensors: say which
            self._check_tensors(tree, given, slots, out)
            raise
        bound = self._bound.get(key)
        if bound is None:
            named(self._face, inputs)
            bound = self._check(key, trees, given, pool_layer, slots, workspace, out)
        if out is None:
            out = torch.empty(bound.call.out_shape, dtype=self._out_dtype, device=self._device)
        scratch = workspace.layer(layer)
        if self._interpreted:
            check_slots("slots", slots, trees.requests, pool_layer)
            own: list[Any] = [*given, slots, out]
            values = [*own, *trees.values, *scratch.tensors, *pool_layer.tensors, *bound.integers]
            pointers: tuple[int, ...] = tuple(map(_ADDRESS, self._row(values)))
        else:
            own = [*map(_ADDRESS, given), slots.data_ptr(), out.data_ptr()]
            every = 0
            for address in own:
                every |= address
            if every & 15:
                raise misaligned((*self._names, "slots", "out"), [*given, slots, out])
            values = [*own, *trees.values, *scratch.pointers, *pool_layer.pointers, *bound.integers]
            pointers = self._row(values)
        for start in self._stages:
            start(trees.requests, 1, values)
        kept = tuple(given)
        return out, Factors(tree, workspace, pool_layer, layer, bound.call, pointers, kept)

    def describe(
        self,
        tree: TreeBatch,
        given: list[torch.Tensor],
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
        blank = [given[0]] * (2 + len(TREE))  # slots, out and trees are in no table
        return tuple(map(_ADDRESS, self._row([*given, *blank, *scratch, *pool])))

    def run(
        self,
        given: Sequence[torch.Tensor],
        slots: torch.Tensor,
        out: torch.Tensor,
        tree: Sequence[torch.Tensor],
        scratch: Sequence[torch.Tensor],
        pool_layer: PoolLayer,
    ) -> None:
        """One layer from bare tensors, checked every time: the operator's way."""
        face, requests, nodes = self._face, tree[0].numel() - 1, tree[1].shape[0]
        call = check_inputs(face, given, nodes, self._device)
        check_pool(face, pool_layer, self._device)
        check_requests("slots", slots, requests, self._device)
        stride = check_out(face, out, call, self._device)
        integers = (*call.strides, *pool_layer.strides, stride, scratch[1].shape[-1])
        tensors = [*given, slots, out, *tree, *scratch, *pool_layer.tensors]
        values: list[Any] = tensors
        if not self._interpreted:
            values = [*map(_ADDRESS, tensors)]
            if any(address & 15 for address in values):
                raise misaligned(self._tensor_names, tensors)
        values = [*values, *integers]
        for start in self._stages:
            start(requests, 1, values)

    def _key(
        self,
        given: list[torch.Tensor],
        slots: torch.Tensor,
        out: torch.Tensor | None,
        trees: _Trees,
        pool_layer: PoolLayer,
        workspace: Workspace,
        count: int,
    ) -> tuple[object, ...]:
        """Everything a check depends on: formats of what changes from call to call, identities of
        what does not."""
        tokens = given[: self._tokens]
        tokens.append(slots)
        if out is not None:
            tokens.append(out)
        return (
            trees.key,
            id(pool_layer),
            id(workspace),
            count,
            *map(id, given[self._tokens :]),
            *map(_SHAPE, tokens),
            *map(_STRIDE, tokens),
            *map(_DTYPE, tokens),
            *map(_DEVICE, tokens),
        )

    def _bind_tree(self, tree: TreeBatch) -> _Trees:
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
        self._trees = _Trees(tree, key, tree.num_requests, values)
        return self._trees

    def _check_tensors(
        self,
        tree: TreeBatch,
        given: list[torch.Tensor],
        slots: torch.Tensor,
        out: torch.Tensor | None,
    ) -> Call:
        """Check what changes from call to call."""
        call = check_inputs(self._face, given, tree.num_nodes, self._device)
        call = self._calls.setdefault(call, call)
        check_requests("slots", slots, tree.num_requests, self._device)
        if out is not None:
            check_out(self._face, out, call, self._device)
        return call

    def _check(
        self,
        key: tuple[object, ...],
        trees: _Trees,
        given: list[torch.Tensor],
        pool_layer: PoolLayer,
        slots: torch.Tensor,
        workspace: Workspace,
        out: torch.Tensor | None,
    ) -> _Bound:
        """The slow path: everything about the arguments but their addresses."""
        face, device, tree = self._face, self._device, trees.tree
        assert tree is not None
        call = self._check_tensors(tree, given, slots, out)
        check_pool(face, pool_layer, device)
        check_workspace(face, workspace, tree)
        if not self._interpreted and any(x & 15 for x in pool_layer.pointers):
            raise misaligned(POOL, pool_layer.tensors)
        out_stride = face.value_heads * face.d_v
        if out is not None:
            out_stride = check_out(face, out, call, device)
        integers = (*call.strides, *pool_layer.strides, out_stride, workspace.max_total_nodes)
        if len(self._bound) >= KEPT:
            self._bound.clear()
        bound = _Bound(call, integers, (pool_layer, workspace, *given[self._tokens :]))
        self._bound[key] = bound
        return bound
