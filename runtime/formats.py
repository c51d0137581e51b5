"""Whether tensors have the formats of others that were checked: one question per call.

Reading shape, strides, format and place of ten tensors in Python takes longer than starting their
kernels. torch has a comparison of its own that answers for all of them in half a microsecond; it is
no public interface, so it is used only where it tells apart everything that matters here, which is
tried out once, and Python compares otherwise. Either may say no where yes would be right (another
autograd mode): then the caller checks anew.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import Any

import torch

Tensors = Sequence[torch.Tensor]
Same = Callable[..., bool]
"""Takes as many tensors as were checked; whether each has the format of its predecessor."""

_SHAPE, _DTYPE, _DEVICE = attrgetter("shape"), attrgetter("dtype"), attrgetter("device")
_STRIDE = torch.Tensor.stride


def formats(tensors: Tensors) -> tuple[object, ...]:
    """Shapes, strides, formats and places, to be compared or hashed."""
    return (
        *map(_SHAPE, tensors),
        *map(_STRIDE, tensors),
        *map(_DTYPE, tensors),
        *map(_DEVICE, tensors),
    )


def same_formats(tensors: Tensors) -> Same:
    """A comparison with these tensors, which it does not keep alive."""
    return (_by_torch if _torch_compares() else _by_python)(tensors)


def _by_python(tensors: Tensors) -> Same:
    known = formats(tensors)

    def same(*others: Any) -> bool:
        try:
            return formats(others) == known
        except (AttributeError, TypeError):  # something is no tensor
            return False

    return same


def _by_torch(tensors: Tensors) -> Same:
    from torch._C._dynamo import guards

    kind: Any = guards.TensorGuards
    sizes, strides = [list(t.size()) for t in tensors], [list(t.stride()) for t in tensors]
    found: Same = kind(*tensors, dynamic_dims_sizes=sizes, dynamic_dims_strides=strides).check
    return found


@functools.cache
def _torch_compares() -> bool:
    """Whether torch's comparison is there and does what it is used for."""
    try:
        return _distinguishes(_by_torch)
    except Exception:  # absent, or of another signature
        return False


def _distinguishes(make: Callable[[Tensors], Same]) -> bool:
    """Try a comparison on formats that are equal and on each kind of difference."""
    memory = torch.zeros(64)
    one = memory[:24].view(4, 6)
    same = make([one, memory])
    equal = [memory[32:56].view(4, 6), torch.zeros(4, 6)]
    different: list[object] = [
        memory[:24].view(6, 4),  # shape
        memory[:20].view(4, 5),
        memory.as_strided((4, 6), (8, 1)),  # strides
        memory[:24].view(6, 4).t(),
        memory[:24].view(1, 4, 6),  # axes
        torch.zeros(4, 6, dtype=torch.bfloat16),  # format
        torch.zeros(4, 6, dtype=torch.int32),
        torch.zeros(4, 6, device="meta"),  # place
        None,
        [1],
    ]
    return all(same(other, memory) is True for other in equal) and not any(
        same(other, memory) or same(one, other) for other in different
    )
