"""Vectors of tokens as tiles: key tiles [nodes, key chunk], value tiles in the schedule's
orientation.

A tile is loaded once and named after its input. Row scalars multiply rows after the products, so
that what lies in memory in 16 bits enters them exactly.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

from boleir.codegen.emit.context import LARGEST
from boleir.codegen.emit.frame import Frame
from boleir.codegen.emit.text import arithmetic, bracket, product
from boleir.codegen.naming import leaf
from boleir.codegen.rewrite import constant_value, is_constant, split_factors, vanishes
from boleir.codegen.schedule import padded
from boleir.ir import Expr, Input, Kind, Per, walk


class Vectors(Frame, ABC):
    """Loads and elementwise expressions of vectors."""

    @abstractmethod
    def scalar_factor(self, expr: Expr, b: int) -> str:
        """A HEAD expression for the nodes of block `b`, as text."""

    # -- addresses --------------------------------------------------------------------------------

    def channels(self) -> None:
        """Channel numbers of every key chunk."""
        c = self.context
        for k in range(c.key_chunks):
            first = f"{k * c.schedule.b_k} + " if k else ""
            self.writer.let(self.key_name(k), f"{first}tl.arange(0, B_K)")

    def key_name(self, chunk: int) -> str:
        """Name of the channel numbers of a key chunk."""
        return "key" if self.context.key_chunks == 1 else f"key_c{chunk}"

    def key_part(self, chunk: int) -> str:
        """What names of key tiles end in: the chunk, where there are several."""
        return f"_c{chunk}" if self.context.key_chunks > 1 else ""

    def is_partial(self, chunk: int) -> bool:
        """Whether a key chunk reaches beyond the last channel."""
        c = self.context
        return (chunk + 1) * c.schedule.b_k > c.shapes.d_k

    def key_mask(self, b: int, chunk: int, rows: str | None = None) -> str:
        """Mask of the entries of a key tile that exist, in the rows of a block or in others."""
        c = self.context
        inside = f"{rows or c.block('inside', b)}[:, None]"
        if not self.is_partial(chunk):
            return inside
        return f"{inside} & ({self.key_name(chunk)} < D_K)[None, :]"

    def rows_of(self, name: str, channel: str) -> str:
        """Pointer to `channel` of the request's first row of a token input (64-bit arithmetic
        happens once, here)."""
        key = ("rows_of", name, channel)
        if key not in self.memo:
            w = self.writer
            pointer = w.arg(name, "*" + self.context.dtype)
            stride = w.arg(f"{name}_stride", "i64")
            self.memo[key] = w.temp(f"{pointer} + first * {stride} + {channel}", f"{name}_rows")
        return self.memo[key]

    def stride(self, name: str) -> str:
        """The token stride of an input in 32 bits: within one request offsets are small."""
        key = ("stride", name)
        if key not in self.memo:
            stride = self.writer.arg(f"{name}_stride", "i64")
            self.memo[key] = self.writer.temp(f"{stride}.to(tl.int32)", f"{name}_step")
        return self.memo[key]

    def _address(
        self, item: Input, b: int, channel: str, node: str | None = None
    ) -> tuple[str, str]:
        """Pointer to the head's first row of a token vector (packed when it is mixed), and the
        offsets of a block's rows, or of other nodes of the request."""
        w, c = self.writer, self.context
        mixed, node = c.plan.is_mixed(item), node or c.block("node", b)
        if mixed is None:
            rows = self.rows_of(item.name, channel)
            return rows, f"{node} * {self.stride(item.name)}"
        key = ("rows_of", item.name)
        if key not in self.memo:
            pointer = w.arg(mixed.buffer, "*" + c.dtype)
            offset = f"{mixed.column} + " if mixed.column else ""
            rows = f"{pointer} + first * {mixed.row_size} + {offset}{channel}"
            self.memo[key] = w.temp(rows, f"{item.hint}_rows")
        return self.memo[key], f"{node} * {mixed.row_size}"

    # -- key side ---------------------------------------------------------------------------------

    def place_keys(self, *exprs: Expr) -> None:
        """Bind where the rows of the key inputs in `exprs` begin."""
        for item in walk(*exprs):
            if isinstance(item, Input) and item.kind is Kind.KEY and item.per is Per.TOKEN:
                self._address(item, 0, "key_head * D_K")

    def raw_key(self, item: Input, b: int, chunk: int) -> str:
        """A key tile [nodes, key chunk] as it lies in memory."""
        known = ("raw", item.key, b, chunk)
        if known not in self.memo:
            c, key = self.context, self.key_name(chunk)
            pointer, offset = self._address(item, b, "key_head * D_K")
            name = c.block(f"{item.hint or item.name}_tile{self.key_part(chunk)}", b)
            at = f"{pointer} + ({offset})[:, None] + {key}[None, :]"
            load = f"tl.load({at}, mask={self.key_mask(b, chunk)}, other=0.0)"
            self.memo[known] = self.writer.temp(load, name)
        return self.memo[known]

    def key(self, expr: Expr, b: int, chunk: int) -> str:
        """A key-side expression as a float32 tile [nodes, key chunk], zero beyond the last channel;
        a name."""
        if not self.is_partial(chunk) or vanishes(expr):
            return self._key(expr, b, chunk)
        known = ("live key", expr.key, b, chunk)
        if known not in self.memo:
            tile, live = self._key(expr, b, chunk), f"({self.key_name(chunk)} < D_K)[None, :]"
            name = self.context.block(f"{leaf(expr)}_live{self.key_part(chunk)}", b)
            self.memo[known] = self.writer.temp(f"tl.where({live}, {tile}, 0.0)", name)
        return self.memo[known]

    def _key(self, expr: Expr, b: int, chunk: int) -> str:
        """The same with whatever it is computed to beyond the last channel."""
        known = ("key", expr.key, b, chunk)
        if known in self.memo:
            return self.memo[known]
        w, c, key = self.writer, self.context, self.key_name(chunk)
        stem = f"{leaf(expr)}_f32" if isinstance(expr, Input) else f"scaled_{leaf(expr)}"
        stem += self.key_part(chunk)
        match expr:
            case Input(per=Per.TOKEN):
                raw = self.raw_key(expr, b, chunk)
                text = raw if c.dtype == "fp32" else f"{raw}.to(tl.float32)"
            case Input(name=name):
                at = f"{w.arg(name, '*fp32')} + key_head * D_K + {key}"
                text, stem = f"tl.load({at}, mask={key} < D_K, other=0.0)[None, :]", f"{name}_head"
            case _:
                text = arithmetic(expr, lambda child: self._in_key(child, b, chunk), w)
        self.memo[known] = text if text.isidentifier() else w.temp(text, c.block(stem, b))
        return self.memo[known]

    def _in_key(self, child: Expr, b: int, chunk: int) -> str:
        if child.kind is Kind.HEAD:
            return self.weight(child, b, "[:, None]")
        return self._key(child, b, chunk)

    def weight(self, expr: Expr, b: int, broadcast: str) -> str:
        """A HEAD expression that multiplies a vector: constants as they are, scalars broadcast."""
        constant, names = 1.0, []
        for factor in split_factors(expr):
            if is_constant(factor):
                constant *= constant_value(factor, self.context.dims)
            else:
                names.append(bracket(self.scalar_factor(factor, b)) + broadcast)
        return product(*([repr(constant)] if constant != 1.0 or not names else []), *names)

    # -- value side -------------------------------------------------------------------------------

    def full_value(self, expr: Expr, b: int) -> str:
        """A value-side expression over all d_v channels, [nodes, d_v], zero beyond the last, for
        reductions; a name."""
        d_v = self.context.shapes.d_v
        if padded(d_v) == d_v or vanishes(expr):
            return self._full_value(expr, b)
        known = ("live full", expr.key, b)
        if known not in self.memo:
            live = f"(tl.arange(0, {padded(d_v)}) < D_V)[None, :]"
            name = self.context.block(f"{leaf(expr)}_live", b)
            text = f"tl.where({live}, {self._full_value(expr, b)}, 0.0)"
            self.memo[known] = self.writer.temp(text, name)
        return self.memo[known]

    def _full_value(self, expr: Expr, b: int) -> str:
        """The same with whatever it is computed to beyond the last channel."""
        known = ("full", expr.key, b)
        if known in self.memo:
            return self.memo[known]
        w, c = self.writer, self.context
        channel = f"tl.arange(0, {padded(c.shapes.d_v)})"
        match expr:
            case Input(per=Per.TOKEN):
                pointer, offset = self._address(expr, b, "head * D_V")
                mask = f"{c.block('inside', b)}[:, None] & ({channel} < D_V)[None, :]"
                at = f"{pointer} + ({offset})[:, None] + {channel}[None, :]"
                text = f"tl.load({at}, mask={mask}, other=0.0).to(tl.float32)"
            case Input(name=name):
                at = f"{w.arg(name, '*fp32')} + head * D_V + {channel}"
                text = f"tl.load({at}, mask={channel} < D_V, other=0.0)[None, :]"
            case _:
                text = arithmetic(expr, lambda child: self._in_full_value(child, b), w)
        self.memo[known] = w.temp(text, c.block(f"{leaf(expr)}_full", b))
        return self.memo[known]

    def _in_full_value(self, child: Expr, b: int) -> str:
        if child.kind is Kind.HEAD:
            return self.weight(child, b, "[:, None]")
        return self._full_value(child, b)

    def value(self, expr: Expr, b: int) -> str:
        """A value-side expression as a float32 value tile; text that may be longer than a name."""
        known = ("value", expr.key, b)
        if known in self.memo:
            return self.memo[known]
        w, c = self.writer, self.context
        if is_constant(expr):
            return repr(constant_value(expr, c.dims))
        match expr:
            case Input(per=Per.TOKEN):
                text = self._widened(expr, b)
            case Input(name=name):
                at = f"{w.arg(name, '*fp32')} + head * D_V + value"
                load = f"tl.load({at}, mask=value < D_V, other=0.0)"
                text = w.temp(self.along(load), f"{name}_head")
            case _:
                text = arithmetic(expr, lambda child: self._in_value(child, b), w)
        self.memo[known] = text
        return text

    def raw_value(self, item: Input, b: int) -> str:
        """A value tile as it lies in memory."""
        known = ("raw value", item.key, b)
        if known not in self.memo:
            pointer, offset = self._address(item, b, "head * D_V")
            at = f"{pointer} + {self.across(offset)} + {self.along('value')}"
            load = f"tl.load({at}, mask={self.value_mask(b)}, other=0.0)"
            name = self.context.block(f"{item.hint or item.name}_tile", b)
            self.memo[known] = self.writer.temp(load, name)
        return self.memo[known]

    def _widened(self, item: Input, b: int) -> str:
        """The same in float32; apart, since the layout is changed where it is widened, and what is
        loaded in between need not wait for this tile."""
        raw = self.raw_value(item, b)
        if self.context.dtype == "fp32":
            return raw
        name = self.context.block(f"{item.hint or item.name}_f32", b)
        return self.writer.temp(f"{raw}.to(tl.float32)", name)

    def _in_value(self, child: Expr, b: int) -> str:
        if child.kind is Kind.HEAD:
            return self.weight(child, b, "[:, None]" if self.nodes_on_rows else "[None, :]")
        return self.value(child, b)

    def finite_value(self, expr: Expr, b: int) -> str:
        """Like `value`, entries that are not finite replaced by zero: it will be summed over
        nodes."""
        known = ("finite", expr.key, b)
        if known not in self.memo:
            tile = self.value(expr, b)
            if not is_constant(expr):
                name = self.context.block(f"{leaf(expr)}_finite", b)
                tile = self.rows_for_nodes(expr, tile, self.value_mask(b))
                tile = self.absorb(tile, self.writer.fresh(name), b)
            self.memo[known] = tile
        return self.memo[known]

    def rows_for_nodes(self, expr: Expr, tile: str, exists: str) -> str:
        """`tile`, which is one row for all nodes where `expr` depends on parameters alone, with a
        row for every node: a product of nodes takes it then."""
        if any(isinstance(x, Input) and x.per is Per.TOKEN for x in walk(expr)):
            return tile
        return self.writer.temp(f"tl.where({exists}, {tile}, 0.0)", f"{leaf(expr)}_of_nodes")

    def absorb(self, tile: str, name: str, b: int) -> str:
        """`name`, a value tile in which zero stands for what is not finite in `tile`; where no
        guard has seen it, its nodes are marked as bad (a branch rarely taken).
        """
        w, c = self.writer, self.context
        if not c.watches_values:
            if tile != name and not tile.isidentifier():
                tile = w.let(name, tile)
            return w.let(name, f"tl.where(tl.abs({tile}) < {LARGEST}, {tile}, 0.0)")
        w.let(name, tile)
        node, bad = c.block("node", b), c.block("bad", b)
        lost = w.temp(f"tl.sum(tl.sum({name} * 0.0, axis=1), axis=0)", f"{name}_lost")
        ok = w.temp(f"tl.abs({name}) < {LARGEST}", f"{name}_ok")
        w.let(name, f"tl.where({ok}, {name}, 0.0)")
        with w.block(f"if {lost} != 0.0:"):
            axis = 1 if self.nodes_on_rows else 0
            some = f"(1 - tl.min(tl.where({ok}, 1, 0), axis={axis})).to(tl.int64)"
            bits = f"tl.sum({some} << ({node} & 63).to(tl.int64), axis=0)"
            w.let(bad, f"{bad} | {bits}")
        return name
