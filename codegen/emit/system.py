"""The masked system of one program: decays, Gram matrices, G and C tiles, and the ways to solve with them.

Tiles of G carry a minus sign, so that a sweep U <- R - G U accumulates onto R. With values on rows the tiles are
transposed: entry [j, i] couples node i to its ancestor j.
"""

from __future__ import annotations

from boleir.codegen.emit.precision import Pieces, Precision
from boleir.codegen.emit.tiles import LOG2_E, Tiles
from boleir.codegen.plan import Operand
from boleir.ir import Expr, Input


class System:
    """Emits tiles of G and C for pairs of node blocks; remembers products and decays."""

    def __init__(self, tiles: Tiles, precision: Precision) -> None:
        self.tiles = tiles
        self.precision = precision
        self.writer = tiles.writer
        self._known: dict[tuple[object, ...], str] = {}
        self._pieces: dict[tuple[object, ...], Pieces] = {}

    def key_pieces(self, base: Expr, b: int, chunk: int) -> Pieces:
        """The pieces of a key operand [nodes, key chunk]."""
        known = ("key", base.key, b, chunk)
        if known not in self._pieces:
            tiles = self.tiles
            if isinstance(base, Input) and base.per == "token":
                tile, dtype = tiles.raw_key(base, b, chunk), tiles.context.dtype
                if dtype != "bf16" and self.precision.plan in ("fp32", "bf16"):
                    tile, dtype = self.writer.let(f"{tile}_f", f"{tile}.to(tl.float32)"), "fp32"
            else:
                tile, dtype = tiles.key(base, b, chunk), "fp32"
            self._pieces[known] = self.precision.pieces(self.writer, tile, dtype)
        return self._pieces[known]

    def gram(self, b: int, a: int, reader: Expr, written: Expr) -> str:
        """Products of the readers of block `b` with the written vectors of block `a`."""
        known = ("gram", b, a, reader.key, written.key)
        if known not in self._known:
            w, name = self.writer, f"gram{len(self._known)}"
            start = None
            for chunk in range(self.tiles.context.key_chunks):
                left, right = self.key_pieces(written, a, chunk), self.key_pieces(reader, b, chunk)
                if self.tiles.nodes_on_rows:
                    left, right = right, left
                start = self.precision.dot(w, name, left, right.transposed(), start)
            self._known[known] = name
        return self._known[known]

    def decay(self, b: int, a: int, after_decay: bool, scale: str | None) -> str | None:
        """exp(c_i - c_j), or exp(c_parent(i) - c_j), times the scale of the written vector j; None when both are one.

        Meaningful for ancestor pairs only: others may overflow, and are dropped by a selection, never by a product
        with zero. Exponents are kept in base 2.
        """
        t, c = self.tiles, self.tiles.context
        known = ("decay", b, a, after_decay, scale)
        if known not in self._known:
            across, down = (":, None", "None, :") if t.nodes_on_rows else ("None, :", ":, None")
            factors = []
            if c.plan.log_decay is not None:
                reader = c.block("c2", b)
                if not after_decay:
                    reader = f"({reader} - {c.block('g', b)} * {LOG2_E})"
                factors.append(f"tl.exp2({reader}[{across}] - {c.block('c2', a)}[{down}])")
            if scale is not None:
                factors.append(f"{scale}[{down}]")
            if not factors:
                return None
            self._known[known] = self.writer.let(f"decay{len(self._known)}", " * ".join(factors))
        return self._known[known]

    def mask(self, b: int, a: int) -> str:
        """Ancestor-or-self pairs of two blocks."""
        known = ("mask", b, a)
        if known not in self._known:
            self._known[known] = self.writer.let(f"related{len(self._known)}", self.tiles.is_ancestor(b, a))
        return self._known[known]

    def strict(self, b: int) -> str:
        """Mask of pairs with different node numbers, ancestor first."""
        node = self.tiles.context.block("node", b)
        if self.tiles.nodes_on_rows:
            return f"{node}[:, None] > {node}[None, :]"
        return f"{node}[None, :] > {node}[:, None]"

    def same(self, b: int) -> str:
        """Mask of the diagonal of a block."""
        node = self.tiles.context.block("node", b)
        return f"({node}[None, :] == {node}[:, None])"

    def coupling(
        self, name: str, b: int, a: int, reader: Operand, written: Operand, after_decay: bool,
        *, sign: str = "", strict: bool, own: str | None = None,
    ) -> str:  # fmt: skip
        """A tile of G (`sign` "-", strict) or C: scale_i * decay_ij * scale_j * gram_ij; `own` stands on the diagonal."""
        t = self.tiles
        factors = []
        scale_i = t.scale(reader, b)
        if scale_i:
            factors.append(t.across(scale_i))
        decay = self.decay(b, a, after_decay, t.scale(written, a))
        if decay:
            factors.append(decay)
        factors.append(self.gram(b, a, reader.base, written.base))
        product = f"{sign}{' * '.join(factors)}"
        mask = self.mask(b, a)
        if a == b and (strict or own is not None):
            diagonal = "0.0" if own is None else f"tl.where({self.same(b)} & {mask}, {sign}{t.across(own)}, 0.0)"
            product = f"tl.where({mask} & ({self.strict(b)}), {product}, {diagonal})"
        else:
            product = f"tl.where({mask}, {product}, 0.0)"
        return self.writer.let(name, product)

    def apply(self, out: str, unknown: Pieces, tile: Pieces, start: str | None) -> str:
        """`out = start + unknown . tile` with the unknowns on their side of the product."""
        if self.tiles.nodes_on_rows:
            return self.precision.dot(self.writer, out, tile, unknown, start)
        return self.precision.dot(self.writer, out, unknown, tile, start)

    def inverse(self, name: str, b: int, minus_g: str, sweeps: int) -> str:
        """(I+G)^-1 of a block as a float32 tile."""
        w = self.writer
        if not sweeps:
            return self._identity(name, b)
        if self.precision.plan != "fp32":
            identity = self._identity(f"{name}_one", b)
            w.let(name, f"{identity} + {minus_g}")
            pieces = self.precision.pieces(w, minus_g)
            for _ in range(sweeps - 1):
                self.precision.dot(w, name, self.precision.pieces(w, name), pieces, identity)
            return name
        rough, correction = self.rough_inverse(name, b, minus_g, sweeps)
        w.let(name, f"{rough}.to(tl.float32)")
        return self.precision.dot(w, name, Pieces((rough,)), self.precision.pieces(w, correction), name)

    def rough_inverse(self, name: str, b: int, minus_g: str, sweeps: int) -> tuple[str, str]:
        """A bfloat16 inverse Y and the correction E + E^2, E = I - (I+G) Y: the inverse is Y (I + E + E^2) up to E^3.

        Sweeps on the identity in one bfloat16 pass each are self-correcting to bfloat16 accuracy. All further digits
        come from one residual, which is exact to float32 because Y is: G enters it in three pieces.
        """
        w = self.writer
        identity = self._identity(f"{name}_one", b)
        pieces = self.precision.thirds(w, minus_g)
        rough = w.let(f"{name}_rough", f"({identity} + {minus_g}).to(tl.bfloat16)")
        for _ in range(sweeps - 1):
            w.let(rough, f"tl.dot({rough}, {pieces.names[0]}, {identity}).to(tl.bfloat16)")
        residual = w.let(f"{name}_residual", f"{identity} - {rough}.to(tl.float32)")
        self.precision.dot(w, residual, pieces, Pieces((rough,)), residual)
        w.let(f"{residual}_16", f"{residual}.to(tl.bfloat16)")
        return rough, w.let(f"{name}_correction", f"tl.dot({residual}_16, {residual}_16, {residual})")

    def product(self, name: str, b: int, minus_g: str, sweeps: int) -> str:
        """(I-G)(I+G^2)(I+G^4)... of a block: fewer steps, but powers of G lose digits (bounded in the schedule)."""
        w, reached = self.writer, 1
        identity = self._identity(f"{name}_one", b)
        w.let(name, f"{identity} + {minus_g}")
        power = w.let(f"{name}_power", minus_g)
        while reached < sweeps:
            pieces = self.precision.pieces(w, power)
            self.precision.dot(w, power, pieces, pieces)
            squared = self.precision.pieces(w, power)
            self.precision.dot(w, name, self.precision.pieces(w, name), squared, name)
            reached = 2 * reached + 1
        return name

    def _identity(self, name: str, b: int) -> str:
        return self.writer.let(name, f"tl.where({self.same(b)}, 1.0, 0.0)")
