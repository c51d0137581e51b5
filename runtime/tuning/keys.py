"""What a tuned schedule belongs to: a recurrence, its sizes and formats, a bucket of trees.

The candidates that were tried are no part of it: trying more of them later adds to an entry.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from boleir.codegen.artifact import dump
from boleir.codegen.request import DTYPES, Shapes
from boleir.runtime.tuning.buckets import bucketed

if TYPE_CHECKING:
    from boleir.ir import Recurrence


@dataclass(frozen=True, slots=True)
class TuningKey:
    """All that a look-up compares, in clear. Sizes count elements; formats are torch's names."""

    recurrence: str
    text: str
    """Canonical text of the recurrence: one that has changed has not been tuned."""
    key_heads: int
    value_heads: int
    d_k: int
    d_v: int
    dtype: str
    state_dtype: str
    out_dtype: str
    nodes: int
    depth: int
    batch: int
    parents: tuple[int, ...] | None = None
    """The tree, where it is a constant of the kernels."""

    @property
    def shapes(self) -> Shapes:
        """The shapes that are compiled to tune this key."""
        return Shapes(
            self.key_heads, self.value_heads, self.d_k, self.d_v, self.nodes, self.depth,
            self.dtype, self.state_dtype, self.parents, self.out_dtype,
        )  # fmt: skip

    @property
    def name(self) -> str:
        """In a few words, for people."""
        tree = "static" if self.parents is not None else f"{self.nodes}x{self.depth}"
        return (
            f"{self.recurrence} {self.key_heads}:{self.value_heads} {self.d_k}x{self.d_v} "
            f"{DTYPES[self.dtype]} nodes {tree} batch {self.batch}"
        )

    @property
    def file(self) -> str:
        """Name of the entry's file: readable, different for different keys, and never a path."""
        digest = hashlib.sha256(dump(self.to_json())).hexdigest()[:16]
        name = re.sub(r"\W+", "-", self.recurrence, flags=re.ASCII)[:64]
        return (
            f"{name}_h{self.key_heads}-{self.value_heads}_d{self.d_k}-{self.d_v}"
            f"_n{self.nodes}-{self.depth}_b{self.batch}_{digest}.json"
        )

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        values = asdict(self)
        if self.parents is not None:
            values["parents"] = list(self.parents)
        return values


def key_of(recurrence: Recurrence, shapes: Shapes, batch: int) -> TuningKey | None:
    """The key whose entry serves these shapes, or None outside the range that is tuned."""
    held = bucketed(shapes, batch)
    if held is None:
        return None
    sizes, requests = held
    return TuningKey(
        recurrence.name, str(recurrence), sizes.key_heads, sizes.value_heads, sizes.d_k, sizes.d_v,
        sizes.dtype, sizes.state_dtype, sizes.out_dtype or sizes.dtype, sizes.max_nodes,
        sizes.max_depth, requests, sizes.parents,
    )  # fmt: skip
