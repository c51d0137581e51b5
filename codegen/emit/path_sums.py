"""Log-decays summed along the paths, by the prepare kernel: c and c_rest of all nodes."""

from __future__ import annotations

from boleir.codegen.emit.context import LOG2_E, Context, place, plane_of
from boleir.codegen.emit.tiles import Tiles, bounded_below, eighths
from boleir.codegen.emit.walk import emit_parents
from boleir.codegen.emit.writer import Writer


def emit_links(context: Context, w: Writer, request: str) -> None:
    """The parent of every node as an entry of the vector, behind what `request` says; -1 above a
    root. To be written before the first store, behind which no load is issued."""
    if context.shapes.max_depth:
        parent = emit_parents(w, context.shapes.words)
        w.let("link", f"tl.where({parent} < 0, -1, {request}{parent})")


def emit_path_sums(context: Context, own: Tiles, planes: tuple[str, ...]) -> None:
    """g of the nodes and its sums over the path, eighths and what they leave apart; those of
    `planes` are stored.

    All nodes of a request are entries of one vector. Every node adds what the node at the end of
    its link has summed up so far and takes over its link, so that links double in length: as many
    steps as the largest depth has bits. A node's sums depend on its path alone, to the last bit.
    """
    plan, w = context.plan, own.writer
    assert plan.log_decay is not None
    w.origin("log-decay g, and c its sum over the path", place(plan.log_decay, plan.form.decay))
    bounded_below(w, "g", f"{own.per_node(plan.log_decay, 0)} * {LOG2_E}")
    w.let("c", eighths("g"))
    w.let("c_rest", "g - c")
    steps = context.shapes.max_depth.bit_length()
    if steps:
        with w.block(f"for _ in tl.static_range({steps}):"):
            w.let("linked", "link >= 0")
            w.let("end", "tl.maximum(link, 0)")
            for name, beyond in (("c", "0.0"), ("c_rest", "0.0"), ("link", "-1")):
                found = f"tl.where(linked, tl.gather({name}, end, axis=0), {beyond})"
                w.let(name, found if name == "link" else f"{name} + {found}")
    capacity, rows = w.arg("capacity", "i64"), w.arg("rows", "*fp32")
    for number, name in enumerate(planes):
        at = plane_of(len(plan.scalars) + number, "head")
        w.line(f"tl.store({rows} + {at} * {capacity} + row, {name}, mask=inside)")


__all__ = ["emit_links", "emit_path_sums"]
