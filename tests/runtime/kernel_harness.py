"""Kernels against the float64 walk, with hostile memory: what interpreted and GPU tests share.

Every tensor lies inside a larger one that is filled with NaN, tokens are strided, slots are far
apart and out of order, scratch is poisoned. A `Harness` compiles one kernel, a `Batch` holds one
round's requests.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch

import boleir
from boleir.check.check import node_errors, trust
from boleir.check.inputs import Case, Sample, Shape, sample
from boleir.codegen.schedule import Schedule
from boleir.derive.derive import derive
from boleir.ir import Expr
from boleir.oracle import evaluate, sequential
from boleir.oracle.values import Field
from boleir.runtime.kernel import Factors, Kernel
from boleir.runtime.pool import PoolLayer
from boleir.runtime.spot_check import stored_values
from boleir.runtime.tree_batch import TreeBatch
from tests.paths import path_of

GUARD = 64
"""NaN elements before and behind every buffer; a multiple of 16 bytes in any format."""

LIMIT = 2e-5
"""Per-node error of the default precision plan, outputs in float32."""


def bits(tensor: torch.Tensor) -> torch.Tensor:
    """The bit patterns, so that NaNs compare."""
    return tensor.contiguous().view(torch.uint8)


class Guarded:
    """A strided view into a buffer filled with NaN. `view` is what a kernel sees."""

    def __init__(
        self, shape: Sequence[int], stride: int, dtype: torch.dtype, device: torch.device
    ) -> None:
        inner = [1]
        for size in reversed(shape[2:]):
            inner.insert(0, inner[0] * size)
        whole = 2 * GUARD + max(1, shape[0]) * stride
        self.buffer = torch.full((whole,), float("nan"), dtype=dtype, device=device)
        self.view = self.buffer.as_strided(tuple(shape), (stride, *inner[: len(shape) - 1]), GUARD)
        self.before = self.buffer.clone()

    def remember(self) -> None:
        """What the buffer holds now is what it should hold."""
        self.before = self.buffer.clone()

    def changed(self) -> bool:
        """Whether any bit has changed since `remember`."""
        return not torch.equal(bits(self.buffer), bits(self.before))

    def expect(self, part: torch.Tensor) -> None:
        """Accept the present content of `part`, a view of `view`."""
        there = self.before.as_strided(part.shape, part.stride(), part.storage_offset())
        there.copy_(part)


def padded(channels: int) -> int:
    """A token stride beyond the channels, a multiple of 16 elements."""
    return (channels + 31) // 16 * 16


@dataclass(eq=False)
class Batch:
    """One round: trees, inputs, pool of one layer, and what the walk says about each request."""

    samples: list[Sample | None]
    """None for a padding row or an empty request."""
    tree: TreeBatch
    cu: list[int]
    guarded: dict[str, Guarded]
    inputs: dict[str, torch.Tensor]
    pool: PoolLayer
    state: Guarded
    window: Guarded | None
    slots: list[int]
    out: Guarded
    mixed: torch.Tensor | None = None
    """What the last verification stored of the convolved inputs, [nodes, channels]."""
    walks: dict[int, Any] = field(default_factory=dict)
    """Walks of requests since the last verification: they are slow at full size."""

    def slot_tensor(self, values: Sequence[int] | None = None) -> torch.Tensor:
        """int32 on the batch's device."""
        given = self.slots if values is None else values
        return torch.tensor(given, dtype=torch.int32, device=self.tree.device)

    def intact(self) -> dict[str, bool]:
        """Which inputs and guard bands kept every bit."""
        everything = {**self.guarded, "state": self.state, "out": self.out}
        if self.window is not None:
            everything["window"] = self.window
        return {name: not held.changed() for name, held in everything.items()}


