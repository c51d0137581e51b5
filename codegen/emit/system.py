"""The masked system of one program: decays, Gram matrices, tiles of G and C, repeated steps.

Tiles of G carry a minus sign, so that a sweep U <- R - G U accumulates onto R. With values on rows
the tiles are transposed: entry [j, i] couples node i to its ancestor j.
"""

from __future__ import annotations

from collections.abc import Iterator

from boleir.codegen.emit.precision import Pieces, Precision
from boleir.codegen.emit.text import conjunction, product
from boleir.codegen.emit.tiles import Tiles
from boleir.codegen.naming import leaf
from boleir.codegen.plan import Operand
from boleir.codegen.topology_facts import ROLLED_SWEEPS
from boleir.ir import Expr, Input, Per


class System:
    """Emits tiles of G and C for pairs of node blocks; the writer remembers products and decays."""

    def __init__(self, tiles: Tiles, precision: Precision) -> None:
        self.tiles = tiles
        self.context = tiles.context
        self.precision = precision
        self.writer = tiles.writer
        self.memo = tiles.memo
        schedule, plan = self.context.schedule, self.context.plan
        self.crowded = schedule.folds and len(plan.pairs) > 1
        """Whether so many tiles belong to a system that registers are short: what is cheap to
        repeat does not wait in them then."""

    def pointers(self) -> None:
        """Addresses of what an earlier kernel has left, the same for all node blocks: none here."""

    def key_pieces(self, base: Expr, b: int, chunk: int) -> Pieces:
        """The pieces of a key operand [nodes, key chunk] that the state is multiplied by."""
        return self._split("pieces", base, b, chunk)

    def gram_pieces(self, base: Expr, b: int, chunk: int) -> Pieces:
        """Those that another vector is multiplied by: all bits of it. Such a product is one number,
        which may nearly vanish and be all that an output is read with; two pieces would leave it
        fewer digits than the sum has in float32."""
        return self._split("whole", base, b, chunk)

    def _split(self, which: str, base: Expr, b: int, chunk: int) -> Pieces:
        known = (which, base.key, b, chunk)
        if known not in self.memo:
            for kind, pieces in self._pieces(which, base, b, chunk).items():
                self.memo[kind, base.key, b, chunk] = " ".join(pieces.names)
        return Pieces(tuple(self.memo[known].split()))

    def _pieces(self, which: str, base: Expr, b: int, chunk: int) -> dict[str, Pieces]:
        """The pieces that are asked for; both kinds at once, where a kernel needs both and their
        names would clash."""
        tiles, w, precision = self.tiles, self.writer, self.precision
        if isinstance(base, Input) and base.per is Per.TOKEN and self.context.dtype != "fp32":
            tile, dtype = tiles.raw_key(base, b, chunk), self.context.dtype
            if dtype == "fp16" and precision.plan in ("fp32", "bf16"):
                tile, dtype = w.let(f"{tile}_f32", f"{tile}.to(tl.float32)"), "fp32"
            pieces = precision.pieces(w, tile, dtype)  # they keep all bits
            return {"pieces": pieces, "whole": pieces}
        tile = tiles.rows_for_nodes(base, tiles.key(base, b, chunk), tiles.key_mask(b, chunk))
        if precision.whole or precision.plan != "fp32":
            pieces = precision.pieces(w, tile)
            return {"pieces": pieces, "whole": pieces}
        if not self.context.schedule.folds:
            whole, pieces = precision.thirds_and_halves(w, tile)
            return {"pieces": pieces, "whole": whole}
        split = precision.thirds if which == "whole" else precision.pieces
        return {which: split(w, tile)}

    def pieces(self, name: str) -> Pieces:
        """The pieces of a float32 tile of pairs of nodes, or of what it multiplies."""
        split = self.precision.thirds if self.context.keeps_digits else self.precision.pieces
        return split(self.writer, name)

    def state_reader(self, base: Expr, after_decay: bool, b: int, chunk: int) -> Pieces:
        """What the committed state is multiplied by for a vector: itself. `after_decay` matters
        only where channels decay apart."""
        return self.key_pieces(base, b, chunk)

    def gram(self, b: int, a: int, reader: Expr, written: Expr) -> str:
        """Products of the readers of block `b` with the written vectors of block `a`."""
        known = ("gram", b, a, reader.key, written.key)
        if known not in self.memo:
            stem = self.context.pair(f"gram_{leaf(reader)}_{leaf(written)}", b, a)
            self.memo[known] = self.add_gram(self.writer.fresh(stem), b, a, reader, written, None)
        return self.memo[known]

    def add_gram(
        self, name: str, b: int, a: int, reader: Expr, written: Expr, start: str | None
    ) -> str:
        """`name = start + ` the same, over all key chunks there are."""
        for chunk in range(self.context.key_chunks):
            left = self.gram_pieces(written, a, chunk)
            right = self.gram_pieces(reader, b, chunk)
            if self.tiles.nodes_on_rows:
                left, right = right, left
            start = self.precision.dot(self.writer, name, left, right.transposed(), start)
        return name

    def products(self, b: int, a: int, reader: Operand, written: Operand, after_decay: bool) -> str:
        """Products of bases, without row scalars and scalar decays; `after_decay` matters only
        where channels decay apart."""
        return self.gram(b, a, reader.base, written.base)

    def decay(self, b: int, a: int, after_decay: bool, scale: str | None, gram: str) -> str | None:
        """exp(c_i - c_j), or exp(c_parent(i) - c_j), times the scale of the written vector j; None
        when both are one. What eighths leave of the sums is part of the scales.

        Meaningful for ancestor pairs only: others may overflow, and are dropped by a selection,
        never by a product with zero. Exponents are kept in base 2.
        """
        t, c = self.tiles, self.context
        known = ("decay", b, a, after_decay, scale)
        if known not in self.memo:
            factors, stem = [], "decay" if after_decay else "parent_decay"
            if c.plan.log_decay is not None:
                exponent = f"{t.across(c.block('c', b))} - {t.along(c.block('c', a))}"
                if not after_decay:
                    exponent = f"({exponent} - {t.across(c.block('g', b))})"
                if c.schedule.path_sum == "dot":
                    # the selection changes nothing; it has the exponential computed in the layout
                    # of the product, not converted to it
                    exponent = f"tl.where({gram} == {gram}, {exponent}, 0.0)"
                factors.append(f"tl.exp2({exponent})")
            scale = self._with_rest(scale, a, "-")
            if scale is not None:
                factors.append(t.along(scale))
            if not factors:
                return None
            name = self.writer.fresh(c.pair(stem, b, a))
            self.memo[known] = self.writer.let(name, product(*factors))
        return self.memo[known]

    def _with_rest(self, scale: str | None, b: int, sign: str = "") -> str | None:
        """`scale` times what the eighths of log-decays leave of the decay of a path, or of its
        inverse: within 2^-16 and 2^16 for 256 nodes."""
        c = self.context
        if c.plan.log_decay is None:
            return scale
        rest = f"tl.exp2({sign}{c.block('c_rest', b)})"
        known = ("rest", b, sign, scale)
        if known not in self.memo:
            stem = f"{scale or 'rest'}_{'from' if sign else 'to'}"
            text = product(scale, rest) if scale else rest
            self.memo[known] = self.writer.temp(text, stem)
        return self.memo[known]

    def mask(self, b: int, a: int) -> str:
        """Ancestor-or-self pairs of two blocks."""
        known = ("mask", b, a)
        if known not in self.memo:
            name = self.context.pair("related", b, a)
            self.memo[known] = self.writer.temp(self.tiles.is_ancestor(b, a), name)
        return self.memo[known]

    def strict(self, b: int) -> str:
        """Mask of pairs with different node numbers, ancestor first."""
        node = self.context.block("node", b)
        return f"{self.tiles.across(node)} > {self.tiles.along(node)}"

    def same(self, b: int) -> str:
        """Mask of the diagonal of a block."""
        node = self.context.block("node", b)
        return f"{node}[None, :] == {node}[:, None]"

    def coupling(
        self, name: str, b: int, a: int, reader: Operand, written: Operand, after_decay: bool,
        *, sign: str = "", strict: bool, own: str | None = None,
    ) -> str:  # fmt: skip
        """A tile of G (`sign` "-", strict) or C: scale_i * decay_ij * scale_j * gram_ij; `own`
        stands on the diagonal."""
        t = self.tiles
        scale_i = self._with_rest(t.scale(reader, b), b)
        gram = self.products(b, a, reader, written, after_decay)
        scale_j = t.scale(written, a)
        decay = self.decay(b, a, after_decay, None if self.crowded else scale_j, gram)
        factors = [t.across(scale_i)] if scale_i else []
        factors += [decay] if decay else []
        factors += [t.along(scale_j)] if scale_j and self.crowded else []
        factors.append(gram)
        entries = sign + product(*factors)
        mask = self.mask(b, a)
        if a == b and (strict or own is not None):
            diagonal = "0.0"
            if own is not None:
                on_diagonal = conjunction(self.same(b), mask)
                diagonal = f"tl.where({on_diagonal}, {sign}{t.across(own)}, 0.0)"
            entries = f"tl.where({conjunction(mask, self.strict(b))}, {entries}, {diagonal})"
        else:
            entries = f"tl.where({mask}, {entries}, 0.0)"
        return self.writer.let(name, entries)

    def apply(self, out: str, unknown: Pieces, tile: Pieces, start: str | None) -> str:
        """`out = start + unknown . tile` with the unknowns on their side of the product."""
        if self.tiles.nodes_on_rows:
            return self.precision.dot(self.writer, out, tile, unknown, start)
        return self.precision.dot(self.writer, out, unknown, tile, start)

    def read(self, out: str, keys: Pieces, state: Pieces, start: str | None) -> str:
        """`out = start + ` products of key vectors with a chunk of the state tile."""
        if self.tiles.nodes_on_rows:
            return self.precision.dot(self.writer, out, keys, state, start)
        return self.precision.dot(self.writer, out, state, keys.transposed(), start)

    def identity(self, name: str, b: int) -> str:
        """I of a block as a float32 tile."""
        return self.writer.let(name, f"tl.where({self.same(b)}, 1.0, 0.0)")

    def is_rolled(self, times: int, products: int = 1) -> bool:
        """Whether repetitions of so many products are a loop of the kernel."""
        return times * products > ROLLED_SWEEPS

    def repeat(self, times: int, products: int = 1, counter: str = "_") -> Iterator[int | str]:
        """Write the body of a `for` once per time, counted from 1, or once inside a loop of the
        kernel; gives the count, or the name of the loop's counter."""
        if not self.is_rolled(times, products):
            yield from range(1, times + 1)
        else:
            with self.writer.block(f"for {counter} in range(1, {times + 1}):"):
                yield counter
