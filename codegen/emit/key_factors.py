"""The factors kernel where every key channel decays on its own.

The decay between two nodes then stands inside their products, one exponential per channel, and
does not factor into something of the one node times something of the other without overflow. So
every node walks up its path and multiplies the decays it passes:

    E = 1;  for j = i, parent(i), ...:   product[i, j] = sum_k e_i E w_j,   E = E * decay_j

Each E is the decay between two nodes of one path, exactly and without a difference of sums; all
nodes take their m-th step together. The cost is linear in nodes times depth, and steps that other
nodes take change no bit. When the paths end, E is the decay since the committed state.
"""

from __future__ import annotations

from boleir.codegen.emit.context import Context, place
from boleir.codegen.emit.factors import (
    emit_folded,
    factors_kernel,
    hand_over,
    nodes_on_rows,
    open_kernel,
)
from boleir.codegen.emit.key_vectors import (
    Reader,
    channel_mask,
    computed,
    place_planes,
    plane_tile,
    readers,
    written,
)
from boleir.codegen.emit.precision import Precision
from boleir.codegen.emit.system import System
from boleir.codegen.emit.tiles import Tiles
from boleir.codegen.emit.writer import EmittedKernel, Writer
from boleir.codegen.naming import leaf
from boleir.codegen.plan import Operand
from boleir.codegen.schedule import padded
from boleir.ir import Expr, Input, Kind

ENTRIES = 16
"""Entries of a tile that a thread holds during the walks."""


def emit_key_factors(context: Context, *, pdl: bool) -> EmittedKernel:
    """One program per request and value head: walks, G, C, the solve; nodes on rows."""
    w, context = Writer(context.reserved), nodes_on_rows(context)
    tiles = PathTiles(context, w)
    walks = Walks(tiles, Precision(context.schedule.precision))

    def early() -> None:
        tiles.ancestors(0, 0)
        tiles.prefetch(frozenset({Kind.KEY}))

    open_kernel(tiles, early, pdl=pdl)
    hand_over(context, tiles)
    walks.emit()
    emit_folded(context, tiles, walks)
    return factors_kernel(context, w, pdl=pdl)


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
        """The decays as tiles, one where there is no node or channel; their sums."""
        w, c = self.writer, self.context
        decay = c.plan.key_decay
        assert decay is not None
        w.origin("decay", place(decay, c.plan.form.decay))
        sums = []
        for chunk in range(c.key_chunks):
            tile = f"tl.where({self.key_mask(b, chunk)}, {self.key(decay, b, chunk)}, 1.0)"
            name = w.let(self.gates(chunk), tile)
            sums.append(f"tl.sum(tl.abs({name}), axis=1)")
        return [w.let("gates_size", " + ".join(sums))]

    def gates(self, chunk: int) -> str:
        """Variable of a tile of decays."""
        return f"gates{self.key_part(chunk)}"

    def reached(self, base: Expr, other: str) -> str:
        """A load of the rows that the walks have reached, `other` beyond the ends of paths."""
        if isinstance(base, Input):
            rows, offset = self._address(base, 0, "key_head * D_K", "reached")
            at = f"{rows} + ({offset})[:, None] + {self.key_name(WALK)}[None, :]"
        else:
            at = plane_tile(self, base, WALK, "reached")
        load = f"tl.load({at}, mask={self.key_mask(0, WALK, 'on_path')}, other={other})"
        stored = isinstance(base, Input) and self.context.dtype != "fp32"
        return f"{load}.to(tl.float32)" if stored else load


