"""Decays per key channel as differences of sums, as long as those stay small.

c_i is the log-decay in base 2, summed along the path of node i, one per channel. The decay between
a node and its ancestor j then divides into something of the one and something of the other:

    2^(c_i - c_j) = 2^(c_i + ANCHOR) 2^-(c_j + ANCHOR)

With c + ANCHOR within REACH neither factor overflows nor underflows, and Gram matrices with
decays in them are products of matrices. The anchor is the same for all nodes, and whether the sums
stay between the bounds is a question to the nodes of a path alone: what is no ancestor of a node
changes no bit of it. Rows of nodes whose paths leave the bounds come from walks instead.

A sum is a product of the ancestor mask with log-decays in float16 pieces: eighths up to 256 are one
piece, and their sums are exact; what they leave is at most a sixteenth, two pieces of which keep
2^-25. Both are added only after the anchor, so that all is rounded once.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from boleir.codegen.emit.context import LARGEST, LOG2_E, Context, place
from boleir.codegen.emit.factors import place_folded
from boleir.codegen.emit.key_products import STEP, Products
from boleir.codegen.emit.key_vectors import Reader, plane_mask, plane_tile, readers, written_bases
from boleir.codegen.emit.key_walks import PathTiles
from boleir.codegen.emit.precision import Precision
from boleir.codegen.emit.text import conjunction
from boleir.codegen.emit.tiles import is_finite
from boleir.codegen.emit.writer import Writer
from boleir.codegen.naming import leaf
from boleir.codegen.rewrite import head_factors, sign
from boleir.codegen.schedule import padded
from boleir.ir import Call, Expr, Kind

SUMS = -3
"""Number of the key chunk of a step that sums up log-decays."""
STEP_ENTRIES = 16
"""Entries of a key tile that a thread holds during a step."""
GROUP_COLUMNS = 64
"""Channels of a sum by warp groups: products with fewer columns are compiled wrongly for sm_90."""
ANCHOR, REACH = 52, "64.0"
"""c + ANCHOR stays within +-REACH: c between -116 and 12, rounded to 2^-19."""
LIMIT = 256
"""A log-decay beyond this leads out of the bounds."""
LARGEST_ENTRY = "1.0e12"
"""Bound of a vector's entries, since products of two stay finite with these factors."""
EIGHTHS = "1572864.0"
"""Adding 1.5 * 2^20 rounds to eighths."""
GREATEST_GROWTH = "120.0"
"""Bound of a finite log-decay: sums of such decays over the channels are finite."""


