"""What a step over key channels adds up besides decays: row scalars, products of a node's own
vectors, what tells of entries that are too large or not finite. Steps load these vectors anyway."""

from __future__ import annotations

from boleir.codegen.emit.context import Context
from boleir.codegen.emit.key_steps import StepTiles
from boleir.codegen.emit.key_vectors import Reader, key_sums_of, multiplied, own_products
from boleir.codegen.emit.writer import Writer
from boleir.codegen.naming import leaf, stem
from boleir.codegen.plan import Scalar
from boleir.ir import Dot, Expr, Kind


def square(vector: Expr) -> Expr:
    """The sum of its squares."""
    return Dot(Kind.HEAD, vector, vector)


class TotalTiles(StepTiles):
    """Tiles of a step, and sums over the channels of all steps."""

    watches_together = True
    """Whether squares that exist to be watched are added up together: nobody stores them."""

    def __init__(self, context: Context, writer: Writer) -> None:
        super().__init__(context, writer)
        self.totals: dict[Expr, str] = {}
        """Names of sums over all key channels that steps add up, for row scalars."""
        self.watched: tuple[Expr, ...] = ()
        """Vectors that no row scalar tells about: their squares are added up in one `size`."""
        self.own: dict[tuple[Reader, Expr], str] = {}
        """Names of the products of queries with vectors that the same node writes: no decays lie
        between them, so that they need no pieces; where all else has decayed, they alone are
        left."""

    def own_names(self) -> dict[tuple[Reader, Expr], str]:
        """New names for the products of vectors of the same node."""
        return {
            (reader, base): self.writer.fresh(f"own_{leaf(reader[0])}_{leaf(base)}")
            for reader, base in own_products(self.context.plan)
        }

    def squares(self) -> list[str]:
        """Names of the sums of squares of vectors that are multiplied."""
        names = [self.totals.get(square(x)) for x in multiplied(self.context.plan)]
        return [*(name for name in names if name), *(["size"] if self.watched else [])]

    def reduce(self, chunk: int) -> None:
        """What sums over a step's channels take no decays: totals, products of a node's own
        vectors, largest entries."""
        self._add_totals(chunk)
        self._own_products(chunk)
        self._largest(chunk)

    def bounded(self) -> tuple[Expr, ...]:
        """Vectors whose largest entry has to be looked for: those whose squares nobody adds up."""
        known = {*self.totals, *(square(x) for x in self.watched)}
        return tuple(x for x in multiplied(self.context.plan) if square(x) not in known)

    def begin_totals(self, b: int) -> None:
        """Sums over key channels that row scalars still need: steps load these vectors anyway."""
        w = self.writer
        later = [x for x in self.context.plan.scalars if ("scalar", x.expr.key, b) not in self.memo]
        if self.watches_together:
            guards = [x.expr for x in later if x.watches is Kind.KEY]
            self.watched = tuple(x.left for x in guards if isinstance(x, Dot))
            later = [x for x in later if not self.is_watched(x)]
        for total in (x for scalar in later for x in key_sums_of(scalar.expr)):
            if total not in self.totals:
                name = w.fresh(stem(total))
                self.totals[total] = w.let(name, "tl.zeros([NODE_BLOCK], tl.float32)")
                self.memo["head", total.key, b] = name

    def is_watched(self, scalar: Scalar) -> bool:
        """Whether a row scalar is a square that is added up with others."""
        return any(scalar.expr.key == square(x).key for x in self.watched)

    def _add_totals(self, chunk: int) -> None:
        if self.watched:
            tiles = (self.key(x, 0, chunk) for x in self.watched)
            some = " + ".join(f"{tile} * {tile}" for tile in tiles)
            self.writer.let("size", f"size + tl.sum({some}, axis=1)")
        for total, name in self.totals.items():
            factors = total.children if isinstance(total, Dot) else (total.children[0],)
            some = " * ".join(self.key(x, 0, chunk) for x in factors)
            self.writer.let(name, f"{name} + tl.sum({some}, axis=1)")

    def _head(self, expr: Expr, b: int) -> str:
        """The same; sums over key channels are there already."""
        return self.totals.get(expr) or super()._head(expr, b)

    def _largest(self, chunk: int) -> None:
        if not self.bounded():
            return
        largest, *entries = (f"tl.abs({self.key(base, 0, chunk)})" for base in self.bounded())
        for entry in entries:
            largest = f"tl.maximum({largest}, {entry})"
        self.writer.let("entry", f"tl.maximum(entry, tl.max({largest}, axis=1))")

    def _own_products(self, chunk: int) -> None:
        for ((query, _), base), name in self.own.items():
            own = f"tl.sum({self.key(query, 0, chunk)} * {self.key(base, 0, chunk)}, axis=1)"
            self.writer.let(name, f"{name} + {own}")
