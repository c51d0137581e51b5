"""Walks up the paths of a tree, for recurrences whose key channels decay each on its own.

The decay between two nodes then stands inside their products, one factor per channel, and does not
divide into something of the one node times something of the other without overflow. So every node
walks up its path and multiplies the decays it passes:

    E = 1;  for j = i, parent(i), ...:   product[i, j] = sum_k e_i E w_j,   E = E * decay_j

Each E is the decay between two nodes of one path, exactly and without a difference of sums; all
nodes of a block take their m-th step together. The cost is linear in nodes times depth, steps that
other nodes take change no bit, and it does not matter in which blocks the nodes of a path lie. When
the paths end, E is the decay since the committed state.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from boleir.codegen.emit.context import place
from boleir.codegen.emit.key_vectors import (
    Reader,
    computed,
    is_sized,
    key_parameters,
    plane_mask,
    plane_tile,
    product_planes,
    product_rows,
    readers,
    vector_planes,
    written_bases,
)
from boleir.codegen.emit.precision import Pieces
from boleir.codegen.emit.system import System
from boleir.codegen.emit.tiles import Tiles
from boleir.codegen.emit.walk import emit_parents, passed
from boleir.codegen.naming import leaf
from boleir.codegen.plan import Operand
from boleir.codegen.schedule import padded
from boleir.ir import Expr, Input, Per

ENTRIES = 32
"""Entries of a tile that a thread holds during the walks."""

WALK = -1
"""Number of the key chunk that walks take at a time; it has a width of its own."""


class PathTiles(Tiles):
    """Tiles with a decay per key channel, and rows of nodes that walks have reached."""

    @property
    def walk_width(self) -> int:
        """Key channels that walks take at a time: few, since several tiles live through them."""
        schedule, d_k = self.context.schedule, self.context.shapes.d_k
        per_warp = 32 * ENTRIES // schedule.node_block
        return min(padded(d_k), max(16, per_warp * schedule.factor_warps))

    def key_name(self, chunk: int) -> str:
        """Name of the channel numbers of a key chunk."""
        return "channel" if chunk == WALK else super().key_name(chunk)

    def key_part(self, chunk: int) -> str:
        """What names of key tiles end in."""
        return "_walk" if chunk == WALK else super().key_part(chunk)

    def is_partial(self, chunk: int) -> bool:
        """Whether a key chunk reaches beyond the last channel."""
        if chunk == WALK:
            return self.context.shapes.d_k % self.walk_width != 0
        return super().is_partial(chunk)

    def decay_rows(self, b: int) -> list[str]:
        """The decays as tiles, one where there is no node or channel; their sums. Where others
        walk, only what tells that decays are not finite."""
        w, c = self.writer, self.context
        if c.spread_walks and (self.rows_ready or not is_sized(c.plan)):
            return self._watched_decays(b)
        decay = c.plan.key_decay
        assert decay is not None
        w.origin("decay", place(decay, c.plan.form.decay))
        sums = []
        for chunk in range(c.key_chunks):
            tile = f"tl.where({self.key_mask(b, chunk)}, {self.key(decay, b, chunk)}, 1.0)"
            name = w.let(self.gates(chunk), tile)
            sums.append(f"tl.sum(tl.abs({name}), axis=1)")
        return [w.let("gates_size", " + ".join(sums))]

    def _watched_decays(self, b: int) -> list[str]:
        """A row that is not finite where decays are not, if there may be such; where finite inputs
        leave them finite, by parameters."""
        c, parameters = self.context, key_parameters(self.context.plan)
        if self.rows_ready:
            return self._walked_decays(b) if "gates_size" in c.walk_planes else []
        if not parameters:
            return []
        chunks = [(x, chunk) for x in parameters for chunk in range(c.key_chunks)]
        sums = [f"tl.sum({self.key(x, b, chunk)} * 0.0, axis=1)" for x, chunk in chunks]
        return [self.writer.let("gates_size", f"tl.where(inside, {' + '.join(sums)}, 0.0)")]

    def gates(self, chunk: int) -> str:
        """Variable of a tile of decays."""
        return f"gates{self.key_part(chunk)}"

    def reached(self, base: Expr, other: str) -> str:
        """A load of the rows that the walks have reached, `other` beyond the ends of paths."""
        if isinstance(base, Input) and base.per is not Per.TOKEN:
            key, live = self.key_name(WALK), self.key_mask(0, WALK, "on_path")
            at = f"{self.writer.arg(base.name, '*fp32')} + key_head * D_K + {key}"
            return f"tl.where({live}, tl.load({at}, mask={key} < D_K, other=0.0)[None, :], {other})"
        if isinstance(base, Input):
            rows, offset = self._address(base, 0, "key_head * D_K", "reached")
            at = f"{rows} + ({offset})[:, None] + {self.key_name(WALK)}[None, :]"
        else:
            at = plane_tile(self, base, WALK, 0, "reached")
        load = f"tl.load({at}, mask={self.key_mask(0, WALK, 'on_path')}, other={other})"
        stored = isinstance(base, Input) and self.context.dtype != "fp32"
        return f"{load}.to(tl.float32)" if stored else load

    @contextmanager
    def walk_chunks(self) -> Iterator[bool]:
        """The lines of the block once per key chunk of walks, in a loop where there are several;
        gives whether."""
        w, width = self.writer, self.walk_width
        chunks, channels = -(-self.context.shapes.d_k // width), f"tl.arange(0, {width})"
        if chunks > 1:
            with w.block(f"for chunk in range(0, {chunks}):"):
                w.let("channel", f"chunk * {width} + {channels}")
                yield True
        else:
            w.let("channel", channels)
            yield False

    # -- what walks gather ------------------------------------------------------------------------

    def store_walk_planes(self) -> None:
        """Parents, decays (one where a node is not finite: below it nothing counts) and computed
        written vectors of the program's nodes, after `finite_nodes` or `scalars`."""
        c, w = self.context, self.writer
        w.section("for the walks: parents, decays, other vectors that are no inputs")
        parent = emit_parents(w, c.shapes.words)
        values = {"parent": f"{parent}.to(tl.float32)", "gates_size": "gates_size"}
        for name in c.walk_planes:
            w.line(f"tl.store({self.walk_plane_at(name, 0)}, {values[name]}, mask=inside)")
        for plane in computed(c.plan):
            for chunk in range(c.key_chunks):
                self.store_computed(plane, chunk, self.gates(chunk))

    def store_computed(self, plane: Expr, chunk: int, gates: str) -> None:
        """A key chunk of the plane of a computed vector; `gates` is the tile of decays."""
        if plane == self.context.plan.key_decay:
            tile = f"tl.where(finite[:, None], {gates}, 1.0)"
        else:
            tile = self.key(plane, 0, chunk)
        at = plane_tile(self, plane, chunk, 0)
        self.writer.line(f"tl.store({at}, {tile}{plane_mask(self, chunk, 0)})")

    def store_parents(self) -> None:
        """The plane of parents."""
        parent = emit_parents(self.writer, self.context.shapes.words)
        at = self.walk_plane_at("parent", 0)
        self.writer.line(f"tl.store({at}, {parent}.to(tl.float32), mask=inside)")


