"""Deferred commits: a value tile first walks the path that was accepted in the round before.

A commit then only *records* (see `boleir.codegen.emit.record`): it copies what the recurrence needs
of the accepted path's tokens into rows that belong to the slot, and moves the convolution window.
The next verification reads the state anyway; each of its programs replays the recorded tokens on
its own rows of it, stores them and goes on from there. So a round reads the state once instead of
twice, inputs may be overwritten as soon as they are recorded, and what is recorded waits with its
slot until a verification (or a *flush*, for whoever wants the state itself) comes to it.

`pending` counts the tokens that 16 value rows of a head have not walked yet. Only the program that
owns the rows sets it to zero, so that a path is walked once however often a tree is verified.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from boleir.codegen.emit.commit_inputs import step_inputs
from boleir.codegen.emit.commit_step import LOCALS, Step
from boleir.codegen.emit.commit_tile import NAMES, Tile
from boleir.codegen.emit.commit_token import Token
from boleir.codegen.emit.context import Context
from boleir.codegen.emit.tiles import Tiles
from boleir.codegen.emit.writer import EmittedKernel, Writer
from boleir.ir import Input, Kind

UNIT = 16
"""Elements that sources of a record begin at multiples of: 32 or 64 bytes."""

ROWS = 16
"""Value rows that share a count of pending tokens: those of the smallest value tile."""

KEY = "tile_key"
"""The key channels of the tile, where a kernel has another `key`."""


# -- what is recorded ---------------------------------------------------------------------------


def input_channels(context: Context, item: Input) -> int:
    """Numbers of an input per token."""
    return context.shapes.heads(item.kind) * context.shapes.width(item.kind)


def recorded_places(context: Context) -> dict[Input, int]:
    """First channel of each recorded input in the row of a token."""
    places, channels = {}, 0
    for item in step_inputs(context.plan)[0]:
        places[item] = channels
        channels += -(-input_channels(context, item) // UNIT) * UNIT
    return places


def recorded_channels(context: Context) -> int:
    """Channels of a recorded token; 0 where commits are not deferred."""
    if context.schedule.commit != "deferred":
        return 0
    sizes = (input_channels(context, item) for item in recorded_places(context))
    return sum(-(-size // UNIT) * UNIT for size in sizes)


def pending_counts(context: Context) -> int:
    """Counts of pending tokens per slot."""
    return context.shapes.value_heads * _counts(context)


def _counts(context: Context) -> int:
    return -(-context.shapes.d_v // ROWS)


# -- walking it ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ReplayTile(Tile):
    """The tile of a program that reads the state."""

    @property
    def rows(self) -> int:
        """Value channels per program."""
        return self.context.schedule.b_v

    def keys(self) -> str:
        """The key channels, in the shape of the tile."""
        return self.channels()[NAMES[Kind.KEY]]

    def at(self, rows: str) -> str:
        """Addresses of the tile, whose rows begin at `rows`, a vector."""
        return self.hinted(f"{self.across(rows, Kind.VALUE)} + {self.across(KEY, Kind.KEY)}")

    def flat(self, name: str) -> str:
        """The tile as [rows, keys]."""
        if self.pieces == 1:
            return name
        return f"tl.reshape(tl.permute({name}, (1, 0, 2)), (B_V, {self.pieces * self.piece}))"


class _RecordedToken(Token):
    """One token of the recurrence, from a recorded row."""

    def _row_at(self, item: Input, offset: str) -> str:
        place = recorded_places(self.context)[item]
        return f"row + {place} + {offset}" if place else f"row + {offset}"


def emit_replay(context: Context) -> EmittedKernel:
    """The function that walks recorded tokens with a tile of the state, all key channels of some
    value rows. It is called from kernels and returns the tile."""
    w, tile = Writer((*context.inputs, *LOCALS)), ReplayTile(context)
    w.let("tile", w.arg("state_tile", "tile"))
    w.let("value", w.arg("channels", "channels"))
    w.let("head", w.arg("value_head", "i32"))
    tokens, steps = w.arg("tokens", "*" + context.dtype), w.arg("steps", "i32")
    w.let("key", tile.keys())
    w.let("key_head", "head // GROUP" if context.shapes.group > 1 else "head")
    token = _RecordedToken(context, w, tile)
    for item in step_inputs(context.plan)[1]:
        w.memo["pointer", item.name] = w.arg(item.name, "*fp32")
        token.parameter(item)
    one = Step(context, w, tile, token)
    body = _body(one)
    w.comment("the rows of the next token are on their way while a token is worked on")
    w.let("row", tokens)
    for name, load in token.rows.items():
        w.let(f"{name}_now", load)
    w.let("step", "0")
    one.start()
    with w.block(f"while step < {steps}:"):
        w.let("step", "step + 1")
        w.let("row", f"{tokens} + tl.minimum(step, {steps} - 1) * RECORDED")
        for name, load in token.rows.items():
            w.let(f"{name}_next", load)
        w.comment("one token of the recurrence")
        w.lines += body
        for name in token.rows:
            w.let(f"{name}_now", f"{name}_next")
    w.line(f"return {one.state}")
    doc = "The state tile after the recorded tokens."
    return w.kernel("replay", doc, ("1", "1", "1"), warps=context.schedule.warps)


def _body(step: Step) -> list[str]:
    """Lines of one step, written apart: they decide which rows a token needs."""

    def emit() -> None:
        with step.writer.block("while step < steps:"):
            step.emit()

    return step.writer.apart(emit)[1:]


class Waiting:
    """In a kernel: the state tile of a program, and what waits for it."""

    def __init__(
        self, context: Context, w: Writer, pointers: Mapping[str, str], stride: str
    ) -> None:
        """`pointers`: of the pool's buffers and of parameters, by name; `stride`: distance between
        slots of recorded tokens."""
        self.context = context
        self.writer = w
        self.pointers = pointers
        self.stride = stride
        self.tile = ReplayTile(context)

    def expect(self) -> None:
        """Look what waits: how many tokens, and where they lie."""
        w, counts = self.writer, _counts(self.context)
        slot = "tl.maximum(slot, 0).to(tl.int64)"
        at = f"{self.pointers['pending']} + {slot} * {pending_counts(self.context)}"
        w.let("waiting", f"{at} + head * {counts} + value_tile * (B_V // {ROWS})")
        w.let("steps", "tl.load(waiting, mask=slot >= 0, other=0)")
        w.let("tokens", f"{self.pointers['recorded']} + {slot} * {self.stride}")

    def load(self, rows: str) -> None:
        """The tile as it lies in the pool, in float32; its rows begin at `rows`, a vector."""
        w, mask = self.writer, self.tile.mask(KEY)
        w.let(KEY, self.tile.keys())
        w.let("tile_at", self.tile.at(rows))
        load = f"tl.load(tile_at{mask}{', other=0.0' if mask else ''})"
        w.let("state_tile", f"{load}{self._widened}")

    def advance(self) -> None:
        """The tile after the tokens that wait, rounded as the pool holds it."""
        given = {"channels": "value", "value_head": "head", **self.pointers}
        names = [name for name, _ in emit_replay(self.context).arguments]
        call = f"replay({', '.join(given.get(name, name) for name in names)})"
        rounded = f"{call}.to({self.pointers['state']}.dtype.element_ty)"
        self.writer.let("state_tile", rounded if self._widened else call)

    def store(self) -> None:
        """The tile goes back to the pool; nothing waits for its rows from then on."""
        w, c = self.writer, self.context
        w.line(f"tl.store(tile_at, state_tile{self.tile.mask(KEY)})")
        w.comment("all threads have read the count, and see what was stored")
        w.line("tl.debug_barrier()")
        w.let("count_at", f"tl.arange(0, B_V // {ROWS})")
        inside = f", mask=count_at < {_counts(c)} - value_tile * (B_V // {ROWS})"
        w.line(f"tl.store(waiting + count_at, 0{inside if c.shapes.d_v % c.schedule.b_v else ''})")

    @property
    def _widened(self) -> str:
        return "" if self.context.state_dtype == "fp32" else ".to(tl.float32)"


def load_advanced(tiles: Tiles, rows: str) -> bool:
    """Bring the rows of the state that begin at `rows` up to date, before or while they are loaded;
    whether `state_tile` has all their key channels then."""
    w, c = tiles.writer, tiles.context
    pointers = {x.name: w.arg(x.name, "*fp32") for x in step_inputs(c.plan)[1]}
    pointers["state"] = w.arg("state", "*" + c.state_dtype)
    pointers["pending"] = w.arg("pending", "*i32")
    pointers["recorded"] = w.arg("recorded", "*" + c.dtype)
    waiting = Waiting(c, w, pointers, w.arg("recorded_stride", "i64"))
    w.comment("tokens that were accepted in the round before")
    waiting.expect()
    if c.key_chunks > 1:
        with w.block("if steps > 0:"):
            waiting.load(rows)
            waiting.advance()
            waiting.store()
        return False
    waiting.load(rows)
    w.section("the committed state is what was loaded, after these tokens")
    waiting.advance()
    with w.block("if steps > 0:"):
        waiting.store()
    w.let("state_tile", waiting.tile.flat("state_tile"))
    return True
