"""The frame every verify kernel shares: node blocks, masks, loads of vectors and row scalars, expression emission.

A program handles one value head of one request. Nodes come in blocks; names carry the block number as a suffix when
there are several. Key tiles have nodes along their rows; value tiles have the orientation of the schedule.
"""

from __future__ import annotations

from dataclasses import dataclass

from boleir.codegen.emit.writer import Writer
from boleir.codegen.plan import Operand, Plan, Scalar
from boleir.codegen.request import DTYPES, Shapes
from boleir.codegen.rewrite import constant_value, is_constant, split_factors
from boleir.codegen.schedule import Schedule, blocks, padded
from boleir.functions import FUNCTIONS
from boleir.ir import Add, Call, Dim, Div, Dot, Expr, Input, Kind, Mul, Neg, Number, Per, Sub

LOG2_E = "1.4426950408889634"
LARGEST = "3.0e38"
"""Above this a number counts as not finite."""


@dataclass(frozen=True, slots=True)
class Context:
    """What all emission helpers look at."""

    plan: Plan
    shapes: Shapes
    schedule: Schedule

    @property
    def dims(self) -> dict[str, int]:
        """Values of `d_k` and `d_v`."""
        return {"d_k": self.shapes.d_k, "d_v": self.shapes.d_v}

    @property
    def blocks(self) -> int:
        """Node blocks per request."""
        return blocks(self.schedule, self.shapes)

    @property
    def dtype(self) -> str:
        """Triton's name of the vectors' format."""
        return DTYPES[self.shapes.dtype]

    @property
    def state_dtype(self) -> str:
        """Triton's name of the pool's format."""
        return DTYPES[self.shapes.state_dtype]

    @property
    def out_dtype(self) -> str:
        """Triton's name of the outputs' format."""
        return DTYPES[self.shapes.out_dtype or self.shapes.dtype]

    @property
    def watches_values(self) -> bool:
        """Whether kernels look for non-finite value entries themselves: with inline gates no earlier kernel has."""
        return self.schedule.gates == "inline"

    @property
    def scalars_needed(self) -> tuple[Scalar, ...]:
        """Row scalars that the system of the tree needs; guards of value vectors only where they are already there."""
        scalars = self.plan.scalars
        return tuple(s for s in scalars if s.watches is not Kind.VALUE) if self.watches_values else scalars

    @property
    def key_chunks(self) -> int:
        """Pieces in which the key dimension is walked."""
        return -(-self.shapes.d_k // self.schedule.b_k)

    def block(self, stem: str, number: int) -> str:
        """`stem` with the block number where there are several blocks."""
        return stem if self.blocks == 1 else f"{stem}_{number}"


class Tiles:
    """Emits loads and expressions for one kernel; remembers what has been loaded."""

    def __init__(self, context: Context, writer: Writer) -> None:
        self.context = context
        self.writer = writer
        self._known: dict[tuple[object, ...], str] = {}
        self.named: dict[tuple[int, int], str] = {}
        """Variables that hold row scalars already, by expression and block."""
        self.rows_ready = context.schedule.gates == "prepare"
        self.nodes_on_rows = context.schedule.orientation == "nodes"

    # -- frame -----------------------------------------------------------------------------------------------------

    def request(self, decode: str) -> None:
        """Lines that find the program's head and request; `decode` assigns `head` and `request`."""
        w = self.writer
        for text in decode.splitlines():
            w.line(text)
        w.let("key_head", "head // GROUP" if self.context.shapes.group > 1 else "head")
        cu = w.arg("cu_nodes", "*i32")
        w.let("start", f"tl.load({cu} + request)")
        w.let("count", f"tl.minimum(tl.load({cu} + request + 1) - start, MAX_NODES)")
        w.let("first", "start.to(tl.int64)")

    def node_block(self, b: int) -> None:
        """Node numbers, validity and row numbers of block `b`."""
        w, name = self.writer, self.context.block
        first = f"{b * self.context.schedule.node_block} + " if b else ""
        node = w.let(name("node", b), f"{first}tl.arange(0, NODE_BLOCK)")
        w.let(name("inside", b), f"{node} < count")

    def ancestors(self, b: int, word: int) -> str:
        """Ancestor word `word` of the nodes of block `b`, as the topology step wrote it."""
        w, c = self.writer, self.context
        key = ("ancestors", b, word)
        if key not in self._known:
            words = c.shapes.words
            pointer = w.arg("ancestors", "*i64")
            where = f"first * {words} + {word} + {c.block('node', b)} * {words}" if words > 1 else f"first + {c.block('node', b)}"
            name = c.block("word", b) + (f"_w{word}" if words > 1 else "")
            w.let(name, f"tl.load({pointer} + {where}, mask={c.block('inside', b)}, other=0)")
            self._known[key] = name
        return self._known[key]

    def path(self, b: int, word: int) -> str:
        """Like `ancestors`, without the nodes that have a non-finite input (after `scalars`)."""
        key = ("path", b, word)
        if key not in self._known:
            c, raw = self.context, self.ancestors(b, word)
            bad = [c.block("bad", a) for a in range(b + 1) if a * c.schedule.node_block // 64 == word]
            keep = f"{raw} & ~({' | '.join(bad)})" if bad else raw
            name = raw.replace("word", "path", 1)
            self._known[key] = self.writer.let(name, f"tl.where({c.block('finite', b)}, {keep}, 0)")
        return self._known[key]

    def half(self, word: str, high: bool) -> str:
        """One 32-bit half of a word: tests of single bits are cheaper on it."""
        key = ("half", word, high)
        if key not in self._known:
            shifted = f"({word} >> 32)" if high else word
            self._known[key] = self.writer.let(f"{word}_{'hi' if high else 'lo'}", f"{shifted}.to(tl.int32)")
        return self._known[key]

    def across(self, name: str) -> str:
        """A node vector (the nodes that are written) broadcast over a value tile."""
        return f"{name}[:, None]" if self.nodes_on_rows else f"{name}[None, :]"

    def along(self, name: str) -> str:
        """A value-channel vector broadcast over a value tile."""
        return f"{name}[None, :]" if self.nodes_on_rows else f"{name}[:, None]"

    def value_shape(self) -> str:
        """Shape of a value tile."""
        return "[NODE_BLOCK, B_V]" if self.nodes_on_rows else "[B_V, NODE_BLOCK]"

    def is_ancestor(self, b: int, a: int) -> str:
        """Mask of ancestor-or-self pairs: node of block `b` against ancestor in block `a`, non-finite nodes left out.

        Rows are ancestors when values stand on rows, nodes otherwise.
        """
        across, down = ("[:, None]", "[None, :]") if self.nodes_on_rows else ("[None, :]", "[:, None]")
        return self._bits(self.path(b, a * self.context.schedule.node_block // 64), a, across, down)

    def _bits(self, word: str, a: int, across: str, down: str) -> str:
        """Test the bits of the nodes of block `a` in a vector of ancestor words."""
        c = self.context
        first, ancestor = a * c.schedule.node_block, f"{c.block('node', a)}{down}"
        if c.schedule.node_block <= 32:
            bits = f"{self.half(word, first % 64 >= 32)}{across}"
        else:
            low, high = self.half(word, False), self.half(word, True)
            bits = f"tl.where(({ancestor} & 32) == 0, {low}{across}, {high}{across})"
        return f"(({bits} >> ({ancestor} & 31)) & 1) != 0"

    def prefetch(self, kinds: frozenset[Kind]) -> None:
        """Issue the loads of token inputs of `kinds` together: one latency instead of one for each first use."""
        c = self.context
        for b in range(c.blocks):
            for item in c.plan.tokens:
                if item.kind not in kinds:
                    continue
                if item.kind is Kind.KEY:
                    for chunk in range(c.key_chunks):
                        self.raw_key(item, b, chunk)
                elif item.kind is Kind.VALUE:
                    self.value(item, b)
                else:
                    self.head(item, b)

    # -- row scalars -----------------------------------------------------------------------------------------------

    def scalars(self, b: int) -> None:
        """All row scalars of block `b`, and the bits of the nodes where one is not finite."""
        c, w = self.context, self.writer
        needed = c.scalars_needed
        names = [c.block(s.name, b) for s in needed]
        for s, name in zip(needed, names, strict=True):
            w.let(name, self._row(s, b) if self.rows_ready else self.per_node(s.expr, b))
            self.named[s.expr.key, b] = name
        if c.plan.log_decay is not None:
            if self.rows_ready:
                w.let(c.block("c", b), self.plane(len(c.plan.scalars), "head", b))
                if not self._all_after_decay():
                    w.let(c.block("g", b), self.plane(len(c.plan.scalars) + 1, "head", b))
            else:
                w.let(c.block("g", b), self.per_node(c.plan.log_decay, b))
                self._path_sum(b)
            names.append(c.block("c", b))
            w.let(c.block("c2", b), f"{c.block('c', b)} * {LOG2_E}")
        tests = [f"(tl.abs({name}) < {LARGEST})" for name in names] or [f"({c.block('node', b)} >= 0)"]
        ok = w.let(c.block("finite", b), " & ".join(tests))
        shift = f"({c.block('node', b)} & 63).to(tl.int64)"
        w.let(c.block("bad", b), f"tl.sum(tl.where({ok}, 0, 1).to(tl.int64) << {shift}, axis=0)")

    def _all_after_decay(self) -> bool:
        plan = self.context.plan
        return plan.query_after_decay and all(pair.after_decay for pair in plan.pairs)

    def _row(self, scalar: Scalar, b: int) -> str:
        index = [s.name for s in self.context.plan.scalars].index(scalar.name)
        return self.plane(index, "key_head" if scalar.per_key_head else "head", b)

    def plane_at(self, index: int, head: str, b: int) -> str:
        """Address of the row scalars of a block in plane `index` of the row buffer."""
        w = self.writer
        base = f"{index} * VALUE_HEADS + {head}" if index else head
        key = ("plane", index, head)
        if key not in self._known:
            rows, capacity = w.arg("rows", "*fp32"), w.arg("capacity", "i64")
            self._known[key] = w.temp(f"{rows} + ({base}) * {capacity} + first", "plane")
        return f"{self._known[key]} + {self.context.block('node', b)}"

    def plane(self, index: int, head: str, b: int) -> str:
        """The row scalars of a block from plane `index` of the row buffer."""
        return f"tl.load({self.plane_at(index, head, b)}, mask={self.context.block('inside', b)}, other=0.0)"

    def _path_sum(self, b: int) -> None:
        """c: log-decays summed over the path, the node's own included (masked before the sum).

        Ancestors stand on rows whatever the orientation: sums over rows stay within a thread.
        """
        c, w = self.context, self.writer
        parts = []
        for a in range(b + 1):
            mask = self._bits(self.ancestors(b, a * c.schedule.node_block // 64), a, "[None, :]", "[:, None]")
            parts.append(f"tl.sum(tl.where({mask}, {c.block('g', a)}[:, None], 0.0), axis=0)")
        w.let(c.block("c", b), " + ".join(parts))

    def per_node(self, expr: Expr, b: int) -> str:
        """A HEAD expression as a vector over the nodes of block `b`, zero outside (parameters alone give no vector)."""
        return f"tl.where({self.context.block('inside', b)}, {self.head(expr, b)}, 0.0)"

    def head(self, expr: Expr, b: int) -> str:
        """A HEAD expression for the nodes of block `b`, as an expression of names."""
        if is_constant(expr):
            return repr(constant_value(expr, self.context.dims))
        key = ("head", expr.key, b)
        if key not in self._known:
            self._known[key] = self.writer.temp(self._head(expr, b), "h")
        return self._known[key]

    def _head(self, expr: Expr, b: int) -> str:
        w, c = self.writer, self.context
        match expr:
            case Input(name=name, per=Per.TOKEN):
                at = f"{self.rows_of(name, 'head')} + {c.block('node', b)} * {self.stride(name)}"
                return f"tl.load({at}, mask={c.block('inside', b)}, other=0.0).to(tl.float32)"
            case Input(name=name):
                return f"tl.load({w.arg(name, '*fp32')} + head)"
            case Dot(left=left, right=right) if left.kind is Kind.KEY:
                return self._key_dot(left, right, b)
            case Dot(left=left, right=right):
                return f"tl.sum({self.full_value(left, b)} * {self.full_value(right, b)}, axis=1)"
            case Call(fn="sum", arg=arg) if arg.kind is Kind.KEY:
                return " + ".join(f"tl.sum({self.key(arg, b, k)}, axis=1)" for k in range(c.key_chunks))
            case Call(fn="sum", arg=arg):
                return f"tl.sum({self.full_value(arg, b)}, axis=1)"
        return arithmetic(expr, lambda child: self.head(child, b), w)

    def _key_dot(self, left: Expr, right: Expr, b: int) -> str:
        parts = [
            f"tl.sum({self.key(left, b, k)} * {self.key(right, b, k)}, axis=1)" for k in range(self.context.key_chunks)
        ]
        return " + ".join(parts)

    # -- vectors ---------------------------------------------------------------------------------------------------

    def channels(self) -> None:
        """Channel numbers of every key chunk."""
        c, w = self.context, self.writer
        for k in range(c.key_chunks):
            first = f"{k * c.schedule.b_k} + " if k else ""
            w.let(self.key_name(k), f"{first}tl.arange(0, B_K)")

    def key_name(self, chunk: int) -> str:
        """Name of the channel numbers of a key chunk."""
        return "key" if self.context.key_chunks == 1 else f"key_c{chunk}"

    def _key_mask(self, b: int, chunk: int) -> str:
        c = self.context
        inside = f"{c.block('inside', b)}[:, None]"
        partial = (chunk + 1) * c.schedule.b_k > c.shapes.d_k
        return f"{inside} & ({self.key_name(chunk)} < D_K)[None, :]" if partial else inside

    def rows_of(self, name: str, channel: str) -> str:
        """Pointer to `channel` of the request's first row of a token input (64-bit arithmetic happens once, here)."""
        key = ("rows_of", name, channel)
        if key not in self._known:
            w = self.writer
            pointer, stride = w.arg(name, "*" + self.context.dtype), w.arg(f"{name}_stride", "i64")
            self._known[key] = w.let(f"{name}_rows", f"{pointer} + first * {stride} + {channel}")
        return self._known[key]

    def stride(self, name: str) -> str:
        """The token stride of an input in 32 bits: within one request offsets are small."""
        key = ("stride", name)
        if key not in self._known:
            stride = self.writer.arg(f"{name}_stride", "i64")
            self._known[key] = self.writer.let(f"{name}_step", f"{stride}.to(tl.int32)")
        return self._known[key]

    def _address(self, item: Input, b: int, heads: str, width: str) -> tuple[str, str]:
        """Pointer to the head's first row of a token vector (packed when it is mixed), and the offsets of a block's rows."""
        w, c = self.writer, self.context
        mixed = c.plan.is_mixed(item)
        node = c.block("node", b)
        if mixed is None:
            return self.rows_of(item.name, f"{heads} * {width}"), f"{node} * {self.stride(item.name)}"
        key = ("rows_of", item.name)
        if key not in self._known:
            pointer = w.arg("mixed", "*" + c.dtype)
            offset = f"{mixed.offset} + " if mixed.offset else ""
            self._known[key] = w.let(f"{item.hint}_rows", f"{pointer} + first * CONV_CHANNELS + {offset}{heads} * {width}")
        return self._known[key], f"{node} * CONV_CHANNELS"

    def raw_key(self, item: Input, b: int, chunk: int) -> str:
        """A key tile [nodes, key chunk] as it lies in memory."""
        known = ("raw", item.key, b, chunk)
        if known not in self._known:
            c, w = self.context, self.writer
            pointer, offset = self._address(item, b, "key_head", "D_K")
            name = c.block(item.hint or item.name, b) + (f"_c{chunk}" if c.key_chunks > 1 else "") + "_tile"
            where = f"({offset})[:, None] + {self.key_name(chunk)}[None, :]"
            w.let(name, f"tl.load({pointer} + {where}, mask={self._key_mask(b, chunk)}, other=0.0)")
            self._known[known] = name
        return self._known[known]

    def key(self, expr: Expr, b: int, chunk: int) -> str:
        """A key-side expression as a float32 tile [nodes, key chunk]."""
        known = ("key", expr.key, b, chunk)
        if known in self._known:
            return self._known[known]
        w = self.writer
        match expr:
            case Input(per=Per.TOKEN):
                value = f"{self.raw_key(expr, b, chunk)}.to(tl.float32)"
            case Input(name=name):
                mask = f", mask={self.key_name(chunk)} < D_K, other=0.0"
                value = f"tl.load({w.arg(name, '*fp32')} + key_head * D_K + {self.key_name(chunk)}{mask})[None, :]"
            case _:
                value = arithmetic(expr, lambda child: self._in_key(child, b, chunk), w)
        self._known[known] = w.temp(value, "y")
        return self._known[known]

    def _in_key(self, child: Expr, b: int, chunk: int) -> str:
        if child.kind is Kind.HEAD:
            return self.weight(child, b, "[:, None]")
        return self.key(child, b, chunk)

    def weight(self, expr: Expr, b: int, broadcast: str) -> str:
        """A HEAD expression that multiplies a vector: constants as they are, scalars broadcast."""
        constant, names = 1.0, []
        for factor in split_factors(expr):
            if is_constant(factor):
                constant *= constant_value(factor, self.context.dims)
            else:
                names.append((self.named.get((factor.key, b)) or self.head(factor, b)) + broadcast)
        parts = ([repr(constant)] if constant != 1.0 or not names else []) + names
        return parts[0] if len(parts) == 1 else f"({' * '.join(parts)})"

    def full_value(self, expr: Expr, b: int) -> str:
        """A value-side expression over all d_v channels, [nodes, d_v], for reductions."""
        known = ("full", expr.key, b)
        if known in self._known:
            return self._known[known]
        w, c = self.writer, self.context
        match expr:
            case Input(per=Per.TOKEN):
                pointer, offset = self._address(expr, b, "head", "D_V")
                channel = f"tl.arange(0, {padded(c.shapes.d_v)})"
                mask = f"{c.block('inside', b)}[:, None] & ({channel} < D_V)[None, :]"
                value = f"tl.load({pointer} + ({offset})[:, None] + {channel}[None, :], mask={mask}, other=0.0).to(tl.float32)"
            case Input(name=name):
                channel = f"tl.arange(0, {padded(c.shapes.d_v)})"
                value = f"tl.load({w.arg(name, '*fp32')} + head * D_V + {channel}, mask={channel} < D_V, other=0.0)[None, :]"
            case _:
                value = arithmetic(
                    expr,
                    lambda x: self.weight(x, b, "[:, None]") if x.kind is Kind.HEAD else self.full_value(x, b),
                    w,
                )
        self._known[known] = w.temp(value, "z")
        return self._known[known]

    def value(self, expr: Expr, b: int) -> str:
        """A value-side expression as a float32 value tile."""
        known = ("value", expr.key, b)
        if known in self._known:
            return self._known[known]
        w, c = self.writer, self.context
        if is_constant(expr):
            return repr(constant_value(expr, c.dims))
        match expr:
            case Input(per=Per.TOKEN):
                return self._known.setdefault(known, self._value_tile(expr, b))
            case Input(name=name):
                value = self.along(f"tl.load({w.arg(name, '*fp32')} + head * D_V + value, mask=value < D_V, other=0.0)")
            case _:
                value = arithmetic(expr, lambda child: self._in_value(child, b), w)
        self._known[known] = w.temp(value, "z")
        return self._known[known]

    def finite_value(self, expr: Expr, b: int) -> str:
        """Like `value`, entries that are not finite replaced by zero: it will be summed over nodes."""
        known = ("finite", expr.key, b)
        if known not in self._known:
            tile = self.value(expr, b)
            self._known[known] = tile if is_constant(expr) else self.absorb(self.writer.temp(tile, "z"), b)
        return self._known[known]

    def absorb(self, tile: str, b: int) -> str:
        """Replace what is not finite in a value tile by zero; where no guard has seen it, mark its nodes as bad.

        The marking is a branch rarely taken.
        """
        w, c = self.writer, self.context
        if not c.watches_values:
            return w.let(tile, f"tl.where(tl.abs({tile}) < {LARGEST}, {tile}, 0.0)")
        lost = w.temp(f"tl.sum(tl.sum({tile} * 0.0, axis=1), axis=0)", "lost")
        ok = w.let(f"{tile}_ok", f"tl.abs({tile}) < {LARGEST}")
        w.let(tile, f"tl.where({ok}, {tile}, 0.0)")
        with w.block(f"if {lost} != 0.0:"):
            axis = 1 if self.nodes_on_rows else 0
            bits = f"(1 - tl.min(tl.where({ok}, 1, 0), axis={axis})).to(tl.int64) << ({c.block('node', b)} & 63).to(tl.int64)"
            w.let(c.block("bad", b), f"{c.block('bad', b)} | tl.sum({bits}, axis=0)")
        return tile

    def _in_value(self, child: Expr, b: int) -> str:
        if child.kind is Kind.HEAD:
            return self.weight(child, b, "[:, None]" if self.nodes_on_rows else "[None, :]")
        return self.value(child, b)

    def prefetch_value(self, item: Input, b: int) -> str:
        """Load a value tile early; `value` uses it."""
        known = ("early", item.key, b)
        if known not in self._known:
            pointer, offset = self._address(item, b, "head", "D_V")
            name = self.context.block(item.hint or item.name, b) + "_tile"
            where = f"{self.across(f'({offset})')} + {self.along('value')}"
            load = f"tl.load({pointer} + {where}, mask={self.value_mask(b)}, other=0.0).to(tl.float32)"
            self._known[known] = self.writer.let(name, load)
        return self._known[known]

    def _value_tile(self, item: Input, b: int) -> str:
        """A value tile as loaded, in float32."""
        key = ("early", item.key, b)
        if key not in self._known:
            pointer, offset = self._address(item, b, "head", "D_V")
            name = self.context.block(item.hint or item.name, b) + "_tile"
            where = f"{self.across(f'({offset})')} + {self.along('value')}"
            load = f"tl.load({pointer} + {where}, mask={self.value_mask(b)}, other=0.0).to(tl.float32)"
            self._known[key] = self.writer.let(name, load)
        return self._known[key]

    def value_mask(self, b: int) -> str:
        """Mask of the entries of a value tile that exist."""
        c = self.context
        inside = self.across(c.block("inside", b))
        return f"{inside} & {self.along('(value < D_V)')}" if c.shapes.d_v % c.schedule.b_v else inside

    def scale(self, operand: Operand, b: int) -> str | None:
        """Product of an operand's constant and row scalars as one node vector; None when it is one."""
        names = [self.context.block(name, b) for name in operand.scalars]
        if operand.constant != 1.0:
            names.insert(0, repr(operand.constant))
        if not names:
            return None
        known = ("scale", operand.constant, operand.scalars, b)
        if known not in self._known:
            if not operand.scalars:
                self._known[known] = self.writer.temp(f"tl.full([NODE_BLOCK], {names[0]}, tl.float32)", "scale")
            elif len(names) == 1:
                self._known[known] = names[0]
            else:
                self._known[known] = self.writer.temp(" * ".join(names), "scale")
        return self._known[known]


def arithmetic(expr: Expr, child: object, writer: Writer) -> str:
    """Spell an elementwise node over the spellings of its operands (`child` maps an operand to its spelling)."""
    spell = child
    assert callable(spell)
    match expr:
        case Number(value=value):
            return repr(float(value))
        case Dim():
            raise TypeError("dimensions are constants")
        case Neg(arg=arg):
            return f"(-{spell(arg)})"
        case Add(left=left, right=right):
            return f"({spell(left)} + {spell(right)})"
        case Sub(left=left, right=right):
            return f"({spell(left)} - {spell(right)})"
        case Mul(left=left, right=right):
            return f"({spell(left)} * {spell(right)})"
        case Div(left=left, right=right):
            return f"({spell(left)} / {spell(right)})"
        case Call(fn=fn, arg=arg):
            return FUNCTIONS[fn].to_triton(writer.temp(spell(arg), "x"), axis=1)
    raise TypeError(f"{type(expr).__name__} is not elementwise")
