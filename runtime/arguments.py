"""Checks of a call's tensors, made once per combination of shapes, strides and formats.

A check answers with what launches need beside addresses: the strides. Every refusal names the
argument, what it is and what was expected.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import torch

from boleir.codegen.interface import Interface, Operand
from boleir.errors import LaunchError
from boleir.runtime.pool import PoolLayer
from boleir.runtime.tree_batch import TreeBatch

STRIDE_UNIT = 16
"""Elements that a stride is a multiple of where a kernel was compiled for that."""


REACH = 2**31
"""Elements that the tokens of one request span: kernels count them in 32 bits."""


class ArgumentError(LaunchError):
    """An argument of `verify` or `commit` that does not fit; `argument` names it."""

    def __init__(self, argument: str, problem: str, *, mend: str | None = None) -> None:
        super().__init__(f"{argument} {problem}", mend=mend)
        self.argument = argument


class Call(NamedTuple):
    """What a checked combination of tensors amounts to."""

    strides: tuple[int, ...]
    """Distance between tokens of every input, in elements, in the order of the interface."""
    tokens: int
    """Rows of the inputs."""
    out_shape: tuple[int, ...]


def named(face: Interface, inputs: Mapping[str, torch.Tensor]) -> list[torch.Tensor]:
    """The tensors of `inputs` in order: token inputs, parameters, convolution weights."""
    require("inputs", inputs, Mapping, "a mapping from names to tensors")
    wanted = input_names(face)
    missing = [name for name in wanted if name not in inputs]
    if missing:
        raise ArgumentError(missing[0], f"is missing: {_expected(face, missing[0])}")
    extra = [name for name in inputs if name not in wanted]
    if extra:
        raise ArgumentError(
            extra[0], "is no input of this kernel", mend=f"inputs: {', '.join(wanted)}"
        )
    return [inputs[name] for name in wanted]


def require(name: str, value: object, kind: type | tuple[type, ...], expected: str) -> None:
    """Refuse an argument that is not even of its type."""
    if not isinstance(value, kind):
        raise ArgumentError(name, f"is a {type(value).__name__}, expected {expected}")


def input_names(face: Interface) -> tuple[str, ...]:
    """Names that `inputs` must have: token inputs, parameters, convolution weights."""
    names = [item.name for item in (*face.inputs, *face.parameters)]
    return (*names, "conv_weight") if face.conv_channels else tuple(names)


def check_inputs(
    face: Interface, given: Sequence[torch.Tensor], nodes: int, device: torch.device
) -> Call:
    """Check the tensors that `named` gives against trees with room for `nodes` nodes. Raises
    `ArgumentError`."""
    strides, tokens, leading = [], None, False
    for item, tensor in zip(face.inputs, given, strict=False):
        _check_kind(item.name, tensor, face.dtype, device)
        rows, stride = _token_rows(item, tensor)
        if tokens is not None and rows != tokens:
            raise ArgumentError(item.name, f"has {rows} tokens, {face.inputs[0].name} has {tokens}")
        tokens = rows
        _check_token_stride(face, item.name, stride)
        leading = leading or tensor.ndim == 4
        strides.append(stride)
    for item, tensor in zip(face.parameters, given[len(face.inputs) :], strict=False):
        _check_dense(item.name, tensor, item.shape, "float32", device)
    if face.conv_channels:
        taps = (face.conv_channels, face.conv_width)
        # torch.nn.Conv1d keeps its depthwise weights as [channels, 1, taps]: the same memory.
        kept = tuple(getattr(given[-1], "shape", ()))
        shape = kept if kept == (taps[0], 1, taps[1]) else taps
        _check_dense("conv_weight", given[-1], shape, face.conv_dtype, device)
    tokens = nodes if tokens is None else tokens
    if tokens < nodes:
        raise ArgumentError(
            face.inputs[0].name, f"has {tokens} tokens, the trees have room for {nodes}"
        )
    shape = (tokens, face.value_heads, face.d_v)
    return Call(tuple(strides), tokens, (1, *shape) if leading else shape)


def output_buffers(face: Interface, out: object) -> tuple[torch.Tensor, ...]:
    """`out` as given to a kernel with one or several outputs: a buffer for each of them, or none
    where none was given."""
    if out is None:
        return ()
    count = len(face.outputs)
    if count == 1:
        return (out,)  # type: ignore[return-value]
    expected = f"a sequence of {count} tensors, one for each output"
    require("out", out, Sequence, expected)
    assert isinstance(out, Sequence)
    if len(out) != count:
        raise ArgumentError("out", f"has {len(out)} entries, expected {expected}")
    return tuple(out)


def check_outs(
    face: Interface, outs: Sequence[torch.Tensor], call: Call, device: torch.device
) -> tuple[int, ...]:
    """Check the output buffers; their token strides."""
    named = zip(face.outputs, outs, strict=True)
    return tuple(_check_out(face, name, out, call, device) for name, out in named)


def _check_out(
    face: Interface, name: str, out: torch.Tensor, call: Call, device: torch.device
) -> int:
    _check_kind(name, out, face.out_dtype, device)
    rows, stride = _token_rows(Operand(name, "value", face.value_heads, face.d_v), out)
    if rows < call.tokens:
        raise ArgumentError(name, f"has {rows} tokens, the inputs have {call.tokens}")
    _check_token_stride(face, name, stride)
    if stride < face.value_heads * face.d_v:
        raise ArgumentError(name, f"has a token stride of {stride} elements: its tokens overlap")
    return stride


def _check_token_stride(face: Interface, name: str, stride: int) -> None:
    """Refuse a distance between tokens that the kernels' arithmetic does not take."""
    _check_unit(face, name, stride, "a token stride of")
    if stride >= REACH // face.max_nodes:
        raise ArgumentError(
            name,
            f"has a token stride of {stride} elements: {face.max_nodes} nodes of a request must "
            f"lie within {REACH} elements",
        )