class Harness:
    """One compiled kernel and how to feed it."""

    def __init__(
        self,
        recurrence: Any,
        shape: Shape,
        *,
        max_nodes: int,
        max_depth: int,
        schedule: Mapping[str, Any] | None = None,
        **options: Any,
    ) -> None:
        self.recurrence = boleir.load(recurrence) if isinstance(recurrence, str) else recurrence
        self.form = derive(self.recurrence)
        self.shape = shape
        tree = options.get("tree")
        bounds = {} if tree is not None else {"max_nodes": max_nodes, "max_depth": max_depth}
        chosen = None if schedule is None else Schedule(**schedule)
        self.kernel: Kernel = boleir.compile(
            self.recurrence,
            key_heads=shape.key_heads,
            value_heads=shape.value_heads,
            d_k=shape.d_k,
            d_v=shape.d_v,
            schedule=chosen,
            **bounds,
            **options,
        )
        self.device = self.kernel.device

    def round(self, values: Any, name: str) -> Any:
        """`values` in the format that the kernel gets for `name`, as float64."""
        tensor = torch.as_tensor(np.asarray(values)).to(self.dtype(name))
        return tensor.double().numpy()

    def dtype(self, name: str) -> torch.dtype:
        """The format of an argument."""
        face = self.kernel.interface
        parameters = {item.name for item in face.parameters}
        kinds = {"state": face.state_dtype, "out": face.out_dtype, "conv_weight": face.conv_dtype}
        spelled = "float32" if name in parameters else kinds.get(name, face.dtype)
        found: torch.dtype = getattr(torch, spelled)
        return found

    def samples(
        self, parents: Sequence[Sequence[int]], cases: Sequence[Case], seed: int
    ) -> list[Sample | None]:
        """Drawn inputs for every request, rounded to the kernel's formats; all share the layer's
        parameters and convolution weights."""
        found: list[Sample | None] = []
        layer: Sample | None = None
        for at, (tree, case) in enumerate(zip(parents, cases, strict=True)):
            if not len(tree):
                found.append(None)
                continue
            drawn = sample(self.form, case, self.shape, parents=tree, seed=seed + at)
            layer = layer or drawn
            found.append(self._shared(drawn, layer))
        return found

    def _shared(self, drawn: Sample, layer: Sample) -> Sample:
        inputs = dict(drawn.inputs)
        for item in self.kernel.interface.parameters:
            values = layer.inputs[item.name]
            inputs[item.name] = values[:: max(1, len(values) // item.heads)][: item.heads]
        return replace(
            drawn,
            inputs={name: self.round(x, name) for name, x in inputs.items()},
            weights={n: self.round(x, "conv_weight") for n, x in layer.weights.items()},
            windows={n: self.round(x, n) for n, x in drawn.windows.items()},
            state=self.round(drawn.state, "state"),
        )

    def batch(
        self,
        parents: Sequence[Sequence[int]],
        slots: Sequence[int],
        *,
        cases: Sequence[Case] | None = None,
        seed: int = 0,
        pool_slots: int = 7,
        samples: list[Sample | None] | None = None,
    ) -> Batch:
        """Put requests into hostile memory."""
        drawn = samples or self.samples(parents, cases or [Case()] * len(parents), seed)
        cu = np.cumsum([0, *map(len, parents)]).tolist()
        flat = [node for tree in parents for node in tree]
        tree = self.kernel.tree_batch(flat, cu)
        guarded = self._tokens(drawn, parents, cu)
        inputs = {name: held.view for name, held in guarded.items()}
        inputs |= self._parameters(drawn, guarded)
        state, window = self._pool(drawn, slots, pool_slots)
        face = self.kernel.interface
        heads = face.value_heads * len(face.outputs)
        shape = (cu[-1], heads, face.d_v)
        out = Guarded(shape, padded(heads * face.d_v), self.dtype("out"), self.device)
        for held in (*guarded.values(), state, out, *([window] if window else [])):
            held.remember()
        layer = PoolLayer(state.view, window.view if window else None)
        return Batch(drawn, tree, cu, guarded, inputs, layer, state, window, list(slots), out)

    def _tokens(
        self, drawn: list[Sample | None], parents: Sequence[Sequence[int]], cu: list[int]
    ) -> dict[str, Guarded]:
        guarded = {}
        for item in self.kernel.interface.inputs:
            shape = (cu[-1], *item.shape)
            held = Guarded(shape, padded(item.channels), self.dtype(item.name), self.device)
            for b, request in enumerate(drawn):
                if request is not None:
                    rows = torch.as_tensor(request.inputs[item.name])
                    held.view[cu[b] : cu[b + 1]] = rows.to(held.view)
            guarded[item.name] = held
        return guarded

    def _parameters(
        self, drawn: list[Sample | None], guarded: dict[str, Guarded]
    ) -> dict[str, torch.Tensor]:
        first = next(request for request in drawn if request is not None)
        face = self.kernel.interface
        rows = {item.name: first.inputs[item.name] for item in face.parameters}
        if face.conv_channels:
            rows["conv_weight"] = np.concatenate([first.weights[n] for n in face.convolved])
        found = {}
        for name, values in rows.items():
            held = Guarded((1, values.size), values.size, self.dtype(name), self.device)
            held.view[0] = torch.as_tensor(values.reshape(-1)).to(held.view)
            guarded[name] = held
            found[name] = held.view[0].view(values.shape)
        return found

    def _pool(
        self, drawn: list[Sample | None], slots: Sequence[int], pool_slots: int
    ) -> tuple[Guarded, Guarded | None]:
        face = self.kernel.interface
        shape = (pool_slots, face.value_heads, face.d_v, face.d_k)
        size = face.value_heads * face.d_v * face.d_k
        state = Guarded(shape, padded(size), self.dtype("state"), self.device)
        window = None
        if face.conv_channels:
            taps = face.conv_width - 1
            shape3 = (pool_slots, face.conv_channels, taps)
            kind = self.dtype("window")
            window = Guarded(shape3, padded(face.conv_channels * taps), kind, self.device)
        for request, slot in zip(drawn, slots, strict=True):
            if request is None or slot < 0:
                continue
            value_first = torch.as_tensor(request.state.transpose(0, 2, 1).copy())
            state.view[slot] = value_first.to(state.view)
            if window is not None:
                rows = np.concatenate([request.windows[n] for n in face.convolved])
                window.view[slot] = torch.as_tensor(rows).to(window.view)
        return state, window

    # ---- running and comparing ----------------------------------------------------------

    def verify(self, batch: Batch, **options: Any) -> tuple[torch.Tensor, Factors]:
        """One call into the guarded output, with poisoned scratch. Several outputs lie side by side
        in it, as heads."""
        if "workspace" not in options:
            room = batch.tree.num_nodes + 5
            space = self.kernel.workspace(batch.tree.num_requests + 1, room)
            poison(space.layer(0).tensors)
            options["workspace"] = space
        slots = batch.slot_tensor()
        batch.walks.clear()
        outs = batch.out.view.split(self.kernel.interface.value_heads, dim=1)
        several = len(outs) > 1
        _, factors = self.kernel.verify(
            batch.tree, batch.inputs, batch.pool, slots, out=outs if several else batch.out.view,
            **options,
        )  # fmt: skip
        if self.kernel.interface.conv_channels:
            batch.mixed = options["workspace"].convolved(options.get("layer", 0))
        return batch.out.view, factors

    def reference(self, request: Sample, mixed: torch.Tensor | None = None) -> Any:
        """The float64 walk of a request, from the convolved inputs that were stored if given;
        several outputs side by side."""
        return self.decode(request.arguments, None if mixed is None else self.stored(mixed))

    def decode(
        self,
        arguments: Mapping[str, Any],
        stored: dict[Expr, Any] | None,
        field: Field | None = None,
    ) -> Any:
        """The walk of arbitrary arguments, in float64 if nothing else is said."""
        walks = [
            sequential(self.recurrence.with_output(number), **arguments, stored=stored, field=field)
            for number in range(len(self.recurrence.outputs))
        ]
        return replace(walks[0], output=np.concatenate([w.output for w in walks], axis=1))

    def stored(self, mixed: torch.Tensor) -> dict[Expr, Any]:
        """Rows of convolved inputs as values of their expressions."""
        return stored_values(self.kernel, self.recurrence, mixed)

    def walk(self, batch: Batch, b: int) -> Any:
        """The float64 walk of request `b` from what the last verification stored."""
        if b not in batch.walks:
            request = batch.samples[b]
            assert request is not None
            rows = slice(batch.cu[b], batch.cu[b + 1])
            mixed = None if batch.mixed is None else batch.mixed[rows]
            batch.walks[b] = self.reference(request, mixed)
        return batch.walks[b]

    def stored_error(self, batch: Batch) -> float:
        """Worst error of a stored convolved input, in units of what rounding it may cost."""
        if batch.mixed is None:
            return 0.0
        unit = torch.finfo(batch.mixed.dtype).eps / 2
        worst = 0.0
        for b, request in enumerate(batch.samples):
            if request is None or batch.slots[b] < 0:
                continue
            found = self.stored(batch.mixed[batch.cu[b] : batch.cu[b + 1]])
            arguments = {k: v for k, v in request.arguments.items() if k != "state"}
            for expr, rows in found.items():
                exact = evaluate(expr, **arguments)
                slack = 1e-6 * np.abs(exact).max()
                worst = max(
                    worst, float((np.abs(rows - exact) / (unit * np.abs(exact) + slack)).max())
                )
        return worst

    def output_error(self, batch: Batch, out: torch.Tensor) -> float:
        """Worst error per node and output over all requests; infinite where a padding row is not
        zero. An error counts for less where the walk itself, in float32, exceeds the limit."""
        worst = 0.0
        for b, request in enumerate(batch.samples):
            rows = out[batch.cu[b] : batch.cu[b + 1]]
            if batch.slots[b] < 0:
                worst = max(worst, 0.0 if bool((rows == 0).all()) else float("inf"))
            elif request is not None:
                exact = self.walk(batch, b).output
                for number, form in enumerate((self.form, *self.form.more)):
                    heads = self.kernel.interface.value_heads
                    own = slice(number * heads, (number + 1) * heads)
                    found, reference = rows[:, own].double().cpu().numpy(), exact[:, own]
                    errors = node_errors(found, reference)
                    if float(errors.max(initial=0.0)) > LIMIT and batch.mixed is None:
                        errors *= trust(form, request, reference, LIMIT)
                    worst = max(worst, float(errors.max()))
        return worst

    def state_error(self, batch: Batch, slot: int, request: Sample, node: int) -> float:
        """Error of the state in `slot` against the walk's state at `node`."""
        b = next(i for i, x in enumerate(batch.samples) if x is request)
        expected = self.walk(batch, b).states[node]
        found = batch.pool.state[slot].double().cpu().numpy().transpose(0, 2, 1)
        return float(node_errors(found[None], expected[None])[0])

    def window_is(self, batch: Batch, slot: int, request: Sample, node: int) -> bool:
        """Whether the window in `slot` holds the newest inputs on the path of `node`."""
        if batch.pool.window is None:
            return True
        face = self.kernel.interface
        rows = []
        for name in face.convolved:
            width = next(item.channels for item in face.inputs if item.name == name)
            path = path_of(request.parents, node)[::-1]
            row = [request.inputs[name][at].reshape(width) for at in path]
            past = [request.windows[name][:, i] for i in range(face.conv_width - 1)]
            rows.append(np.stack([*past, *row][-(face.conv_width - 1) :], axis=1))
        expected = torch.as_tensor(np.concatenate(rows)).to(batch.pool.window)
        return torch.equal(bits(batch.pool.window[slot]), bits(expected))


def poison(scratch: Sequence[torch.Tensor]) -> None:
    """Fill buffers with NaN; counters of launches stay, since kernels rely on them."""
    for tensor in scratch:
        if tensor.is_floating_point():
            tensor.fill_(float("nan"))
