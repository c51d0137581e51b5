"""Tokens of an accepted path as a block of nodes, and the part of the state that a program of the
closed commit advances.

A path is a tree whose nodes have one child each: what verification multiplies of a block of nodes,
the commit multiplies of sixteen tokens of the path. Only where they are found differs: pointers
come from the table of layers, rows from the path's vector of nodes.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from boleir.codegen.emit.commit_inputs import step_inputs
from boleir.codegen.emit.commit_path import FEWEST, most_steps
from boleir.codegen.emit.commit_table import pointer
from boleir.codegen.emit.context import Context
from boleir.codegen.emit.system import System
from boleir.codegen.emit.text import conjunction
from boleir.codegen.emit.tiles import Tiles, eighths
from boleir.codegen.naming import stem
from boleir.codegen.schedule import Schedule, padded
from boleir.ir import Dot, Expr, Input, Kind, Per, walk

BLOCK = FEWEST
"""Tokens of the path that are taken together: the depth of one tensor-core product."""
KEYS = 32
"""Key channels of a piece: pieces of the state for products are in registers for one at a time."""
PER_WARP = 2048
"""Elements of the state per warp, as in the walk."""
MOST_ROWS = 32
"""Most value channels of a program: their unknowns take registers, too."""
REGISTERS = (128, 168)
"""Registers per thread of sixteen and of twelve programs of one warp on a multiprocessor."""
TOGETHER = 8
"""Neighbouring key channels: four lanes have two each, as tensor cores want them."""


@dataclass(frozen=True, slots=True)
class ClosedTile:
    """Sizes of a program's part of the state: all key channels of some value channels."""

    context: Context

    @property
    def warps(self) -> int:
        """Warps of a program: products of sixteen rows are those of one."""
        return 1

    @property
    def b_k(self) -> int:
        """Key channels of a piece."""
        return min(KEYS, padded(self.context.shapes.d_k))

    @property
    def rows(self) -> int:
        """Value channels per program."""
        shapes = self.context.shapes
        return max(BLOCK, min(MOST_ROWS, padded(shapes.d_v), PER_WARP // padded(shapes.d_k)))

    @property
    def per_head(self) -> int:
        """Programs per head."""
        return -(-self.context.shapes.d_v // self.rows)

    @property
    def programs(self) -> int:
        """State programs per request and layer."""
        return self.per_head * self.context.shapes.value_heads

    @property
    def registers(self) -> int:
        """Most registers per thread: few, so that sixteen programs share a multiprocessor, unless
        there is more than one key vector or more than sixteen rows to keep."""
        plan = self.context.plan
        used = [x for pair in plan.writing for x in (pair.erase, pair.write)]
        used += [write.key for write in plan.writes]
        crowded = self.rows > BLOCK or len({x.base.key for x in used}) > 1
        return REGISTERS[crowded]

    @property
    def blocks(self) -> int:
        """Blocks of the longest path."""
        return most_steps(self.context) // BLOCK

    def path(self) -> Context:
        """The context of one block of the path."""
        c, depth = self.context, min(self.context.shapes.max_depth, BLOCK - 1)
        shapes = replace(c.shapes, max_nodes=BLOCK, max_depth=depth, parents=None)
        schedule = Schedule(
            gates="inline", b_v=self.rows, b_k=self.b_k, node_block=BLOCK, path_sum="dot",
            precision=c.schedule.precision, commit=c.schedule.commit,
        )  # fmt: skip
        return replace(c, shapes=shapes, schedule=schedule)


class PathTiles(Tiles):
    """Vectors and row scalars of the tokens of a block: rows `node` of the request, those at
    `place`, of which `live` are there."""

    node_count = str(BLOCK)
    live = "inside"
    system: System
    """Multiplies vectors of tokens."""

    def buffer(self, name: str, dtype: str) -> str:
        """Pointers come from the table."""
        return pointer(self.context, self.writer, name, dtype)

    def channels(self) -> None:
        """Channel numbers of every piece of the keys."""
        for k in range(self.context.key_chunks):
            size = self.context.schedule.b_k
            first = f"{k * size} + " if k else ""
            self.writer.let(self.key_name(k), f"{first}tl.arange(0, {size})")

    def key_mask(self, b: int, chunk: int, rows: str | None = None) -> str:
        """Only tokens that are live are loaded: what comes after them may be anything."""
        return super().key_mask(b, chunk, rows or self.live)

    def on_path(self, b: int, a: int) -> str:
        """A token's ancestors in the block are those before it."""
        order = f"{self.along('place')} <= {self.across('place')}"
        return conjunction(order, self.across("inside"))

    def is_ancestor(self, b: int, a: int) -> str:
        """The same: a token that is not finite is part of the path, and so is what it does."""
        return self.on_path(b, a)

    def issue(self) -> None:
        """Issue all loads of the block's inputs together. Key tiles come last: each goes to shared
        memory as soon as it is there."""
        items = step_inputs(self.context.plan)[0]
        for item in items:
            if item.kind is Kind.HEAD:
                self.head(item, 0)
        for item in items:
            if item.kind is Kind.VALUE:
                self.raw_value(item, 0)
        for item in items:
            for chunk in range(self.context.key_chunks if item.kind is Kind.KEY else 0):
                self.raw_key(item, 0, chunk)

    def forget(self) -> None:
        """Key tiles are loaded anew from here on, instead of being kept in registers."""
        tiles = ("raw", "key", "live key", "pieces", "whole")
        for known in [x for x in self.memo if x[0] in tiles]:
            del self.memo[known]

    def _head(self, expr: Expr, b: int) -> str:
        """Products of a token's own vectors stand on the diagonal of those of all tokens."""
        match expr:
            case Dot(left=Input(per=Per.TOKEN) as left, right=Input(per=Per.TOKEN) as right) if (
                left.kind is Kind.KEY
            ):
                gram, same = self.system.gram(b, b, left, right), "place[None, :] == place[:, None]"
                return f"tl.sum(tl.where({same}, {gram}, 0.0), axis=1)"
        return super()._head(expr, b)

    @property
    def sums_by_dot(self) -> bool:
        """Path sums are few."""
        return False

    def _path_sum(self, b: int) -> None:
        """The sums over the path, in the layout of products of its vectors where there are any: the
        test is there for that alone."""
        w, mask, pairs = self.writer, self.on_path(b, b), self.context.plan.writing
        if pairs:
            gram = self.system.gram(b, b, pairs[0].erase.base, pairs[0].write.base)
            mask = conjunction(mask, f"{gram} == {gram}")
        w.let("summed", mask)
        w.let("g_eighths", eighths("g"))
        w.let("g_rest", "g - g_eighths")
        for total, step in (("c", "g_eighths"), ("c_rest", "g_rest")):
            w.let(total, f"tl.sum(tl.where(summed, {self.along(step)}, 0.0), axis=1)")

    def per_node(self, expr: Expr, b: int) -> str:
        """One token per lane where nothing else is needed: gathered, a vector stays as it was
        computed, instead of being computed again by all lanes that need an entry."""
        text = super().per_node(expr, b)
        inputs = [x for x in walk(expr) if isinstance(x, Input)]
        if all(x.kind is Kind.HEAD for x in inputs) and any(x.per is Per.TOKEN for x in inputs):
            return f"tl.gather({self.writer.temp(text, f'{stem(expr)}_lane')}, place, 0)"
        return text
