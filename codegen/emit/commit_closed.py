"""The commit by the closed form: sixteen tokens of the accepted path at once, on tensor cores.

    R = targets - (decayed erase vectors) S_pre      (I + G) U = R
    S_new = decay S_pre + (decayed write vectors)^T U

The walk of the path reads and updates the tile once per token. Here it is read once, multiplied by
all tokens' vectors, and takes what they write in one product. Longer paths take their tokens in
blocks, the state staying in registers between them. A token's unknowns see those before it alone:
the state at the track node is that of a path which ends there.
"""

from __future__ import annotations

from boleir.codegen.emit.commit_closed_tiles import BLOCK, TOGETHER, ClosedTile, PathTiles
from boleir.codegen.emit.commit_path import emit_nodes, emit_nodes_at_once, most_steps
from boleir.codegen.emit.commit_table import pointer
from boleir.codegen.emit.context import Context, place, unknown_place
from boleir.codegen.emit.precision import Pieces, Precision
from boleir.codegen.emit.state import ONCE
from boleir.codegen.emit.system import System
from boleir.codegen.emit.text import conjunction, product
from boleir.codegen.emit.writer import Writer
from boleir.codegen.plan import Operand
from boleir.ir import Expr

NAMES = (
    "place", "node", "inside", "begin", "tokens", "nodes", "steps", "length", "head", "cell",
    "channel", "value", "right", "minus_g", "u", "seen", "reach", "tracked", "final", "left",
    "paid", "kept", "summed", "g", "c", "c_rest",
)  # fmt: skip
"""Variables of the kernel: what a recurrence calls so has another name there."""


