"""One token of the replayed recurrence: expressions over the rows of one node.

Rows (head scalars, vectors, stored unknowns) are loaded a step ahead of the node that needs them;
so an expression only notes which rows it takes, and the loop over the path loads them. Scalars that
stand in vectors over the path are picked out of these. Vectors have the shape of the tile's
channels (see `boleir.codegen.emit.commit_tile`).
"""

from __future__ import annotations

from collections.abc import Callable

from boleir.codegen.emit.commit_path import picked
from boleir.codegen.emit.commit_table import pointer
from boleir.codegen.emit.commit_tile import HEADS, NAMES, WIDTHS, Tile
from boleir.codegen.emit.context import Context
from boleir.codegen.emit.text import arithmetic
from boleir.codegen.emit.writer import Writer
from boleir.codegen.naming import leaf, stem
from boleir.codegen.plan import Operand
from boleir.codegen.rewrite import constant_value, is_constant, vanishes
from boleir.codegen.schedule import padded
from boleir.ir import Call, Dot, Expr, Input, Kind, Per


class Token:
    """Emits expressions of one token."""

    def __init__(self, context: Context, writer: Writer, tile: Tile) -> None:
        self.context = context
        self.writer = writer
        self.tile = tile
        self.memo = writer.memo
        self.rows: dict[str, str] = {}
        """Loads of the rows of a node, by name."""
        self.path: dict[int, str] = {}
        """Vectors over the path of the scalars that have them, by the key of the expression."""
        self.gates: str | None = None
        """The decays per head, where they are such a vector."""

    def row(self, name: str, load: str) -> str:
        """A row of the current node, loaded a step ahead."""
        self.rows[name] = load
        return f"{name}_now"

    def scalars(self, operand: Operand) -> list[str]:
        """What an operand's base is multiplied by: sums over the base need it only once."""
        constant = [repr(operand.constant)] if operand.constant != 1.0 else []
        return constant + [self.head(self.context.plan.scalar(x).expr) for x in operand.scalars]

    def live(self, expr: Expr) -> str:
        """A vector, zero in the channels that are none: it enters sums and the tile."""
        return self._zeroed(expr, self.side(expr), NAMES[expr.kind], self.tile.exact(expr.kind))

    def _zeroed(self, expr: Expr, name: str, channel: str, exact: bool) -> str:
        """A vector, zero in the channels that are none where it would not be so by itself."""
        if exact or vanishes(expr):
            return name
        text = f"tl.where({channel} < {WIDTHS[expr.kind]}, {name}, 0.0)"
        known = ("live", channel, expr.key)
        if known not in self.memo:
            self.memo[known] = self.writer.temp(text, f"{name}_live")
        return self.memo[known]

    def _summed(self, expr: Expr) -> str:
        """A vector over all its channels, for a sum."""
        if expr.kind is self.tile.summed:
            return self.live(expr)
        exact = padded(self._width(expr.kind)) == self._width(expr.kind)
        return self._zeroed(expr, self.whole(expr), self._every(expr.kind), exact)

    def parameter(self, item: Input) -> str:
        """A parameter of the layer, loaded once."""
        known = ("parameter", item.key)
        if known not in self.memo:
            at = "head"
            if item.kind is not Kind.HEAD:
                at = self._channels(item.kind, NAMES[item.kind], self.tile.exact(item.kind))
            load = f"tl.load({pointer(self.context, self.writer, item.name, 'fp32')} + {at})"
            self.memo[known] = self.writer.temp(load, f"{item.name}_head")
        return self.memo[known]

    def _width(self, kind: Kind) -> int:
        return self.context.shapes.width(kind)

    def _every(self, kind: Kind) -> str:
        return f"tl.arange(0, {padded(self._width(kind))})"

    def _channels(self, kind: Kind, channel: str, exact: bool) -> str:
        """Where the channels of a head lie in a row, and the mask for those that are none."""
        mask = "" if exact else f", mask={channel} < {WIDTHS[kind]}, other=0.0"
        return f"{HEADS[kind]} * {WIDTHS[kind]} + {channel}{mask}"

    # -- expressions ------------------------------------------------------------------------------

    def head(self, expr: Expr) -> str:
        """A HEAD expression: a scalar."""
        return self._spelled("head", expr, self._head_node, stem(expr))

    def side(self, expr: Expr) -> str:
        """A vector along the channels of the tile, as an atom."""
        name = f"{leaf(expr)}_row" if isinstance(expr, Input) else stem(expr)

        def node(x: Expr) -> str:
            if isinstance(x, Input) and x.per is not Per.TOKEN:
                return self.parameter(x)
            return self._vector_node(x, self.side, NAMES[x.kind], self.tile.exact(x.kind), "")

        return self._spelled("side", expr, node, name)

    def whole(self, expr: Expr) -> str:
        """A vector over all its channels, for reductions of the side that has the rows; an atom."""
        every, size = self._every(expr.kind), self._width(expr.kind)
        exact = padded(size) == size

        def node(x: Expr) -> str:
            if isinstance(x, Input) and x.per is not Per.TOKEN:
                first = pointer(self.context, self.writer, x.name, "fp32")
                return f"tl.load({first} + {self._channels(x.kind, every, exact)})"
            return self._vector_node(x, self.whole, every, exact, "_all")

        return self._spelled("all", expr, node, f"{leaf(expr)}_all")

    def _head_node(self, expr: Expr) -> str:
        if expr.key in self.path:
            return picked(self.path[expr.key], "step")
        match expr:
            case Input(per=Per.TOKEN):
                load = f"tl.load({self._row_at(expr, 'head')})"
                return f"{self.row(expr.name, load)}.to(tl.float32)"
            case Input():
                return self.parameter(expr)
            case Dot(left=left, right=right):
                return f"tl.sum({self._summed(left)} * {self._summed(right)})"
            case Call(fn="sum", arg=arg):
                return f"tl.sum({self._summed(arg)})"
        return arithmetic(expr, self.head, self.writer)

    def _vector_node(
        self, expr: Expr, spell: Callable[[Expr], str], channel: str, exact: bool, suffix: str
    ) -> str:
        """How a vector that depends on the token is spelled along `channel`."""
        if isinstance(expr, Input):
            at = self._row_at(expr, self._channels(expr.kind, channel, exact))
            load = self.row(f"{expr.hint or expr.name}{suffix}", f"tl.load({at})")
            return f"{load}.to(tl.float32)"
        return arithmetic(
            expr, lambda x: self.head(x) if x.kind is Kind.HEAD else spell(x), self.writer
        )

    def _spelled(self, space: str, expr: Expr, node: Callable[[Expr], str], name: str) -> str:
        """The text of an expression: a name where it is a vector or costs something."""
        if is_constant(expr):
            return repr(constant_value(expr, self.context.dims))
        known = (space, expr.key)
        if known not in self.memo:
            text = node(expr)
            costly = isinstance(expr, Input | Dot | Call) or expr.key in self.path
            named = space != "head" or costly or bool(expr.hint)
            self.memo[known] = (
                self.writer.temp(text, name) if named and not text.isidentifier() else text
            )
        return self.memo[known]

    def _row_at(self, item: Input, offset: str) -> str:
        mixed = self.context.plan.is_mixed(item)
        if mixed is not None:
            first = f"{mixed.column} + " if mixed.column else ""
            rows = pointer(self.context, self.writer, mixed.buffer, self.context.dtype)
            return f"{rows} + row * {mixed.row_size} + {first}{offset}"
        rows = pointer(self.context, self.writer, item.name, self.context.dtype)
        return f"{rows} + row * {self.writer.arg(f'{item.name}_stride', 'i64')} + {offset}"
