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
from boleir.ir import Expr, Input, Kind


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


class PathTiles(Tiles):
    """Tiles with a decay per key channel, and rows of nodes that a walk has reached."""

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
        return self.part("gates", chunk)

    def part(self, stem: str, chunk: int) -> str:
        """`stem` with its key chunk, where there are several."""
        return f"{stem}_c{chunk}" if self.context.key_chunks > 1 else stem

    def reached(self, base: Expr, chunk: int, other: str) -> str:
        """A load of the rows that the walks have reached, `other` beyond the ends of paths."""
        if isinstance(base, Input):
            rows, offset = self._address(base, 0, "key_head * D_K", "reached")
            at = f"{rows} + ({offset})[:, None] + {self.key_name(chunk)}[None, :]"
        else:
            at = plane_tile(self, base, chunk, "reached")
        mask = self.key_mask(0, chunk, "on_path")
        load = f"tl.load({at}, mask={mask}, other={other})"
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
        self.chunks = range(tiles.context.key_chunks)
        self.results: dict[tuple[Reader, Expr], str] = {}

    def products(self, b: int, a: int, reader: Operand, written: Operand, after_decay: bool) -> str:
        """Products with the decays between the nodes in them."""
        return self.results[(reader.base, after_decay), written.base]

    def decay(self, b: int, a: int, after_decay: bool, scale: str | None, gram: str) -> str | None:
        """The scale of the written vectors alone: decays are in the products."""
        return None if scale is None else self.tiles.along(scale)

    def emit(self) -> None:
        """The planes that walks gather, the walks, the planes for the value kernel."""
        w = self.writer
        w.section("decays, and other vectors that walks gather and that are no inputs")
        place_planes(self.tiles, "program.to(tl.int64)")
        self._store_computed()
        w.comment("rows that other threads have stored are read below")
        w.line("tl.debug_barrier()")
        self._begin()
        with w.block(f"for _ in range(0, {self._deepest()} + 1):"):
            self._products()
            self._move_up()
        self._store_readers()

    def _store_computed(self) -> None:
        c, t, w = self.context, self.tiles, self.writer
        for plane in computed(c.plan):
            for chunk in self.chunks:
                own = plane == c.plan.key_decay
                tile = t.gates(chunk) if own else t.key(plane, 0, chunk)
                mask = channel_mask(t, chunk)
                w.line(f"tl.store({plane_tile(t, plane, chunk)}, {tile}{mask})")

    def _begin(self) -> None:
        """Every node at itself, nothing passed."""
        c, t, w = self.context, self.tiles, self.writer
        w.section("every node walks up its path; what it reads is multiplied by what it has passed")
        path = t.path(0, 0)
        w.let("reached", f"tl.where({path} != 0, node, -1)")
        w.let("left", f"{path} & ~(1 << node.to(tl.int64))")
        for after in self._times():
            for chunk in self.chunks:
                w.let(self._passed(after, chunk), "tl.full([NODE_BLOCK, B_K], 1.0, tl.float32)")
        for reader in self.readers:
            for chunk in self.chunks:
                t.key(reader[0], 0, chunk)
            for base in self.written:
                name = w.fresh(f"walked_{leaf(reader[0])}_{leaf(base)}")
                self.results[reader, base] = name
                w.let(name, "tl.zeros([NODE_BLOCK, NODE_BLOCK], tl.float32)")
        if c.shapes.parents is None:
            at = f"{w.arg('depths', '*i32')} + first + node"
            w.let("deepest", f"tl.max(tl.load({at}, mask=inside, other=0), axis=0)")

    def _deepest(self) -> str:
        shapes = self.context.shapes
        return "deepest" if shapes.parents is None else str(shapes.max_depth)

    def _times(self) -> list[bool]:
        """After the decay of the node itself, before it, or both."""
        return sorted({after for _, after in self.readers})

    def _passed(self, after: bool, chunk: int) -> str:
        return self.tiles.part("passed" if after else "passed_above", chunk)

    def _products(self) -> None:
        """Products with the nodes that have been reached, put into their columns."""
        t, w = self.tiles, self.writer
        w.let("on_path", "reached >= 0")
        w.let("column", "node[None, :] == reached[:, None]")
        for base in self.written:
            parts: dict[Reader, list[str]] = {reader: [] for reader in self.readers}
            for chunk in self.chunks:
                row = w.temp(t.reached(base, chunk, "0.0"), t.part(f"{leaf(base)}_reached", chunk))
                for after in self._times():
                    name = w.temp(f"{self._passed(after, chunk)} * {row}", f"{row}_decayed")
                    for reader in self.readers:
                        if reader[1] is after:
                            tile = t.key(reader[0], 0, chunk)
                            parts[reader].append(f"tl.sum({tile} * {name}, axis=1)")
            for reader, sums in parts.items():
                name = self.results[reader, base]
                part = w.temp(" + ".join(sums), f"{name}_reached")
                w.let(name, f"tl.where(column, {part}[:, None], {name})")

    def _move_up(self) -> None:
        """Pass the nodes that have been reached; the highest bit left is the next one's."""
        c, t, w = self.context, self.tiles, self.writer
        assert c.plan.key_decay is not None
        for chunk in self.chunks:
            gate = w.let(t.part("gates_reached", chunk), t.reached(c.plan.key_decay, chunk, "1.0"))
            for after in self._times():
                passed = self._passed(after, chunk)
                factor = gate if after else f"tl.where((reached == node)[:, None], 1.0, {gate})"
                w.let(passed, f"{passed} * {factor}")
        w.comment("without the bit below the highest, rounding to a float keeps the exponent")
        w.let("highest", "(left & ~(left >> 1)).to(tl.float32).to(tl.int32, bitcast=True)")
        w.let("reached", "tl.where(left != 0, (highest >> 23) - 127, -1)")
        w.let("left", "left & ~(1 << tl.maximum(reached, 0).to(tl.int64))")

    def _store_readers(self) -> None:
        t, w = self.tiles, self.writer
        w.section("for the value kernel: what reads the state, times the decays of its path")
        for reader in self.readers:
            for chunk in self.chunks:
                tile = f"{self._passed(reader[1], chunk)} * {t.key(reader[0], 0, chunk)}"
                mask = channel_mask(t, chunk)
                w.line(f"tl.store({plane_tile(t, reader, chunk)}, {tile}{mask})")
