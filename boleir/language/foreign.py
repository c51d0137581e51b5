"""Functions that papers apply to states and recurrences do not have: why not, and what to do.

A name met here is answered with its reason, in the text language and on traced values alike,
instead of with a list of the names that exist.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from boleir.errors import Span
from boleir.language.errors import (
    ClipOfState,
    MatrixFunction,
    NormOfState,
    RoundedState,
    SoftmaxOfState,
    UnknownName,
)

_CLASSES: Mapping[type[UnknownName], tuple[tuple[str, ...], str, str]] = MappingProxyType(
    {
        RoundedState: (
            (
                *("round", "floor", "cast", "quantize", "quantise", "to", "type", "astype"),
                *("bf16", "bfloat16", "half", "fp16", "float16", "fp8", "float8"),
            ),
            "rounding inside a recurrence is not affine in the state",
            "keep the state exact here; the pool's format (state_dtype) is chosen when compiling",
        ),
        SoftmaxOfState: (
            ("softmax", "logsumexp", "argmax", "topk"),
            "a softmax is not affine in the state",
            "normalise what you read outside; for a linear normaliser append a column of ones to v",
        ),
        ClipOfState: (
            ("clip", "clamp", "minimum", "maximum", "min", "max", "sign"),
            "clipping is not affine in the state",
            "bound the gates instead: sigmoid, tanh and softplus of the inputs of the token",
        ),
        NormOfState: (
            ("norm", "layer_norm", "layernorm", "rms_norm", "rmsnorm", "group_norm", "normalize"),
            "dividing by a norm of the state is not affine in it",
            "normalise key and value vectors (l2norm), or the output outside the recurrence",
        ),
        MatrixFunction: (
            ("newton_schulz", "orthogonalize", "orthogonalise", "msign", "inv", "inverse", "solve"),
            "a matrix function of the state is not affine in it",
            "write what the token adds: erase and write along vectors, u = v - S^T k, S + k u^T",
        ),
    }
)

FOREIGN: Mapping[str, type[UnknownName]] = MappingProxyType(
    {name: kind for kind, (names, _, _) in _CLASSES.items() for name in names}
)
"""Name -> the error that answers it."""


def foreign(name: str, span: Span | None) -> UnknownName | None:
    """The error for a name of the table, None for any other."""
    kind = FOREIGN.get(name)
    if kind is None:
        return None
    _, reason, mend = _CLASSES[kind]
    return kind(f"recurrences have no '{name}': {reason}", span=span, mend=mend)
