"""Decays per key channel as differences of sums, as long as those stay small.

c_i is the log-decay in base 2, summed along the path of node i, one per channel. The decay between
a node and its ancestor j then divides into something of the one and something of the other:

    2^(c_i - c_j) = 2^(c_i + ANCHOR) 2^-(c_j + ANCHOR)

With c + ANCHOR within REACH neither factor overflows nor underflows, and Gram matrices with
decays in them are products of matrices. The anchor is the same for all nodes, and whether the sums
stay between the bounds is a question to the nodes of a path alone: what is no ancestor of a node
changes no bit of it. Rows of nodes whose paths leave the bounds come from walks instead.

A sum is a product of the ancestor mask with log-decays. Those that lie in memory in 16 bits enter
it as they are, and what they have in common multiplies the sum; others enter in two float16 pieces,
which together keep 22 bits.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import ceil, log2, prod

from boleir.codegen.emit.context import LOG2_E, Context, place
from boleir.codegen.emit.handover import place_folded
from boleir.codegen.emit.key_products import Products
from boleir.codegen.emit.key_steps import STEP, SUMS
from boleir.codegen.emit.key_totals import SAME, TotalTiles
from boleir.codegen.emit.key_vectors import (
    Plane,
    Reader,
    decay_vectors,
    multiplied,
    plane_mask,
    plane_tile,
    readers,
    written_bases,
)
from boleir.codegen.emit.path_matrix import path_matrix
from boleir.codegen.emit.precision import Precision
from boleir.codegen.emit.text import product
from boleir.codegen.emit.tiles import is_finite
from boleir.codegen.emit.writer import Writer
from boleir.codegen.naming import leaf
from boleir.codegen.plan import Scalar
from boleir.codegen.rewrite import (
    constant_value,
    head_factors,
    is_constant,
    split_scale,
)
from boleir.ir import Expr, Input, Kind, Per, walk

ANCHOR, REACH = 52, "64.0"
"""c + ANCHOR stays within +-REACH: c between -116 and 12, rounded to 2^-19."""
LIMIT = 256.0
"""A log-decay beyond this leads out of the bounds."""
LEAST_RATE = 2.0**-7
"""Bounds of a factor of all log-decays: the limit divided by it is a number of 16 bits."""
WHOLE = {"bf16": "bfloat16", "fp16": "float16"}
"""Formats of 16 bits."""


class SumTiles(TotalTiles):
    """Tiles of the program of one head that multiplies vectors with the decays of their paths."""

    def __init__(self, context: Context, writer: Writer) -> None:
        super().__init__(context, writer)
        self.precision = Precision(context.schedule.precision)
        plan = context.plan
        self.readers, self.written = readers(plan), written_bases(plan)
        self.times = sorted({after for _, after in self.readers})
        self.products = Products(self)
        self.rate = ""
        """By what to multiply the rest of a log-decay, in base 2; text."""
        self.tests: list[str] = []
        """Tests of whether the row scalars of a node are finite."""
        self.piece = ""
        """The format of log-decays that enter sums as they lie in memory, where they do."""

    # -- decays and what they stand in ------------------------------------------------------------

    def scalars(self, b: int) -> None:
        """Decays first: other row scalars are not needed before their work is done. What is not
        finite leads out of the bounds: where nodes walk, some are looked for that are bad."""
        self.inner_scalars(b)
        self.decay_rows(b)
        needed = [x for x in self.context.scalars_needed if x not in self.guards]
        self.tests = [is_finite(x, self.row_scalar(x, b)) for x in needed]
        self.writer.let("bad", "tl.zeros([], tl.int64)")

    @property
    def guards(self) -> list[Scalar]:
        """Row scalars that only tell of key vectors that are not finite, unless they are there."""
        scalars = [] if self.rows_ready else self.context.scalars_needed
        return [x for x in scalars if x.watches is Kind.KEY]

    def inner_scalars(self, b: int) -> None:
        """Row scalars inside the vectors of a step."""
        inside = {factor.key for x in self.vectors() for factor in head_factors(x)}
        for scalar in self.context.plan.scalars:
            if scalar.expr.key in inside:
                self.row_scalar(scalar, b)

    def vectors(self) -> tuple[Expr, ...]:
        """All key vectors of a step."""
        plan = self.context.plan
        return (*decay_vectors(plan), *multiplied(plan))

    def decay_rows(self, b: int) -> list[str]:
        """All that the decays stand in: vectors with the decays of their paths, their products, how
        far the nodes go. Gives no row that tells of decays."""
        w = self.writer
        w.section(
            "decays of whole paths: sums of log-decays, products of vectors with those inside"
        )
        place_folded(self.context, w)
        if not self.rows_ready:
            self.begin_totals(b)
        self.begin_sums()
        if self.together:
            self.products.begin()
            with self.steps(STEP, self.step_width):
                self.load_keys(STEP, self.vectors())
                self.sums(STEP)
                self.reduce(STEP, beside="c")
                self.products.step()
        else:
            with self.steps(SUMS, self.sums_width):
                self.load_keys(SUMS, decay_vectors(self.context.plan))
                self.sums(SUMS)
                self.leave_sums()
            w.comment("sums that other threads have stored are read below")
            w.line("tl.debug_barrier()")
            self.multiply(reduce=True)
        self.forget_ancestors()
        return []

    def begin_sums(self) -> None:
        """What steps of sums start from."""
        plan = self.context.plan
        assert plan.key_log_decay is not None
        self._find_rate(*split_scale(plan.key_log_decay))
        dtype = WHOLE.get(self.piece, "float16")
        path_matrix(self, "path_mask", dtype)
        if False in self.times:
            self.writer.let("path_above", f"tl.where({SAME}, 0.0, path_mask).to(tl.{dtype})")
        self.writer.let("reach", "tl.zeros([NODE_BLOCK], tl.float32)")
        self.begin_own()

    def _find_rate(self, factors: list[Expr], base: Expr) -> None:
        """`rate`, from the factors that a log-decay has in common for all channels. Where it is a
        number, log-decays in 16 bits are summed up as they are."""
        numbers = [constant_value(x, self.context.dims) for x in factors if is_constant(x)]
        number = prod(numbers, start=float(LOG2_E))
        self.rate = repr(number)
        scalars = [self.weight(x, 0, "") for x in factors if not is_constant(x)]
        if scalars:
            self.rate = self.writer.let("rate", product(self.rate, *scalars)) + "[:, None]"
        elif self.is_short(base) and LEAST_RATE <= abs(number) <= 1 / LEAST_RATE:
            self.piece = self.context.dtype

    def load_keys(self, chunk: int, vectors: tuple[Expr, ...]) -> None:
        """Issue the loads of what vectors are computed from, all of them before any is used: what
        threads exchange stands behind a barrier, over which no load is moved."""
        for item in walk(*vectors):
            if isinstance(item, Input) and item.kind is Kind.KEY and item.per is Per.TOKEN:
                self.raw_key(item, 0, chunk)

    def decayed(self, chunk: int) -> Iterator[tuple[Reader, str]]:
        """Readers times the decays of their paths, one after the other; names of their tiles."""
        w = self.writer
        for after in self.times:
            w.let("grown", f"tl.exp2({'c' if after else 'c_above'})")
            for reader in self.readers:
                if reader[1] is after:
                    stem = f"{leaf(reader[0])}_decayed{'' if after else '_above'}"
                    yield reader, w.temp(f"{self.key(reader[0], 0, chunk)} * grown", stem)

    def multiply(self, *, reduce: bool = False) -> None:
        """Products of all nodes from sums that wait in memory, and what takes no decays."""
        self.products.begin()
        self.writer.comment("no request is less than empty, but compilers do not know")
        self.writer.let("zero", "tl.where(count >= 0, 0.0, 1.0)")
        with self.steps(STEP, self.step_width):
            self.load_sums()
            self.load_keys(STEP, multiplied(self.context.plan))
            if reduce:
                self.reduce(STEP)
            self.products.step()

    def forget_ancestors(self) -> None:
        """Have ancestor words loaded again: kept through all steps they would take registers."""
        for known in [x for x in self.memo if x[0] in ("ancestors", "half")]:
            del self.memo[known]

    def sums(self, chunk: int) -> None:
        """c + ANCHOR; how far each node goes."""
        w, plan = self.writer, self.context.plan
        assert plan.key_log_decay is not None
        w.origin("log-decay g", place(plan.key_decay, plan.form.decay))
        _, base = split_scale(plan.key_log_decay)
        if self.piece:
            assert isinstance(base, Input)
            limit = 2.0 ** ceil(log2(LIMIT / abs(float(self.rate))))
            short = f".to(tl.{WHOLE[self.piece]})"  # Triton 3.6 compares bfloat16 as float32
            w.let("g", bounded(self.raw_key(base, 0, chunk), limit) + short)
        else:
            tile = self.rows_for_nodes(base, self.key(base, 0, chunk), self.key_mask(0, chunk))
            w.let("g", bounded(f"{tile} * {self.rate}", LIMIT))
            w.let("g_hi", "g.to(tl.float16)")
            w.let("g_lo", "(g - g_hi.to(tl.float32)).to(tl.float16)")
        w.comment(f"2^{ANCHOR} keeps products with decays and their inverses from overflowing")
        self._sum(self.sum_name, "path_mask")
        if False in self.times:
            self._sum("c_above", "path_above")
        with self.apart(self.sums_width):
            w.let("reach", f"tl.maximum(reach, tl.max(tl.abs({self.sum_name}), axis=1))")

    def _sum(self, name: str, mask: str) -> None:
        """`name`: sums of the pieces of log-decays over a mask of nodes."""
        w = self.writer
        if self.piece:
            w.let(name, f"tl.dot({mask}, g) * {self.rate} + {ANCHOR}.0")
        else:
            w.let(name, f"tl.dot({mask}, g_lo)")
            w.let(name, f"tl.dot({mask}, g_hi, {name}) + {ANCHOR}.0")

    @property
    def sum_name(self) -> str:
        """Name of a step's sums: steps that multiply, of another width, have a `c` of their own."""
        return "c" if self.together else "c_sums"

    def leave_sums(self) -> None:
        """Store the sums of a step."""
        for plane, tile in self._sum_planes(self.sum_name).items():
            at, mask = plane_tile(self, plane, SUMS, 0), plane_mask(self, SUMS, 0)
            self.writer.line(f"tl.store({at}, {tile}{mask})")

    def load_sums(self) -> None:
        """Load them for a step that multiplies, and add `zero`: what depends on loads and constants
        alone Triton would compute twice, in the layouts of loads and of products."""
        for plane, tile in self._sum_planes("c").items():
            at, mask = plane_tile(self, plane, STEP, 0), plane_mask(self, STEP, 0)
            name = "c" if tile == "c" else "c_above"
            self.writer.let(name, f"tl.load({at}{mask}, other=0.0) + zero")

    def _sum_planes(self, c: str) -> dict[Plane, str]:
        """The sums along the paths, with and without the node itself, by the planes that hold them;
        `c`: their name.

        Nodes that walk overwrite some of these for themselves, where nobody reads them then: who
        reads such a node walks, too. Their decays, which all others below read, come into a plane
        that is free when they are needed.
        """
        decay = self.context.plan.key_decay
        assert decay is not None
        above = next((reader for reader in self.readers if not reader[1]), None)
        return {decay: c, **({above: "c_above"} if above else {})}


def bounded(tile: str, limit: float) -> str:
    """`tile` within its limits: through the zeros of the mask all nodes would be reached by what is
    not finite; text."""
    return f"tl.minimum(tl.maximum({tile}, {-limit!r}), {limit!r})"
