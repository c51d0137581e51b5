"""The folded solve by pairs: one pair of the tokens is eliminated after the other.

With the unknowns ordered by pair, I + G falls into tiles. G_pq says what pair p erases of what pair
q writes: of ancestors, and where q is an earlier step of the same token, on the diagonal. With
X_c = (I + G_cc)^-1, pair c leaves every row below it, and the row of the output, by

    H_pc = G_pc X_c,   G_pq <- G_pq - H_pc G_cq,   K_c = C_c X_c,   C_q <- C_q - K_c G_cq

for the later columns q, those of pure writes among them (M for G, N for C). G_cq with q > c couples
to ancestors alone, and so does whatever is multiplied by it: diagonals stay as they are, and every
G_cc remains nilpotent with an index above the depth by one, however many pairs a token has. G_cc is
then the system of a recurrence that erases pairs up to c only, so that X_c is as tame as the
inverse for one pair. In the end each pair takes back what later ones have of its right side:

    F_p = K_p - sum_(r > p) F_r H_rp
"""

from __future__ import annotations

from collections.abc import Callable

from boleir.codegen.emit.context import plane_of
from boleir.codegen.emit.inverses import inverse, product_form
from boleir.codegen.emit.key_vectors import written
from boleir.codegen.emit.precision import Pieces
from boleir.codegen.emit.system import System
from boleir.codegen.emit.tiles import Tiles
from boleir.codegen.plan import Operand, ReadPlan

Tile = Callable[[int], str]
"""Emits the tile of a pair, or of a pure write, in the row of one reader. Those of erase vectors
have a minus sign, so that all that follows adds up. Tiles are emitted when their turn comes: many
at a time would fill the registers."""


class Elimination:
    """Emits the tiles of a system of one node block without the unknowns that they stand for."""

    def __init__(self, system: System, b: int, sweeps: int) -> None:
        plan = self.plan = system.context.plan
        self.system = system
        self.precision = system.precision
        self.writer = system.writer
        self.block = b
        self.sweeps = sweeps
        self.pairs = len(plan.pairs)
        self.writes = len(plan.writes)
        self._inverses: list[str] = []
        self._only: Pieces | None = None
        """The only inverse there is."""
        self._minus_g: dict[tuple[int, int], Pieces] = {}
        """Behind the diagonal, when their pair has its turn."""
        self._minus_m: dict[tuple[int, int], Pieces] = {}
        self._minus_h: dict[tuple[int, int], Pieces] = {}

    def solve(self, erased: list[tuple[Tile, Tile]]) -> None:
        """Eliminate every pair, given its tiles of -G and of -M."""
        for p, (tile, write) in enumerate(erased):
            taken: list[Pieces] = []
            if self.pairs > 1:
                self.writer.section(f"pair {p}: G (with a minus sign)")
                pair = self.plan.pairs[p]
                self.reread([pair.erase], pair.coupling)
            for c in range(p):
                taken.append(self._taken(tile(c), c, taken, f"minus_h{p}{c}")[1])
                self._minus_h[p, c] = taken[c]
            for q in range(p + 1, self.pairs):
                self._minus_g[p, q] = self._pieces(self._less(tile(q), taken, self._minus_g, q))
            for m in range(self.writes):
                self._minus_m[p, m] = self._pieces(self._less(write(m), taken, self._minus_m, m))
            minus_g = self._less(tile(p), taken, self._minus_g, p)
            if self.sweeps:
                self._inverses.append(self._inverse(p, minus_g))
        if self._inverses and self.pairs == 1:
            self._only = self._pieces(self._inverses[0])

    def fold(self, read: Tile, write: Tile, names: list[str]) -> list[str]:
        """What a reader that is no pair of this block sees of right sides, by pair, and of written
        values, instead of what it sees of the unknowns. Results for pairs get `names`."""
        row: list[str] = []
        taken: list[Pieces] = []
        for c, name in enumerate(names):
            tile, pieces = self._taken(read(c), c, taken, name)
            row.append(tile)
            taken.append(pieces)
        parts = [self._less(write(m), taken, self._minus_m, m) for m in range(self.writes)]
        for p in reversed(range(self.pairs - 1)):
            for r in range(p + 1, self.pairs):
                self.precision.dot(self.writer, row[p], taken[r], self._minus_h[r, p], row[p])
            taken[p] = self._pieces(row[p]) if p else taken[p]
        return row + parts

    def reread(self, readers: list[Operand], own: tuple[str | None, ...] = ()) -> None:
        """Where there are several pairs, load again the row scalars that the next row needs; `own`:
        those of its diagonal."""
        if self.pairs > 1 and (self._inverses or self._minus_g):
            operands = [*readers, *written(self.plan)]
            names = {name for operand in operands for name in operand.scalars}
            reread(self.system.tiles, self.block, names | {name for name in own if name})

    def _taken(self, tile: str, c: int, taken: list[Pieces], name: str) -> tuple[str, Pieces]:
        """The tile of pair `c` in a row times X, `name`, and its pieces where another column sees
        them; `taken`: those of the pairs before."""
        pieces = self._pieces(self._less(tile, taken, self._minus_g, c))
        if not self.sweeps:
            return tile, pieces
        tile = self.precision.dot(self.writer, name, pieces, self._split_inverse(c))
        seen = self.pairs + self.writes > 1
        return tile, self._pieces(tile) if seen else pieces

    def _less(
        self, tile: str, taken: list[Pieces], known: dict[tuple[int, int], Pieces], column: int
    ) -> str:
        """A tile of a row less what the pairs that have left it contribute to its column."""
        for c, pieces in enumerate(taken):
            self.precision.dot(self.writer, tile, pieces, known[c, column], tile)
        return tile

    def _inverse(self, p: int, minus_g: str) -> str:
        """X of a pair."""
        build = product_form if self.system.context.schedule.solver == "product" else inverse
        return build(self.system, f"inverse{p or ''}", self.block, minus_g, self.sweeps)

    def _pieces(self, tile: str) -> Pieces:
        return self.system.pieces(tile)

    def _split_inverse(self, c: int) -> Pieces:
        """X as it enters a product. Of several pairs with all bits: where keys are alike so are
        entries of X, errors of which add up, and what pairs do to each other multiplies them."""
        if self._only is not None:
            return self._only
        return self.precision.thirds(self.writer, self._inverses[c])


