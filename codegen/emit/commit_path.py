"""The accepted path of a request: which nodes lie on it, in which order.

The path is known before the first token is worked on, so its nodes stand in one vector, a step per
lane: whatever a step needs of them is picked out of it, also for steps to come.
"""

from __future__ import annotations

from boleir.codegen.emit.context import Context
from boleir.codegen.emit.text import conjunction
from boleir.codegen.emit.writer import Writer
from boleir.codegen.schedule import padded

FEWEST = 16
"""Lanes of the vectors over a path, at least."""


def most_steps(context: Context) -> int:
    """Steps of the longest path, padded."""
    shapes = context.shapes
    return max(FEWEST, padded(min(shapes.max_depth + 1, shapes.max_nodes)))


def picked(vector: str, step: str) -> str:
    """The entry of a vector over the path at a step."""
    return f"tl.sum(tl.gather({vector}, tl.full([1], {step}, tl.int32), 0))"


def emit_path(context: Context, w: Writer, units: int) -> None:
    """Which of the `units` of a request and layer a program is, and what it knows of its request:
    slots, nodes, the path as bits and its `length`; no path
    for a padding row or an accepted node out of range."""
    words = context.shapes.words
    w.arg("table", "*i64")
    batch = w.arg("batch", "i32")
    w.let("program", "tl.program_id(0)")
    w.let("unit", f"program % {units}")
    w.let("request", f"program // {units} % {batch}")
    w.let("layer", f"program // ({units} * {batch})")
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


def emit_nodes(context: Context, w: Writer) -> None:
    """`nodes`: those on the path in their order, 0 behind its end; `track_step`: the step at whose
    end the state goes to the track slot, or -1."""
    steps = most_steps(context)
    w.let("steps", f"tl.arange(0, {steps})")
    w.let("nodes", f"tl.zeros([{steps}], tl.int32)")
    with w.block("for step in range(length):"):
        _next_node(context, w)
        w.let("nodes", "tl.where(steps == step, current, nodes)")
    tracked = "(nodes == track_node) & (steps < length) & (track_slot >= 0)"
    w.let("track_step", f"tl.max(tl.where({tracked}, steps, -1))")


def _next_node(context: Context, w: Writer) -> None:
    """`current` becomes the first node left on the path, which loses it: words hold nodes in path
    order."""
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
