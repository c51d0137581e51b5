"""What a step over key channels adds up besides decays: row scalars, products of a node's own
vectors. Steps load these vectors anyway."""

from __future__ import annotations

from boleir.codegen.emit.context import Context
from boleir.codegen.emit.key_steps import StepTiles
from boleir.codegen.emit.key_vectors import Reader, key_sums_of, own_products
from boleir.codegen.emit.writer import Writer
from boleir.codegen.naming import leaf, stem
from boleir.ir import Dot, Expr, Input, Kind, Per

SAME = "node[None, :] == node[:, None]"
"""The diagonal of a matrix of nodes with nodes; text."""


class TotalTiles(StepTiles):
    """Tiles of a step, and sums over the channels of all steps."""

    def __init__(self, context: Context, writer: Writer) -> None:
        super().__init__(context, writer)
        self.totals: dict[Expr, str] = {}
        """Names of sums over all key channels that steps add up, for row scalars."""
        self.own: dict[tuple[Reader, Expr], str] = {}
        """Names of the products of queries with vectors that the same node writes: no decays lie
        between them, so that they need no pieces; where all else has decayed, they alone are
        left."""

    def reduce(self, chunk: int, beside: str = "") -> None:
        """What sums over a step's channels take no decays: totals, products of a node's own
        vectors. `beside`: a tile that products have left, always finite."""
        self._add_totals(chunk, beside)
        self._own_products(chunk)

    # -- row scalars ------------------------------------------------------------------------------

    def begin_totals(self, b: int) -> None:
        """Sums over key channels that row scalars still need: steps load these vectors anyway.
        Guards can wait (see `boleir.codegen.emit.key_far`)."""
        w = self.writer
        scalars = [x for x in self.context.plan.scalars if x.watches is not Kind.KEY]
        later = [x for x in scalars if ("scalar", x.expr.key, b) not in self.memo]
        for total in (x for scalar in later for x in key_sums_of(scalar.expr)):
            if total not in self.totals:
                name = w.fresh(stem(total))
                self.totals[total] = w.let(name, "tl.zeros([NODE_BLOCK], tl.float32)")
                self.memo["head", total.key, b] = name

    def _add_totals(self, chunk: int, beside: str) -> None:
        # what depends on loads alone Triton would compute once more, in the layout of loads
        zero = f" + {beside} * 0.0" if beside else ""
        for total, name in self.totals.items():
            factors = total.children if isinstance(total, Dot) else (total.children[0],)
            some = " * ".join(self.key(x, 0, chunk) for x in factors)
            with self.apart(self.step_width if beside else 0):
                self.writer.let(name, f"{name} + tl.sum({some}{zero}, axis=1)")

    def _head(self, expr: Expr, b: int) -> str:
        """The same; sums over key channels are there already."""
        return self.totals.get(expr) or super()._head(expr, b)

    # -- products of own vectors ------------------------------------------------------------------

    def begin_own(self) -> None:
        """Nothing has been added up. Vectors that lie in memory in 16 bits enter a matrix product
        as they are, exactly; of the matrix, the diagonal counts."""
        for reader, base in own_products(self.context.plan):
            pair = reader, base
            name = self.writer.fresh(f"own_{leaf(reader[0])}_{leaf(base)}")
            shape = "NODE_BLOCK, NODE_BLOCK" if self.multiplies_own(pair) else "NODE_BLOCK"
            self.own[pair] = self.writer.let(name, f"tl.zeros([{shape}], tl.float32)")

    def multiplies_own(self, pair: tuple[Reader, Expr]) -> bool:
        """Whether the products of a pair are the diagonal of a matrix: threads that add them up
        convert and multiply every entry, and reduce the rows. One such matrix has registers."""
        alone = len(own_products(self.context.plan)) == 1
        return alone and all(self.is_short(x) for x in (pair[0][0], pair[1]))

    def is_short(self, vector: Expr) -> bool:
        """Whether a vector is an input of 16 bits per entry."""
        stored = isinstance(vector, Input) and vector.per is Per.TOKEN
        return stored and self.context.dtype != "fp32"

    def _own_products(self, chunk: int) -> None:
        for pair, name in self.own.items():
            (query, _), base = pair
            if self.multiplies_own(pair):
                assert isinstance(query, Input) and isinstance(base, Input)
                left, right = self.raw_key(query, 0, chunk), self.raw_key(base, 0, chunk)
                self.writer.let(name, f"tl.dot({left}, tl.trans({right}), {name})")
            else:
                own = f"tl.sum({self.key(query, 0, chunk)} * {self.key(base, 0, chunk)}, axis=1)"
                self.writer.let(name, f"{name} + {own}")

    def own_entries(self, pair: tuple[Reader, Expr]) -> str:
        """The products of a pair, where a matrix of nodes with nodes takes its diagonal from."""
        return self.own[pair] if self.multiplies_own(pair) else f"{self.own[pair]}[:, None]"
