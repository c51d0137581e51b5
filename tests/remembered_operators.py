"""Operators of Triton's interpreter that remember what operands of two types came to.

For every sum of two tiles the interpreter derives anew in which type it is computed, how the shapes
fit and what the result is; that takes many times as long as numpy's sum. Here the first sum of two
types goes that way, and what it asked of numpy is kept if it gives the same bits again. Further
sums of these types repeat it. Types for which that fails keep going the long way.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

_NAMES = ["add", "sub", "mul", "truediv", "floordiv", "mod", "and", "or", "xor", "lshift", "rshift"]
OPERATORS = [
    *(f"__{name}__" for name in ("lt", "le", "gt", "ge", "eq", "ne")),
    *(f"__{side}{name}__" for name in _NAMES for side in ("", "r")),
]
_NUMBERS: dict[type, tuple[str, Callable[[Any], bool]]] = {
    int: ("an int32", lambda x: -(2**31) <= x < 2**31),
    float: ("a float32", lambda x: x == 0.0 or 2.0**-126 <= abs(x) <= 2.0**127),
}
"""Plain numbers, and within which bounds they have one type."""
_PLAIN = ("int1", "int32", "int64", "uint8", "uint32", "uint64", "fp32", "fp64")
"""Element types that numpy computes with as they are."""


@dataclass(frozen=True)
class Way:
    """What two operands come to: `function` of both, once they have these numpy types; without a
    function, an address and an offset of so many bytes. `swapped` operands change places."""

    function: Any
    types: tuple[Any, Any]
    swapped: bool
    width: int
    numpy_type: Any
    handle_type: Any
    type: Any

    def take(self, left: Any, right: Any) -> Any:
        """The numbers of the result. Operands are arrays or plain numbers."""
        if self.swapped:
            left, right = right, left
        left, right = _as(left, self.types[0]), _as(right, self.types[1])
        if self.function is None:
            return left + self.width * right
        found = self.function(left, right)
        return found if found.dtype == self.numpy_type else found.astype(self.numpy_type)


def _as(operand: Any, kind: Any) -> Any:
    if type(operand) is np.ndarray:
        return operand if operand.dtype == kind else operand.astype(kind)
    return np.array([operand], dtype=kind)


class Operators:
    """Takes the place of the operators of tiles in `interpreter`, Triton's module."""

    def __init__(self, core: Any, interpreter: Any) -> None:
        self._tensor, self._constant = core.tensor, core.constexpr
        self._semantic, self._handle = interpreter.interpreter_semantic, interpreter.TensorHandle
        self._asked: list[tuple[Any, ...]] = []
        self._watch(self._semantic.builder)
        for name in OPERATORS:
            if name in vars(core.tensor):
                reflected = name.startswith("__r") and name != "__rshift__"
                plain = vars(core.tensor)[name]
                setattr(core.tensor, name, self._remembering(plain, reflected))

    def _watch(self, builder: Any) -> None:
        """Note what is asked of numpy."""
        binary, address = builder.binary_op, builder.create_addptr

        def binary_op(left: Any, right: Any, function: Any) -> Any:
            found = binary(left, right, function)
            self._asked.append((found, function, left, right))
            return found

        def create_addptr(left: Any, right: Any) -> Any:
            found = address(left, right)
            self._asked.append((found, None, left, right))
            return found

        builder.binary_op, builder.create_addptr = binary_op, create_addptr

    def _remembering(self, plain: Any, reflected: bool) -> Any:
        """The operator `plain`; where it is `reflected`, its own tile is the right operand."""
        ways: dict[tuple[Any, ...], Way | None] = {}
        tensor, constant = self._tensor, self._constant
        handle, semantic = self._handle, self._semantic

        def operator(one: Any, other: Any) -> Any:
            if type(other) is constant:
                other = other.value
            data = one.handle.data
            key: tuple[Any, ...]
            if type(other) is tensor:
                operand = other.handle.data
                key = (one.type.name, data.dtype, other.type.name, operand.dtype)
            else:
                operand = other
                kind, within = _NUMBERS.get(type(other), ("", None))
                if within is None or not within(other):
                    return plain(one, other, _semantic=semantic)
                key = (one.type.name, data.dtype, kind)
            if key not in ways:
                self._asked.clear()
                found = plain(one, other, _semantic=semantic)
                ways[key] = self._way(one, other, operand, found, reflected)
                return found
            way = ways[key]
            if way is None:
                return plain(one, other, _semantic=semantic)
            return tensor(handle(way.take(data, operand), way.handle_type), way.type)

        return operator

    def _way(self, one: Any, other: Any, operand: Any, found: Any, reflected: bool) -> Way | None:
        """How `found` came about, if that can be repeated."""
        if len(self._asked) != 1 or self._asked[0][0] is not found.handle:
            return None
        result, function, left, right = self._asked[0]
        kinds = [x.dtype for x in (one, other, found) if type(x) is self._tensor]
        if not all(kind.is_ptr() or kind.name in _PLAIN for kind in kinds):
            return None
        types, width, swapped = (left.data.dtype, right.data.dtype), 0, reflected
        if types == (bool, bool) and function not in (np.bitwise_and, np.bitwise_or):
            return None  # one bit, which wraps around
        if function is None:
            types, swapped = (types[0], np.dtype(np.uint64)), not one.dtype.is_ptr()
            width = max(1, left.get_element_ty().primitive_bitwidth // 8)
        way = Way(function, types, swapped, width, result.data.dtype, result.dtype, found.type)
        again = way.take(one.handle.data, operand)
        same = again.shape == result.data.shape and again.tobytes() == result.data.tobytes()
        return way if same else None
