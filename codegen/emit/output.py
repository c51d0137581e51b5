"""What every kernel that writes outputs shares: decode, poison, the store."""

from __future__ import annotations

from boleir.codegen.emit.context import Context
from boleir.codegen.emit.text import product
from boleir.codegen.emit.tiles import Tiles
from boleir.codegen.plan import ReadPlan

DECODE = {
    "tiles": """\
value_tile = program % VALUE_TILES
head = program // VALUE_TILES % VALUE_HEADS
request = program // (VALUE_TILES * VALUE_HEADS)""",
    "heads": """\
head = program % VALUE_HEADS
value_tile = program // VALUE_HEADS % VALUE_TILES
request = program // (VALUE_TILES * VALUE_HEADS)""",
}
"""Lines that find what a program of one value tile works on, by what its neighbours work on."""

WAITING = "what follows reads results of the previous kernel"


def find_tile(tiles: Tiles) -> None:
    """Find what the program works on: value tile, head and request."""
    schedule = tiles.context.schedule
    given = schedule.fusion == "joined" or schedule.persistent > 0 or tiles.context.prepares_first
    tiles.program(DECODE[schedule.order], given=given)


def system_number(context: Context) -> str:
    """The number of the program's system among those of all requests, as a factor."""
    order = context.schedule.order
    if context.shares_systems:
        return "(request * KEY_HEADS + key_head)"
    return "program // VALUE_TILES" if order == "tiles" else "(request * VALUE_HEADS + head)"


def value_grid(context: Context) -> tuple[str, str, str]:
    """Grid of a kernel with one program per value tile."""
    return (f"{context.value_tiles * context.shapes.value_heads} * batch", "1", "1")


def path_decay(context: Context, after_decay: bool, b: int) -> str | None:
    """P of a node, or of its parent; None when the state does not decay."""
    if context.plan.log_decay is None:
        return None
    c, rest, g = (context.block(name, b) for name in ("c", "c_rest", "g"))
    return f"tl.exp2({c} + {rest})" if after_decay else f"tl.exp2({c} - {g} + {rest})"


def poisoned(tiles: Tiles, b: int) -> str:
    """Mask of the nodes of block `b` with a non-finite input on their path."""
    first_of_word = {tiles.word_index(a): a for a in reversed(range(b + 1))}
    tests = []
    for a in sorted(first_of_word.values()):
        bad = " | ".join(tiles.bad_nodes(b, a))
        tests.append(
            f"({tiles.ancestors(b, a)} & {bad if bad.isidentifier() else f'({bad})'}) != 0"
        )
    return tests[0] if len(tests) == 1 else " | ".join(f"({test})" for test in tests)


def poison(tiles: Tiles, b: int, outs: list[str], mask: str) -> None:
    """Write NaN to the outputs of the nodes in `mask`."""
    name = tiles.writer.let(tiles.context.block("poisoned", b), mask)
    for out in outs:
        tiles.writer.let(out, f'tl.where({tiles.across(name)}, float("nan"), {out})')


def finish_output(tiles: Tiles, b: int, readout: ReadPlan, out: str) -> None:
    """The gain of an output, and what it takes from neither state nor nodes."""
    if readout.gain is not None:
        tiles.writer.let(out, product(out, tiles.value(readout.gain, b)))
    if readout.direct is not None:
        tiles.writer.let(out, f"{out} + {tiles.value(readout.direct, b)}")


def output_rows(tiles: Tiles, readout: ReadPlan) -> tuple[str, str]:
    """Pointer to the program's first row of an output, and the token stride in 32 bits."""
    w, c, mark = tiles.writer, tiles.context, readout.mark
    key = ("output_rows", mark)
    if key not in w.memo:
        pointer = w.arg(readout.pointer, "*" + c.out_dtype)
        stride = w.arg(f"{readout.pointer}_stride", "i64")
        w.memo[key] = w.let(f"out_rows{mark}", f"{pointer} + first * {stride} + head * D_V")
        w.let(f"out_step{mark}", f"{stride}.to(tl.int32)")
    return w.memo[key], f"out_step{mark}"


def store_output(tiles: Tiles, b: int, readout: ReadPlan, out: str) -> None:
    """Store a tile of an output: zero for a padding row."""
    w, c = tiles.writer, tiles.context
    w.let(out, f"tl.where(slot >= 0, {out}, 0.0)")
    rows, step = output_rows(tiles, readout)
    row = tiles.across(f"{c.block('node', b)} * {step}")
    value = f"{out}.to({w.arg(readout.pointer, '*' + c.out_dtype)}.dtype.element_ty)"
    at = f"{rows} + {row} + {tiles.along('value')}"
    w.line(f"tl.store({at}, {value}, mask={tiles.value_mask(b)})")


def unknowns_at(tiles: Tiles, p: int, b: int) -> str:
    """Addresses of the unknowns of pair `p` and block `b`, [pairs, nodes, heads * d_v]."""
    w, node = tiles.writer, tiles.context.block("node", b)
    key = ("unknown_rows", p)
    if key not in w.memo:
        plane = f"({p} * {w.arg('capacity', 'i64')} + first)" if p else "first"
        unknowns = w.arg("unknowns", "*" + tiles.context.unknown_dtype)
        at = f"{unknowns} + {plane} * (VALUE_HEADS * D_V) + head * D_V"
        w.memo[key] = w.temp(at, f"u{p or ''}_rows")
    row = tiles.across(f"{node} * (VALUE_HEADS * D_V)")
    return f"{w.memo[key]} + {row} + {tiles.along('value')}"