def _check_unit(face: Interface, name: str, stride: int, what: str) -> None:
    if f"{name}_stride" in face.aligned and stride % STRIDE_UNIT:
        raise ArgumentError(
            "pool state" if name == "state" else name,
            f"has {what} {stride} elements, the kernel takes multiples of {STRIDE_UNIT}",
        )


def check_tree(face: Interface, tree: TreeBatch, device: torch.device) -> None:
    """Refuse a batch whose place, bounds or tables do not fit the kernels."""
    require("tree", tree, TreeBatch, "a TreeBatch")
    if tree.device != device:
        raise ArgumentError("tree", f"lies on {tree.device}, the kernels run on {device}")
    if tree.words != face.words or tree.max_nodes > face.max_nodes:
        raise ArgumentError(
            "tree",
            f"holds up to {tree.max_nodes} nodes per request ({tree.words} ancestor words), "
            f"the kernel takes {face.max_nodes} ({face.words} words)",
            mend=f"make the TreeBatch with max_nodes={face.max_nodes}, or use kernel.tree_batch",
        )
    if tree.max_depth > face.max_depth:
        raise ArgumentError(
            "tree",
            f"may be {tree.max_depth} deep, the kernel was compiled for {face.max_depth}",
            mend=f"make the TreeBatch with max_depth={face.max_depth}",
        )
    if face.conv_channels and tree.conv_width != face.conv_width:
        raise ArgumentError(
            "tree",
            f"has nearest ancestors for a convolution of width {tree.conv_width}, "
            f"the recurrence's has width {face.conv_width}",
            mend=f"make the TreeBatch with conv_width={face.conv_width}",
        )


def check_static(face: Interface, tree: TreeBatch) -> None:
    """Refuse other trees than the one that was a constant of the compilation.

    Waits for the GPU; inside graph capture, where that is not possible, nothing is checked.
    """
    if face.parents is None:
        return
    if tree.device.type == "cuda" and torch.cuda.is_current_stream_capturing():
        return
    for request, given in enumerate(tree.trees()):
        if given.parents != face.parents[: len(given.parents)]:
            raise ArgumentError(
                "tree",
                f"of request {request} is not the tree that the kernel was compiled for",
                mend="kernel.tree_batch() makes batches of it",
            )


def check_pool(face: Interface, layer: PoolLayer, device: torch.device) -> None:
    """Refuse a layer of a pool that does not fit the kernels."""
    if not isinstance(layer, PoolLayer):
        raise ArgumentError(
            "pool", f"is a {type(layer).__name__}, expected a PoolLayer", mend="pool.layer(0)"
        )
    _check_kind("pool state", layer.state, face.state_dtype, device)
    slot = (face.value_heads, face.d_v, face.d_k)
    if tuple(layer.state.shape[1:]) != slot:
        raise ArgumentError(
            "pool state", f"is {_shape(layer.state.shape)}, expected {_shape(('slots', *slot))}"
        )
    if layer.slots > 1:
        _check_unit(face, "state", layer.strides[0], "a distance between slots of")
    if not face.conv_channels:
        return
    window = (face.conv_channels, face.conv_width - 1)
    if layer.window is None:
        raise ArgumentError(
            "pool window", f"is missing: expected {face.dtype} {_shape(('slots', *window))}"
        )
    _check_kind("pool window", layer.window, face.dtype, device)
    if tuple(layer.window.shape[1:]) != window:
        raise ArgumentError(
            "pool window",
            f"is {_shape(layer.window.shape)}, expected {_shape(('slots', *window))}",
        )


