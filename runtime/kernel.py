"""`Kernel`: one compiled recurrence, with the two calls that serve it, `verify` and `commit`.

The first call with a combination of formats is checked; the following ones look it up, collect
addresses and start the kernels. Nothing on that path allocates or waits for the GPU when workspace
and output are given.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import torch

from boleir.codegen.topology import NAME as TOPOLOGY
from boleir.errors import LaunchError
from boleir.runtime import ops
from boleir.runtime.arguments import (
    ArgumentError,
    check_tree,
    input_names,
    named,
    output_buffers,
    require,
)
from boleir.runtime.call_records import Factors
from boleir.runtime.commitment import Commitment, check_factors, layers_of
from boleir.runtime.deferred import Flush, attach
from boleir.runtime.pool import PoolLayer, StatePool
from boleir.runtime.topology_step import CompiledStep, Step
from boleir.runtime.tree_batch import TreeBatch
from boleir.runtime.verification import Verification
from boleir.runtime.workspace import Workspace, check_workspace

if TYPE_CHECKING:
    from boleir.codegen.artifact import Artifact
    from boleir.codegen.interface import Interface
    from boleir.runtime.program import Program


Outputs: TypeAlias = Any
"""What `verify` returns: a tensor, or a tuple of tensors where the recurrence has several
outputs."""


class Kernel:
    """The kernels of one recurrence and shape; made by `boleir.compile` or `boleir.load_compiled`.

    `interface` describes the arguments, `text` is the emitted module, `target` the GPU architecture
    and `artifact` the compiled folder's content (both None when interpreted), `device` where calls
    run.
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
        self._handle = ops.register(self)
        self._verification: Verification | None = None
        self._commitment: Commitment | None = None
        self._flush: Flush | None = None
        self._step: Step | None = None
        if program is not None:
            if TOPOLOGY in program.kernels:
                self._step = CompiledStep(program)
            self._verification = Verification(interface, program, device)
            self._commitment = Commitment(interface, program, self._verification, device)
            if interface.recorded:
                self._flush = Flush(interface, program, device)

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
        *,
        share: bool = True,
    ) -> Workspace:
        """Buffers for calls with up to `max_requests` requests and `max_total_nodes` nodes.

        With `share`, layers use the same memory for what need not be kept until the commit; give
        False when layers run at the same time.
        """
        where = self.device if device is None else torch.device(device)
        return Workspace(self.interface, max_requests, max_total_nodes, layers, where, share=share)

    def pool(self, slots: int, layers: int) -> StatePool:
        """A pool of zero states and empty windows on the kernel's device."""
        pool = StatePool(slots, layers, self, device=self.device)
        if self.interface.recorded:
            for at in range(layers):
                attach(self.interface, pool.layer(at))
        return pool

    def tree_batch(
        self, parents: Any = None, cu_nodes: Any = None, *, requests: int = 1
    ) -> TreeBatch:
        """Trees with the bounds and tables of this kernel; see `TreeBatch.from_parents`.

        A kernel for a static tree needs no parents: the batch is `requests` times that tree.
        """
        face = self.interface
        if parents is None:
            if face.parents is None:
                raise LaunchError("parents are missing: the kernel takes any tree in its bounds")
            nodes = len(face.parents)
            parents = list(face.parents) * requests
            cu_nodes = [nodes * request for request in range(requests + 1)]
        return TreeBatch.from_parents(
            parents,
            cu_nodes,
            max_nodes=face.max_nodes,
            max_depth=face.max_depth,
            conv_width=face.conv_width,
            device=self.device,
            step=self._step,
        )

    def tree_buffers(self, max_requests: int, total_nodes: int | None = None) -> TreeBatch:
        """Buffers for batches that change from round to round; see `TreeBatch.empty`."""
        face = self.interface
        return TreeBatch.empty(
            max_requests,
            face.max_nodes,
            self.device,
            face.conv_width,
            max_depth=face.max_depth,
            total_nodes=total_nodes,
            step=self._step,
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
        out: torch.Tensor | Sequence[torch.Tensor] | None = None,
    ) -> tuple[Outputs, Factors]:
        """Outputs of all nodes of all trees from the committed states, which stay as they are
        (where commits are deferred, they take in what was accepted before).

        Args:
            tree: B trees with N nodes; bounds and tables as `tree_batch` makes them.
            inputs: tensors by name, as `interface` lists them. Token inputs in `interface.dtype`:
                [N, heads, width] for keys and values, [N, heads] for head scalars ([N, channels]
                and a leading 1 are taken too); only the distance between tokens is free, and for
                strides that `interface.aligned` names a multiple of 16 elements. Parameters are
                float32 [heads] or [heads, width]. Where the recurrence convolves, `conv_weight`
                [channels, taps] in `interface.conv_dtype`, oldest tap first. All begin at multiples
                of 16 bytes.
            pool_layer: states and convolution windows of this layer.
            slots: int32 [B], the slot of every request; -1 for a padding row, whose outputs are 0.
                That they lie in the pool is checked only when interpreted: on a GPU the numbers are
                not read back.
            workspace: buffers to use; allocated when None.
            layer: which of the workspace's layers this is.
            out: [N, value_heads, d_v] in `interface.out_dtype`, written; allocated when None. A
                sequence of such where the recurrence has several outputs, in their order.

        Returns:
            The output, or a tuple of all where the recurrence has several, and what `commit` needs
            of this layer: references, so that inputs and workspace must stay as they are until
            then.

        Raises:
            LaunchError: names the argument and the expected shape.
        """
        verification, program = self._loaded()
        if workspace is None:
            require("tree", tree, TreeBatch, "a TreeBatch")
            workspace, layer = self.workspace(tree.num_requests, tree.num_nodes), 0
        if torch.compiler.is_compiling():
            return self._traced_verify(tree, inputs, pool_layer, slots, workspace, layer, out)
        if program.on_device():
            return verification(tree, inputs, pool_layer, slots, workspace, layer, out)
        with torch.cuda.device(self.device):
            return verification(tree, inputs, pool_layer, slots, workspace, layer, out)

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
        now: bool = False,
    ) -> None:
        """Advance states and windows along each accepted root path; one launch for all layers.

        Where the schedule defers commits, this records the path and moves the windows; the next
        verification of a slot, in whatever batch, walks the path as it reads the state. Whoever
        reads or moves states, or ends a request whose state is still wanted, calls `flush` first.

        Args:
            factors: of one layer, or of all layers of one round.
            accepted_node: int32 [B], the last accepted node of each request, numbered within the
                request; -1 or any number that is no node of it leaves its slot as it is.
            pool: the layers' states: a pool (layer i for the factors of layer i, all of them once),
                or one layer of it for each of the factors.
            slots: int32 [B], where the states are, as in `verify`; -1 for a padding row.
            target_slots: int32 [B], where the new states go; by default `slots`.
            track_nodes, track_slots: int32 [B], an interior node of the accepted path and a second
                slot that receives the state there; -1 for none.

            now: do not defer. Commits to other slots or with track nodes cannot be.

        Raises:
            LaunchError: names the argument and the expected shape.
        """
        _, program = self._loaded()
        commitment = self._commitment
        assert commitment is not None
        if isinstance(factors, Factors):
            factors = (factors,)
        check_factors(self.interface, factors)
        if not factors:
            return
        if (track_nodes is None) != (track_slots is None):
            absent = "track_nodes" if track_nodes is None else "track_slots"
            raise ArgumentError(absent, "is missing: track_nodes and track_slots go together")
        if self.interface.recorded and not now:
            for name, given in (("target_slots", target_slots), ("track_slots", track_slots)):
                if given is not None:
                    raise ArgumentError(name, "cannot be deferred", mend="now=True")
        nothing = factors[0].workspace.nothing
        rows = (
            accepted_node,
            slots,
            slots if target_slots is None else target_slots,
            nothing if track_slots is None else track_slots,
            nothing if track_nodes is None else track_nodes,
        )
        if torch.compiler.is_compiling():
            self._traced_commit(factors, pool, rows)
        elif program.on_device():
            commitment(factors, pool, rows, now)
        else:
            with torch.cuda.device(self.device):
                commitment(factors, pool, rows, now)

    def flush(
        self,
        pool: StatePool | PoolLayer | Sequence[PoolLayer],
        slots: torch.Tensor | None = None,
    ) -> None:
        """Bring states up to date where commits were deferred: one launch for all layers of `pool`,
        nothing for other kernels.

        Args:
            pool: as in `commit`.
            slots: int32, the slots that matter, each once; -1 for none; by default all.
        """
        _, program = self._loaded()
        if self._flush is None:
            return
        with nullcontext() if program.on_device() else _current(self.device):
            self._flush(pool, slots)

    # ---- as operators ----------------------------------------------------------------

    def _loaded(self) -> tuple[Verification, Program]:
        if self._verification is None or self._program is None:
            raise LaunchError(
                f"this kernel was compiled for {self.target} and cannot run on this machine",
                mend="run it on such a GPU, or compile without a target for this machine",
            )
        return self._verification, self._program

    def _traced_verify(
        self,
        tree: TreeBatch,
        inputs: Mapping[str, torch.Tensor],
        pool_layer: PoolLayer,
        slots: torch.Tensor,
        workspace: Workspace,
        layer: int,
        out: torch.Tensor | Sequence[torch.Tensor] | None,
    ) -> tuple[Outputs, Factors]:
        """`verify` while torch.compile looks on: one operator."""
        if self.interface.recorded:
            raise LaunchError(
                "deferred commits are no operators: torch.compile would not see what they change",
                mend="a schedule with commit='replay'",
            )
        verification, _ = self._loaded()
        given = named(self.interface, inputs)
        check_tree(self.interface, tree, self.device)
        check_workspace(self.interface, workspace, tree)
        factors = verification.describe(tree, given, pool_layer, workspace, layer)
        outs = list(output_buffers(self.interface, out) or verification.empty(factors.call))
        trees = [tree.cu_nodes, tree.ancestors, tree.depth, tree.near]
        scratch = list(workspace.layer(layer).tensors)
        pool = list(pool_layer.tensors[:2])
        ops.verify(self._handle, given, slots, outs, trees, scratch, pool)
        return outs[0] if len(outs) == 1 else tuple(outs), factors

    def _traced_commit(
        self,
        factors: Sequence[Factors],
        pool: StatePool | PoolLayer | Sequence[PoolLayer],
        rows: Sequence[torch.Tensor],
    ) -> None:
        """`commit` while torch.compile looks on: one operator."""
        tree = factors[0].tree
        layers = layers_of(pool, factors)
        columns: list[torch.Tensor] = []
        for f in factors:
            columns += [*f.inputs, *f.workspace.layer(f.layer).tensors]
        ops.commit(
            self._handle,
            [layer.state for layer in layers],
            [layer.tensors[1] for layer in layers],
            columns,
            list(rows),
            [tree.cu_nodes, tree.ancestors, tree.depth, tree.near],
        )

    def verify_tensors(
        self,
        inputs: Sequence[torch.Tensor],
        slots: torch.Tensor,
        out: Sequence[torch.Tensor],
        tree: Sequence[torch.Tensor],
        scratch: Sequence[torch.Tensor],
        pool: Sequence[torch.Tensor],
    ) -> None:
        """What the operator `boleir::verify` does; see `boleir.runtime.ops`."""
        verification, _ = self._loaded()
        with _current(self.device):
            verification.run(inputs, slots, out, tree, scratch, self._pool_layer(*pool))

    def commit_tensors(
        self,
        states: Sequence[torch.Tensor],
        windows: Sequence[torch.Tensor],
        columns: Sequence[torch.Tensor],
        requests: Sequence[torch.Tensor],
        tree: Sequence[torch.Tensor],
    ) -> None:
        """What the operator `boleir::commit` does; see `boleir.runtime.ops`."""
        self._loaded()
        assert self._commitment is not None
        count = len(input_names(self.interface))
        size = len(columns) // len(states)
        rows = [columns[size * i : size * (i + 1)] for i in range(len(states))]
        layers = [self._pool_layer(*pair) for pair in zip(states, windows, strict=True)]
        given, scratch = [row[:count] for row in rows], [row[count:] for row in rows]
        with _current(self.device):
            self._commitment.run(layers, given, scratch, requests, tree)

    def _pool_layer(self, state: torch.Tensor, window: torch.Tensor) -> PoolLayer:
        return PoolLayer(state, window if self.interface.conv_channels else None)


def _current(device: torch.device) -> AbstractContextManager[object]:
    return torch.cuda.device(device) if device.type == "cuda" else nullcontext()
