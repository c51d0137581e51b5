"""The commit kernel: the accepted path of every request, all layers, one launch.

State programs walk the path from the committed state and the inputs of its nodes: the recurrence
itself, token by token, with the tile in registers (`replay`), or with the unknowns that
verification stored (`factors`). Window programs move the convolution window to the end of the path.
Either can also write the state at one interior node of the path (the track node) to a second slot.
Pointers come from a table, one row per layer.
"""

from __future__ import annotations

from collections.abc import Callable

from boleir.codegen.emit.context import Context
from boleir.codegen.emit.text import arithmetic
from boleir.codegen.emit.writer import EmittedKernel, Writer
from boleir.codegen.plan import Mixed, Operand
from boleir.codegen.rewrite import constant_value, is_constant
from boleir.codegen.schedule import padded
from boleir.ir import Call, Dot, Expr, Input, Kind, Per

CONV_TILE = 256
"""Channels per window program."""


def commit_tile(context: Context) -> int:
    """Value columns per state program."""
    return min(32, padded(context.shapes.d_v))


def table_columns(context: Context) -> tuple[str, ...]:
    """Names of the pointers in a row of the table."""
    plan = context.plan
    columns = ["state"]
    columns += [x.name for x in plan.tokens if plan.is_mixed(x) is None]
    columns += ["mixed"] if plan.mixed else []
    columns += [x.name for x in plan.parameters]
    if plan.mixed:
        columns += [f"{m.source.name}" for m in plan.mixed if m.source.name not in columns] + [
            "window"
        ]
    if context.schedule.commit == "factors" and plan.pairs:
        columns.append("unknowns")
    return tuple(columns)


