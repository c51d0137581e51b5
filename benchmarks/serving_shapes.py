"""The layer shapes and proposal shapes that are measured, with the ratios they must reach."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

Kind = Literal["gdn", "kda"]
"""One decay per head, or one per key channel."""

LINEAR_LAYERS_PER_MODEL = 24
"""Gated DeltaNet layers over which work done once per round is shared (Qwen3.5-9B: 24 of 32)."""


@dataclass(frozen=True, slots=True)
class LayerShape:
    """Heads and sizes of one linear-attention layer; the packed projection is q | k | v."""

    name: str
    key_heads: int
    value_heads: int
    d_k: int = 128
    d_v: int = 128
    conv_width: int = 4

    @property
    def key_dim(self) -> int:
        """Channels of q, and of k."""
        return self.key_heads * self.d_k

    @property
    def value_dim(self) -> int:
        """Channels of v, and of the output."""
        return self.value_heads * self.d_v

    @property
    def packed_dim(self) -> int:
        """Channels of the packed q | k | v projection, all of which the convolution covers."""
        return 2 * self.key_dim + self.value_dim

    @property
    def state_elements(self) -> int:
        """Elements of one request's recurrent state in one layer."""
        return self.value_heads * self.d_v * self.d_k


@dataclass(frozen=True, slots=True)
class Row:
    """One proposal shape: requests, nodes per request, edges from root to deepest node."""

    batch: int
    nodes: int
    depth: int

    def __post_init__(self) -> None:
        if self.batch < 1 or self.nodes < 1 or not 0 <= self.depth < self.nodes:
            raise ValueError(
                f"{self.batch}x{self.nodes}x{self.depth}: need batch >= 1, nodes >= 1 "
                "and 0 <= depth < nodes"
            )

    @property
    def is_chain(self) -> bool:
        """True when every tree is a single path."""
        return self.depth == self.nodes - 1

    @property
    def total_nodes(self) -> int:
        """Nodes of the whole batch."""
        return self.batch * self.nodes

    def __str__(self) -> str:
        return f"{self.batch}x{self.nodes}x{self.depth}"

    @classmethod
    def parse(cls, text: str) -> Row:
        """Read `BATCHxNODES` (a chain) or `BATCHxNODESxDEPTH`."""
        parts = text.lower().split("x")
        if len(parts) not in (2, 3) or not all(part.isdigit() for part in parts):
            raise ValueError(f"{text!r}: expected BATCHxNODES or BATCHxNODESxDEPTH, as in 16x64x8")
        numbers = [int(part) for part in parts]
        batch, nodes = numbers[:2]
        return cls(batch, nodes, numbers[2] if len(numbers) == 3 else nodes - 1)


LAYERS: dict[str, LayerShape] = {
    shape.name: shape
    for shape in (
        LayerShape("qwen3.5-9b", key_heads=16, value_heads=32),
        LayerShape("qwen3.5-27b", key_heads=16, value_heads=48),
        LayerShape("qwen3.5-397b", key_heads=16, value_heads=64),
    )
}


def layer_shape(name: str, kind: Kind) -> LayerShape:
    """The layer called `name`; a kda layer has as many key heads as value heads."""
    shape = LAYERS[name]
    if kind == "gdn":
        return shape
    return replace(shape, key_heads=shape.value_heads)


TREE_ROWS = (Row(1, 16, 5), Row(1, 64, 8), Row(16, 32, 8), Row(16, 64, 8))
CHAIN_ROWS = (Row(1, 4, 3), Row(1, 8, 7), Row(16, 4, 3), Row(16, 8, 7))
DECODE_ROWS = (Row(1, 1, 0), Row(16, 1, 0))
GROWTH_NODES = (1, 2, 4, 8, 9, 16, 17, 32, 33, 64, 65, 128, 256)
GROWTH_ROWS = tuple(
    Row(batch, nodes, min(7, nodes - 1)) for batch in (1, 16) for nodes in GROWTH_NODES
)
"""One token to the largest tree, with pairs on either side of a power of two: the cost must not
jump between them."""
DEPTH_ROWS = tuple(Row(batch, 64, depth) for batch in (1, 16) for depth in (1, 2, 4, 8, 16, 32, 63))
"""From a star to a chain."""
BATCH_ROWS = tuple(Row(batch, 64, 8) for batch in (1, 2, 4, 8, 16, 32, 64))

ROW_SETS = {
    "trees": TREE_ROWS,
    "chains": CHAIN_ROWS,
    "decode": DECODE_ROWS,
    "growth": GROWTH_ROWS,
    "depth": DEPTH_ROWS,
    "batch": BATCH_ROWS,
}

REQUIRED_CORE_RATIO = dict(zip(TREE_ROWS, (3.5, 6.0, 12.0, 18.0), strict=True))
"""Least speed-up of the recurrent core over SGLang's serial verifier."""

TARGET_CORE_RATIO = dict(zip(TREE_ROWS, (4.0, 10.0, 20.0, 35.0), strict=True))
"""Speed-up of the recurrent core that is aimed at."""