class Closed:
    """Emits the body of a state program."""

    def __init__(self, context: Context, writer: Writer, tile: ClosedTile) -> None:
        self.context = context
        self.writer = writer
        self.tile = tile
        self.plan = context.plan
        self.tiles = PathTiles(tile.path(), writer)
        self.precision = Precision(context.schedule.precision)
        self.system = self.tiles.system = System(self.tiles, self.precision)
        self.pieces = range(self.tiles.context.key_chunks)
        self.pairs = self.plan.writing
        self.values: list[str] = []
        """Value tiles of pure writes."""
        self.minus: list[str] = []
        """How pure writes enter the right sides of the pair."""

    def emit(self) -> None:
        """The whole program."""
        w, several = self.writer, self.tile.blocks > 1
        self._placed()
        emit = emit_nodes if self.context.shapes.words > 1 else emit_nodes_at_once
        emit(self.context, w)
        if not several:
            w.let("place", "steps")
            w.let("node", "nodes")
            w.let("inside", "steps < length")
            self._block("length", "track_step")
            return
        self._load()
        with w.block(f"for begin in range(0, length, {BLOCK}):"):
            w.let("place", f"tl.arange(0, {BLOCK})")
            w.let("tokens", f"tl.minimum(length - begin, {BLOCK})")
            last = most_steps(self.context) - 1
            w.let("node", f"tl.gather(nodes, tl.minimum(begin + place, {last}), 0)")
            w.let("inside", "place < tokens")
            self._block("tokens", "track_step - begin")
        self._store("state", "target_slot")

    # -- the state --------------------------------------------------------------------------------

    def _placed(self) -> None:
        """Which channels the program has, and where they lie."""
        w, c, t = self.writer, self.context, self.tile
        w.let("head", f"unit // {t.per_head}")
        w.let("key_head", "head // GROUP" if c.shapes.group > 1 else "head")
        w.let("value", f"unit % {t.per_head} * {t.rows} + tl.arange(0, {t.rows})")
        self.tiles.channels()
        groups = f"tl.arange(0, {t.b_k // TOGETHER})[:, None] * {TOGETHER}"
        w.let("channel", f"{groups} + tl.arange(0, {TOGETHER})[None, :]")
        w.comment("[rows, key groups, keys of a group]: lanes lie as products have them")
        rows = "(head * D_V + value)[:, None, None] * D_K"
        w.let("cell", f"tl.max_contiguous({rows} + channel[None, :, :], (1, 1, 2))")

    def _at(self, slot: str, chunk: int) -> tuple[str, str]:
        """Addresses of a piece of the state, and the mask where some of it is not there."""
        w, c, t = self.writer, self.context, self.tile
        pool, stride = pointer(c, w, "state", c.state_dtype), w.arg("state_stride", "i64")
        first = f" + {chunk * t.b_k}" if chunk else ""
        tests = ["(value < D_V)[:, None, None]"] if c.shapes.d_v % t.rows else []
        if self.tiles.is_partial(chunk):
            tests.append(f"(channel < D_K - {chunk * t.b_k})[None, :, :]")
        mask = f", mask={conjunction(*tests)}" if tests else ""
        return f"{pool} + {slot}.to(tl.int64) * {stride} + cell{first}", mask

    def _name(self, stem: str, chunk: int) -> str:
        return f"{stem}{self.tiles.key_part(chunk)}"

    def _load(self) -> None:
        """The state, piece by piece."""
        t = self.tile
        for chunk in self.pieces:
            at, mask = self._at("slot", chunk)
            other = ", other=0.0" if mask else ""
            load = f"tl.load({at}{mask}{other}, {ONCE}).to(tl.float32)"
            self.writer.let(self._name("state", chunk), f"tl.reshape({load}, ({t.rows}, {t.b_k}))")

    def _store(self, stem: str, slot: str) -> None:
        for chunk in self.pieces:
            self._store_piece(stem, slot, chunk)

    def _store_piece(self, stem: str, slot: str, chunk: int) -> None:
        w, c, t = self.writer, self.context, self.tile
        at, mask = self._at(slot, chunk)
        shape = f"({t.rows}, {t.b_k // TOGETHER}, {TOGETHER})"
        element = f"{pointer(c, w, 'state', c.state_dtype)}.dtype.element_ty"
        rounded = f"tl.reshape({self._name(stem, chunk)}, {shape}).to({element})"
        w.line(f"tl.store({at}, {rounded}{mask}, {ONCE})")

    # -- a block of tokens ------------------------------------------------------------------------

    def _block(self, tokens: str, tracked: str) -> None:
        """The tokens of a block: what they have in common, then the state after them."""
        w, several = self.writer, self.tile.blocks > 1
        self.tiles.issue()
        self._scalars()
        minus_g = self._couplings()
        if not several:
            self._load()
        if self.pairs:
            self._right()
        w.let("tracked", tracked)
        inside = "tracked >= 0" if not several else f"(tracked >= 0) & (tracked < {BLOCK})"
        with w.block(f"if {inside}:"):
            w.comment("what comes behind the track node may be anything")
            w.let("reach", "place <= tracked")
            own = minus_g
            if minus_g:
                masked = f"tl.where(reach[:, None], {minus_g}, 0.0)"
                own = w.let("tracked_g", masked)
            self._advance("reach", own, "tracked", "tracked_state", "track_slot")
        w.let("final", f"{tokens} - 1")
        self._advance("inside", minus_g, "final", "state", None if several else "target_slot")

    def _scalars(self) -> None:
        """Row scalars and sums of decays, in vectors over the block."""
        t = self.tiles
        t.nodes_on_rows = True
        pairs = [(x.erase, x.write) for x in self.pairs]
        used = [name for pair in pairs for operand in pair for name in operand.scalars]
        used += [name for write in self.plan.writes for name in write.key.scalars]
        for name in dict.fromkeys(used):
            t.row_scalar(self.plan.scalar(name), 0)
        t.decay_rows(0)
        t.nodes_on_rows = False

    def _couplings(self) -> str | None:
        """-G of the pair, and what it sees of pure writes."""
        self.values = [self.tiles.value(x.value, 0) for x in self.plan.writes]
        self.minus = []
        if not self.pairs:
            return None
        pair = self.pairs[0]

        def tile(name: str, written: Operand) -> str:
            return self.system.coupling(
                name, 0, 0, pair.erase, written, pair.after_decay, sign="-", strict=True
            )

        self.tiles.nodes_on_rows = True
        minus_g = tile("minus_g", pair.write)
        for number, write in enumerate(self.plan.writes):
            self.minus.append(tile(f"minus_write_{number}", write.key))
        self.tiles.nodes_on_rows = False
        return minus_g

    def _right(self) -> None:
        """Targets without what is erased of the state before the block."""
        w, t, pair = self.writer, self.tiles, self.pairs[0]
        start: str | None = None
        for chunk in self.pieces:
            keys = self.system.key_pieces(pair.erase.base, 0, chunk)
            pieces = self.precision.cut(w, self._name("state", chunk))
            start = self.system.read("seen", keys, pieces, start)
        factors = [x for x in (t.scale(pair.erase, 0),) if x is not None]
        if self.plan.log_decay is not None:
            total = "c + c_rest" if pair.after_decay else "c - g + c_rest"
            factors.append(f"tl.exp2({total})")
        seen = "seen"
        if factors:
            seen = product(t.across(w.let("kept", product(*factors))), seen)
        w.origin("u", unknown_place(self.plan.form, 0))
        w.let("right", f"{t.value(pair.target, 0)} - {seen}")

    def _advance(
        self, reach: str, minus_g: str | None, last: str, stem: str, slot: str | None
    ) -> None:
        """The state after the tokens in reach, up to the `last`: to a slot, or to stay in
        registers."""
        w, t = self.writer, self.tiles
        paid = self._left(last)
        w.origin("new state", place(self.plan.form.recurrence.update))
        written: list[tuple[Pieces, Expr]] = []
        values = [self._reached(f"value_{n}", x, reach) for n, x in enumerate(self.values)]
        if minus_g:
            unknown = self._unknown(reach, minus_g, last, values)
            written.append(self._written("written_u", unknown, self.pairs[0].write, reach))
        for number, (value, write) in enumerate(zip(values, self.plan.writes, strict=True)):
            written.append(self._written(f"written_{number}", value, write.key, reach))
        with w.scope():
            w.comment("vectors again, from the cache: in registers they would crowd the state out")
            t.forget()
            t.live = reach
            for chunk in self.pieces:
                name, old = self._name(stem, chunk), self._name("state", chunk)
                start = w.let(name, product(old, paid)) if paid else old
                for pieces, base in written:
                    keys = self.system.key_pieces(base, 0, chunk)
                    start = self.precision.dot(w, name, pieces, keys, start)
                if slot:
                    self._store_piece(stem, slot, chunk)
            t.live = "inside"

    def _reached(self, name: str, tile: str, reach: str) -> str:
        """A value tile without the tokens out of reach."""
        return self.writer.let(name, f"tl.where({self.tiles.across(reach)}, {tile}, 0.0)")

    def _left(self, last: str) -> str | None:
        """What is left of the state at the end, and in `left` of what each token writes."""
        w = self.writer
        if self.plan.log_decay is None:
            return None
        for name in ("c", "c_rest"):
            w.let(f"{name}_end", f"tl.sum(tl.where(place == {last}, {name}, 0.0), axis=0)")
        w.let("left", "tl.exp2((c_end - c) + (c_rest_end - c_rest))")
        return w.let("paid", "tl.exp2(c_end + c_rest_end)")

    def _unknown(self, reach: str, minus_g: str, last: str, values: list[str]) -> str:
        """The unknowns of the tokens in reach: each sweep makes one more of them final."""
        w, system = self.writer, self.system
        right = self._reached("right_reached", "right", reach)
        for value, minus in zip(values, self.minus, strict=True):
            tile = minus
            if reach != "inside":
                tile = w.let("minus_reached", f"tl.where({reach}[:, None], {minus}, 0.0)")
            pieces = self._across(tile)
            right = system.apply(right, system.pieces(value), pieces, right)
        tiles = self._across(minus_g)
        w.let("u", right)
        with w.block(f"for _ in range({last}):"):
            system.apply("u", system.pieces("u"), tiles, right)
        return "u"

    def _across(self, tile: str) -> Pieces:
        """A tile of pairs of tokens [later, earlier] as what unknowns are multiplied by.

        Products leave it in the layout that the other operand needs to be transposed to.
        """
        name = self.writer.let(f"{tile}_across", f"tl.trans({tile})")
        return self.system.pieces(name)

    def _written(self, name: str, tile: str, operand: Operand, reach: str) -> tuple[Pieces, Expr]:
        """What is written along a vector, with all its digits, and that vector."""
        w, t = self.writer, self.tiles
        factors = [x for x in (t.scale(operand, 0),) if x is not None]
        factors += ["left"] if self.plan.log_decay is not None else []
        if factors:
            tile = product(tile, t.across(product(*factors)))
        self._reached(name, tile, reach)
        return self.precision.thirds(w, name), operand.base
