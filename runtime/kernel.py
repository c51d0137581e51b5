"""`Kernel`: one compiled recurrence, with the two calls that serve it, `verify` and `commit`.

The first call with a combination of shapes, strides and formats is checked; the following ones with
the same combination look it up, collect addresses and start the kernels. Nothing on that path
allocates or waits for the GPU when workspace and output are given.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import torch

from boleir.errors import LaunchError
from boleir.runtime.arguments import (
    Call,
    check_inputs,
    check_out,
    check_pool,
    check_requests,
    check_tree,
    input_names,
    misaligned,
    named,
    signature,
)
from boleir.runtime.pool import PoolLayer, StatePool
from boleir.runtime.tree_batch import TreeBatch
from boleir.runtime.workspace import Workspace

if TYPE_CHECKING:
    from boleir.codegen.artifact import Artifact
    from boleir.codegen.interface import Interface
    from boleir.runtime.program import Program

TREE = ("cu_nodes", "ancestors", "depths", "near")
SCRATCH = ("mixed", "rows", "folded", "unknowns")
COMMIT = ("table", "accepted", "slots", "target_slots", "track_slots", "track_nodes")


class Factors(NamedTuple):
    """What a commit of one layer needs from its verification. It holds references, no copies: the
    inputs and the workspace must stay as they are until the commit."""

    tree: TreeBatch
    workspace: Workspace
    layer: int
    tensors: tuple[torch.Tensor, ...]
    """Everything the table of pointers names, in its order, but for the pool's tensors."""
    call: Call


class _Bound(NamedTuple):
    """A checked combination of arguments of `verify`."""

    call: Call
    integers: tuple[int, ...]


