"""What a user asks the compiler for: a recurrence, its shapes, its number formats, a bound on the
trees."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from numbers import Integral
from typing import Any

from boleir.errors import ScheduleError
from boleir.ir import Input, Kind, Recurrence

MAX_NODES = 256
"""Most nodes per request: four 64-bit ancestor words."""

DTYPES = {"bfloat16": "bf16", "float16": "fp16", "float32": "fp32"}
"""torch's names of the supported formats and Triton's."""


class RequestError(ScheduleError):
    """Shapes or formats that no kernel can have; the message names the argument."""


@dataclass(frozen=True, slots=True)
class Shapes:
    """Sizes that are constants of the emitted code. Value head h uses key head h // (value_heads /
    key_heads)."""

    key_heads: int
    value_heads: int
    d_k: int
    d_v: int
    max_nodes: int
    max_depth: int
    """Largest number of edges from a root to a node."""
    dtype: str = "bfloat16"
    """Format of token inputs and convolution windows."""
    state_dtype: str = "float32"
    parents: tuple[int, ...] | None = None
    """A static tree: the topology itself is a constant."""
    out_dtype: str | None = None
    """Format of outputs; None for that of the vectors."""

    def __post_init__(self) -> None:
        sizes = ("key_heads", "value_heads", "d_k", "d_v", "max_nodes")
        for name in (*sizes, "max_depth"):
            value = getattr(self, name)
            if not isinstance(value, Integral):
                raise RequestError(f"{name} must be a whole number, not {value!r}")
        for name in sizes:
            if getattr(self, name) < 1:
                raise RequestError(f"{name} must be at least 1, not {getattr(self, name)}")
        if self.value_heads % self.key_heads:
            raise RequestError(
                f"value_heads {self.value_heads} is not a multiple of key_heads {self.key_heads}"
            )
        if self.max_nodes > MAX_NODES:
            raise RequestError(f"max_nodes {self.max_nodes} is above {MAX_NODES}")
        if not 0 <= self.max_depth < self.max_nodes:
            raise RequestError(
                f"max_depth must lie in 0..max_nodes-1 = {self.max_nodes - 1}, not {self.max_depth}"
            )
        for name in ("d_k", "d_v"):
            if getattr(self, name) > 512:
                raise RequestError(f"{name} {getattr(self, name)} is above 512")
        for name in ("dtype", "state_dtype", "out_dtype"):
            if getattr(self, name) not in DTYPES and (name != "out_dtype" or self.out_dtype):
                raise RequestError(
                    f"{name} {getattr(self, name)!r} is not one of {', '.join(DTYPES)}"
                )

    @property
    def group(self) -> int:
        """Value heads per key head."""
        return self.value_heads // self.key_heads

    @property
    def words(self) -> int:
        """64-bit ancestor words per node."""
        return -(-self.max_nodes // 64)

    def heads(self, kind: Kind) -> int:
        """Heads of an input of `kind`."""
        return self.key_heads if kind is Kind.KEY else self.value_heads

    def width(self, kind: Kind) -> int:
        """Entries of an input of `kind` per head."""
        return {Kind.KEY: self.d_k, Kind.VALUE: self.d_v, Kind.HEAD: 1}[kind]

    def channels(self, item: Input) -> int:
        """Entries of `item` per token (or of a parameter in all)."""
        return self.heads(item.kind) * self.width(item.kind)

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Request:
    """One compilation: `targets` are names of `boleir.codegen.targets`; an empty schedule means the
    default."""

    recurrence: Recurrence
    shapes: Shapes
    targets: tuple[str, ...] = ("sm_90",)
    batch: int = 1
    """About how many requests the default schedule is chosen for."""
