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
    _track_step(w)


def emit_nodes_at_once(context: Context, w: Writer) -> None:
    """The same without a loop, for up to 64 nodes: every step finds its bit of the path by halving.

    The node of a step is the bit that has as many bits of the path below it. Bits are counted in
    pairs, fours and bytes of a half word, then each step descends: where its bit is not among those
    of the lower half, it takes their count off.
    """
    assert context.shapes.words == 1
    steps = most_steps(context)
    w.let("steps", f"tl.arange(0, {steps})")
    w.comment("the node of a step: the bit with as many bits of the path below it")
    w.let("below", "steps")
    halves = ("low", "high") if context.shapes.max_nodes > 32 else ("low",)
    for half in halves:
        shifted = "(path_0 >> 32)" if half == "high" else "path_0"
        bits = w.let(f"{half}_bits", f"{shifted}.to(tl.int32)")
        pairs = w.let(f"{half}_pairs", f"{bits} - (({bits} >> 1) & 0x55555555)")
        fours = f"({pairs} & 0x33333333) + (({pairs} >> 2) & 0x33333333)"
        w.let(f"{half}_fours", fours)
        w.let(f"{half}_bytes", f"({half}_fours + ({half}_fours >> 4)) & 0x0F0F0F0F")
    half, start = "low", "0"
    if len(halves) > 1:
        w.let("sums", "low_bytes + (low_bytes >> 16)")
        w.let("counted", "(sums + (sums >> 8)) & 63")
        w.let("beyond", "below >= counted")
        w.let("below", "tl.where(beyond, below - counted, below)")
        for name in ("bits", "pairs", "fours", "bytes"):
            w.let(f"half_{name}", f"tl.where(beyond, high_{name}, low_{name})")
        half, start = "half", w.let("start_bit", "tl.where(beyond, 32, 0)")
    counts = {
        16: f"({half}_bytes + ({half}_bytes >> 8)) & 31",
        8: f"({half}_bytes >> bit) & 15",
        4: f"({half}_fours >> bit) & 7",
        2: f"({half}_pairs >> bit) & 3",
        1: f"({half}_bits >> bit) & 1",
    }
    for width, count in counts.items():
        w.let("counted", count)
        w.let("beyond", "below >= counted")
        w.let("below", "tl.where(beyond, below - counted, below)")
        bit = "tl.where(beyond, 16, 0)" if width == 16 else f"tl.where(beyond, bit + {width}, bit)"
        w.let("bit", bit)
    node = "bit" if start == "0" else f"{start} + bit"
    w.comment("gathered: else all lanes that need an entry would find it again")
    w.let("nodes", f"tl.gather(tl.where(steps < length, {node}, 0), steps, 0)")
    _track_step(w)


def _track_step(w: Writer) -> None:
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
