"""The part of the state that one program of the commit advances, and how its threads hold it.

A program has some channels of the unknowns (its rows), and of the other side all: every token reads
the state in sums over these. Key channels lie next to each other in memory, and a compiler that
wants whole lines per load puts all lanes of a warp along them: each row then costs a sum across 32
lanes. So sums over keys are taken of a tile of three dimensions, [key pieces, rows, keys of a
piece]: a few lanes lie along a piece, the others along rows, and a thread holds the same place of
all pieces, between which it sums in registers.
"""

from __future__ import annotations

from dataclasses import dataclass

from boleir.codegen.emit.context import Context
from boleir.codegen.emit.text import conjunction
from boleir.codegen.schedule import padded
from boleir.ir import Kind

PER_WARP = 2048
"""Elements of a tile per warp: more leave the work per token and row to fewer threads, until
registers run out."""
PIECES = 4
NARROWEST = 16
"""Fewest channels of a piece: four lanes, each with what one load takes."""


@dataclass(frozen=True, slots=True)
class Tile:
    """Sizes and names of a program's tile."""

    context: Context

    @property
    def summed(self) -> Kind:
        """The side that reads of the state sum over."""
        return self.context.plan.written

    @property
    def warps(self) -> int:
        """Warps of a program. One needs no barrier; decays per summed channel are as much work as
        the tile, so that more warps share it."""
        plan = self.context.plan
        decay = plan.key_decay if plan.value_decay is None else plan.value_decay
        wanted = 4 if decay is not None and decay.kind is self.summed else 1
        return max(1, min(wanted, self._rows * self._every // PER_WARP))

    @property
    def rows(self) -> int:
        """Channels of the unknowns per program."""
        return min(self._rows, max(1, PER_WARP * self.warps // self._every))

    @property
    def per_head(self) -> int:
        """Programs per head."""
        return -(-self.context.shapes.width(self.context.plan.unknown) // self.rows)

    @property
    def programs(self) -> int:
        """State programs per request and layer."""
        return self.per_head * self.context.shapes.value_heads

    @property
    def piece(self) -> int:
        """Channels of the summed side in one piece."""
        if self.summed is Kind.VALUE:  # no two of them are neighbours in memory
            return self._every
        return max(self._every // PIECES, min(self._every, NARROWEST))

    @property
    def pieces(self) -> int:
        """Pieces; the tile has three dimensions where there are several."""
        return self._every // self.piece

    @property
    def _every(self) -> int:
        return padded(self.context.shapes.width(self.summed))

    @property
    def _rows(self) -> int:
        return padded(self.context.shapes.width(self.context.plan.unknown))

    def exact(self, kind: Kind) -> bool:
        """Whether no tile reaches beyond the last channel of a side."""
        block = self._every if kind is self.summed else self.rows
        return self.context.shapes.width(kind) % block == 0

    def channels(self) -> dict[str, str]:
        """The channels of the program: `key` and `value`."""
        own = f"unit % {self.per_head} * {self.rows} + tl.arange(0, {self.rows})"
        every = f"tl.arange(0, {self.piece})"
        if self.pieces > 1:
            first = f"tl.arange(0, {self.pieces})[:, None] * {self.piece}"
            every = f"{first} + {every}[None, :]"
        return {NAMES[self.context.plan.unknown]: own, NAMES[self.summed]: every}

    def across(self, name: str, kind: Kind) -> str:
        """A vector of one side, for products with the tile."""
        if self.pieces > 1:
            return f"{name}[None, :, None]" if kind is Kind.VALUE else f"{name}[:, None, :]"
        return f"{name}[:, None]" if kind is Kind.VALUE else f"{name}[None, :]"

    def total(self, text: str) -> str:
        """The sum of an expression over all summed channels, one number per row."""
        if self.pieces > 1:
            return f"tl.sum(tl.sum({text}, axis=0), axis=1)"
        return f"tl.sum({text}, axis={0 if self.summed is Kind.VALUE else 1})"

    def cell(self) -> str:
        """Where the elements of the tile lie in the state of a request."""
        value = self.across(f"{'(head * D_V + value)'}", Kind.VALUE)
        at = f"{value} * D_K + {self.across('key', Kind.KEY)}"
        return self.hinted(at)

    def hinted(self, at: str) -> str:
        """Addresses of the tile with what a compiler should know of neighbours."""
        return at if self.pieces == 1 else f"tl.max_contiguous({at}, (1, 2, {self.piece}))"

    def mask(self, key: str = "key") -> str:
        """The argument that keeps a load or store to channels that are there; `key`: the name of
        the key channels."""
        tests = [
            self.across(f"({name} < {WIDTHS[kind]})", kind)
            for kind, name in ((Kind.VALUE, "value"), (Kind.KEY, key))
            if not self.exact(kind)
        ]
        return f", mask={conjunction(*tests)}" if tests else ""


NAMES = {Kind.KEY: "key", Kind.VALUE: "value"}
"""What the channels of a side are called in a kernel."""
WIDTHS = {Kind.KEY: "D_K", Kind.VALUE: "D_V"}
HEADS = {Kind.KEY: "key_head", Kind.VALUE: "head"}