class SumTiles(PathTiles):
    """Tiles of the program of one head that multiplies vectors with the decays of their paths."""

    def __init__(self, context: Context, writer: Writer) -> None:
        super().__init__(context, writer)
        self.precision = Precision(context.schedule.precision)
        plan = context.plan
        self.readers, self.written = readers(plan), written_bases(plan)
        self.times = sorted({after for _, after in self.readers})
        self.products = Products(self)
        self.own: dict[tuple[Reader, Expr], str] = {}
        """Names of the products of queries with vectors that the same node writes: no decays lie
        between them, so that they need no pieces; where all else has decayed, they alone are
        left."""

    # -- steps over the key channels --------------------------------------------------------------

    @property
    def step_width(self) -> int:
        """Key channels that vectors take at a time: few, since several tiles live through it."""
        schedule, d_k = self.context.schedule, padded(self.context.shapes.d_k)
        per_warp = 32 * STEP_ENTRIES // schedule.node_block
        return min(d_k, max(16, per_warp * schedule.factor_warps))

    @property
    def sums_width(self) -> int:
        """Key channels that are summed up at a time."""
        schedule, d_k = self.context.schedule, padded(self.context.shapes.d_k)
        groups = schedule.factor_warps >= 4 and schedule.node_block >= 64
        return min(d_k, max(GROUP_COLUMNS, self.step_width)) if groups else self.step_width

    @property
    def together(self) -> bool:
        """Whether a step sums up and multiplies. Otherwise sums wait in memory: with the products
        of all nodes next to it, a step of many channels has no registers left."""
        return self.sums_width == self.step_width

    @property
    def walk_width(self) -> int:
        """As few as possible for the walks of the rest, next to which the products are kept."""
        return 16

    def key_name(self, chunk: int) -> str:
        """Name of the channel numbers of a key chunk."""
        if chunk == SUMS and not self.together:
            return "key_sums"
        return "key_step" if chunk in (SUMS, STEP) else super().key_name(chunk)

    def key_part(self, chunk: int) -> str:
        """What names of key tiles end in."""
        return "" if chunk in (SUMS, STEP) else super().key_part(chunk)

    def is_partial(self, chunk: int) -> bool:
        """Whether a key chunk reaches beyond the last channel."""
        if chunk in (SUMS, STEP):
            width = self.sums_width if chunk == SUMS else self.step_width
            return self.context.shapes.d_k % width != 0
        return super().is_partial(chunk)

    @contextmanager
    def _steps(self, chunk: int, width: int) -> Iterator[None]:
        """The lines of the block once per step, in a loop where there are several: code that is
        written out is executed no faster than it is fetched."""
        w, channels = self.writer, f"tl.arange(0, {width})"
        count = -(-self.context.shapes.d_k // width)
        if count == 1:
            w.let(self.key_name(chunk), channels)
            yield
            return
        with w.block(f"for step in range(0, {count}):"):
            w.let(self.key_name(chunk), f"step * {width} + {channels}")
            yield

    def prefetch(self, kinds: frozenset[Kind]) -> None:
        """Key vectors are loaded step by step."""
        super().prefetch(kinds - {Kind.KEY})

    def prefetch_rows(self, b: int) -> None:
        """Nothing: row scalars are loaded behind the steps, through which they take registers."""

    # -- decays and what they stand in ------------------------------------------------------------

    def _finite_tests(self, b: int) -> str:
        """The same, decays first: other row scalars are not needed before their work is done."""
        plan = self.context.plan
        inside = {factor.key for x in self._vectors() for factor in head_factors(x)}
        for scalar in plan.scalars:
            if scalar.expr.key in inside:
                self.row_scalar(scalar, b)
        sizes = self.decay_rows(b)
        tests = [is_finite(x, self.row_scalar(x, b)) for x in self.context.scalars_needed]
        tests += [f"tl.abs({name}) < {LARGEST}" for name in sizes]
        return conjunction(*(tests or ["node >= 0"]))

    def _vectors(self) -> list[Expr]:
        """All key vectors of a step."""
        plan = self.context.plan
        found = [plan.key_log_decay, *(x for x, _ in self.readers), *self.written]
        if not self._by_logarithm:
            found.append(plan.key_decay)
        return [x for x in found if x is not None]

    @property
    def _by_logarithm(self) -> bool:
        """Whether the logarithm of a decay tells all about it."""
        decay = self.context.plan.key_decay
        return isinstance(decay, Call) and decay.fn == "exp"

    def decay_rows(self, b: int) -> list[str]:
        """All that the decays stand in: vectors with the decays of their paths, their products, how
        far the nodes go beyond the bounds. Gives a row that is not finite where a decay is not,
        unless finite inputs have finite decays."""
        w, plan = self.writer, self.context.plan
        assert plan.key_log_decay is not None
        w.section(
            "decays of whole paths: sums of log-decays, products of vectors with those inside"
        )
        place_folded(self.context, w)
        w.let("path_mask", f"tl.where({self.on_path(0, 0)}, 1.0, 0.0).to(tl.float16)")
        rows = ["reach", "entry"]
        if not self._by_logarithm or sign(plan.key_log_decay) >= 0:
            rows.append("gates_size")
        self.own = {
            (reader, base): w.fresh(f"own_{leaf(reader[0])}_{leaf(base)}")
            for reader, base in self._own
        }
        for name in (*rows, *self.own.values()):
            w.let(name, "tl.zeros([NODE_BLOCK], tl.float32)")
        if self.together:
            self.products.begin()
            with self._steps(STEP, self.step_width):
                self._sums(STEP, sized=len(rows) > 2)
                if False in self.times:
                    w.let("c_above", "c - g")
                self.products.step()
        else:
            with self._steps(SUMS, self.sums_width):
                self._sums(SUMS, sized=len(rows) > 2)
                self._leave_sums()
            w.comment("sums that other threads have stored are read below")
            w.line("tl.debug_barrier()")
            self.products.begin()
            with self._steps(STEP, self.step_width):
                self._load_sums()
                self.products.step()
        self._forget_ancestors()
        return rows[2:]

    def _forget_ancestors(self) -> None:
        """Have ancestor words loaded again: kept through all steps they would take registers."""
        for known in [x for x in self.memo if x[0] in ("ancestors", "half")]:
            del self.memo[known]

    @property
    def _own(self) -> tuple[tuple[Reader, Expr], ...]:
        """Queries, and written vectors that they read at the node that writes them."""
        readouts = [x for x in self.context.plan.readouts if x.inclusive]
        queries = dict.fromkeys((x.query.base, x.after_decay) for x in readouts)
        return tuple((query, base) for query in queries for base in self.written)

    def _sums(self, chunk: int, *, sized: bool) -> None:
        """c + ANCHOR, c summed in eighths and what they leave; how far each node goes beyond the
        bounds, and what takes no decays."""
        w, plan = self.writer, self.context.plan
        assert plan.key_log_decay is not None
        self._own_products(chunk)
        self._largest(chunk)
        w.origin("log-decay g", place(plan.key_decay, plan.form.decay))
        w.let("g", f"{self.key(plan.key_log_decay, 0, chunk)} * {LOG2_E}")
        if sized:
            w.let("gates_size", f"gates_size + tl.sum({self._size(chunk)}, axis=1)")
        w.let("g", f"tl.minimum(tl.maximum(g, -{LIMIT}.0), {LIMIT}.0)")
        w.let("g_eighths", f"(g + {EIGHTHS}) - {EIGHTHS}")
        w.let("g_rest", "g - g_eighths")
        w.let("g_rest_hi", "g_rest.to(tl.float16)")
        w.let("g_rest_lo", "(g_rest - g_rest_hi.to(tl.float32)).to(tl.float16)")
        w.let("c_eighths", "tl.dot(path_mask, g_eighths.to(tl.float16))")
        w.let("c_rest", "tl.dot(path_mask, g_rest_lo)")
        w.let("c_rest", "tl.dot(path_mask, g_rest_hi, c_rest)")
        w.comment(f"2^{ANCHOR} keeps products with decays and their inverses from overflowing")
        w.let("c", f"(c_eighths + {ANCHOR}.0) + c_rest")
        w.let("reach", "tl.maximum(reach, tl.max(tl.abs(c), axis=1))")

    def _largest(self, chunk: int) -> None:
        bases = dict.fromkeys([*(base for base, _ in self.readers), *self.written])
        largest, *entries = (f"tl.abs({self.key(base, 0, chunk)})" for base in bases)
        for entry in entries:
            largest = f"tl.maximum({largest}, {entry})"
        self.writer.let("entry", f"tl.maximum(entry, tl.max({largest}, axis=1))")

    def _own_products(self, chunk: int) -> None:
        for ((query, _), base), name in self.own.items():
            own = f"tl.sum({self.key(query, 0, chunk)} * {self.key(base, 0, chunk)}, axis=1)"
            self.writer.let(name, f"{name} + {own}")

    def _size(self, chunk: int) -> str:
        """A tile whose sum over channels is finite where all decays are; text."""
        if self._by_logarithm:
            return f'tl.where(g < {GREATEST_GROWTH}, 0.0, float("inf"))'
        decay = self.context.plan.key_decay
        assert decay is not None
        return f"tl.abs({self.key(decay, 0, chunk)})"

    def _leave_sums(self) -> None:
        """Store the sums of a step, in planes that are free until nodes walk."""
        for plane, tile in self._sum_planes().items():
            at, mask = plane_tile(self, plane, SUMS, 0), plane_mask(self, SUMS, 0)
            self.writer.line(f"tl.store({at}, {tile}{mask})")

    def _load_sums(self) -> None:
        for plane, tile in self._sum_planes().items():
            at, mask = plane_tile(self, plane, STEP, 0), plane_mask(self, STEP, 0)
            name = "c" if tile == "c" else "c_above"
            self.writer.let(name, f"tl.load({at}{mask}, other=0.0)")

    def _sum_planes(self) -> dict[Expr | Reader, str]:
        """The sums along the paths, with and without the node itself, by the planes that hold
        them."""
        decay = self.context.plan.key_decay
        assert decay is not None
        above = next((reader for reader in self.readers if not reader[1]), None)
        return {decay: "c", **({above: "c - g"} if above else {})}
