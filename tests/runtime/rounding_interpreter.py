"""Triton's interpreter with bfloat16 and tf32 as a GPU computes them: for children of tests.

The interpreter keeps bfloat16 as bare bits, on which arithmetic is meaningless, and takes every
product in float32. Here a bfloat16 tile is a float32 array whose entries are bfloat16 numbers:
loads and stores translate, casts round to nearest even, and products of two such tiles are exact
products summed in float32, as on tensor cores. With that, precision plans are tested as well.
"""

from __future__ import annotations

from typing import Any

import numpy as np


def round_bits(values: Any) -> Any:
    """The bits of the nearest bfloat16 numbers, ties to even; NaN stays NaN."""
    wide = np.ascontiguousarray(values, dtype=np.float32)
    bits = wide.view(np.uint32)
    rounded = ((bits + np.uint32(0x7FFF) + ((bits >> 16) & 1)) >> 16).astype(np.uint16)
    return np.where(np.isnan(wide), np.uint16(0x7FC0), rounded)


def from_bits(bits: Any) -> Any:
    """bfloat16 bits as float32 numbers."""
    return (np.asarray(bits).astype(np.uint32) << 16).view(np.float32)


def install() -> None:
    """Change the interpreter of this process, and let kernels be compiled for it in bfloat16."""
    import triton.language as tl
    from triton.runtime import interpreter

    from boleir.runtime import api

    old = interpreter.InterpreterBuilder
    plain_type, plain_size = interpreter._get_np_dtype, interpreter._validate_np_data_size
    handle = interpreter.TensorHandle

    def numpy_type(dtype: Any) -> Any:
        element = dtype.element_ty if isinstance(dtype, tl.block_type) else dtype
        return np.dtype(np.float32) if element == tl.bfloat16 else plain_type(dtype)

    def fits(data: Any, dtype: Any) -> bool:
        if not isinstance(dtype, tl.pointer_type) and dtype.scalar == tl.bfloat16:
            return bool(data.dtype == np.float32)
        return bool(plain_size(data, dtype))

    def load(self: Any, ptrs: Any, mask: Any, other: Any, cache: Any, volatile: Any) -> Any:
        kind = ptrs.get_element_ty()
        if kind != tl.bfloat16:
            return plain_load(self, ptrs, mask, other, cache, volatile)
        rest = np.zeros_like(ptrs.data, dtype=np.uint16)
        rest = rest if other is None else round_bits(np.broadcast_to(other.data, ptrs.data.shape))
        found = interpreter._interpreter.load(ptrs.data, mask.data, rest, np.dtype(np.uint16))
        return handle(from_bits(found), kind)

    def store(self: Any, ptrs: Any, value: Any, mask: Any, cache: Any) -> Any:
        data = round_bits(value.data) if value.dtype.scalar == tl.bfloat16 else value.data
        return interpreter._interpreter.store(ptrs.data, data, mask.data)

    def cast(self: Any, src: Any, dst_type: Any) -> Any:
        kind = dst_type.scalar
        with np.errstate(all="ignore"):
            data = src.data.astype(numpy_type(kind))
        return handle(from_bits(round_bits(data)) if kind == tl.bfloat16 else data, kind)

    def cast_rounding(self: Any, src: Any, dst_type: Any, rounding: Any) -> Any:
        return cast(self, src, dst_type)

    def bitcast(self: Any, src: Any, dst_type: Any) -> Any:
        kind = dst_type.scalar
        bits = round_bits(src.data) if src.dtype.scalar == tl.bfloat16 else src.data
        if kind == tl.bfloat16:
            return handle(from_bits(bits.view(np.uint16)), kind)
        return handle(bits.view(numpy_type(kind)), kind)

    def dot(self: Any, a: Any, b: Any, d: Any, precision: Any, imprecise: Any) -> Any:
        left, right = a.data.astype(np.float32), b.data.astype(np.float32)
        if precision == interpreter._ir.INPUT_PRECISION.TF32 and a.dtype.scalar == tl.float32:
            left, right = _tf32(left), _tf32(right)
        return handle(np.matmul(left, right) + d.data, d.dtype.scalar)

    plain_load = old.create_masked_load
    interpreter._get_np_dtype, interpreter._validate_np_data_size = numpy_type, fits
    changes = {
        "create_masked_load": load,
        "create_masked_store": store,
        "cast_impl": cast,
        "create_fp_to_fp": cast_rounding,
        "create_bitcast": bitcast,
        "create_dot": dot,
    }
    for name, function in changes.items():
        setattr(old, name, function)
    api._refuse_interpreted = lambda shapes: None  # type: ignore[assignment]


def _tf32(values: Any) -> Any:
    """Rounded to the eleven bits that a tf32 product looks at; what is not finite stays."""
    bits = np.ascontiguousarray(values).view(np.uint32)
    rounded = (bits + np.uint32(0xFFF) + ((bits >> 13) & 1)) & np.uint32(0xFFFFE000)
    return np.where(np.isfinite(values), rounded.view(np.float32), values)
