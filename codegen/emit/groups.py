"""Tiles of two groups of nodes: the nodes of a program, and the nodes that they come to, one at a
time each.

Names and loads of the second group are those of the first with another vector of node numbers. Its
row scalars always come from the prepared rows.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from boleir.codegen.emit.context import LARGEST, Context, place
from boleir.codegen.emit.text import bracket, conjunction, product
from boleir.codegen.emit.tiles import Tiles, is_finite
from boleir.codegen.emit.writer import Writer
from boleir.codegen.naming import leaf
from boleir.codegen.plan import Operand, Scalar
from boleir.codegen.schedule import padded
from boleir.ir import Expr, Kind

OWN, OTHER = 0, 1
"""The groups: nodes of the program, and what they come to."""


@dataclass(frozen=True, slots=True)
class GroupContext(Context):
    """Names of the second group end in `other`, those of the first in `own` if that is given."""

    other: str
    own: str = ""

    def block(self, stem: str, number: int) -> str:
        """`stem`, marked by the group it belongs to."""
        mark = self.other if number == OTHER else self.own
        return f"{stem}_{mark}" if mark else stem


def grouped(context: Context, other: str, nodes: int, b_k: int, own: str = "") -> GroupContext:
    """The context of a program with `nodes` nodes of its own and key chunks of `b_k`; nodes on
    rows."""
    schedule = replace(context.schedule, node_block=nodes, b_k=b_k, orientation="nodes")
    shapes = replace(context.shapes, max_nodes=nodes, max_depth=0, parents=None)
    return GroupContext(context.plan, shapes, schedule, other, own)


class GroupTiles(Tiles):
    """Operands of both groups. `whole` has the shapes and the schedule that were asked for."""

    def __init__(self, whole: Context, context: GroupContext, writer: Writer) -> None:
        super().__init__(context, writer)
        self.whole = whole
        self.rows_ready = True

    @property
    def written(self) -> Kind:
        """The side that vectors are written along: the other one has the unknowns."""
        return self.context.plan.written

    @property
    def unknown(self) -> Kind:
        """The side of the unknowns."""
        return self.context.plan.unknown

    def width(self, kind: Kind) -> str:
        """The constant that holds the channels of a side."""
        return "D_K" if kind is Kind.KEY else "D_V"

    def head(self, expr: Expr, b: int) -> str:
        """The row scalar that an expression is, else its text."""
        scalar = self._known_scalar(expr)
        return super().head(expr, b) if scalar is None else self.row_scalar(scalar, b)

    def _known_scalar(self, expr: Expr) -> Scalar | None:
        return next((s for s in self.context.plan.scalars if s.expr == expr), None)

    def with_scalars(self, operand: Operand, b: int, base: str) -> str:
        """`base`, a tile, times the constant and the row scalars of an operand; text."""
        plan = self.context.plan
        names = [self.row_scalar(plan.scalar(name), b) for name in operand.scalars]
        factors = [repr(operand.constant)] if operand.constant != 1.0 else []
        factors += [bracket(product(*names)) + "[:, None]"] if names else []
        return product(*factors, base)

    # -- whole vectors ----------------------------------------------------------------------------

    def channel(self, kind: Kind) -> str:
        """All channel numbers of a side, padded."""
        size = self.context.shapes.width(kind)
        return "key" if kind is Kind.KEY else f"tl.arange(0, {padded(size)})"

    def is_padded(self, kind: Kind) -> bool:
        """Whether `channel` has numbers that are no channel."""
        size = self.context.shapes.width(kind)
        return padded(size) != size

    def exists(self, kind: Kind, b: int) -> str:
        """Mask of the entries of a whole vector."""
        inside = f"{self.context.block('inside', b)}[:, None]"
        if not self.is_padded(kind):
            return inside
        return f"{inside} & ({self.channel(kind)} < {self.width(kind)})[None, :]"

    def whole_vector(self, kind: Kind, expr: Expr, b: int) -> str:
        """A vector over all channels of its side as a float32 tile, zero beyond the last; a
        name."""
        known = ("whole", expr.key, b)
        if known not in self.memo:
            name = self.key(expr, b, 0) if kind is Kind.KEY else self.full_value(expr, b)
            self.memo[known] = name
        return self.memo[known]

    def whole_operand(self, kind: Kind, operand: Operand, b: int) -> str:
        """The same for an operand, times its row scalars."""
        base = self.whole_vector(kind, operand.base, b)
        known = ("whole operand", operand.constant, operand.scalars, base)
        if known not in self.memo:
            text, name = self.with_scalars(operand, b, base), f"{leaf(operand.base)}_scaled"
            self.memo[known] = (
                base if text == base else self.writer.temp(text, self.context.block(name, b))
            )
        return self.memo[known]

    # -- tiles of value channels ------------------------------------------------------------------

    def value_operand(self, operand: Operand, b: int) -> str:
        """An operand on the value side as a value tile, times its row scalars; text."""
        return self.with_scalars(operand, b, self.value(operand.base, b))

    # -- finiteness -------------------------------------------------------------------------------

    def is_finite(self, b: int) -> str:
        """Mask of the nodes whose inputs are finite, as far as row scalars tell."""
        plan = self.context.plan
        tests = [is_finite(scalar, self.row_scalar(scalar, b)) for scalar in plan.scalars]
        if plan.log_decay is not None:
            tests.append(f"tl.abs({self.own_log_decay(b)}) < {LARGEST}")
        return conjunction(*tests)

    def own_log_decay(self, b: int) -> str:
        """The logarithm of a node's decay per head, in base 2, as prepared."""
        known = ("own decay", b)
        if known not in self.memo:
            plan = self.context.plan
            self.writer.origin("log-decay g", place(plan.log_decay, plan.form.decay))
            load = self.plane(len(plan.scalars) + 2, "g", "head", b)
            self.memo[known] = self.writer.temp(load, self.context.block("g", b))
        return self.memo[known]


def split_program(
    writer: Writer,
    parts: tuple[tuple[str, int], ...],
    heads: str = "VALUE_HEADS",
    *,
    given: bool = False,
) -> None:
    """Find part, head and request of a program, whose number may be `given`; a part of which there
    is one gets no name. `heads`: how many there are of a request."""
    if given:
        rest = "program"
        writer.arg(rest, "i32")
    else:
        rest = writer.let("program", "tl.program_id(0)")
    for name, count in parts:
        if count > 1:
            writer.let(name, f"{rest} % {count}")
            rest = f"{rest} // {count}"
    writer.let("head", f"{rest} % {heads}")
    writer.let("request", f"{rest} // {heads}")