class Walks:
    """Emits the walks of the nodes of one block, through all blocks above."""

    def __init__(self, tiles: PathTiles, walking: str = "inside") -> None:
        self.tiles = tiles
        self.walking = walking
        """Mask of the nodes that walk."""
        self.context = tiles.context
        self.writer = tiles.writer
        plan = tiles.context.plan
        self.readers = readers(plan)
        self.written = written_bases(plan)
        self.times = sorted({after for _, after in self.readers})
        """When vectors read the state: before the decay of the node itself, after it, or both."""
        self.several = False
        """Whether there are several key chunks."""

    def emit(self) -> None:
        """The products of the block's nodes with all above them, and what reads the state."""
        w = self.writer
        self._begin()
        with self.tiles.walk_chunks() as several:
            self.several = several
            self._walk()
            if several:
                w.comment("the next chunk adds to what this one has stored")
                w.line("tl.debug_barrier()")

    def _begin(self) -> None:
        """What is the same for all key chunks."""
        c, t, w = self.context, self.tiles, self.writer
        w.section("every node walks up its path; what it reads is multiplied by what it has passed")
        for reader, base in product_planes(c):
            product_rows(t, reader, base)
        for plane in vector_planes(c):
            plane_tile(t, plane, 0, 0)
        t.walk_plane_at("parent", 0)
        if c.shapes.parents is None:
            at = f"{w.arg('depths', '*i32')} + first + node"
            w.let("deepest", f"tl.max(tl.load({at}, mask=inside, other=0), axis=0)")

    def _walk(self) -> None:
        """The walks in one key chunk: every node starts at itself and has passed nothing."""
        shapes, t, w = self.context.shapes, self.tiles, self.writer
        for base, _ in self.readers:
            t.key(base, 0, WALK)
        w.let("reached", f"tl.where({self.walking}, node, -1)")
        for after in self.times:
            ones = f"tl.full([NODE_BLOCK, {t.walk_width}], 1.0, tl.float32)"
            w.let(passed(after), ones)
        deepest = "deepest" if shapes.parents is None else str(shapes.max_depth)
        with w.block(f"for _ in range(0, {deepest} + 1):"):
            w.let("on_path", "reached >= 0")
            at = t.walk_plane_at("parent", 0, "reached")
            w.let("parent", f"tl.load({at}, mask=on_path, other=-1.0).to(tl.int32)")
            self._products()
            self._move_up()
        w.comment("what reads the state, times the decays of its path")
        for reader in self.readers:
            tile = f"{passed(reader[1])} * {t.key(reader[0], 0, WALK)}"
            at = plane_tile(t, reader, WALK, 0)
            w.line(f"tl.store({at}, {tile}, mask={t.key_mask(0, WALK, self.walking)})")

    def _products(self) -> None:
        """Products with the nodes that have been reached, stored in their columns."""
        t, w = self.tiles, self.writer
        w.let("column", "node * COLUMNS + reached")
        for base in self.written:
            row = w.temp(t.reached(base, "0.0"), f"{leaf(base)}_reached")
            for after in self.times:
                decayed = w.temp(f"{passed(after)} * {row}", f"{leaf(base)}_decayed")
                for reader in self.readers:
                    if reader[1] is after:
                        self._product(reader, base, decayed)

    def _product(self, reader: Reader, base: Expr, decayed: str) -> None:
        w, at = self.writer, f"{product_rows(self.tiles, reader, base)} + column"
        total = f"tl.sum({self.tiles.key(reader[0], 0, WALK)} * {decayed}, axis=1)"
        if self.several:
            total = f"tl.load({at}, mask=on_path & (chunk > 0), other=0.0) + {total}"
        w.line(f"tl.store({at}, {total}, mask=on_path)")

    def _move_up(self) -> None:
        """Pass the nodes that have been reached, and go to their parents."""
        t, w, decay = self.tiles, self.writer, self.context.plan.key_decay
        assert decay is not None
        gates = w.let("gates_reached", t.reached(decay, "1.0"))
        for after in self.times:
            own = f"tl.where((reached == node)[:, None], 1.0, {gates})"
            w.let(passed(after), f"{passed(after)} * {gates if after else own}")
        w.let("reached", "parent")