def window_tiles(context: Context) -> int:
    """Window programs per request and layer."""
    return sum(-(-m.channels // CONV_TILE) for m in context.plan.mixed)


def emit_commit(context: Context) -> EmittedKernel:
    """The commit kernel."""
    w = Writer()
    _Commit(context, w).emit()
    shapes = context.shapes
    states = -(-shapes.d_v // commit_tile(context)) * shapes.value_heads
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
        self.columns = table_columns(context)
        self.known: dict[tuple[object, ...], str] = {}
        self.rows: dict[str, str] = {}

    def emit(self) -> None:
        """The whole body."""
        w, shapes = self.writer, self.context.shapes
        tile = commit_tile(self.context)
        states = -(-shapes.d_v // tile) * shapes.value_heads
        units = states + window_tiles(self.context)
        w.arg("table", "*i64")
        w.arg("batch", "i32")
        w.let("program", "tl.program_id(0)")
        w.let("unit", f"program % {units}")
        w.let("request", f"program // {units} % batch")
        w.let("layer", f"program // ({units} * batch)")
        self._path()
        if window_tiles(self.context):
            with w.block(f"if (unit < {states}) & valid:"):
                self._state(tile)
            with w.block(f"if (unit >= {states}) & valid:"):
                self._window(states)
        else:
            with w.block("if valid:"):
                self._state(tile)

    def _pointer(self, name: str, dtype: str) -> str:
        kind = {"bf16": "bfloat16", "fp16": "float16", "fp32": "float32"}[dtype]
        known = ("pointer", name)
        if known not in self.known:
            entry = f"tl.load(table + layer * {len(self.columns)} + {self.columns.index(name)})"
            value = f"tl.multiple_of({entry}.to(tl.pointer_type(tl.{kind})), 16)"
            self.known[known] = self.writer.let(f"{name}_at", value)
        return self.known[known]

    def _path(self) -> None:
        """Which nodes lie on the accepted path; none for a padding row or an accepted node out of
        range."""
        w, words = self.writer, self.context.shapes.words
        w.let("start", f"tl.load({w.arg('cu_nodes', '*i32')} + request)")
        w.let("count", "tl.minimum(tl.load(cu_nodes + request + 1) - start, MAX_NODES)")
        w.let("slot", f"tl.load({w.arg('slots', '*i32')} + request)")
        w.let("target_slot", f"tl.load({w.arg('target_slots', '*i32')} + request)")
        w.let("track_slot", f"tl.load({w.arg('track_slots', '*i32')} + request)")
        w.let("track_node", f"tl.load({w.arg('track_nodes', '*i32')} + request)")
        w.let("accepted_node", f"tl.load({w.arg('accepted', '*i32')} + request)")
        w.let("first", "start.to(tl.int64)")
        w.let(
            "valid",
            "(accepted_node >= 0) & (accepted_node < count) & (slot >= 0) & (target_slot >= 0)",
        )
        w.let("last", "first + tl.where(valid, accepted_node, 0)")
        for word in range(words):
            at = f"last * {words} + {word}" if words > 1 else "last"
            load = f"tl.load({w.arg('ancestors', '*i64')} + {at}, mask=valid, other=0)"
            w.let(f"path_{word}", load)

    def _next_node(self) -> None:
        """`current` becomes the first node left on the path, which loses it: words hold nodes in
        path order."""
        w, words = self.writer, self.context.shapes.words
        index, before = "0", []
        for word in range(words):
            lowest = f"(path_{word} & -path_{word})"
            # a power of two is exact in float32: its exponent is the number of the bit
            exponent = f"(((tl.abs({lowest}.to(tl.float32))).to(tl.int32, bitcast=True) >> 23) - 127 + {64 * word})"
            w.let(f"here_{word}", " & ".join([f"(path_{word} != 0)", *before]))
            before.append(f"(path_{word} == 0)")
            index = f"tl.where(here_{word}, {exponent}, {index})"
        w.let("current", index)
        for word in range(words):
            w.let(
                f"path_{word}",
                f"tl.where(here_{word}, path_{word} & (path_{word} - 1), path_{word})",
            )

    def _left(self) -> str:
        """Whether nodes are left on the path."""
        return f"({' | '.join(f'path_{word}' for word in range(self.context.shapes.words))}) != 0"

    # -- state -----------------------------------------------------------------------------------------------------------

    def _state(self, tile: int) -> None:
        w, shapes = self.writer, self.context.shapes
        tiles = -(-shapes.d_v // tile)
        w.let("head", f"unit // {tiles}")
        w.let("key_head", "head // GROUP" if shapes.group > 1 else "head")
        w.let("value", f"unit % {tiles} * {tile} + tl.arange(0, {tile})")
        w.let("key", f"tl.arange(0, {padded(shapes.d_k)})")
        tests = ["(value < D_V)[:, None]"] * (shapes.d_v % tile != 0)
        tests += ["(key < D_K)[None, :]"] * (padded(shapes.d_k) != shapes.d_k)
        mask = f", mask={' & '.join(tests)}" if tests else ""
        pool = self._pointer("state", self.context.state_dtype)
        stride = w.arg("state_stride", "i64")
        w.let("cell", "(head * D_V + value)[:, None] * D_K + key[None, :]")
        other = ", other=0.0" if mask else ""
        w.let(
            "tile",
            f"tl.load({pool} + slot.to(tl.int64) * {stride} + cell{mask}{other}).to(tl.float32)",
        )
        # pointers and per-head parameters are loaded once, outside the loop
        for item in self.context.plan.tokens:
            mixed = self.context.plan.is_mixed(item)
            self._pointer("mixed" if mixed else item.name, self.context.dtype)
        for parameter in self.context.plan.parameters:
            self._leaf_parameter(parameter)
        if "unknowns" in self.columns:
            self._pointer("unknowns", "fp32")
        store = f"cell, tile.to({pool}.dtype.element_ty){mask}"
        self._walk(f"tl.store({pool} + track_slot.to(tl.int64) * {stride} + {store})")
        w.line(f"tl.store({pool} + target_slot.to(tl.int64) * {stride} + {store})")

    def _walk(self, track: str) -> None:
        """The loop over the path; the rows of the next node are on their way while a node is worked
        on."""
        w = self.writer
        body = self._body()
        self._next_node()
        w.let("row", "first + current")
        for name, load in self.rows.items():
            w.let(f"{name}_now", load)
        w.let("going", "current >= 0")
        with w.block("while going:"):
            w.let("here", "current")
            w.let("going", self._left())
            self._next_node()
            w.let("row", "first + current")
            for name, load in self.rows.items():
                w.let(f"{name}_next", load)
            w.lines += body
            with w.block("if (here == track_node) & (track_slot >= 0):"):
                w.line(track)
            for name in self.rows:
                w.let(f"{name}_now", f"{name}_next")

    def _body(self) -> list[str]:
        """Lines of one step, written apart: they decide which rows a node needs."""
        w, start = self.writer, len(self.writer.lines)
        with w.block("while going:"):
            self._step()
        body = w.lines[start + 1 :]
        del w.lines[start:]
        return body

    def _row_of(self, name: str, load: str) -> str:
        """A row of the current node, loaded one step ahead."""
        self.rows[name] = load
        return f"{name}_now"

    def _step(self) -> None:
        """One token: the unknowns, then the update of the tile."""
        plan, w = self.context.plan, self.writer
        stored = "unknowns" in self.columns
        gate = None
        if plan.log_decay is not None:
            gate = w.let("gate", f"tl.exp({self._head(plan.log_decay)})")
        unknowns = []
        for p, pair in enumerate(plan.pairs):
            name = f"u{p}" if len(plan.pairs) > 1 else "u"
            if stored:
                plane = f"{p} * {w.arg('capacity', 'i64')} + row" if p else "row"
                at = f"({plane}) * (VALUE_HEADS * D_V) + head * D_V + value"
                w.let(
                    name,
                    self._row_of(name, f"tl.load(unknowns_at + {at}, mask=value < D_V, other=0.0)"),
                )
            else:
                self._unknown(name, p, gate, unknowns)
            unknowns.append(name)
        terms = [f"tile * {gate}" if gate else "tile"]
        terms += [
            f"{u}[:, None] * {self._operand(pair.write)}[None, :]"
            for u, pair in zip(unknowns, plan.pairs, strict=True)
        ]
        terms += [
            f"{self._value(x.value)}[:, None] * {self._operand(x.key)}[None, :]"
            for x in plan.writes
        ]
        w.let("tile", " + ".join(terms))

    def _unknown(self, name: str, p: int, gate: str | None, earlier: list[str]) -> None:
        plan, w = self.context.plan, self.writer
        pair = plan.pairs[p]
        read = f"tl.sum(tile * {self._operand(pair.erase)}[None, :], axis=1)"
        factors = [gate] if gate and pair.after_decay else []
        factors += [self._value(pair.gain)] if pair.gain is not None else []
        value = f"{self._value(pair.target)} - {' * '.join([*factors, read])}"
        for weight, u in zip(pair.coupling, earlier, strict=True):
            if weight is not None:
                value += f" - {self._head(plan.scalar(weight).expr)} * {u}"
        w.let(name, value)

    # -- expressions of one token -------------------------------------------------------------------------------------------

    def _operand(self, operand: Operand) -> str:
        known = ("operand", operand.constant, operand.scalars, operand.base.key)
        if known not in self.known:
            factors = [repr(operand.constant)] if operand.constant != 1.0 else []
            factors += [self._head(self.context.plan.scalar(name).expr) for name in operand.scalars]
            base = self._vector(operand.base)
            self.known[known] = (
                self.writer.temp(" * ".join([*factors, base]), "k") if factors else base
            )
        return self.known[known]

    def _leaf_parameter(self, item: Input) -> str:
        known = ("parameter", item.key)
        if known not in self.known:
            pointer = self._pointer(item.name, "fp32")
            at, mask = {
                Kind.HEAD: ("head", ""),
                Kind.KEY: ("key_head * D_K + key", ", mask=key < D_K, other=0.0"),
                Kind.VALUE: ("head * D_V + value", ", mask=value < D_V, other=0.0"),
            }[item.kind]
            self.known[known] = self.writer.let(
                f"{item.name}_row", f"tl.load({pointer} + {at}{mask})"
            )
        return self.known[known]

    def _head(self, expr: Expr) -> str:
        return self._spelled("head", expr, self._head_node)

    def _head_node(self, expr: Expr) -> str:
        match expr:
            case Input(per=Per.TOKEN):
                load = f"tl.load({self._row(expr, 'head')})"
                return f"{self._row_of(expr.name, load)}.to(tl.float32)"
            case Input():
                return self._leaf_parameter(expr)
            case Dot(left=left, right=right):
                spell = self._vector if left.kind is Kind.KEY else self._full_value
                return f"tl.sum({spell(left)} * {spell(right)}, axis=0)"
            case Call(fn="sum", arg=arg):
                spell = self._vector if arg.kind is Kind.KEY else self._full_value
                return f"tl.sum({spell(arg)}, axis=0)"
        return arithmetic(expr, self._head, self.writer)

    def _vector(self, expr: Expr) -> str:
        """A key-side vector [d_k]."""
        return self._spelled(
            "key",
            expr,
            lambda node: self._vector_node(node, self._vector, "key_head", "key", "D_K"),
        )

    def _value(self, expr: Expr) -> str:
        """A value-side vector [value tile]."""
        return self._spelled(
            "value", expr, lambda node: self._vector_node(node, self._value, "head", "value", "D_V")
        )

    def _full_value(self, expr: Expr) -> str:
        """A value-side vector [d_v], for reductions."""
        every = f"tl.arange(0, {padded(self.context.shapes.d_v)})"
        return self._spelled(
            "full",
            expr,
            lambda node: self._vector_node(node, self._full_value, "head", every, "D_V"),
        )

    def _vector_node(
        self, expr: Expr, spell: Callable[[Expr], str], heads: str, channel: str, width: str
    ) -> str:
        match expr:
            case Input(per=Per.TOKEN):
                at = f"{self._row(expr, f'{heads} * {width}')} + {channel}"
                load = f"tl.load({at}, mask={channel} < {width}, other=0.0)"
                name = (expr.hint or expr.name) + ("" if channel in ("key", "value") else "_all")
                return f"{self._row_of(name, load)}.to(tl.float32)"
            case Input() if channel in ("key", "value"):
                return self._leaf_parameter(expr)
            case Input(name=name):
                at = f"{self._pointer(name, 'fp32')} + {heads} * {width} + {channel}"
                return f"tl.load({at}, mask={channel} < {width}, other=0.0)"
        return arithmetic(
            expr, lambda x: self._head(x) if x.kind is Kind.HEAD else spell(x), self.writer
        )

    def _spelled(self, space: str, expr: Expr, node: Callable[[Expr], str]) -> str:
        if is_constant(expr):
            return repr(constant_value(expr, self.context.dims))
        known = (space, expr.key)
        if known not in self.known:
            spelled = node(expr)
            self.known[known] = (
                spelled if spelled.endswith("_row") else self.writer.temp(spelled, space[0])
            )
        return self.known[known]

    def _row(self, item: Input, offset: str) -> str:
        mixed = self.context.plan.is_mixed(item)
        if mixed is not None:
            first = f"{mixed.offset} + " if mixed.offset else ""
            return f"mixed_at + row * CONV_CHANNELS + {first}{offset}"
        return f"{item.name}_at + row * {self.writer.arg(f'{item.name}_stride', 'i64')} + {offset}"

    # -- window --------------------------------------------------------------------------------------------------------------

    def _window(self, first: int) -> None:
        w, plan = self.writer, self.context.plan
        window = self._pointer("window", self.context.dtype)
        stride = w.arg("window_stride", "i64")
        w.arg("near", "*i32")
        words = self.context.shapes.words
        w.let("tracked", "(track_slot >= 0) & (track_node >= 0) & (track_node < count)")
        w.let("bit", "tl.where(tracked, track_node, 0)")
        at = f"last * {words} + bit // 64" if words > 1 else "last"
        w.let(
            "tracked",
            f"tracked & (((tl.load(ancestors + {at}) >> (bit & 63).to(tl.int64)) & 1) != 0)",
        )
        for m in plan.mixed:
            tiles = -(-m.channels // CONV_TILE)
            with w.block(f"if (unit >= {first}) & (unit < {first + tiles}):"):
                w.comment(f"window of {m.source.name}")
                w.let("column", f"(unit - {first}) * {CONV_TILE} + tl.arange(0, {CONV_TILE})")
                w.let("live", f"column < {m.channels}")
                w.let("place", f"({m.offset} + column) * {m.width - 1}")
                source = self._source(m.source.name)
                w.let("old", f"{window} + slot.to(tl.int64) * {stride} + place")
                for goal in ("track", "target"):
                    w.let("end", "accepted_node" if goal == "target" else "track_node")
                    self._window_values(m, source)
                    with w.block("if end >= 0:" if goal == "target" else "if tracked:"):
                        w.let("new", f"{window} + {goal}_slot.to(tl.int64) * {stride} + place")
                        for back in range(m.width - 1):
                            w.line(f"tl.store(new + {m.width - 2 - back}, entry_{back}, mask=live)")
            first += tiles

    def _source(self, name: str) -> str:
        stride = self.writer.arg(f"{name}_stride", "i64")
        known = ("pointer", name)
        self.known.pop(known, None)  # each branch loads the pointer for itself
        pointer = self._pointer(name, self.context.dtype)
        self.known.pop(known, None)
        return f"{pointer} + (start.to(tl.int64) + {{node}}) * {stride} + column"

    def _window_values(self, m: Mixed, source: str) -> None:
        """entry_0 .. entry_{width-2}: the newest entries, `end` itself first."""
        w, width = self.writer, m.width
        conv = self.context.plan.conv_width - 1
        w.let("end_row", "start.to(tl.int64) + tl.minimum(tl.maximum(end, 0), count - 1)")
        for back in range(width - 1):
            if back == 0:
                w.let("back_0", "tl.minimum(tl.maximum(end, 0), count - 1)")
            else:
                w.let(f"back_{back}", f"tl.load(near + end_row * {conv} + {back - 1})")
            inside = f"back_{back} >= 0"
            old = f"(back_{back} < 0) & (back_{back} >= -{width - 1})"
            w.let("inside", f"column < tl.where({inside}, {m.channels}, 0)")
            w.let("kept", f"column < tl.where({old}, {m.channels}, 0)")
            w.let(
                f"entry_{back}",
                f"tl.load({source.format(node=f'back_{back}')}, mask=inside, other=0.0)",
            )
            w.let("moved", f"tl.load(old + {width - 1} + back_{back}, mask=kept, other=0.0)")
            w.let(f"entry_{back}", f"tl.where(inside, entry_{back}, moved)")
