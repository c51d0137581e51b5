"""Row scalars of a kernel: read from the prepared rows or computed, and checked for finiteness."""

from __future__ import annotations

from boleir.codegen.emit.context import LARGEST, LOG2_E, LOWEST, place, plane_of
from boleir.codegen.emit.path_matrix import path_matrix
from boleir.codegen.emit.text import arithmetic, conjunction, product
from boleir.codegen.emit.vectors import Vectors
from boleir.codegen.emit.writer import Writer
from boleir.codegen.naming import stem
from boleir.codegen.plan import Operand, Scalar
from boleir.codegen.rewrite import constant_value, is_constant
from boleir.ir import Call, Dot, Expr, Input, Kind, Per, walk


def is_finite(scalar: Scalar, name: str) -> str:
    """Whether a row scalar, and what it was computed from, is finite.

    The inverse root of an infinite square is zero, which no finite vector gives.
    """
    if isinstance(scalar.expr, Call) and scalar.expr.fn == "rsqrt":
        return f"({name} > 0.0) & ({name} < {LARGEST})"
    return f"tl.abs({name}) < {LARGEST}"


class Tiles(Vectors):
    """Everything of a token that a kernel multiplies: vectors, row scalars, their products."""

    def prefetch(self, kinds: frozenset[Kind]) -> None:
        """Issue the loads of token inputs of `kinds`, and of what they are combined with, together:
        one latency instead of one for each first use.

        Key tiles come last: each goes to shared memory as soon as it is there, and what is loaded
        behind that barrier waits a second time.
        """
        c = self.context
        for b in range(1 if c.looped else c.blocks):
            if Kind.HEAD in kinds:
                for item in self._head_inputs():
                    self.head(item, b)
            if Kind.VALUE in kinds:
                for item in self._tokens(Kind.VALUE):
                    self.raw_value(item, b)
            if Kind.KEY in kinds:
                for item in self._tokens(Kind.KEY):
                    for chunk in range(c.key_chunks):
                        self.raw_key(item, b, chunk)

    def _tokens(self, kind: Kind) -> list[Input]:
        return [item for item in self.context.plan.tokens if item.kind is kind]

    def _head_inputs(self) -> list[Input]:
        """Numbers per head that row scalars and decays are computed from: the layer's, then those
        of tokens."""
        c = self.context
        exprs = [s.expr for s in c.scalars_needed]
        exprs += [x for x in (c.plan.log_decay,) if x is not None]
        used = {x.key for x in walk(*exprs)}
        layer = [x for x in c.plan.parameters if x.kind is Kind.HEAD and x.key in used]
        return layer + self._tokens(Kind.HEAD)

    def prefetch_rows(self, b: int) -> None:
        """Issue the loads of prepared row scalars, before those of key tiles."""
        c = self.context
        for scalar in c.scalars_needed:
            self.row_scalar(scalar, b)
        if c.plan.log_decay is not None:
            self.decay_rows(b)

    # -- row scalars ------------------------------------------------------------------------------

    def scalars(self, b: int) -> None:
        """All row scalars of block `b`, and the bits of the nodes where one is not finite."""
        c, w = self.context, self.writer
        tests, finite, node = self._finite_tests(b), c.block("finite", b), c.block("node", b)
        w.comment("nodes with an input that is not finite, as bits of a word")
        w.let(finite, tests)
        bits = f"tl.where({finite}, 0, 1).to(tl.int64) << ({node} & 63).to(tl.int64)"
        w.let(c.block("bad", b), f"tl.sum({bits}, axis=0)")

    def finite_nodes(self, b: int) -> None:
        """All row scalars of block `b`, and whether those of a node are finite."""
        tests = self._finite_tests(b)
        self.writer.let(self.context.block("finite", b), tests)

    def _finite_tests(self, b: int) -> str:
        c = self.context
        tests = [is_finite(scalar, self.row_scalar(scalar, b)) for scalar in c.scalars_needed]
        tests += [f"tl.abs({name}) < {LARGEST}" for name in self.decay_rows(b)]
        return conjunction(*(tests or [f"{c.block('node', b)} >= 0"]))

    def decay_rows(self, b: int) -> list[str]:
        """Emit what decays the state; node vectors that are not finite where that is not."""
        c = self.context
        if c.plan.log_decay is None:
            sized = c.walked and "gates_size" in c.walk_planes
            return self._walked_decays(b) if sized else []
        own = ["g"] if self.sums_by_dot and not self.rows_ready else []
        return [self._path_sums(b), *own]

    def _walked_decays(self, b: int) -> list[str]:
        """The sum of each node's decays, left by the kernel that computes them."""
        name = self.context.block("gates_size", b)
        return [self.writer.let(name, self.walk_plane("gates_size", b))]

    def row_scalar(self, scalar: Scalar, b: int) -> str:
        """One row scalar of block `b`, loaded or computed."""
        w, c = self.writer, self.context
        name = c.block(scalar.name, b)
        known = ("scalar", scalar.expr.key, b)
        if known not in self.memo:
            w.origin(scalar.name, place(scalar.expr))
            value = self._row(scalar, b) if self.rows_ready else self.per_node(scalar.expr, b)
            self.memo[known] = w.let(name, value)
        return self.memo[known]

    def _path_sums(self, b: int) -> str:
        """c and c_rest: log-decays in base 2, summed over the path in eighths and what the eighths
        leave; g: the node's own, where something needs it.

        A difference of two sums in one float32 would carry the rounding of the larger: after a few
        strong decays all others would lose digits. Sums of eighths are exact.
        """
        c, w = self.context, self.writer
        decay = c.plan.log_decay
        assert decay is not None
        if ("path sums", b) in self.memo:
            return c.block("c", b)
        w.origin("log-decay g, and c its sum over the path", place(decay, c.plan.form.decay))
        if self.rows_ready:
            self.memo["path sums", b] = "loaded"
            self.load_path_sums(b)
            if "g" in c.path_planes:
                w.let(c.block("g", b), self.plane(len(c.plan.scalars) + 2, "g", "head", b))
        else:
            bounded_below(w, c.block("g", b), f"{self.per_node(decay, b)} * {LOG2_E}")
            self._path_sum(b)
        return c.block("c", b)

    def load_path_sums(self, b: int) -> None:
        """c and c_rest from the row buffer."""
        c = self.context
        for number, name in enumerate(("c", "c_rest")):
            plane = self.plane(len(c.plan.scalars) + number, name, "head", b)
            self.writer.let(c.block(name, b), plane)

    def _path_sum(self, b: int) -> None:
        """c: only ancestors enter, masked before the sum."""
        c = self.context
        if self.sums_by_dot:
            self._path_dot()
            return
        w, axis = self.writer, 1 if self.nodes_on_rows else 0
        own = c.block("g", b)
        w.let(c.block("g_eighths", b), eighths(own))
        w.let(c.block("g_rest", b), f"{own} - {c.block('g_eighths', b)}")
        for total, step in (("c", "g_eighths"), ("c_rest", "g_rest")):
            parts = []
            for a in range(b + 1):
                mask, g = self.on_path(b, a), self.along(c.block(step, a))
                parts.append(f"tl.sum(tl.where({mask}, {g}, 0.0), axis={axis})")
            w.let(c.block(total, b), " + ".join(parts))

    @property
    def sums_by_dot(self) -> bool:
        """Whether path sums are matrix products here."""
        c = self.context
        schedule = c.schedule
        exact = schedule.precision != "ieee" and c.blocks == 1
        return schedule.path_sum == "dot" and self.nodes_on_rows and exact

    def _path_dot(self) -> None:
        """The sums as a matrix product: the mask is exact in bfloat16, and g in pieces is, two for
        its eighths and three for the rest.

        What is not finite is left out, since it would spoil every row: `finite` notices it.
        """
        w = self.writer
        path_matrix(self, "on_path", "bfloat16")
        w.let("g_rest", f"tl.where(tl.abs(g) < {LARGEST}, g, 0.0)")
        w.let("g_eighths", eighths("g_rest"))
        w.let("g_rest", "g_rest - g_eighths")
        parts = []
        for whole, count in (("g_eighths", 2), ("g_rest", 3)):
            for number in range(count):
                parts.append(w.let(f"{whole}_{number}", f"{whole}.to(tl.bfloat16)"))
                w.let(whole, f"{whole} - {parts[-1]}.to(tl.float32)")
        w.let("piece", "tl.arange(0, 16)[None, :]")
        pieces = "0.0"
        for number, name in reversed(list(enumerate(parts))):
            pieces = f"tl.where(piece == {number}, {name}[:, None], {pieces})"
        w.let("g_pieces", f"{pieces}.to(tl.bfloat16)")
        w.let("sums", "tl.dot(on_path, g_pieces)")
        w.let("c", "tl.sum(tl.where(piece < 2, sums, 0.0), axis=1)")
        w.let("c_rest", "tl.sum(tl.where(piece < 2, 0.0, sums), axis=1)")

    def _row(self, scalar: Scalar, b: int) -> str:
        index = [s.name for s in self.context.plan.scalars].index(scalar.name)
        return self.plane(index, scalar.name, "key_head" if scalar.per_key_head else "head", b)

    def plane_at(self, index: int, name: str, head: str, b: int, node: str = "") -> str:
        """Address of the row scalars of a block, or of other nodes, in plane `index` of the row
        buffer."""
        w = self.writer
        key = ("plane", index, head)
        if key not in self.memo:
            rows, capacity = w.arg("rows", "*fp32"), w.arg("capacity", "i64")
            at = f"{rows} + {plane_of(index, head)} * {capacity} + first"
            self.memo[key] = w.temp(at, f"{name}_at")
        return f"{self.memo[key]} + {node or self.context.block('node', b)}"

    def walk_plane_at(self, name: str, b: int, node: str = "") -> str:
        """Address of the values of a block, or of other nodes, in one of the planes that come with
        walks."""
        c = self.context
        index = len(c.plan.scalars) + c.walk_planes.index(name)
        return self.plane_at(index, name, "head", b, node)

    def walk_plane(self, name: str, b: int) -> str:
        """The values of a block in such a plane."""
        inside = self.context.block("inside", b)
        return f"tl.load({self.walk_plane_at(name, b)}, mask={inside}, other=0.0)"

    def plane(self, index: int, name: str, head: str, b: int) -> str:
        """The row scalars of a block from plane `index` of the row buffer."""
        at, inside = self.plane_at(index, name, head, b), self.context.block("inside", b)
        return f"tl.load({at}, mask={inside}, other=0.0)"

    def scale(self, operand: Operand, b: int) -> str | None:
        """Product of an operand's constant and row scalars as one node vector; None for one."""
        names = [self.context.block(name, b) for name in operand.scalars]
        stem_of = "_".join(operand.scalars)
        if operand.constant != 1.0:
            names.insert(0, repr(operand.constant))
            stem_of = f"scaled_{stem_of}"
        if not names:
            return None
        known = ("scale", operand.constant, operand.scalars, b)
        if known not in self.memo:
            if not operand.scalars:
                text, stem_of = f"tl.full([NODE_BLOCK], {names[0]}, tl.float32)", "scale"
            else:
                text = product(*names)
            name = self.context.block(stem_of, b)
            self.memo[known] = text if len(names) == 1 and operand.scalars else (
                self.writer.temp(text, name)
            )  # fmt: skip
        return self.memo[known]

    # -- expressions ------------------------------------------------------------------------------

    def per_node(self, expr: Expr, b: int) -> str:
        """A HEAD expression as a vector over the nodes of block `b`, zero outside (parameters alone
        give no vector)."""
        return f"tl.where({self.context.block('inside', b)}, {self._head(expr, b)}, 0.0)"

    def scalar_factor(self, expr: Expr, b: int) -> str:
        """The row scalar that stands for `expr` where there is one, else its text."""
        return self.head(expr, b)

    def head(self, expr: Expr, b: int) -> str:
        """A HEAD expression for the nodes of block `b`: a name where it costs something."""
        if is_constant(expr):
            return repr(constant_value(expr, self.context.dims))
        if ("scalar", expr.key, b) in self.memo:
            return self.memo["scalar", expr.key, b]
        key: tuple[object, ...] = ("head", expr.key, b)
        if all(
            x.per is Per.HEAD and x.kind is Kind.HEAD for x in walk(expr) if isinstance(x, Input)
        ):
            key = ("layer", expr.key)
        if key not in self.memo:
            text = self._head(expr, b)
            if isinstance(expr, Input | Dot | Call) or expr.hint:
                name = stem(expr) if key[0] == "layer" else self.context.block(stem(expr), b)
                text = self.writer.temp(text, name)
            self.memo[key] = text
        return self.memo[key]

    def _head(self, expr: Expr, b: int) -> str:
        w, c = self.writer, self.context
        match expr:
            case _ if is_constant(expr):
                return repr(constant_value(expr, c.dims))
            case Input(name=name, per=Per.TOKEN):
                at = f"{self.rows_of(name, 'head')} + {c.block('node', b)} * {self.stride(name)}"
                return f"tl.load({at}, mask={c.block('inside', b)}, other=0.0).to(tl.float32)"
            case Input(name=name):
                return f"tl.load({w.arg(name, '*fp32')} + head)"
            case Dot(left=left, right=right) if left.kind is Kind.KEY:
                return " + ".join(
                    f"tl.sum({self.key(left, b, k)} * {self.key(right, b, k)}, axis=1)"
                    for k in range(c.key_chunks)
                )
            case Dot(left=left, right=right):
                return f"tl.sum({self.full_value(left, b)} * {self.full_value(right, b)}, axis=1)"
            case Call(fn="sum", arg=arg) if arg.kind is Kind.KEY:
                chunks = range(c.key_chunks)
                return " + ".join(f"tl.sum({self.key(arg, b, k)}, axis=1)" for k in chunks)
            case Call(fn="sum", arg=arg):
                return f"tl.sum({self.full_value(arg, b)}, axis=1)"
        return arithmetic(expr, lambda child: self.head(child, b), w)


def bounded_below(writer: Writer, name: str, value: str) -> None:
    """`name`, a log-decay: at least `LOWEST`, also where the decay is zero. NaN stays NaN."""
    writer.let(name, value)
    writer.let(name, f"tl.where({name} < {LOWEST}, {LOWEST}, {name})")


def eighths(value: str) -> str:
    """`value` rounded to a multiple of 1/8: sums of such numbers are exact up to two million."""
    return f"tl.floor({value} * 8.0 + 0.5) * 0.125"
