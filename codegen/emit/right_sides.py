"""Right sides of the staged schedule's system: products of erase vectors with the committed state,
in tiles of the unknowns' channels."""

from __future__ import annotations

from boleir.codegen.emit.context import Context, unknown_place
from boleir.codegen.emit.groups import OWN, GroupTiles, grouped
from boleir.codegen.emit.precision import Pieces, Precision
from boleir.codegen.emit.staged import UNROLLED, sum_plane, sum_times, unknown_rows, vector_at
from boleir.codegen.emit.text import conjunction, product
from boleir.codegen.emit.writer import Writer
from boleir.codegen.schedule import padded
from boleir.codegen.schedule_footprint import unknown_tile
from boleir.ir import Expr, Kind


class ChannelTiles(GroupTiles):
    """Operands on the side of the unknowns: one tile of its channels per program."""

    def __init__(self, context: Context, writer: Writer, own: str = "") -> None:
        schedule = context.schedule
        inner = grouped(context, "source", schedule.node_block, schedule.b_k, own)
        super().__init__(context, inner, writer)
        self.pairs = context.plan.pairs

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

    def mask(self, b: int) -> str:
        """Mask of the entries of a tile of a group of nodes that exist."""
        inside = f"{self.context.block('inside', b)}[:, None]"
        return conjunction(inside, *(f"({test})[None, :]" for test in self.live()))

    def rows(self, p: int, b: int) -> str:
        """Addresses of unknowns of a group of nodes; right sides until their turn comes."""
        at = unknown_rows(self, p, f"first + {self.context.block('node', b)}")
        return f"({at})[:, None] + {self.lane}[None, :]"

    def load_sums(self, b: int, times: tuple[bool, ...]) -> None:
        """Logarithms of the decays of nodes since the committed state."""
        for after in times:
            for rest in (False, True):
                plane = sum_plane(self.context.plan, after, rest)
                at = vector_at(self, plane, self.unknown, self.lane, b)
                load = f"tl.load({at}, mask={self.mask(b)}, other=0.0)"
                self.writer.let(self.sum_name(after, rest, b), load)

    def sum_name(self, after: bool, rest: bool, b: int) -> str:
        """Variable of such a sum: with the decay of the node itself, or that of its parent."""
        return self.context.block(("c" if after else "c_above") + ("_rest" if rest else ""), b)

    def numbered(self, stem: str, p: int) -> str:
        """`stem` with the number of a pair, where there are several."""
        return f"{stem}{p}" if len(self.pairs) > 1 else stem


class RightSides(ChannelTiles):
    """Emits them for a block of nodes, put where the unknowns belong."""

    def __init__(self, context: Context, writer: Writer) -> None:
        super().__init__(context, writer)
        self.precision = Precision(context.schedule.precision, whole=True)

    def emit(self, start: str) -> None:
        """R of a block of nodes, as far as the committed state determines it."""
        w, plan = self.writer, self.context.plan
        w.let("node", f"{start}tl.arange(0, NODE_BLOCK)")
        w.let("inside", "node < count")
        self.load_sums(OWN, sum_times(plan))
        erased = self._erased()
        for p, pair in enumerate(self.pairs):
            w.origin(self.numbered("u", p), unknown_place(plan.form, p))
            seen = erased[p]
            if plan.unknown_log_decay is not None:
                c, rest = (self.sum_name(pair.after_decay, x, OWN) for x in (False, True))
                seen = f"tl.exp2({c} + {rest}) * {seen}"
            if pair.gain is not None:
                gain = self.unknown_vector(pair.gain, OWN)
                seen = product(gain, seen)
            target = self.unknown_vector(pair.target, OWN)
            w.line(f"tl.store({self.rows(p, OWN)}, {target} - {seen}, mask={self.mask(OWN)})")

    def _erased(self) -> list[str]:
        """e^T S_pre for every pair, the decays of the written side in e; the written side is walked
        in pieces.

        Both operands keep all their digits: vectors that are not normalised let what is lost here
        grow from node to node.
        """
        w, size = self.writer, self.context.shapes.width(self.written)
        names = [w.fresh(self.numbered("erased", p)) for p in range(len(self.pairs))]
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
                tile = w.let(self.numbered("erase", p), f"tl.load({at}, mask={mask}, other=0.0)")
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
