"""Loading the committed state of a program: one value tile, key chunk by key chunk."""

from __future__ import annotations

from boleir.codegen.emit.precision import Pieces, Precision
from boleir.codegen.emit.tiles import Tiles


def load_state(tiles: Tiles, precision: Precision) -> list[Pieces]:
    """The state tile [B_V, key chunk] of each chunk as pieces; a padding row (slot -1) reads slot 0 and ignores it."""
    w, c = tiles.writer, tiles.context
    w.let("slot", f"tl.load({w.arg('slots', '*i32')} + request)")
    pool, stride = w.arg("state", "*" + c.state_dtype), w.arg("state_stride", "i64")
    w.let("state_rows", f"{pool} + tl.maximum(slot, 0).to(tl.int64) * {stride} + (head * D_V + value)[:, None] * D_K")
    pieces = []
    for chunk in range(c.key_chunks):
        key = tiles.key_name(chunk)
        tests = []
        if c.shapes.d_v % c.schedule.b_v:
            tests.append("(value < D_V)[:, None]")
        if (chunk + 1) * c.schedule.b_k > c.shapes.d_k:
            tests.append(f"({key} < D_K)[None, :]")
        mask = f", mask={' & '.join(tests)}, other=0.0" if tests else ""
        name = "state_tile" if c.key_chunks == 1 else f"state_tile_c{chunk}"
        value = f"tl.load(state_rows + {key}[None, :]{mask})"
        dtype = c.state_dtype
        if dtype == "fp16" or (dtype != "fp32" and precision.plan in ("ieee", "tf32")):
            value, dtype = f"{value}.to(tl.float32)", "fp32"
        w.let(name, value)
        pieces.append(precision.pieces(w, name, dtype))
    return pieces