class WalkedSystem(System):
    """The masked system whose products walks have left in memory, decays included."""

    def pointers(self) -> None:
        """Addresses that are the same for all node blocks."""
        for reader, base in product_planes(self.context):
            product_rows(self.tiles, reader, base)
        for reader in readers(self.context.plan):
            plane_tile(self.tiles, reader, 0, 0)

    def load_products(self) -> None:
        """All products of the nodes of one block: loads that do not wait for each other."""
        for plane in product_planes(self.context):
            self.plane_of_products(0, 0, plane)

    def state_reader(self, base: Expr, after_decay: bool, b: int, chunk: int) -> Pieces:
        """The vector times the decays of its path, channel by channel."""
        t, w, reader = self.tiles, self.writer, (base, after_decay)
        known = ("walked reader", *reader, b, chunk)
        if known not in self.memo:
            mask = plane_mask(t, chunk, b)
            load = f"tl.load({plane_tile(t, reader, chunk, b)}{mask}, other=0.0)"
            stem = f"{leaf(base)}_decayed{t.key_part(chunk)}"
            tile = w.temp(load, self.context.block(stem, b))
            self.memo[known] = " ".join(self.precision.pieces(w, tile).names)
        return Pieces(tuple(self.memo[known].split()))

    def products(self, b: int, a: int, reader: Operand, written: Operand, after_decay: bool) -> str:
        """Products with the decays between the nodes in them; of other pairs than those of a node
        with an ancestor, any number.

        Ancestors come first: selecting by that says nothing new, but Triton moves what depends on a
        load and on no node number into the layout of the next product, and fails to move masks.
        """
        return self.plane_of_products(b, a, ((reader.base, after_decay), written.base))

    def plane_of_products(self, b: int, a: int, plane: tuple[Reader, Expr]) -> str:
        """The same, by plane."""
        t, c = self.tiles, self.context
        known = ("walked", b, a, *plane)
        if known not in self.memo:
            row = t.across(f"{c.block('node', b)} * COLUMNS")
            at = f"{product_rows(t, *plane)} + {row} + {t.along(c.block('node', a))}"
            nodes = f"{t.across(c.block('node', b))} >= {t.along(c.block('node', a))}"
            load = f"tl.load({at}, mask={t.across(c.block('inside', b))}, other=0.0)"
            load = f"tl.where({nodes}, {load}, 0.0)"
            name = c.pair(f"walked_{leaf(plane[0][0])}_{leaf(plane[1])}", b, a)
            self.memo[known] = self.writer.temp(load, name)
        return self.memo[known]

    def decay(self, b: int, a: int, after_decay: bool, scale: str | None, gram: str) -> str | None:
        """The scale of the written vectors alone: decays are in the products."""
        return None if scale is None else self.tiles.along(scale)
