"""Loading the committed state of a program: one value tile, key chunk by key chunk.

The tile is loaded the way products take it: [key channels, values] where nodes stand on rows, else
[values, key channels]. In the first case it has another shape than the key tiles [nodes, key
channels]: of loads of one shape Triton gives all the layout of the narrowest format, and a thread
that takes eight float32 numbers in a row leaves half of every sector to its second load.

A program reads a tile of the state once, and a round later other layers have taken the caches: the
state leaves them first, so that what programs share stays.
"""

from __future__ import annotations

from boleir.codegen.emit.deferred import load_advanced
from boleir.codegen.emit.precision import Pieces, Precision
from boleir.codegen.emit.text import conjunction
from boleir.codegen.emit.tiles import Tiles

ONCE = 'eviction_policy="evict_first"'
"""Argument of loads and stores of what no other program will ask for."""


def load_state(tiles: Tiles) -> list[str]:
    """Loads of the state tile of each chunk; a padding row (slot -1) reads slot 0 and ignores
    it."""
    w, c, held = tiles.writer, tiles.context, _request_state(tiles)
    if c.schedule.commit == "deferred":
        w.let("state_row", f"{held} + (head * D_V + value) * D_K")
        if load_advanced(tiles, "state_row"):
            if tiles.nodes_on_rows:
                w.let("state_tile", "tl.trans(state_tile)")
            return ["state_tile"]
    _place_rows(tiles, held)
    return [load_chunk(tiles, chunk) for chunk in range(c.key_chunks)]


def place_state(tiles: Tiles) -> None:
    """Bind where the rows of the value tile begin."""
    _place_rows(tiles, _request_state(tiles))


def find_slot(tiles: Tiles) -> None:
    """Look up the request's slot, once: a load that nothing before it should delay."""
    w = tiles.writer
    if ("slot",) not in w.memo:
        w.memo["slot",] = w.let("slot", f"tl.load({w.arg('slots', '*i32')} + request)")


def _request_state(tiles: Tiles) -> str:
    """Where the state of the request's slot begins."""
    w = tiles.writer
    find_slot(tiles)
    pool, stride = w.arg("state", "*" + tiles.context.state_dtype), w.arg("state_stride", "i64")
    return f"{pool} + tl.maximum(slot, 0).to(tl.int64) * {stride}"


def _place_rows(tiles: Tiles, held: str) -> None:
    rows = tiles.along("(head * D_V + value)")
    tiles.writer.let("state_rows", f"{held} + {rows} * D_K")


def load_chunk(tiles: Tiles, chunk: int) -> str:
    """Load one key chunk of the state tile; its name."""
    w, c, key = tiles.writer, tiles.context, tiles.key_name(chunk)
    tests = []
    if c.shapes.d_v % c.schedule.b_v:
        tests.append(tiles.along("(value < D_V)"))
    if tiles.is_partial(chunk):
        tests.append(tiles.across(f"({key} < D_K)"))
    mask = f", mask={conjunction(*tests)}, other=0.0" if tests else ""
    name = "state_tile" if c.key_chunks == 1 else f"state_tile_c{chunk}"
    return w.let(name, f"tl.load(state_rows + {tiles.across(key)}{mask}, {ONCE})")


def state_pieces(tiles: Tiles, precision: Precision, names: list[str]) -> list[Pieces]:
    """The loaded tiles as pieces for products."""
    w, dtype = tiles.writer, tiles.context.state_dtype
    if dtype == "fp16" or (dtype != "fp32" and precision.plan in ("ieee", "tf32")):
        for name in names:
            w.let(name, f"{name}.to(tl.float32)")
        dtype = "fp32"
    return [precision.pieces(w, name, dtype) for name in names]
