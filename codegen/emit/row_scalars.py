"""Programs of the prepare kernel that compute row scalars of inputs as they come: one head each."""

from __future__ import annotations

from dataclasses import dataclass, replace

from boleir.codegen.emit.context import Context, plane_of
from boleir.codegen.emit.path_sums import emit_links, emit_path_sums
from boleir.codegen.emit.shares import Share
from boleir.codegen.emit.tiles import Tiles
from boleir.codegen.emit.writer import Writer
from boleir.codegen.plan import Plan, Scalar
from boleir.codegen.request import Shapes
from boleir.codegen.schedule import padded
from boleir.ir import Expr, Input, Kind, Per, walk

LANES = 128
"""Least entries of vectors over nodes: as many as a program has threads."""


@dataclass(frozen=True, slots=True)
class ScalarGroup:
    """Row scalars that the same programs compute."""

    scalars: tuple[Scalar, ...]
    heads: str
    """`key`: one key head per program, `value`: one value head, `several`: as many value heads as
    have room in one vector of all their nodes."""
    path_sums: bool
    """Whether the log-decay and its sums along the paths belong to them."""

    @property
    def says(self) -> str:
        """For a comment."""
        what = ["row scalars"] * bool(self.scalars) + ["sums along the paths"] * self.path_sums
        which = "some value heads" if self.heads == "several" else f"one {self.heads} head"
        return f"{', '.join(what)} of {which}"

    def share(self, first: int, shapes: Shapes, nodes: int) -> Share:
        """The programs from number `first` on that compute them, for `nodes` nodes each where they
        may."""
        whole = padded(shapes.max_nodes)
        if self.heads == "several":
            together = max(1, LANES // whole)
            return Share(first, shapes.value_heads, shapes.max_nodes, whole, together)
        units = shapes.key_heads if self.heads == "key" else shapes.value_heads
        return Share(first, units, shapes.max_nodes, whole if self.path_sums else min(nodes, whole))


def scalar_groups(plan: Plan) -> list[ScalarGroup]:
    """Row scalars without a convolved input, by the heads and the kind of input they need."""
    groups = []
    sums = None if plan.log_decay is None else _heads(plan.log_decay, False)
    for heads in ("several", "key", "value"):
        own = (s for s in plan.scalars if plan.source(s) is None)
        mine = tuple(s for s in own if _heads(s.expr, s.per_key_head) == heads)
        if mine or sums == heads:
            groups.append(ScalarGroup(mine, heads, sums == heads))
    return groups


def _heads(expr: Expr, per_key_head: bool) -> str:
    """Which programs compute a scalar: those that reduce vectors do so for one head."""
    if per_key_head:
        return "key"
    inputs = (x for x in walk(expr) if isinstance(x, Input))
    return "value" if any(x.kind is not Kind.HEAD for x in inputs) else "several"


def emit_row_scalars(
    context: Context, w: Writer, group: ScalarGroup, share: Share, path_planes: tuple[str, ...]
) -> None:
    """The body of the branch for `group`. `path_planes`: what is stored of log-decays."""
    w.comment(group.says)
    share.decode(w)
    if group.heads == "key":
        w.let("key_head", "unit")
    else:
        w.let("head", "unit")
    if group.heads == "value":
        w.let("key_head", "head // GROUP" if context.shapes.group > 1 else "head")
    alone = replace(context.shapes, max_nodes=share.nodes, max_depth=0, parents=None)
    own = Tiles(replace(context, shapes=alone), w)
    if group.heads != "several":
        own.channels()
    _prefetch(own, group)
    if group.path_sums:
        emit_links(context, w, "lane - node + " if share.together > 1 else "")
    _store_scalars(own, group)
    if group.path_sums:
        emit_path_sums(context, own, path_planes)


def _prefetch(own: Tiles, group: ScalarGroup) -> None:
    """Issue the loads of head inputs, the layer's and the tokens', and of key vectors together."""
    plan = own.context.plan
    exprs = [s.expr for s in group.scalars]
    if group.path_sums and plan.log_decay is not None:
        exprs.append(plan.log_decay)
    used = {x.key for x in walk(*exprs) if isinstance(x, Input)}
    inputs = [item for item in (*plan.parameters, *plan.tokens) if item.key in used]
    for item in inputs:
        if item.kind is Kind.HEAD:
            own.head(item, 0)
    for item in inputs:
        if item.kind is Kind.KEY and item.per is Per.TOKEN:
            for chunk in range(own.context.key_chunks):
                own.raw_key(item, 0, chunk)


def _store_scalars(own: Tiles, group: ScalarGroup) -> None:
    w, plan = own.writer, own.context.plan
    capacity, rows = w.arg("capacity", "i64"), w.arg("rows", "*fp32")
    head = "key_head" if group.heads == "key" else "head"
    for scalar in group.scalars:
        value = own.row_scalar(scalar, 0)
        plane = plane_of(plan.scalars.index(scalar), head)
        w.line(f"tl.store({rows} + {plane} * {capacity} + row, {value}, mask=inside)")


__all__ = ["ScalarGroup", "emit_row_scalars", "scalar_groups"]