def check_requests(name: str, tensor: torch.Tensor, requests: int, device: torch.device) -> None:
    """Refuse what is not a row of whole numbers, one per request."""
    _check_kind(name, tensor, "int32", device)
    if tensor.ndim != 1 or not tensor.is_contiguous() or tensor.numel() < requests:
        raise ArgumentError(name, f"is {_shape(tensor.shape)}, expected contiguous [{requests}]")


def check_slots(name: str, slots: torch.Tensor, requests: int, layer: PoolLayer) -> None:
    """Refuse slots beyond the pool. Reads the numbers: only where that is no wait for a GPU."""
    highest = int(slots[:requests].max()) if requests else -1
    if highest >= layer.slots:
        raise ArgumentError(name, f"holds {highest}, the pool has slots 0 to {layer.slots - 1}")


def misaligned(names: Sequence[str], tensors: Sequence[torch.Tensor]) -> ArgumentError:
    """The error for the first tensor whose address is not a multiple of 16 bytes."""
    for name, tensor in zip(names, tensors, strict=True):
        if tensor.data_ptr() & 15:
            return ArgumentError(
                name,
                f"begins at an address that is {tensor.data_ptr() & 15} above a multiple of 16",
                mend="take a view that begins at a multiple of 16 bytes, or a copy",
            )
    raise AssertionError("all addresses are multiples of 16")


def _token_rows(item: Operand, tensor: torch.Tensor) -> tuple[int, int]:
    """Tokens and token stride of an input; only that stride is free."""
    shape, strides = list(tensor.shape), list(tensor.stride())
    if len(shape) == len(item.shape) + 2 and shape[0] == 1:
        shape, strides = shape[1:], strides[1:]
    flat = shape[1:] == [item.channels]
    if len(shape) < 2 or not (flat or tuple(shape[1:]) == item.shape):
        raise ArgumentError(
            item.name, f"is {_shape(tensor.shape)}, expected {_shape(('tokens', *item.shape))}"
        )
    expected = 1
    for size, stride in zip(reversed(shape[1:]), reversed(strides[1:]), strict=True):
        if size > 1 and stride != expected:
            raise ArgumentError(
                item.name,
                f"{_shape(tensor.shape)} has strides {tensor.stride()}; "
                "only the distance between tokens is free",
                mend="heads and channels of one token must be contiguous",
            )
        expected *= size
    return shape[0], strides[0] if shape[0] > 1 else expected


def _check_kind(name: str, tensor: object, dtype: str, device: torch.device) -> None:
    require(name, tensor, torch.Tensor, "a tensor")
    assert isinstance(tensor, torch.Tensor)
    if tensor.dtype != getattr(torch, dtype):
        raise ArgumentError(name, f"is {tensor.dtype}, expected torch.{dtype}")
    if tensor.device != device:
        raise ArgumentError(name, f"lies on {tensor.device}, the trees on {device}")


def _check_dense(
    name: str, tensor: torch.Tensor, shape: tuple[int, ...], dtype: str, device: torch.device
) -> None:
    _check_kind(name, tensor, dtype, device)
    flat = 1
    for size in shape:
        flat *= size
    if tuple(tensor.shape) not in (shape, (flat,)) or not tensor.is_contiguous():
        contiguous = "" if tensor.is_contiguous() else "not contiguous, "
        raise ArgumentError(
            name, f"is {contiguous}{_shape(tensor.shape)}, expected contiguous {_shape(shape)}"
        )


def _expected(face: Interface, name: str) -> str:
    if name == "conv_weight":
        return f"{face.conv_dtype} {_shape((face.conv_channels, face.conv_width))}"
    for item in face.inputs:
        if item.name == name:
            return f"{face.dtype} {_shape(('tokens', *item.shape))}"
    found = next(item for item in face.parameters if item.name == name)
    return f"float32 {_shape(found.shape)}"


def _shape(sizes: Sequence[object]) -> str:
    return f"[{', '.join(map(str, sizes))}]"
