"""The accepted path of a request: which nodes lie on it, and the next of them."""

from __future__ import annotations

from boleir.codegen.emit.context import Context
from boleir.codegen.emit.text import conjunction
from boleir.codegen.emit.writer import Writer


def emit_path(context: Context, w: Writer) -> None:
    """What a program knows of its request: slots, nodes, the path as bits and its `length`; no path
    for a padding row or an accepted node out of range."""
    words = context.shapes.words
    cu = w.arg("cu_nodes", "*i32")
    w.let("start", f"tl.load({cu} + request)")
    w.let("count", f"tl.minimum(tl.load({cu} + request + 1) - start, MAX_NODES)")
    per_request = {
        "slot": "slots",
        "target_slot": "target_slots",
        "track_slot": "track_slots",
        "track_node": "track_nodes",
        "accepted_node": "accepted",
    }
    for name, source in per_request.items():
        w.let(name, f"tl.load({w.arg(source, '*i32')} + request)")
    w.let("first", "start.to(tl.int64)")
    inside = "(accepted_node >= 0) & (accepted_node < count)"
    w.let("valid", f"{inside} & (slot >= 0) & (target_slot >= 0)")
    w.let("last", "first + tl.where(valid, accepted_node, 0)")
    for word in range(words):
        at = f"last * {words} + {word}" if words > 1 else "last"
        load = f"tl.load({w.arg('ancestors', '*i64')} + {at}, mask=valid, other=0)"
        w.let(f"path_{word}", load)
    depth = f"tl.load({w.arg('depths', '*i32')} + last, mask=valid, other=0)"
    w.let("length", f"{depth} + 1")


def emit_next_node(context: Context, w: Writer) -> None:
    """`current` becomes the first node left on the path, which loses it: words hold nodes in path
    order. Behind the end of the path it is node 0."""
    words = context.shapes.words
    index = "0"
    before: list[str] = []
    w.comment("the lowest bit left is the next node: as a float, its exponent is its number")
    for word in range(words):
        path = f"path_{word}"
        lowest = w.let(f"lowest_{word}", f"({path} & -{path}).to(tl.float32)")
        bits = f"tl.abs({lowest}).to(tl.int32, bitcast=True)"
        w.let(f"here_{word}", conjunction(f"{path} != 0", *before))
        before.append(f"{path} == 0")
        number = f"({bits} >> 23) {64 * word - 127:+d}".replace("-", "- ").replace("+", "+ ")
        index = f"tl.where(here_{word}, {number}, {index})"
    w.let("current", index)
    for word in range(words):
        path = f"path_{word}"
        w.let(path, f"tl.where(here_{word}, {path} & ({path} - 1), {path})")
