"""The commit kernel: the accepted path of every request, all layers, one launch.

State programs walk the path from the committed state and the inputs of its nodes: the recurrence
itself, token by token, with the tile in registers (`replay`), or with the unknowns that
verification stored (`factors`). Window programs move the convolution window to the end of the path.
Either can also write the state at one interior node of the path (the track node) to a second slot.
Pointers come from a table, one row per layer.
"""

from __future__ import annotations

from boleir.codegen.emit.commit_table import pointer, table_columns
from boleir.codegen.emit.commit_token import Token
from boleir.codegen.emit.commit_window import emit_windows, window_tiles
from boleir.codegen.emit.context import Context, place, unknown_place
from boleir.codegen.emit.text import bracket, conjunction, product
from boleir.codegen.emit.writer import EmittedKernel, Writer
from boleir.codegen.schedule import padded
from boleir.ir import Kind


def commit_tile(context: Context) -> int:
    """Channels of the unknowns per state program: a read of the state sums over the others."""
    return min(32, padded(_unknown_channels(context)))


def _unknown_channels(context: Context) -> int:
    return context.shapes.width(context.plan.unknown)


def commit_programs(context: Context) -> int:
    """State programs per request and layer."""
    tiles = -(-_unknown_channels(context) // commit_tile(context))
    return tiles * context.shapes.value_heads


def emit_commit(context: Context) -> EmittedKernel:
    """The commit kernel."""
    w = Writer(context.inputs)
    _Commit(context, w).emit()
    states = commit_programs(context)
    return w.kernel(
        "commit",
        "Advance state and convolution window along the accepted path; all layers in one launch.",
        (f"{states + window_tiles(context)} * batch * layers", "1", "1"),
        warps=4,
    )


class _Commit:
    def __init__(self, context: Context, writer: Writer) -> None:
        self.context = context
        self.writer = writer
        self.token = Token(context, writer)
        self.columns = table_columns(context)

    def emit(self) -> None:
        """The whole body."""
        w, states = self.writer, commit_programs(self.context)
        units = states + window_tiles(self.context)
        w.arg("table", "*i64")
        batch = w.arg("batch", "i32")
        w.let("program", "tl.program_id(0)")
        w.let("unit", f"program % {units}")
        w.let("request", f"program // {units} % {batch}")
        w.let("layer", f"program // ({units} * {batch})")
        self._path()
        if window_tiles(self.context):
            with w.block(f"if (unit < {states}) & valid:"):
                self._state()
            with w.block(f"if (unit >= {states}) & valid:"):
                emit_windows(self.context, w, states)
        else:
            with w.block("if valid:"):
                self._state()

    def _path(self) -> None:
        """Which nodes lie on the accepted path; none for a padding row or an accepted node out of
        range."""
        w, words = self.writer, self.context.shapes.words
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

    def _next_node(self) -> None:
        """`current` becomes the first node left on the path, which loses it: words hold nodes in
        path order."""
        w, words = self.writer, self.context.shapes.words
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

    def _left(self) -> str:
        """Whether nodes are left on the path."""
        words = " | ".join(f"path_{word}" for word in range(self.context.shapes.words))
        return f"{bracket(words)} != 0"

    # -- state ------------------------------------------------------------------------------------

    def _state(self) -> None:
        w, c = self.writer, self.context
        tile = commit_tile(c)
        tiles = commit_programs(c) // c.shapes.value_heads
        w.let("head", f"unit // {tiles}")
        w.let("key_head", "head // GROUP" if c.shapes.group > 1 else "head")
        sizes = {"value": c.shapes.d_v, "key": c.shapes.d_k}
        for name, size in sizes.items():
            every = f"tl.arange(0, {padded(size)})"
            some = f"unit % {tiles} * {tile} + tl.arange(0, {tile})"
            w.let(name, some if (name == "key") is c.plan.right else every)
        tests = ["(value < D_V)[:, None]"] * self._partial(Kind.VALUE)
        tests += ["(key < D_K)[None, :]"] * self._partial(Kind.KEY)
        mask = f", mask={conjunction(*tests)}" if tests else ""
        pool, stride = pointer(c, w, "state", c.state_dtype), w.arg("state_stride", "i64")
        w.let("cell", "(head * D_V + value)[:, None] * D_K + key[None, :]")
        other = ", other=0.0" if mask else ""
        load = f"tl.load({pool} + slot.to(tl.int64) * {stride} + cell{mask}{other})"
        w.let("tile", f"{load}.to(tl.float32)")
        self._outside()
        store = f"cell, tile.to({pool}.dtype.element_ty){mask}"
        self._walk(f"tl.store({pool} + track_slot.to(tl.int64) * {stride} + {store})")
        w.line(f"tl.store({pool} + target_slot.to(tl.int64) * {stride} + {store})")

    def _partial(self, kind: Kind) -> bool:
        """Whether tiles reach beyond the last channel of a side."""
        c = self.context
        size = c.shapes.width(kind)
        return size % (commit_tile(c) if kind is c.plan.unknown else padded(size)) != 0

    def _outside(self) -> None:
        """Pointers and parameters are loaded once, outside the loop."""
        c, w = self.context, self.writer
        for item in c.plan.tokens:
            pointer(c, w, "mixed" if c.plan.is_mixed(item) else item.name, c.dtype)
        for parameter in c.plan.parameters:
            self.token.parameter(parameter)
        if "unknowns" in self.columns:
            pointer(c, w, "unknowns", "fp32")

    def _walk(self, track: str) -> None:
        """The loop over the path; the rows of the next node are on their way while a node is worked
        on."""
        w, token = self.writer, self.token
        body = self._body()
        self._next_node()
        w.let("row", "first + current")
        for name, load in token.rows.items():
            w.let(f"{name}_now", load)
        w.let("going", "current >= 0")
        with w.block("while going:"):
            w.let("here", "current")
            w.let("going", self._left())
            self._next_node()
            w.let("row", "first + current")
            for name, load in token.rows.items():
                w.let(f"{name}_next", load)
            w.comment("one token of the recurrence")
            w.lines += body
            with w.block("if (here == track_node) & (track_slot >= 0):"):
                w.line(track)
            for name in token.rows:
                w.let(f"{name}_now", f"{name}_next")

    def _body(self) -> list[str]:
        """Lines of one step, written apart: they decide which rows a node needs."""
        w, start = self.writer, len(self.writer.lines)
        with w.block("while going:"):
            self._step()
        body = w.lines[start + 1 :]
        del w.lines[start:]
        return body

    def _step(self) -> None:
        """One token: the unknowns, then the update of the tile."""
        plan, w, token = self.context.plan, self.writer, self.token
        gate = self._gate()
        unknowns: list[str] = []
        for p in range(len(plan.pairs)):
            unknowns.append(self._unknown(p, gate, unknowns))
        w.origin("new state", place(plan.form.recurrence.update))
        terms = [f"tile * {gate}" if gate else "tile"]
        for u, pair in zip(unknowns, plan.pairs, strict=True):
            terms.append(self._written(u, token.operand(pair.write, "write")))
        for write in plan.writes:
            vector, along = bracket(token.side(write.value)), token.operand(write.key, "write")
            terms.append(self._written(vector, along))
        w.let("tile", " + ".join(terms))

    def _written(self, vector: str, along: str) -> str:
        """What a token adds to the tile: a vector of the unknowns' side along one of the other."""
        value, key = (along, vector) if self.context.plan.right else (vector, along)
        return f"{value}[:, None] * {key}[None, :]"

    def _gate(self) -> str | None:
        """What multiplies the tile: a scalar, or a vector over channels; None for one."""
        plan, w, token = self.context.plan, self.writer, self.token
        if plan.log_decay is not None:
            w.origin("decay", place(plan.log_decay, plan.form.decay))
            return w.let("gate", f"tl.exp({token.head(plan.log_decay)})")
        decay = plan.key_decay if plan.value_decay is None else plan.value_decay
        if decay is None:
            return None
        w.origin("decay", place(decay))
        gate = token.side(decay)
        if self._partial(decay.kind):  # a factor of no channel may be anything
            live = "key < D_K" if decay.kind is Kind.KEY else "value < D_V"
            gate = w.let("gate", f"tl.where({live}, {gate}, 1.0)")
        return f"{gate}[None, :]" if decay.kind is Kind.KEY else f"{gate}[:, None]"

    def _unknown(self, p: int, gate: str | None, earlier: list[str]) -> str:
        """One unknown of the token: stored by verification, or read off the tile."""
        plan, w, token = self.context.plan, self.writer, self.token
        name, pair = f"u{p}" if len(plan.pairs) > 1 else "u", plan.pairs[p]
        if "unknowns" in self.columns:
            plane = f"({p} * {w.arg('capacity', 'i64')} + row)" if p else "row"
            at = f"{plane} * (VALUE_HEADS * D_V) + head * D_V + value"
            first = pointer(self.context, w, "unknowns", "fp32")
            return token.row(name, f"tl.load({first} + {at}, mask=value < D_V, other=0.0)")
        w.origin(name, unknown_place(plan.form, p))
        across, axis = ("[:, None]", 0) if plan.right else ("[None, :]", 1)
        seen = f"{token.operand(pair.erase, 'erase')}{across}"
        factors = [gate] if gate and pair.after_decay else []
        if factors and factors[0].endswith(across):
            seen, factors = f"({product(*factors, seen)})", []
        factors = [x.removesuffix("[:, None]").removesuffix("[None, :]") for x in factors]
        read = f"tl.sum(tile * {seen}, axis={axis})"
        factors += [token.side(pair.gain)] if pair.gain is not None else []
        text = f"{token.side(pair.target)} - {product(*factors, read)}"
        for weight, u in zip(pair.coupling, earlier, strict=True):
            if weight is not None:
                text += f" - {product(token.head(plan.scalar(weight).expr), u)}"
        return w.let(name, text)