class Kernel:
    """Made by `boleir.compile` or `boleir.load_compiled`.

    `interface` describes the arguments, `text` is the emitted module, `artifact` the compiled
    folder's content (None when interpreted), `device` where calls run.
    """

    def __init__(
        self,
        interface: Interface,
        program: Program | None,
        device: torch.device,
        *,
        text: str,
        target: str | None = None,
        artifact: Artifact | None = None,
    ) -> None:
        self.interface = interface
        self.device = device
        self.text = text
        self.target = target
        self.artifact = artifact
        self._program = program
        self._names = input_names(interface)
        self._tensor_names = (*self._names, "slots", "state", "window", "out", *TREE, *SCRATCH)
        strides = [f"{item.name}_stride" for item in interface.inputs]
        self._integer_names = (*strides, "state_stride", "window_stride", "out_stride", "capacity")
        self._bound: dict[tuple[object, ...], _Bound] = {}
        self._commits: dict[tuple[object, ...], tuple[int, ...]] = {}
        self._empty = torch.empty(0, dtype=torch.int32, device=device) if program else None
        self._stages: list[Any] = []
        self._commit_stage: Any = None
        if program is not None:
            names = (*self._tensor_names, *self._integer_names)
            layer = [stage for stage in interface.stages if stage != "commit"]
            self._stages = [program.bind(stage, names) for stage in layer]
            self._commit_names = (*COMMIT, "cu_nodes", "ancestors", "near")
            names = (*self._commit_names, "batch", *self._integer_names)
            self._commit_stage = program.bind("commit", names)

    def __repr__(self) -> str:
        face = self.interface
        return (
            f"<Kernel {face.recurrence} {face.key_heads}/{face.value_heads} heads "
            f"{face.d_k}x{face.d_v}, {face.max_nodes} nodes, depth {face.max_depth}, "
            f"{face.dtype}, {self.target or 'interpreted'}>"
        )

    # ---- what belongs to a kernel ----------------------------------------------------

    def workspace(
        self,
        max_requests: int,
        max_total_nodes: int,
        layers: int = 1,
        device: torch.device | str | None = None,
    ) -> Workspace:
        """Buffers for calls with up to `max_requests` requests and `max_total_nodes` nodes."""
        where = self.device if device is None else torch.device(device)
        return Workspace(self.interface, max_requests, max_total_nodes, layers, where)

    def pool(self, slots: int, layers: int) -> StatePool:
        """A pool of zero states on the kernel's device."""
        return StatePool(slots, layers, self, device=self.device)

    def tree_batch(self, parents: Any, cu_nodes: Any = None) -> TreeBatch:
        """Trees with the bounds and tables of this kernel; see `TreeBatch.from_parents`."""
        face = self.interface
        return TreeBatch.from_parents(
            parents,
            cu_nodes,
            max_nodes=face.max_nodes,
            max_depth=face.max_depth,
            conv_width=face.conv_width,
            device=self.device,
        )

    def save(self, folder: str | Path) -> Path:
        """Write the compiled folder that `boleir.load_compiled` reads."""
        from boleir.codegen.artifact_folder import write

        if self.artifact is None or not self.artifact.files:
            raise LaunchError("this kernel holds no binaries to save")
        return write(self.artifact, folder)

    # ---- verification ----------------------------------------------------------------

    def verify(
        self,
        tree: TreeBatch,
        inputs: Mapping[str, torch.Tensor],
        pool_layer: PoolLayer,
        slots: torch.Tensor,
        *,
        workspace: Workspace | None = None,
        layer: int = 0,
        out: torch.Tensor | None = None,
    ) -> tuple[torch.Tensor, Factors]:
        """Outputs of all nodes of all trees from the committed states, which stay as they are.

        Args:
            tree: B trees with N nodes; bounds and tables as `tree_batch` makes them.
            inputs: by name, [N, heads, width] (or [1, N, ...]) for the declared token inputs, only
                the distance between tokens being free; [heads] or [heads, width] in float32 for
                parameters; `conv_weight` [channels, width] where the recurrence convolves.
            pool_layer: states and convolution windows of this layer.
            slots: int32 [B], the slot of every request; -1 for a padding row, whose outputs are 0.
            workspace: buffers to use; allocated when None.
            layer: which of the workspace's layers this is.
            out: [N, value_heads, d_v], written; allocated when None.

        Returns:
            The outputs, and what `commit` needs for this layer.

        Raises:
            LaunchError: names the argument and the expected shape.
        """
        face = self.interface
        try:
            given = [inputs[name] for name in self._names]
        except KeyError:
            given = named(face, inputs)
        if workspace is None:
            workspace = self.workspace(tree.num_requests, tree.num_nodes)
            layer = 0
        scratch = workspace.layer(layer)
        trees = (tree.cu_nodes, tree.ancestors, tree.depth, tree.near)
        key = (
            signature(given),
            signature((slots, tree.ancestors, tree.near)),
            None if out is None else signature((out,)),
            pool_layer.signature,
            tree.num_requests,
            tree.max_nodes,
            tree.max_depth,
            workspace.max_total_nodes,
            workspace.max_requests,
            len(inputs),
        )
        bound = self._bound.get(key)
        if bound is None:
            bound = self._check(tree, inputs, given, pool_layer, slots, workspace, out)
            self._bound[key] = bound
        if out is None:
            kind = getattr(torch, face.out_dtype)
            out = torch.empty(bound.call.out_shape, dtype=kind, device=self.device)
        window = pool_layer.window if pool_layer.window is not None else self._empty
        tensors = [*given, slots, pool_layer.state, window, out, *trees, *scratch]
        values: list[Any] = [*self._values(tensors), *bound.integers]
        for start in self._stages:
            start(tree.num_requests, 1, values)
        kept = (*given, scratch.mixed, scratch.unknowns)
        return out, Factors(tree, workspace, layer, kept, bound.call)

    def _values(self, tensors: list[Any]) -> list[Any]:
        """What kernels take for tensors: their addresses, or themselves when interpreted."""
        if self._program is not None and self._program.interpreted:
            return tensors
        found = [tensor.data_ptr() for tensor in tensors]
        every = 0
        for address in found:
            every |= address
        if every & 15:
            raise misaligned(self._tensor_names, tensors)
        return found

    def _check(
        self,
        tree: TreeBatch,
        inputs: Mapping[str, torch.Tensor],
        given: list[torch.Tensor],
        pool_layer: PoolLayer,
        slots: torch.Tensor,
        workspace: Workspace,
        out: torch.Tensor | None,
    ) -> _Bound:
        """The slow path of `verify`: everything about the arguments but their addresses."""
        face = self.interface
        if self._program is None:
            raise LaunchError(
                f"this kernel was compiled for {self.target} and cannot run on this machine",
                mend="load it where there is such a GPU",
            )
        named(face, inputs)
        check_tree(face, tree)
        call = check_inputs(face, given, tree)
        check_pool(face, pool_layer, tree.device)
        check_requests("slots", slots, tree)
        _check_workspace(face, workspace, tree)
        out_stride = face.value_heads * face.d_v
        if out is not None:
            out_stride = check_out(face, out, call, tree.device)
        window = pool_layer.window
        integers = (
            *call.strides,
            pool_layer.state.stride(0),
            0 if window is None else window.stride(0),
            out_stride,
            workspace.max_total_nodes,
        )
        return _Bound(call, integers)

    # ---- commit ----------------------------------------------------------------------

    def commit(
        self,
        factors: Factors | Sequence[Factors],
        accepted_node: torch.Tensor,
        pool: StatePool | PoolLayer | Sequence[PoolLayer],
        slots: torch.Tensor,
        *,
        target_slots: torch.Tensor | None = None,
        track_nodes: torch.Tensor | None = None,
        track_slots: torch.Tensor | None = None,
    ) -> None:
        """Advance states and windows along each accepted root path; one launch for all layers.

        Args:
            factors: of one layer, or of all layers of one round.
            accepted_node: int32 [B], the last accepted node of each request, numbered within the
                request; -1 or any number that is no node of it leaves its slot as it is.
            pool: the layers' states: a pool (layer i for the factors of layer i), or one layer of
                it for each of the factors.
            slots: int32 [B], where the states are; -1 for a padding row.
            target_slots: int32 [B], where the new states go; by default `slots`.
            track_nodes, track_slots: int32 [B], an interior node of the accepted path and a second
                slot that receives the state there; -1 for none.

        Raises:
            LaunchError: names the argument and the expected shape.
        """
        if isinstance(factors, Factors):
            factors = (factors,)
        if not factors:
            return
        first = factors[0]
        tree, workspace = first.tree, first.workspace
        layers = _layers(pool, factors)
        nothing = workspace.nothing
        target_slots = slots if target_slots is None else target_slots
        track_slots = nothing if track_slots is None else track_slots
        track_nodes = nothing if track_nodes is None else track_nodes
        rows = (accepted_node, slots, target_slots, track_slots, track_nodes)
        integers = self._commit_integers(factors, layers, rows)
        table = workspace.tables.get(self._pointers(factors, layers))
        tensors = [table, *rows, tree.cu_nodes, tree.ancestors, tree.near]
        values: list[Any] = [*self._values(tensors), tree.num_requests, *integers]
        self._commit_stage(tree.num_requests, len(factors), values)

    def _commit_integers(
        self,
        factors: Sequence[Factors],
        layers: Sequence[PoolLayer],
        rows: tuple[torch.Tensor, ...],
    ) -> tuple[int, ...]:
        """The integers of a commit; its arguments are checked once per combination."""
        first = factors[0]
        key = (
            signature(rows),
            tuple([(f.call, id(f.tree) == id(first.tree)) for f in factors]),
            tuple([layer.signature for layer in layers]),
            first.tree.num_requests,
        )
        found = self._commits.get(key)
        if found is None:
            found = self._check_commit(factors, layers, rows)
            self._commits[key] = found
        return found

    def _check_commit(
        self,
        factors: Sequence[Factors],
        layers: Sequence[PoolLayer],
        rows: tuple[torch.Tensor, ...],
    ) -> tuple[int, ...]:
        tree = factors[0].tree
        names = ("accepted_node", "slots", "target_slots", "track_slots", "track_nodes")
        for name, row in zip(names, rows, strict=True):
            check_requests(name, row, tree)
        for f, layer in zip(factors, layers, strict=True):
            if f.tree is not tree or f.workspace is not factors[0].workspace:
                raise LaunchError(
                    "factors of one commit must come from one round: the same trees and workspace"
                )
            if f.call.strides != factors[0].call.strides:
                raise LaunchError(
                    f"inputs of layer {f.layer} have other token strides than those of layer "
                    f"{factors[0].layer}",
                    mend="commit such layers in calls of their own",
                )
            check_pool(self.interface, layer, tree.device)
        distances = {
            (x.state.stride(0), 0 if x.window is None else x.window.stride(0)) for x in layers
        }
        if len(distances) > 1:
            raise LaunchError("the pool's layers have different distances between slots")
        state_stride, window_stride = distances.pop()
        capacity = factors[0].workspace.max_total_nodes
        return (*factors[0].call.strides, state_stride, window_stride, 0, capacity)

    def _pointers(
        self, factors: Sequence[Factors], layers: Sequence[PoolLayer]
    ) -> tuple[int, ...]:
        """The table, row after row."""
        pointers: list[int] = []
        for f, layer in zip(factors, layers, strict=True):
            known = dict(zip((*self._names, "mixed", "unknowns"), f.tensors, strict=True))
            known["state"] = layer.state
            if layer.window is not None:
                known["window"] = layer.window
            pointers += [known[name].data_ptr() for name in self.interface.table]
        return tuple(pointers)


def _layers(
    pool: StatePool | PoolLayer | Sequence[PoolLayer], factors: Sequence[Factors]
) -> Sequence[PoolLayer]:
    if isinstance(pool, StatePool):
        return [pool.layer(f.layer) for f in factors]
    found = [pool] if isinstance(pool, PoolLayer) else list(pool)
    if len(found) != len(factors):
        raise LaunchError(f"pool has {len(found)} layers, factors {len(factors)}")
    return found


def _check_workspace(face: Interface, workspace: Workspace, tree: TreeBatch) -> None:
    if workspace.face != face:
        raise LaunchError("workspace belongs to another kernel", mend="use kernel.workspace(...)")
    if workspace.device != tree.device:
        raise LaunchError(f"workspace lies on {workspace.device}, the trees on {tree.device}")
    for what, need, room in (
        ("requests", tree.num_requests, workspace.max_requests),
        ("nodes", tree.num_nodes, workspace.max_total_nodes),
    ):
        if need > room:
            raise LaunchError(f"workspace has room for {room} {what}, the trees have {need}")
