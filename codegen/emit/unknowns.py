"""The unknowns kernel of the staged schedule: (I + G) U = R in tiles of the unknowns' channels.

    u_j = R_j, as it is by then;   R_i <- R_i - gain_i * G[i, j] exp(c_i - c_j) * u_j   for i below

node after node: parents come before children, so that a right side is complete when its node's turn
comes. Every channel has a system of its own, exponents are differences within one path, and what is
no descendant of j is left as it is, whatever u_j is. More nodes than one block are solved block by
block; the unknowns of earlier blocks are read back.
"""

from __future__ import annotations

from boleir.codegen.emit.context import Context, unknown_place
from boleir.codegen.emit.groups import OTHER, OWN, GroupTiles, grouped, split_program
from boleir.codegen.emit.precision import Pieces, Precision
from boleir.codegen.emit.staged import (
    UNROLLED,
    gram_at,
    gram_rows,
    place_vectors,
    plane_sizes,
    sources,
    sum_plane,
    sum_times,
    unknown_rows,
    vector_at,
)
from boleir.codegen.emit.text import conjunction, product
from boleir.codegen.emit.writer import EmittedKernel, Writer
from boleir.codegen.schedule import padded, unknown_tile
from boleir.ir import Expr, Kind


def unknown_tiles(context: Context) -> int:
    """Tiles of the unknowns' channels per head."""
    plan = context.plan
    return -(-context.shapes.width(plan.unknown) // unknown_tile(context.schedule, plan))


def emit_unknowns(context: Context, *, pdl: bool) -> EmittedKernel:
    """One program per request, value head and tile of channels."""
    w, s = Writer(context.reserved), context.schedule
    _Unknowns(context, w).emit(pdl=pdl)
    return w.kernel(
        "unknowns",
        "A tile of the unknowns' channels per program: the system of the tree, node after node.",
        (f"{unknown_tiles(context) * context.shapes.value_heads} * batch", "1", "1"),
        warps=s.warps,
        stages=s.stages,
        registers=s.registers,
        pdl=pdl,
    )


class _Unknowns(GroupTiles):
    """Emits the body of the kernel; the second group is the one node whose turn it is."""

    def __init__(self, context: Context, writer: Writer) -> None:
        schedule = context.schedule
        inner = grouped(context, "source", schedule.node_block, schedule.b_k)
        super().__init__(context, inner, writer)
        self.precision = Precision(schedule.precision, whole=True)
        self.pairs = context.plan.pairs

    # -- tiles of the unknowns' channels ----------------------------------------------------------

    def key_name(self, chunk: int) -> str:
        """A program has one tile of key channels."""
        return "key"

    def key_part(self, chunk: int) -> str:
        """Names of key tiles end in nothing more."""
        return ""

    def is_partial(self, chunk: int) -> bool:
        """Whether the last tile of key channels reaches beyond the last channel."""
        return self.context.shapes.d_k % self.context.schedule.b_k != 0

    @property
    def lane(self) -> str:
        """The channel numbers of the tile."""
        return "key" if self.unknown is Kind.KEY else "value"

    @property
    def lanes(self) -> str:
        """The constant that holds the channels of a tile."""
        return "B_K" if self.unknown is Kind.KEY else "B_V"

    def live(self) -> list[str]:
        """The test for channels that exist, where a tile reaches beyond the last."""
        shapes, schedule = self.context.shapes, self.context.schedule
        size = unknown_tile(schedule, self.context.plan)
        partial = shapes.width(self.unknown) % size
        return [f"{self.lane} < {self.width(self.unknown)}"] if partial else []

    def unknown_vector(self, expr: Expr, b: int) -> str:
        """A vector of the unknowns' side as a tile; text."""
        return self.key(expr, b, 0) if self.unknown is Kind.KEY else self.value(expr, b)

    def own_mask(self) -> str:
        """Mask of the entries of a tile of the block that exist."""
        return conjunction("inside[:, None]", *(f"({test})[None, :]" for test in self.live()))

    # -- the kernel -------------------------------------------------------------------------------

    def emit(self, *, pdl: bool) -> None:
        """The whole body."""
        w, tiles = self.writer, unknown_tiles(self.whole)
        split_program(w, (("channel_tile", tiles),))
        if pdl:
            w.line("tl.extra.cuda.gdc_wait()")
            w.line("tl.extra.cuda.gdc_launch_dependents()")
        self.request("")
        start = f"channel_tile * {self.lanes} + " if tiles > 1 else ""
        w.let(self.lane, f"{start}tl.arange(0, {self.lanes})")
        gram_rows(self)
        place_vectors(self)
        w.let("slot", f"tl.load({w.arg('slots', '*i32')} + request)")
        pool, stride = w.arg("state", "*" + self.context.state_dtype), w.arg("state_stride", "i64")
        slot = f"tl.maximum(slot, 0).to(tl.int64) * {stride}"
        w.let("state_rows", f"{pool} + {slot} + head * (D_V * D_K)")
        if self.whole.blocks == 1:
            w.let("node", "tl.arange(0, NODE_BLOCK)")
            self._block(later=False)
            return
        with w.block("for block in range(0, (count + NODE_BLOCK - 1) // NODE_BLOCK):"):
            w.let("node", "block * NODE_BLOCK + tl.arange(0, NODE_BLOCK)")
            self._block(later=True)
            w.comment("later blocks read the unknowns of this one")
            w.line("tl.debug_barrier()")

    def _block(self, *, later: bool) -> None:
        """One block of nodes: right sides, what earlier blocks contribute, its own system."""
        w, words = self.writer, self.whole.shapes.words
        w.let("inside", "node < count")
        self._load_sums()
        self._right_sides()
        row = f"(first + node) * {words}" if words > 1 else "first + node"
        rows = f"{w.arg('ancestors', '*i64')} + {row}"
        first, end = "0", "count"
        if later:
            first, end = "block * NODE_BLOCK", "tl.minimum(count, (block + 1) * NODE_BLOCK)"
            w.section("what earlier blocks contribute")
            with w.block(f"for j in range(0, {first}):"):
                at = f"{rows} + j // 64" if words > 1 else rows
                w.let("word", f"tl.load({at}, mask=inside, other=0)")
                self._turn(known=True)
        w.section("the block's own system: a right side is complete when its node's turn comes")
        at = f"{rows} + {first} // 64" if words > 1 else rows
        w.let("word", f"tl.load({at}, mask=inside, other=0)")
        with w.block(f"for j in range({first}, {end}):"):
            self._turn(known=False)

    # -- right sides ------------------------------------------------------------------------------

    def _load_sums(self) -> None:
        """Logarithms of the decays of the block's nodes since the committed state."""
        plan, w = self.context.plan, self.writer
        for after in sum_times(plan):
            for rest in (False, True):
                at = vector_at(self, sum_plane(plan, after, rest), self.unknown, self.lane)
                w.let(_sum(after, rest), f"tl.load({at}, mask={self.own_mask()}, other=0.0)")

    def _right_sides(self) -> None:
        """R as far as the committed state determines it."""
        w, plan = self.writer, self.context.plan
        w.section("right side: R = r - e^T S_pre")
        erased = self._erased()
        for p, pair in enumerate(self.pairs):
            w.origin(self._name("u", p), unknown_place(plan.form, p))
            seen = erased[p]
            if plan.unknown_log_decay is not None:
                c, rest = _sum(pair.after_decay, False), _sum(pair.after_decay, True)
                seen = f"tl.exp2({c} + {rest}) * {seen}"
            if pair.gain is not None:
                gain = self.unknown_vector(pair.gain, OWN)
                if not gain.isidentifier():
                    gain = w.temp(gain, self._name("gain", p))
                    self.memo["gain", p] = gain
                seen = product(gain, seen)
            target = self.unknown_vector(pair.target, OWN)
            w.let(self._name("right", p), f"{target} - {seen}")

    def _erased(self) -> list[str]:
        """e^T S_pre for every pair, the decays of the written side in e; the written side is walked
        in pieces.

        Both operands keep all their digits: vectors that are not normalised let what is lost here
        grow from node to node.
        """
        w, size = self.writer, self.context.shapes.width(self.written)
        names = [w.fresh(self._name("erased", p)) for p in range(len(self.pairs))]
        step = min(UNROLLED, padded(size))
        starts: list[str | None] = [None] * len(names)
        for chunk in range(-(-size // step)):
            first = f"{chunk * step} + " if chunk else ""
            channel = w.let("channel", f"{first}tl.arange(0, {step})")
            tests = [f"channel < {self.width(self.written)}"] if (chunk + 1) * step > size else []
            state = self._state(channel, tests)
            for p, name in enumerate(names):
                mask = conjunction("inside[:, None]", *(f"({x})[None, :]" for x in tests))
                at = vector_at(self, p, self.written, channel)
                tile = w.let(self._name("erase", p), f"tl.load({at}, mask={mask}, other=0.0)")
                pieces = self.precision.pieces(w, tile)
                starts[p] = self.precision.dot(w, name, pieces, state, starts[p])
        return names

    def _state(self, channel: str, tests: list[str]) -> Pieces:
        """A tile of the committed state, [piece of the written side, tile of the unknowns]."""
        w, lives = self.writer, self.live()
        if self.unknown is Kind.KEY:
            rows, columns, masks = channel, "key", (tests, lives)
        else:
            rows, columns, masks = "value", channel, (lives, tests)
        mask = [f"({x})[:, None]" for x in masks[0]] + [f"({x})[None, :]" for x in masks[1]]
        at = f"state_rows + ({rows} * D_K)[:, None] + {columns}[None, :]"
        given = f", mask={conjunction(*mask)}, other=0.0" if mask else ""
        tile, dtype = w.let("state_tile", f"tl.load({at}{given})"), self.context.state_dtype
        if dtype == "fp16" or (dtype != "fp32" and self.precision.plan in ("ieee", "tf32")):
            tile, dtype = w.let(tile, f"{tile}.to(tl.float32)"), "fp32"
        pieces = self.precision.pieces(w, tile, dtype)
        return pieces if self.unknown is Kind.KEY else pieces.transposed()

    # -- node after node --------------------------------------------------------------------------

    def _turn(self, *, known: bool) -> None:
        """The turn of node j: its unknowns, read back or read off, and what they do below it."""
        w, plan = self.writer, self.context.plan
        if plan.writes or any(any(pair.coupling) for pair in self.pairs):
            w.let("node_source", "j + tl.arange(0, 1)")
            w.let("inside_source", "node_source < count")
        below = "((word >> (j & 63)) & 1) != 0"
        w.let("below", below if known else f"({below}) & (node > j)")
        rows = [self._stored(p) for p in range(len(self.pairs))]
        found = self._read_back(rows) if known else self._read_off(rows)
        found += [self.unknown_vector(write.value, OTHER) for write in plan.writes]
        for rest in (False, True) if plan.unknown_log_decay is not None else ():
            first = sum(plane_sizes(self.whole)[: sum_plane(plan, True, rest)])
            at = f"vector_rows + {first} * MAX_NODES + j * {self.width(self.unknown)} + {self.lane}"
            w.let(f"{_sum(True, rest)}_source", f"tl.load({at}{self._row_mask()})")
        for after in sorted({pair.after_decay for pair in self.pairs}, reverse=True):
            self._subtract(found, after)

    def _row_mask(self) -> str:
        live = self.live()
        return f", mask={live[0]}, other=0.0" if live else ""

    def _stored(self, p: int) -> str:
        """Addresses of the unknowns of node j."""
        return f"{unknown_rows(self, p, 'first + j')} + {self.lane}"

    def _read_back(self, rows: list[str]) -> list[str]:
        w = self.writer
        return [
            w.let(self._name("u", p), f"tl.load({at}{self._row_mask()})") + "[None, :]"
            for p, at in enumerate(rows)
        ]

    def _read_off(self, rows: list[str]) -> list[str]:
        """The unknowns of node j, which nothing changes any more, pair after pair."""
        w, plan = self.writer, self.context.plan
        names: list[str] = []
        for p, pair in enumerate(self.pairs):
            name, right = self._name("u", p), self._name("right", p)
            own = f"tl.where((node == j)[:, None], {right}, 0.0)"
            text = f"tl.sum({own}, axis=0)"
            for weight, earlier in zip(pair.coupling, names, strict=True):
                if weight is not None:
                    scalar = self.row_scalar(plan.scalar(weight), OTHER)
                    text += f" - {product(scalar, earlier)}"
            names.append(w.let(name, text))
            mask = self._row_mask().replace(", other=0.0", "")
            w.line(f"tl.store({rows[p]}, {name}{mask})")
        return [f"{name}[None, :]" for name in names]

    def _subtract(self, found: list[str], after: bool) -> None:
        """Take what node j has written out of the right sides of its descendants."""
        w, plan = self.writer, self.context.plan
        decay = None
        if plan.unknown_log_decay is not None:
            parts = [f"({_sum(after, x)} - {_sum(True, x)}_source[None, :])" for x in (False, True)]
            decay = w.let("decay" if after else "decay_above", f"tl.exp2({' + '.join(parts)})")
        for p, pair in enumerate(self.pairs):
            if pair.after_decay is not after:
                continue
            terms = []
            for m, vector in enumerate(found):
                at = f"{gram_at(self, p, m)} + j * MAX_NODES + node"
                name = w.let(f"g{self._index(p, m)}", f"tl.load({at}, mask=below, other=0.0)")
                terms.append(product(f"{name}[:, None]", vector))
            seen = " + ".join(terms)
            factors = [decay] if decay else []
            factors += [self._gain(p)] if pair.gain is not None else []
            right = self._name("right", p)
            seen = product(*factors, seen) if factors else seen
            w.let(right, f"{right} - tl.where(below[:, None], {seen}, 0.0)")

    def _gain(self, p: int) -> str:
        gain = self.pairs[p].gain
        assert gain is not None
        return self.memo.get(("gain", p)) or self.unknown_vector(gain, OWN)

    def _name(self, stem: str, p: int) -> str:
        return f"{stem}{p}" if len(self.pairs) > 1 else stem

    def _index(self, p: int, m: int) -> str:
        several = len(sources(self.context.plan)) > 1
        return f"{p}{m}" if several else ""


def _sum(after: bool, rest: bool) -> str:
    return ("c" if after else "c_above") + ("_rest" if rest else "")
