"""Walks up the paths in the prepare kernel, a few nodes per program.

The products of a node with the nodes above it depend on its path alone. A program per head would
have all nodes of a request walk while most of the GPU has nothing to do; here several programs
share the nodes of a head (see `boleir.codegen.emit.key_walks` for what a walk is). Nobody has
prepared what a node reaches: its decay and the vectors that it writes are computed again from the
inputs, which takes less time than to wait for another program. The bits of the ancestor words tell
the path before the first step, so that the inputs of the next node are on their way while those of
this one are multiplied. Row scalars of the program's own nodes come along.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from boleir.codegen.emit.context import LARGEST, LOG2_E, Context, place, plane_of
from boleir.codegen.emit.groups import OTHER, OWN, GroupContext
from boleir.codegen.emit.handover import place_folded
from boleir.codegen.emit.key_pieces import store_vector
from boleir.codegen.emit.key_vectors import (
    Reader,
    is_sized,
    key_parameters,
    plane_tile,
    product_rows,
    readers,
    written_bases,
)
from boleir.codegen.emit.packed import stored_parts
from boleir.codegen.emit.precision import Pieces
from boleir.codegen.emit.signals import announce_prepared
from boleir.codegen.emit.walk import Walk, passed, walk_tiles
from boleir.codegen.emit.writer import EmittedKernel, Writer
from boleir.codegen.naming import leaf
from boleir.codegen.schedule import padded
from boleir.ir import Expr, Input, Kind, Per, walk

NEXT = 2
"""The group of the nodes that come after those that have been reached."""


def emit_spread_walks(context: Context, *, pdl: bool) -> EmittedKernel:
    """One program per request, value head and `walk_nodes` nodes: walks, all row scalars."""
    w, nodes = Writer(context.reserved), context.schedule.walk_nodes
    Spread(context, w, nodes).emit(pdl=pdl)
    if context.prepares_first:
        announce_prepared(w)
    return w.kernel(
        "prepare",
        "Before the tree is solved: norms, gates, walks up the paths of a few nodes.",
        (f"{spread_programs(context)} * batch", "1", "1"),
        warps=context.schedule.factor_warps,
        pdl=pdl,
    )


def spread_programs(context: Context) -> int:
    """Such programs per request."""
    return context.systems * walk_tiles(context, context.schedule.walk_nodes)


class StepContext(GroupContext):
    """Names of what comes after the second group end in `next`."""

    __slots__ = ()

    def block(self, stem: str, number: int) -> str:
        """`stem`, marked by the group it belongs to."""
        return f"{stem}_next" if number == NEXT else GroupContext.block(self, stem, number)


class Spread(Walk):
    """Emits the walks of a few nodes, which nothing has been prepared for."""

    def __init__(self, context: Context, writer: Writer, nodes: int) -> None:
        super().__init__(context, writer, nodes)
        c = self.context
        assert isinstance(c, GroupContext)
        self.context = StepContext(c.plan, c.shapes, c.schedule, c.other)
        self.rows_ready = False
        plan = context.plan
        assert plan.key_decay is not None
        self.key_decay = plan.key_decay
        self.readers, self.bases = readers(plan), written_bases(plan)
        found = dict.fromkeys(x for x in walk(*self._gathered()) if isinstance(x, Input))
        self.reaching = [x for x in found if x.kind is not Kind.VALUE]
        """What all that is needed of nodes above is computed from."""
        self.kept: dict[tuple[Reader, Expr], str] = {}
        """Names of the tiles of products."""

    def emit(self, *, pdl: bool) -> None:
        """The whole body."""
        self.open((), pdl=pdl)
        self._load()
        for reader in self.readers:
            for base in self.bases:
                product_rows(self, reader, base)
        ones = f"tl.full([{self.nodes}, {padded(self.context.shapes.d_k)}], 1.0, tl.float32)"
        times = tuple(sorted({after for _, after in self.readers}))
        self.begin(times, {Kind.KEY: ones})
        self._set_out()
        if "gates_size" in self.context.walk_planes or self.context.schedule.gates == "prepare":
            self._store_rows()
        self._begin_products()
        with self.steps():
            self._products()
        self._store_products()
        self._store_readers()

    def _gathered(self) -> tuple[Expr, ...]:
        """What is needed of nodes above: decays and written vectors."""
        return (self.key_decay, *self.bases)

    # -- the program's own nodes ------------------------------------------------------------------

    def _load(self) -> None:
        """All loads that depend on no path."""
        plan = self.context.plan
        self.prefetch(frozenset({Kind.HEAD, Kind.KEY}))
        if self.context.schedule.gates == "prepare":
            used = {x.key for scalar in plan.scalars for x in walk(scalar.expr)}
            for item in plan.tokens:
                if item.kind is Kind.VALUE and item.key in used:
                    self.full_value(item, OWN)
        for item in self.reaching:
            if item.per is Per.HEAD:
                self._load_of_layer(item)

    def _load_of_layer(self, item: Input) -> None:
        """A number of the head or of its channels, which is the same for all nodes."""
        if item.kind is Kind.KEY:
            self.memo["key", item.key, OTHER, 0] = self._key(item, OWN, 0)
        else:
            self.head(item, OWN)

    def _store_rows(self) -> None:
        """All row scalars, as the factors kernel looks for them; value heads that share a key head
        store the same."""
        w, reduced = self.writer, []
        w.section("row scalars of the program's nodes")
        prepared = self.context.schedule.gates == "prepare"
        for number, scalar in enumerate(self.context.plan.scalars if prepared else ()):
            name = self.row_scalar(scalar, OWN)
            head = "key_head" if scalar.per_key_head else "head"
            if any(x.kind is not Kind.HEAD for x in walk(scalar.expr)):
                reduced.append((name, plane_of(number, head)))
            else:
                at = self.plane_at(number, scalar.name, head, OWN)
                w.line(f"tl.store({at}, {name}, mask=inside)")
        if "gates_size" in self.context.walk_planes:
            w.let("gates_size", self._gates_size())
            reduced.append(("gates_size", plane_of(len(self.context.plan.scalars), "head")))
        if reduced:
            self._store_together(reduced)

    def _gates_size(self) -> str:
        """A row that is not finite where decays are not; of decays that finite inputs leave finite,
        where parameters are not; text."""
        if is_sized(self.context.plan):
            return f"tl.sum(tl.abs({self.whole_vector(Kind.KEY, self.key_decay, OWN)}), axis=1)"
        rows = [self._key(x, OWN, 0) for x in key_parameters(self.context.plan)]
        total = f"tl.sum({' + '.join(f'{row} * 0.0' for row in rows)}, axis=1)"
        return f"tl.where(inside, {total}, 0.0)"

    def _store_together(self, rows: list[tuple[str, str]]) -> None:
        """Store vectors that sums over channels have given, with the plane of each, as one tile:
        threads would have to wait for each other before each of several stores."""
        w, capacity = self.writer, self.writer.arg("capacity", "i64")
        (first, plane), *others = rows
        w.let("which", f"tl.arange(0, {1 << len(others).bit_length()})[None, :]")
        w.let("row_tile", f"{first}[:, None]")
        w.let("plane", f"{plane} + 0 * which")
        for number, (name, plane) in enumerate(others, 1):
            w.let("row_tile", f"tl.where(which == {number}, {name}[:, None], row_tile)")
            w.let("plane", f"tl.where(which == {number}, {plane}, plane)")
        at = f"{w.arg('rows', '*fp32')} + plane * {capacity} + first + node[:, None]"
        w.line(f"tl.store({at}, row_tile, mask=inside[:, None] & (which < {len(rows)}))")

    # -- steps ------------------------------------------------------------------------------------

    def _set_out(self) -> None:
        """Every node has reached itself; the inputs of the next one are under way."""
        w = self.writer
        self.ahead = [line.strip() for line in w.apart(self._look_ahead)]
        for line in self.ahead:
            w.line(line)
        self.steps_on = {"node_reached": "node_next"}
        for item in self.reaching:
            if item.per is Per.TOKEN:
                own, following = self._as_loaded(item, OWN), self._as_loaded(item, NEXT)
                known: tuple[object, ...] = ("head", item.key, OTHER)
                if item.kind is Kind.KEY:
                    own, known = self._key(item, OWN, 0), ("key", item.key, OTHER, 0)
                    wide = self.context.dtype == "fp32"
                    following = following if wide else f"{following}.to(tl.float32)"
                self.memo[known] = w.let(f"{own}_reached", own)
                self.steps_on[self.memo[known]] = following

    def _look_ahead(self) -> None:
        """Find the nodes that come next, and issue the loads of their inputs."""
        self._move_up("node_next")
        self.writer.let("inside_next", "node_next >= 0")
        for item in self.reaching:
            if item.per is Per.TOKEN:
                self._as_loaded(item, NEXT)

    def _as_loaded(self, item: Input, b: int) -> str:
        """The rows of an input as they are loaded; a name."""
        return self.raw_key(item, b, 0) if item.kind is Kind.KEY else self.head(item, b)

    @contextmanager
    def steps(self) -> Iterator[None]:
        """The loop over the steps; the body uses what has been reached (the second group)."""
        w = self.writer
        w.section("every node walks up its path; what it reads has decayed by what it has passed")
        with w.block("for step in range(0, deepest + 1):"):
            w.let("inside_reached", "node_reached >= 0")
            if False in self.times:
                w.let("own", "node_reached == node")
            yield
            self._pass()
            w.comment("on to the next nodes, and the loads of those behind them")
            for name, following in self.steps_on.items():
                w.let(name, following)
            for line in self.ahead:
                w.line(line)

    def decay(self) -> str:
        """The decay of what has been reached, one where that is not finite: below it nothing
        counts."""
        w, plan = self.writer, self.context.plan
        w.origin("decay", place(self.key_decay, plan.form.decay))
        if is_sized(plan):
            tile = self.whole_vector(Kind.KEY, self.key_decay, OTHER)
            counts = f"{self.exists(Kind.KEY, OTHER)} & (tl.abs({tile}) < {LARGEST})"
            return f"tl.where({counts}, {tile}, 1.0)"
        assert plan.key_log_decay is not None
        log = self.whole_vector(Kind.KEY, plan.key_log_decay, OTHER)
        w.let("rate", f"tl.where(inside_reached, {LOG2_E}, 0.0)[:, None]")
        w.comment("at most one, which NaN is no less than")
        return f"tl.minimum(tl.exp2({log} * rate), 1.0)"

    # -- products ---------------------------------------------------------------------------------

    def _begin_products(self) -> None:
        """Tiles [nodes, steps] that products are kept in: to store them step by step, threads would
        have to wait for each other in each."""
        w, steps = self.writer, padded(self.whole.shapes.max_depth + 1)
        w.let("turn", f"tl.arange(0, {steps})[None, :]")
        w.let("path", f"tl.full([{self.nodes}, {steps}], -1, tl.int32)")
        for base in self.bases:
            for reader in self.readers:
                name = w.fresh(f"walked_{leaf(reader[0])}_{leaf(base)}")
                self.kept[reader, base] = w.let(
                    name, f"tl.zeros([{self.nodes}, {steps}], tl.float32)"
                )

    def _products(self) -> None:
        """Products with the nodes that have been reached."""
        w = self.writer
        w.let("path", "tl.where(turn == step, node_reached[:, None], path)")
        for base in self.bases:
            row = self.whole_vector(Kind.KEY, base, OTHER)
            for after in self.times:
                decayed = w.temp(f"{passed(after)} * {row}", f"{leaf(base)}_decayed")
                for reader in self.readers:
                    if reader[1] is after:
                        own, name = (
                            self.whole_vector(Kind.KEY, reader[0], OWN),
                            self.kept[reader, base],
                        )
                        total = f"tl.sum({own} * {decayed}, axis=1)[:, None]"
                        w.let(name, f"tl.where(turn == step, {total}, {name})")

    def _store_products(self) -> None:
        """Every product in the column of the node that had been reached."""
        w = self.writer
        w.let("cell", "(node * COLUMNS)[:, None] + path")
        for plane, name in self.kept.items():
            w.line(f"tl.store({product_rows(self, *plane)} + cell, {name}, mask=path >= 0)")

    def _store_readers(self) -> None:
        """What reads the state, times the decays of its path; in the pieces that products take
        where the factors kernel leaves such pieces, too."""
        w, whole, live = self.writer, self.whole, self.exists(Kind.KEY, OWN)
        w.section("what reads the state, times the decays of its path")
        if whole.schedule.folds:
            place_folded(whole, w, f"(request * {whole.system_heads} + head).to(tl.int64)")
        for reader in self.readers:
            tile = f"{passed(reader[1])} * {self.whole_vector(Kind.KEY, reader[0], OWN)}"
            if whole.schedule.folds:
                name = w.temp(tile, f"{leaf(reader[0])}_decayed")
                pieces = Pieces(stored_parts(whole, w, name))
                store_vector(self, reader, 0, pieces, live, whole)
            else:
                w.line(f"tl.store({plane_tile(self, reader, 0, OWN)}, {tile}, mask={live})")
