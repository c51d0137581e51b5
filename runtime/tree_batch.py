"""`TreeBatch`: the trees of a batch on the device, and everything that the kernels ask of them.

Ragged: every request has its own tree, of its own size. The canonical encoding is `parents` and
`cu_nodes`; the topology step derives the rest once per round, for all layers.
"""

from __future__ import annotations

import functools
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import torch

from boleir.errors import TreeError
from boleir.runtime.links import as_local_parents, parents_of_links
from boleir.runtime.staging import TreeBuffers
from boleir.runtime.topology_step import Step, default_step, first_fault
from boleir.runtime.tree_sources import (
    HostTrees,
    Labels,
    device_of,
    join_candidates,
    join_each,
    join_links,
    join_masks,
    join_trees,
    on_host,
)
from boleir.trees import MAX_NODES, Fault, Tree, check_trees, words_for
from boleir.trees.faults import NotAnIntegerError, TreeTooLargeError

if TYPE_CHECKING:
    import networkx

Device = torch.device | str | None


@dataclass(frozen=True, slots=True, eq=False)
class TreeBatch:
    """B trees with N nodes altogether; tensors on one device, written in place by `update`.

    Shapes: `parents` int32[N] local to the request (-1: root), `cu_nodes` int32[B + 1],
    `ancestors` int64[N, W] (bit j % 64 of word j // 64 of row i is set iff j is i or above i),
    `depth` int32[N] (edges below the root), `near` int32[N, conv_width - 1] (nearest ancestors,
    then -1 - r for entry r of the committed convolution window, 0 being the latest), `flags`
    int32[B, 2] (fault code and node of the first faulty node, zeros for a sound request).

    The bounds hold for every tree that the batch can carry: at most `max_nodes` nodes per request
    (W = ceil(max_nodes / 64)) and at most `max_depth` edges below a root.
    """

    parents: torch.Tensor
    cu_nodes: torch.Tensor
    ancestors: torch.Tensor
    depth: torch.Tensor
    near: torch.Tensor
    flags: torch.Tensor
    max_nodes: int
    max_depth: int
    labels: Labels | None
    """What the nodes were called where the trees came from, per request; None without names."""
    checked: bool
    """Whether `cu_nodes` from a GPU are brought into range before anything follows them."""
    _buffers: TreeBuffers
    _step: Step

    # ---- one-off batches, checked on the host ----------------------------------------

    @classmethod
    def from_parents(
        cls,
        parents: Any,
        cu_nodes: Any = None,
        *,
        max_nodes: int | None = None,
        max_depth: int | None = None,
        conv_width: int = 4,
        device: Device = None,
        labels: Labels | None = None,
        step: Step | None = None,
    ) -> Self:
        """A batch from its canonical encoding.

        Args:
            parents: N whole numbers, local to each request, -1 for a root; list, array or tensor.
            cu_nodes: B + 1 whole numbers from 0 to N; None for a single request.
            max_nodes, max_depth: bounds to keep; by default what the trees need. A kernel takes
                batches whose bounds and `conv_width` fit its own: `Kernel.tree_batch` sets them.
            conv_width: taps of the recurrence's convolution, at least 1.
            device: by default the parents' own if they are a tensor, else torch's default device.
            labels: names of the nodes, per request.
            step: how to derive the topology; see `empty`.

        Raises:
            TreeError: names request and node. Tensors on a GPU are read back to check them, which
                waits for the GPU; `empty` and `update` do not.
        """
        where = device_of(parents) if device is None else torch.device(device)
        if cu_nodes is None and hasattr(parents, "__len__"):
            cu_nodes = [0, len(parents)]
        ragged = check_trees(
            on_host(parents),
            on_host(cu_nodes),
            max_nodes=MAX_NODES if max_nodes is None else _node_bound(max_nodes),
            max_depth=None if max_depth is None else _depth_bound(max_depth),
        )
        nodes = max(1, ragged.max_nodes) if max_nodes is None else max_nodes
        depth = ragged.max_depth if max_depth is None else max_depth
        # Checked already: a coarse variant, so that other trees need no other compilation.
        bucket = max(16, 1 << (nodes - 1).bit_length())
        sizes = (ragged.cu_nodes.size - 1, ragged.parents.size)
        bounds = _Bounds(nodes, depth, (bucket, bucket - 1))
        batch = cls._allocate(sizes, bounds, conv_width, where, labels=labels, step=step)
        batch._buffers.write(ragged)
        batch.derive()
        return batch

    @classmethod
    def from_trees(cls, trees: Iterable[Tree], **options: Any) -> Self:
        """A batch of `Tree`s, one per request; options as for `from_parents`."""
        return cls._from(join_trees(trees), options)

    @classmethod
    def from_networkx(cls, graphs: Iterable[networkx.DiGraph[Any]], **options: Any) -> Self:
        """A batch of directed graphs, parent to child; `labels[b][i]` is the graph's node."""
        return cls._from(join_each(graphs, Tree.from_networkx), options)

    @classmethod
    def from_paths(
        cls,
        paths: Iterable[Iterable[Sequence[Hashable]]],
        *,
        implicit_root: bool = False,
        **options: Any,
    ) -> Self:
        """A batch of path lists; `labels[b][i]` is the prefix that ends in node i of request b."""
        read = functools.partial(Tree.from_paths, implicit_root=implicit_root)
        return cls._from(join_each(paths, read), options)

    @classmethod
    def from_masks(cls, masks: Iterable[Any], **options: Any) -> Self:
        """A batch of boolean ancestor-or-self masks [T, T], one per request; T may differ."""
        rows = list(masks)
        return cls._from(join_masks(rows), options, *rows)

    @classmethod
    def from_sglang(
        cls,
        next_token: Any = None,
        next_sibling: Any = None,
        parent_token: Any = None,
        *,
        active: Any = None,
        **options: Any,
    ) -> Self:
        """A batch from SGLang's [B, T] link tensors; see `boleir.trees.links.read_links`."""
        links = (next_token, next_sibling, parent_token)
        return cls._from(join_links(links, active), options, *links)

    @classmethod
    def from_eagle(
        cls, parent_lists: Iterable[Any], selected: Iterable[Any], *, top_k: int, **options: Any
    ) -> Self:
        """A batch of EAGLE candidate tables; see `boleir.trees.eagle.read_candidates`."""
        trees = join_candidates(parent_lists, selected, top_k)
        return cls._from(trees, options, parent_lists, selected)

    # ---- buffers that stay, for CUDA graphs ------------------------------------------

    @classmethod
    def empty(
        cls,
        max_requests: int,
        max_nodes: int,
        device: Device = None,
        conv_width: int = 4,
        *,
        max_depth: int | None = None,
        total_nodes: int | None = None,
        checked: bool = False,
        step: Step | None = None,
    ) -> Self:
        """Buffers for up to `max_requests` trees of up to `max_nodes` nodes; all requests empty.

        Args:
            max_requests: B, the capacity.
            max_nodes: most nodes of one request, 1 to 256.
            device: torch's default device if None.
            conv_width: taps of the recurrence's convolution.
            max_depth: most edges below a root, by default max_nodes - 1.
            total_nodes: N, the capacity in nodes; by default max_requests * max_nodes.
            checked: also guard against `cu_nodes` tensors that decrease or lead out of the buffers,
                at the cost of a few small launches per `update` from a GPU.
            step: how to derive the topology, for instance a compiled kernel; by default the kernel
                compiled just in time on a GPU, plain torch on the CPU.
        """
        nodes = _node_bound(max_nodes)
        depth = nodes - 1 if max_depth is None else max_depth
        sizes = (max_requests, max_requests * nodes if total_nodes is None else total_nodes)
        if min(sizes) < 0:
            raise TreeError(f"capacities must not be negative, got {sizes[0]} and {sizes[1]}")
        where = device_of() if device is None else torch.device(device)
        bounds = _Bounds(nodes, depth, (nodes, depth))
        return cls._allocate(sizes, bounds, conv_width, where, checked=checked, step=step)

    def update(self, parents: Any, cu_nodes: Any) -> None:
        """Put other trees into the same buffers and derive them; nothing is allocated or moved.

        Host data (lists, arrays, CPU tensors) are checked first, and a faulty batch leaves the
        buffers as they were. Tensors on the batch's GPU are copied as they are, without waiting for
        the GPU: a faulty parent then makes its node a root, and `check` reports it when asked.
        Requests beyond the given ones become empty.

        Raises:
            TreeError: names request and node, or the capacity that is exceeded.
        """
        if self.device.type != "cpu" and (_is_remote(parents) or _is_remote(cu_nodes)):
            self._update_on_device(parents, cu_nodes)
            return
        ragged = check_trees(
            on_host(parents),
            on_host(cu_nodes),
            max_nodes=self.max_nodes,
            max_depth=self.max_depth,
        )
        self._require_room(ragged.cu_nodes.size - 1, ragged.parents.size)
        self._buffers.write(ragged)
        self.derive()

    def update_from_sglang(
        self,
        next_token: Any = None,
        next_sibling: Any = None,
        parent_token: Any = None,
        *,
        active: Any = None,
    ) -> None:
        """`update` from SGLang's [B, T] link tensors; request b owns nodes b T to (b + 1) T - 1.

        Links on the GPU are turned into parents there, without waiting for it; where links and
        parents are both given, the links decide.
        """
        links = (next_token, next_sibling, parent_token)
        if self.device.type == "cpu" or not any(map(_is_remote, links)):
            trees = join_links(links, active)
            self.update(trees.parents, trees.cu_nodes)
            return
        if next_token is not None and next_sibling is not None:
            rows = parents_of_links(next_token, next_sibling, active)
        elif parent_token is not None:
            rows = as_local_parents(parent_token, active)
        else:
            raise TreeError("next_token and next_sibling belong together, one of them is missing")
        batch, nodes = rows.shape
        starts = torch.arange(batch + 1, dtype=torch.int32, device=rows.device) * nodes
        self._update_on_device(rows.reshape(-1), starts)

    def derive(self) -> None:
        """Run the topology step on `parents` and `cu_nodes` as they are; safe in graph capture."""
        self._step(self.parents, self.cu_nodes, self.ancestors, self.depth, self.near, self.flags)

    def check(self) -> None:
        """Raise for the first fault that the topology step reported; waits for the GPU.

        Raises:
            TreeError: names request and node.
        """
        fault = first_fault(
            self.flags,
            self.parents,
            self.cu_nodes,
            max_nodes=self.max_nodes,
            max_depth=self.max_depth,
        )
        if fault is not None:
            raise fault

    # ---- what it is ------------------------------------------------------------------

    @property
    def num_requests(self) -> int:
        """B: requests the buffers hold, unused ones included."""
        return self.cu_nodes.numel() - 1

    @property
    def num_nodes(self) -> int:
        """N: nodes the buffers hold, unused ones included."""
        return self.parents.numel()

    @property
    def words(self) -> int:
        """W: ancestor words per node."""
        return self.ancestors.shape[1]

    @property
    def conv_width(self) -> int:
        """Taps of the convolution that `near` serves."""
        return self.near.shape[1] + 1

    @property
    def device(self) -> torch.device:
        """Where the tensors live."""
        return self.parents.device

    def trees(self) -> tuple[Tree, ...]:
        """The trees on the host, one per request (empty ones included); waits for the GPU."""
        cu = self.cu_nodes.tolist()
        parents = self.parents.tolist()
        labels = self.labels or (None,) * self.num_requests
        return tuple(
            Tree(tuple(parents[start:stop]), names)
            for start, stop, names in zip(cu, cu[1:], labels, strict=False)
        )

    def to(self, device: torch.device | str) -> TreeBatch:
        """The same trees on another device, in buffers of their own; waits for the GPU."""
        used = int(self.cu_nodes[-1]) if self.num_requests else 0
        return TreeBatch.from_parents(
            self.parents[:used],
            self.cu_nodes,
            max_nodes=self.max_nodes,
            max_depth=self.max_depth,
            conv_width=self.conv_width,
            device=device,
            labels=self.labels,
        )

    # ---- inside ----------------------------------------------------------------------

    @classmethod
    def _from(cls, trees: HostTrees, options: dict[str, Any], *sources: Any) -> Self:
        """The batch of `trees`, by default on the device of the first tensor among `sources`."""
        settings = {"labels": trees.labels, **options}
        if settings.get("device") is None:
            settings["device"] = device_of(*sources)
        return cls.from_parents(trees.parents, trees.cu_nodes, **settings)

    @classmethod
    def _allocate(
        cls,
        sizes: tuple[int, int],
        bounds: _Bounds,
        conv_width: int,
        device: torch.device,
        *,
        checked: bool = False,
        labels: Labels | None = None,
        step: Step | None = None,
    ) -> Self:
        """Buffers for `sizes` requests and nodes."""
        if conv_width < 1:
            raise TreeError(f"conv_width must be at least 1, got {conv_width}")
        requests, total = sizes
        buffers = TreeBuffers(requests, total, device)
        limit, deepest = bounds.variant

        def table(columns: int, dtype: torch.dtype = torch.int32) -> torch.Tensor:
            return torch.zeros(total, columns, dtype=dtype, device=device)

        return cls(
            parents=buffers.parents,
            cu_nodes=buffers.cu_nodes,
            ancestors=table(words_for(bounds.nodes), torch.int64),
            depth=table(1).squeeze(1),
            near=table(conv_width - 1),
            flags=torch.zeros(requests, 2, dtype=torch.int32, device=device),
            max_nodes=bounds.nodes,
            max_depth=bounds.depth,
            labels=labels,
            _buffers=buffers,
            checked=checked,
            _step=step or default_step(device, max_nodes=limit, max_depth=deepest),
        )

    def _require_room(self, requests: int, nodes: int) -> None:
        for what, given, room in (
            ("requests", requests, self.num_requests),
            ("nodes", nodes, self.num_nodes),
        ):
            if given > room:
                raise TreeTooLargeError(f"the batch has {given} {what}, its buffers hold {room}")

    def _update_on_device(self, parents: Any, cu_nodes: Any) -> None:
        """`update` without a look at any value: everything happens on the batch's device."""
        given = _integer_row("parents", torch.as_tensor(parents, device=self.device))
        starts = _integer_row("cu_nodes", torch.as_tensor(cu_nodes, device=self.device))
        if not starts.numel():
            raise TreeError("cu_nodes must hold B + 1 numbers, got none")
        requests = starts.numel() - 1
        self._require_room(requests, given.numel())
        sound = starts.clamp(0, given.numel()) if self.checked else starts
        self._buffers.write_tensors(given, sound)
        self.derive()
        if self.checked:
            # A start that had to be moved concerns the request before it and the one behind.
            moved = starts != sound
            span = (moved[1:] | moved[:-1]).to(torch.int32) * int(Fault.SPAN)
            self.flags[:requests, 0] = torch.maximum(self.flags[:requests, 0], span)


class _Bounds(NamedTuple):
    """What a batch promises (`nodes`, `depth`) and the bounds its topology step is compiled for."""

    nodes: int
    depth: int
    variant: tuple[int, int]


def _node_bound(value: int) -> int:
    if not isinstance(value, int) or not 1 <= value <= MAX_NODES:
        raise TreeError(f"max_nodes must be a whole number from 1 to {MAX_NODES}, got {value!r}")
    return value


def _depth_bound(value: int) -> int:
    if not isinstance(value, int) or value < 0:
        raise TreeError(f"max_depth must be a whole number from 0 on, got {value!r}")
    return value


def _integer_row(name: str, tensor: torch.Tensor) -> torch.Tensor:
    if tensor.ndim != 1:
        raise TreeError(f"{name} must be one row of numbers, got {tuple(tensor.shape)}")
    if tensor.is_floating_point() or tensor.is_complex() or tensor.dtype == torch.bool:
        raise NotAnIntegerError(f"{name} holds {tensor.dtype} values, expected integers")
    return tensor


def _is_remote(values: Any) -> bool:
    """Whether looking at `values` would wait for a GPU."""
    return isinstance(values, torch.Tensor) and values.device.type != "cpu"
