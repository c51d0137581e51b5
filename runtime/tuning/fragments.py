"""The schedule space as data: for each field of a `Schedule`, the values it may take.

A new idea is one line in `FRAGMENTS`, and a change where it is emitted. Which combinations are
possible is not said here: `boleir.codegen.schedule_limits` and the resource model decide.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from boleir.codegen.request import Shapes
from boleir.codegen.schedule import (
    FUSIONS,
    GATES,
    ORDERS,
    ORIENTATIONS,
    PATH_SUMS,
    PREPARES,
    READERS,
    SOLVERS,
    WALK_NODES,
)

Chosen = Mapping[str, Any]
"""The fields that were decided before this one."""


def always(chosen: Chosen, shapes: Shapes) -> bool:
    """A field that matters in every schedule."""
    return True


@dataclass(frozen=True, slots=True)
class Fragment:
    """The values of one field, simplest first."""

    values: tuple[Any, ...]
    default: Any
    """The value where the field does not matter."""
    matters: Callable[[Chosen, Shapes], bool] = always
    """Whether the kernels differ by it, given the fields before it."""
    ordered: bool = False
    """Neighbours are the next smaller and the next larger value, not all others."""

    def options(self, chosen: Chosen, shapes: Shapes) -> tuple[Any, ...]:
        """The values worth telling apart here."""
        return self.values if self.matters(chosen, shapes) else (self.default,)

    def random(self, rng: random.Random) -> Any:
        """Any value."""
        return rng.choice(self.values)

    def neighbours(self, value: Any) -> tuple[Any, ...]:
        """The values one step away; all, from a value outside the fragment."""
        if value not in self.values or not self.ordered:
            return tuple(other for other in self.values if other != value)
        at = self.values.index(value)
        return self.values[max(0, at - 1) : at] + self.values[at + 1 : at + 2]

    def encode(self, value: Any) -> float:
        """Place of a value, from 0 to 1. Raises `ValueError` for one outside."""
        return self.values.index(value) / max(1, len(self.values) - 1)

    def decode(self, place: float) -> Any:
        """The value nearest to a place; inverse of `encode`."""
        last = len(self.values) - 1
        return self.values[min(last, max(0, round(place * last)))]


def powers(low: int, high: int, default: int, matters: Any = always) -> Fragment:
    """Powers of two from `low` to `high`."""
    values = tuple(1 << bit for bit in range(low.bit_length() - 1, high.bit_length()))
    return Fragment(values, default, matters, ordered=True)


def choice(values: tuple[Any, ...], matters: Any = always) -> Fragment:
    """Unordered words, the first being the default."""
    return Fragment(values, values[0], matters)


def flag(default: bool, matters: Any = always) -> Fragment:
    """Yes or no."""
    return Fragment((False, True), default, matters)


def _folds(chosen: Chosen, shapes: Shapes) -> bool:
    return chosen["fusion"] in ("split", "joined")


def _fused(chosen: Chosen, shapes: Shapes) -> bool:
    return bool(chosen["fusion"] == "fused")


def _free(chosen: Chosen, shapes: Shapes) -> bool:
    """Either side of the products may stand on rows, and both may be fast."""
    several = shapes.max_nodes > chosen["node_block"]
    wide = chosen["fusion"] == "joined" and chosen["node_block"] == 64
    wide |= chosen["fusion"] == "split" and (several or chosen["node_block"] == 64)
    return _fused(chosen, shapes) or wide


def _joined(chosen: Chosen, shapes: Shapes) -> bool:
    return bool(chosen["fusion"] == "joined")


def _one_launch(chosen: Chosen, shapes: Shapes) -> bool:
    """There is one kernel, whose first programs can prepare."""
    return chosen["fusion"] in ("fused", "joined")


def _launched(chosen: Chosen, shapes: Shapes) -> bool:
    """There may be a prepare kernel."""
    return bool(chosen["prepare"] != "joined")


def _many(chosen: Chosen, shapes: Shapes) -> bool:
    """A program that convolves need not take all nodes."""
    return shapes.max_nodes > 16


def _several(chosen: Chosen, shapes: Shapes) -> bool:
    """There is a factors kernel."""
    return chosen["fusion"] in ("split", "staged")


def _groups(chosen: Chosen, shapes: Shapes) -> bool:
    """There is a factors kernel whose programs can take several value heads of a key head."""
    one_block = shapes.max_nodes <= chosen["node_block"]
    return bool(chosen["fusion"] == "split" and one_block and shapes.group > 1)


def _walks(chosen: Chosen, shapes: Shapes) -> bool:
    """Programs of a prepare kernel may walk, if there are walks."""
    folds_or_walks = chosen["fusion"] in ("split", "joined", "walked")
    return bool(folds_or_walks and chosen["path_sum"] == "select")


def _sums(chosen: Chosen, shapes: Shapes) -> bool:
    """A factors kernel sums up, and its steps over key channels can be several."""
    return _folds(chosen, shapes) and chosen["path_sum"] == "dot" and shapes.d_k > 32


def _one_block(chosen: Chosen, shapes: Shapes) -> bool:
    """All nodes lie in one block, whose solve is folded."""
    return _folds(chosen, shapes) and shapes.max_nodes <= chosen["node_block"]


def _tiled(chosen: Chosen, shapes: Shapes) -> bool:
    """There are several heads, and several value tiles of each."""
    several = shapes.value_heads > 1 and shapes.d_v > chosen["b_v"]
    return bool(several and chosen["fusion"] != "staged")


def _stays(chosen: Chosen, shapes: Shapes) -> bool:
    """Programs can take one value tile after the other."""
    return bool(chosen["fusion"] not in ("joined", "staged") and chosen["stages"] == 1)


def _loops(chosen: Chosen, shapes: Shapes) -> bool:
    """Node blocks or key chunks are walked in a loop, whose loads can be staged."""
    several = shapes.max_nodes > chosen["node_block"]
    if chosen["fusion"] in ("split", "joined") and not several:
        return bool(shapes.d_k > chosen["b_k"])
    return shapes.parents is None and several


FRAGMENTS: Mapping[str, Fragment] = {
    "fusion": choice(FUSIONS),
    "solver": choice(SOLVERS),
    "b_v": powers(16, 128, 64),
    "b_k": powers(32, 128, 128),
    "node_block": powers(16, 64, 64),
    "gates": choice(GATES),
    "prepare": choice(PREPARES, _one_launch),
    "prepare_nodes": powers(16, 64, 16, _many),
    "prepare_warps": Fragment((0, 2, 4, 8, 16), 0, _launched, ordered=True),
    "precision": choice(("fp32",)),
    "warps": powers(1, 8, 4),
    "registers": Fragment((0, 96, 128, 160, 168, 200), 0, ordered=True),
    "orientation": choice(ORIENTATIONS, _free),
    "stages": powers(1, 4, 1, _loops),
    # to defer commits, or to round what they read, is for callers to decide
    "commit": choice(("replay", "factors"), _fused),
    "factor_warps": powers(1, 8, 4, _several),
    "factor_registers": choice((0, 168), _several),
    "prefetch": flag(False, _folds),
    "lead": Fragment((0, 128, 256, 320, 384), 0, _joined, ordered=True),
    "path_sum": choice(PATH_SUMS, _folds),
    "factor_stages": choice((1, 3), _sums),
    "factor_heads": choice((1, 2, 3, 4, 8), _groups),
    "walk_nodes": choice(WALK_NODES, _walks),
    "readers": choice(READERS, _one_block),
    "order": choice(ORDERS, _tiled),
    "persistent": Fragment((0, 132, 264, 396), 0, _stays, ordered=True),
    "pdl": flag(True),
}
"""In the order in which they are decided."""
