"""One token of the replayed recurrence: expressions over the rows of one node.

Rows (head scalars, vectors, stored unknowns) are loaded one step ahead of the node that needs them;
so an expression only notes which rows it takes, and the loop over the path loads them.
"""

from __future__ import annotations

from collections.abc import Callable

from boleir.codegen.emit.commit_table import pointer
from boleir.codegen.emit.context import Context
from boleir.codegen.emit.text import arithmetic, product
from boleir.codegen.emit.writer import Writer
from boleir.codegen.naming import leaf, stem
from boleir.codegen.plan import Operand
from boleir.codegen.rewrite import constant_value, is_constant, vanishes
from boleir.codegen.schedule import padded
from boleir.ir import Call, Dot, Expr, Input, Kind, Per


class Token:
    """Emits expressions of one token."""

    def __init__(self, context: Context, writer: Writer) -> None:
        self.context = context
        self.writer = writer
        self.memo = writer.memo
        self.rows: dict[str, str] = {}
        """Loads of the rows of a node, by name."""

    def row(self, name: str, load: str) -> str:
        """A row of the current node, loaded one step ahead."""
        self.rows[name] = load
        return f"{name}_now"

    def operand(self, operand: Operand, role: str) -> str:
        """A vector with its scalars, zero beyond the last channel, as an atom."""
        known = ("operand", operand.constant, operand.scalars, operand.base.key)
        if known not in self.memo:
            factors = [repr(operand.constant)] if operand.constant != 1.0 else []
            factors += [self.head(self.context.plan.scalar(name).expr) for name in operand.scalars]
            base = self._live(operand.base)
            text = product(*factors, base)
            self.memo[known] = self.writer.temp(text, role) if factors else base
        return self.memo[known]

    def _live(self, base: Expr) -> str:
        """The base of an operand, zero beyond the last channel: it enters sums over the tile."""
        live = "key < D_K" if base.kind is Kind.KEY else "value < D_V"
        return self._zeroed(base, self.side(base), live)

    def _zeroed(self, expr: Expr, name: str, live: str) -> str:
        """A vector, zero in the channels that are none where it would not be so by itself."""
        size = self.context.shapes.width(expr.kind)
        if padded(size) == size or vanishes(expr):
            return name
        return self.writer.temp(f"tl.where({live}, {name}, 0.0)", f"{name}_live")

    def _summed(self, expr: Expr) -> str:
        """A vector over all its channels, for a sum."""
        if expr.kind is Kind.VALUE:
            every = f"tl.arange(0, {padded(self.context.shapes.d_v)})"
            return self._zeroed(expr, self.full_value(expr), f"{every} < D_V")
        every = f"tl.arange(0, {padded(self.context.shapes.d_k)})"
        live = f"{every if self.context.plan.right else 'key'} < D_K"
        return self._zeroed(expr, self.full_vector(expr), live)

    def parameter(self, item: Input) -> str:
        """A parameter of the layer, loaded once."""
        known = ("parameter", item.key)
        if known not in self.memo:
            at, mask = {
                Kind.HEAD: ("head", ""),
                Kind.KEY: ("key_head * D_K + key", ", mask=key < D_K, other=0.0"),
                Kind.VALUE: ("head * D_V + value", ", mask=value < D_V, other=0.0"),
            }[item.kind]
            address = f"{pointer(self.context, self.writer, item.name, 'fp32')} + {at}"
            self.memo[known] = self.writer.temp(f"tl.load({address}{mask})", f"{item.name}_head")
        return self.memo[known]

    # -- expressions ------------------------------------------------------------------------------

    def head(self, expr: Expr) -> str:
        """A HEAD expression: a scalar."""
        return self._spelled("head", expr, self._head_node, stem(expr))

    def side(self, expr: Expr) -> str:
        """A vector on the side of its kind, as an atom."""
        return self.vector(expr) if expr.kind is Kind.KEY else self.value(expr)

    def vector(self, expr: Expr) -> str:
        """A key-side vector [key channels of the tile], as an atom."""
        name, node = _vector_name(expr), self._vector_node(self.vector, Kind.KEY, "key")
        return self._spelled("key", expr, node, name)

    def value(self, expr: Expr) -> str:
        """A value-side vector [value tile], as an atom."""
        name, node = _vector_name(expr), self._vector_node(self.value, Kind.VALUE, "value")
        return self._spelled("value", expr, node, name)

    def full_value(self, expr: Expr) -> str:
        """A value-side vector [d_v], for reductions; an atom."""
        every = f"tl.arange(0, {padded(self.context.shapes.d_v)})"
        node = self._vector_node(self.full_value, Kind.VALUE, every)
        return self._spelled("all", expr, node, f"{leaf(expr)}_all")

    def full_vector(self, expr: Expr) -> str:
        """A key-side vector [d_k], for reductions; an atom."""
        if not self.context.plan.right:  # tiles of the state have all key channels
            return self.vector(expr)
        every = f"tl.arange(0, {padded(self.context.shapes.d_k)})"
        node = self._vector_node(self.full_vector, Kind.KEY, every)
        return self._spelled("all", expr, node, f"{leaf(expr)}_all")

    def _head_node(self, expr: Expr) -> str:
        match expr:
            case Input(per=Per.TOKEN):
                load = f"tl.load({self._row_at(expr, 'head')})"
                return f"{self.row(expr.name, load)}.to(tl.float32)"
            case Input():
                return self.parameter(expr)
            case Dot(left=left, right=right):
                return f"tl.sum({self._summed(left)} * {self._summed(right)}, axis=0)"
            case Call(fn="sum", arg=arg):
                return f"tl.sum({self._summed(arg)}, axis=0)"
        return arithmetic(expr, self.head, self.writer)

    def _vector_node(
        self, spell: Callable[[Expr], str], kind: Kind, channel: str
    ) -> Callable[[Expr], str]:
        """How a vector is spelled: of which side, along which channels."""
        heads, width = ("key_head", "D_K") if kind is Kind.KEY else ("head", "D_V")

        def node(expr: Expr) -> str:
            match expr:
                case Input(per=Per.TOKEN):
                    at = f"{self._row_at(expr, f'{heads} * {width}')} + {channel}"
                    load = f"tl.load({at}, mask={channel} < {width}, other=0.0)"
                    whole = "" if channel in ("key", "value") else "_all"
                    name = f"{expr.hint or expr.name}{whole}"
                    return f"{self.row(name, load)}.to(tl.float32)"
                case Input() if channel in ("key", "value"):
                    return self.parameter(expr)
                case Input(name=name):
                    first = pointer(self.context, self.writer, name, "fp32")
                    at = f"{first} + {heads} * {width} + {channel}"
                    return f"tl.load({at}, mask={channel} < {width}, other=0.0)"
            return arithmetic(
                expr, lambda x: self.head(x) if x.kind is Kind.HEAD else spell(x), self.writer
            )

        return node

    def _spelled(self, space: str, expr: Expr, node: Callable[[Expr], str], name: str) -> str:
        """The text of an expression: a name where it is a vector or costs something."""
        if is_constant(expr):
            return repr(constant_value(expr, self.context.dims))
        known = (space, expr.key)
        if known not in self.memo:
            text = node(expr)
            named = space != "head" or isinstance(expr, Input | Dot | Call) or bool(expr.hint)
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


def _vector_name(expr: Expr) -> str:
    return f"{leaf(expr)}_row" if isinstance(expr, Input) else stem(expr)