class Walks(System):
    """All walks at once, and the system of the products they leave."""

    tiles: PathTiles

    def __init__(self, tiles: PathTiles, precision: Precision) -> None:
        super().__init__(tiles, precision)
        plan = tiles.context.plan
        self.readers = readers(plan)
        self.written = tuple(dict.fromkeys(operand.base for operand in written(plan)))
        self.times = sorted({after for _, after in self.readers})
        """When vectors read the state: before the decay of the node itself, after it, or both."""
        self.chunks = -(-tiles.context.shapes.d_k // tiles.walk_width)
        self.results: dict[tuple[Reader, Expr], str] = {}

    def products(self, b: int, a: int, reader: Operand, written: Operand, after_decay: bool) -> str:
        """Products with the decays between the nodes in them."""
        return self.results[(reader.base, after_decay), written.base]

    def decay(self, b: int, a: int, after_decay: bool, scale: str | None, gram: str) -> str | None:
        """The scale of the written vectors alone: decays are in the products."""
        return None if scale is None else self.tiles.along(scale)

    def emit(self) -> None:
        """The planes that walks gather, the walks, the planes for the value kernel."""
        w, width = self.writer, self.tiles.walk_width
        w.section("decays, and other vectors that walks gather and that are no inputs")
        place_planes(self.tiles, "program.to(tl.int64)")
        self._store_computed()
        w.comment("rows that other threads have stored are read below")
        w.line("tl.debug_barrier()")
        self._begin()
        channels = f"tl.arange(0, {width})"
        if self.chunks > 1:
            with w.block(f"for chunk in range(0, {self.chunks}):"):
                w.let("channel", f"chunk * {width} + {channels}")
                self._walk()
        else:
            w.let("channel", channels)
            self._walk()

    def _store_computed(self) -> None:
        c, t, w = self.context, self.tiles, self.writer
        for plane in computed(c.plan):
            for chunk in range(c.key_chunks):
                own = plane == c.plan.key_decay
                tile = t.gates(chunk) if own else t.key(plane, 0, chunk)
                mask = channel_mask(t, chunk)
                w.line(f"tl.store({plane_tile(t, plane, chunk)}, {tile}{mask})")

    def _begin(self) -> None:
        """What is the same for all key chunks."""
        c, t, w = self.context, self.tiles, self.writer
        w.section("every node walks up its path; what it reads is multiplied by what it has passed")
        path = t.path(0, 0)
        w.let("above", f"{path} & ~(1 << node.to(tl.int64))")
        for reader in self.readers:
            for base in self.written:
                name = w.fresh(f"walked_{leaf(reader[0])}_{leaf(base)}")
                self.results[reader, base] = name
                w.let(name, "tl.zeros([NODE_BLOCK, NODE_BLOCK], tl.float32)")
        if c.shapes.parents is None:
            at = f"{w.arg('depths', '*i32')} + first + node"
            w.let("deepest", f"tl.max(tl.load({at}, mask=inside, other=0), axis=0)")

    def _walk(self) -> None:
        """The walks in one key chunk: every node starts at itself and has passed nothing."""
        shapes, t, w = self.context.shapes, self.tiles, self.writer
        for base, _ in self.readers:
            t.key(base, 0, WALK)
        w.let("reached", f"tl.where({t.path(0, 0)} != 0, node, -1)")
        w.let("left", "above")
        for after in self.times:
            ones = f"tl.full([NODE_BLOCK, {t.walk_width}], 1.0, tl.float32)"
            w.let(_passed(after), ones)
        deepest = "deepest" if shapes.parents is None else str(shapes.max_depth)
        with w.block(f"for _ in range(0, {deepest} + 1):"):
            self._products()
            self._move_up()
        w.comment("for the value kernel: what reads the state, times the decays of its path")
        for reader in self.readers:
            tile = f"{_passed(reader[1])} * {t.key(reader[0], 0, WALK)}"
            w.line(f"tl.store({plane_tile(t, reader, WALK)}, {tile}{channel_mask(t, WALK)})")

    def _products(self) -> None:
        """Products with the nodes that have been reached, put into their columns."""
        t, w = self.tiles, self.writer
        w.let("on_path", "reached >= 0")
        w.let("column", "node[None, :] == reached[:, None]")
        for base in self.written:
            row = w.temp(t.reached(base, "0.0"), f"{leaf(base)}_reached")
            for after in self.times:
                decayed = w.temp(f"{_passed(after)} * {row}", f"{leaf(base)}_decayed")
                for reader in self.readers:
                    if reader[1] is after:
                        self._product(reader, base, decayed)

    def _product(self, reader: Reader, base: Expr, decayed: str) -> None:
        w, name = self.writer, self.results[reader, base]
        part = f"tl.sum({self.tiles.key(reader[0], 0, WALK)} * {decayed}, axis=1)[:, None]"
        if self.chunks > 1:
            w.let(name, f"{name} + tl.where(column, {part}, 0.0)")
        else:
            w.let(name, f"tl.where(column, {part}, {name})")

    def _move_up(self) -> None:
        """Pass the nodes that have been reached; the highest bit left is the next one's."""
        t, w, decay = self.tiles, self.writer, self.context.plan.key_decay
        assert decay is not None
        gates = w.let("gates_reached", t.reached(decay, "1.0"))
        for after in self.times:
            own = f"tl.where((reached == node)[:, None], 1.0, {gates})"
            w.let(_passed(after), f"{_passed(after)} * {gates if after else own}")
        w.comment("without the bit below the highest, rounding to a float keeps the exponent")
        w.let("highest", "(left & ~(left >> 1)).to(tl.float32).to(tl.int32, bitcast=True)")
        w.let("reached", "tl.where(left != 0, (highest >> 23) - 127, -1)")
        w.let("left", "left & ~(1 << tl.maximum(reached, 0).to(tl.int64))")


def _passed(after_decay: bool) -> str:
    """Variable of the decays that walks have passed, that of the node itself included or not."""
    return "passed" if after_decay else "passed_above"