def reread(tiles: Tiles, b: int, names: set[str]) -> None:
    """Load some row scalars and the sums along the paths again, where they lie in memory.

    A vector along the columns of a tile of pairs takes a register for every column that a thread
    has, an address two: where there are many tiles, those that wait for their turn would spill. So
    all addresses are made of one.
    """
    w, c = tiles.writer, tiles.context
    if not tiles.rows_ready:
        return
    for known in [x for x in w.memo if x[0] in ("scale", "rest", "decay")]:
        del w.memo[known]
    w.comment("row scalars once more, from memory: they would wait in registers")
    w.line("tl.debug_barrier()")
    rows, capacity = w.arg("rows", "*fp32"), w.arg("capacity", "i64")
    w.let("rows_again", f"{rows} + (first + {c.block('node', b)})")
    planes = [(scalar.name, scalar.per_key_head) for scalar in c.plan.scalars]
    planes += [(name, False) for name in c.path_planes]
    for index, (name, per_key_head) in enumerate(planes):
        if name in names or name in c.path_planes:
            plane = plane_of(index, "key_head" if per_key_head else "head")
            at = f"rows_again + {plane} * {capacity}"
            w.let(c.block(name, b), f"tl.load({at}, mask={c.block('inside', b)}, other=0.0)")


def readouts(system: System, readout: ReadPlan, b: int, a: int) -> tuple[Tile, Tile]:
    """C and N: how an output of block `b` reads what nodes of block `a` write."""
    plan, c, mark = system.context.plan, system.context, readout.mark
    own = a == b and not readout.inclusive

    def tile(stem: str, written: Operand, weights: tuple[str | None, ...], n: int) -> str:
        name = c.pair(f"{stem}{n or ''}{mark}", b, a)
        weight = weights[n] or "0.0" if own else None
        return readout_tile(system, readout, name, written, weight, b, a)

    def read(p: int) -> str:
        return tile("readout", plan.pairs[p].write, readout.own_pairs, p)

    def write(m: int) -> str:
        return tile("write_readout", plan.writes[m].key, readout.own_writes, m)

    return read, write


def readout_tile(
    system: System, readout: ReadPlan, name: str, written: Operand, own: str | None, b: int = 0,
    a: int = 0,
) -> str:  # fmt: skip
    """A tile of C: how an output of block `b` reads what nodes of block `a` write. `own`: weight of
    what a node writes itself, "0.0" for none of it; None where that is read like all else."""
    return system.coupling(
        name, b, a, readout.query, written, readout.after_decay, strict=own is not None,
        own=None if own in (None, "0.0") else own,
    )  # fmt: skip


def erasures(system: System, p: int, b: int, a: int, erase: Operand) -> tuple[Tile, Tile]:
    """-G and -M of a pair: what it erases in block `b` of what nodes of block `a` write. `erase` is
    its erase vector, or that without some scalars."""
    plan, c = system.context.plan, system.context
    pair, several = plan.pairs[p], len(plan.pairs) > 1

    def erased(q: int) -> str:
        own = pair.coupling[q] if a == b and q < p else None
        return system.coupling(
            c.pair(f"minus_g{p}{q}" if several else "minus_g", b, a), b, a, erase,
            plan.pairs[q].write, pair.after_decay, sign="-", strict=True,
            own=c.block(own, b) if own else None,
        )  # fmt: skip

    def erased_write(m: int) -> str:
        stem = f"minus_seen{p}{m}" if several else f"minus_seen{m or ''}"
        return system.coupling(
            c.pair(stem, b, a), b, a, erase, plan.writes[m].key, pair.after_decay, sign="-",
            strict=True,
        )  # fmt: skip

    return erased, erased_write
