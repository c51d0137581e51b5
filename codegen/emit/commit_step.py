"""One token of the recurrence on a tile of the state: the unknowns, then the update.

A decay per head would multiply every element of the tile for every token. The tile owes it instead:
the state is `owed * tile`, reads are multiplied by `owed` and writes divided by it, one number per
row each. The tile is paid up when it is stored, and before `owed` is so far from one that numbers
could leave the range of float32.
"""

from __future__ import annotations

from boleir.codegen.emit.commit_path import picked
from boleir.codegen.emit.commit_table import pointer, table_columns
from boleir.codegen.emit.commit_tile import NAMES, WIDTHS, Tile
from boleir.codegen.emit.commit_token import Token
from boleir.codegen.emit.context import Context, place, unknown_place
from boleir.codegen.emit.text import product
from boleir.codegen.emit.writer import Writer
from boleir.codegen.plan import Operand
from boleir.ir import Expr, Kind

ONE = "tl.full([], 1.0, tl.float32)"
LEAST_OWED, MOST_OWED = 2.0**-16, 2.0**16
"""Where `owed` is outside of these, the tile takes it."""

LOCALS = ("owed", "paid", "tile", "gate", "step", "row", "cell", "length", "nodes", "steps", "head")
"""Variables of the walk: what a recurrence calls so has another name there."""


class Step:
    """Emits the step of one token."""

    def __init__(self, context: Context, writer: Writer, tile: Tile, token: Token) -> None:
        self.context = context
        self.writer = writer
        self.tile = tile
        self.token = token
        self.stored = "unknowns" in table_columns(context)
        self.early: dict[int, str] = {}
        """Reads before the decay, by pair."""
        self.owes = context.plan.log_decay is not None

    def start(self) -> None:
        """What comes before the first token."""
        if self.owes:
            self.writer.let("owed", ONE)

    @property
    def state(self) -> str:
        """The state between two tokens."""
        return "tile * owed" if self.owes else "tile"

    def emit(self) -> None:
        """One token: the unknowns, then the update of the tile."""
        plan, w = self.context.plan, self.writer
        if self.owes and not self.stored:
            self._read_early()
        gate = self._gate()
        unknowns: list[str] = []
        for p in range(len(plan.writing)):
            unknowns.append(self._unknown(p, gate, unknowns))
        w.origin("new state", place(plan.form.recurrence.update))
        writes: list[tuple[str, Expr]] = []
        for u, pair in zip(unknowns, plan.writing, strict=True):
            writes.append(self._written(u, pair.write, f"written_{u}"))
        for write in plan.writes:
            value = self.token.side(write.value)
            writes.append(self._written(value, write.key, f"written_{value}"))
        terms = [product("tile", gate) if gate and not self.owes else "tile"]
        for vector, base in writes:
            row, along = self._rows(vector), self._along(self.token.live(base))
            terms.append(f"{row} * {along}")
        w.let("tile", " + ".join(terms))

    def _written(self, vector: str, operand: Operand, name: str) -> tuple[str, Expr]:
        """A vector of the unknowns' side with the scalars of what it is written along, and that."""
        scalars = self.token.scalars(operand)
        scalars = ["paid", *scalars] if self.owes else scalars
        if scalars:
            vector = self.writer.temp(product(*scalars, vector), name)
        return vector, operand.base

    def _rows(self, name: str) -> str:
        """A vector over the unknowns' side, for the tile."""
        return self.tile.across(name, self.context.plan.unknown)

    def _along(self, name: str) -> str:
        """A vector over the summed side, for the tile."""
        return self.tile.across(name, self.tile.summed)

    def _gate(self) -> str | None:
        """What multiplies the tile: a scalar, or a vector over channels; None for one."""
        plan, w, token = self.context.plan, self.writer, self.token
        if plan.log_decay is not None:
            w.origin("decay", place(plan.log_decay, plan.form.decay))
            exp = f"tl.exp({token.head(plan.log_decay)})" if token.gates is None else ""
            w.let("owed", product("owed", exp or picked(str(token.gates), "step")))
            with w.block(f"if (owed < {LEAST_OWED!r}) | (owed > {MOST_OWED!r}):"):
                w.comment("rare: the barrier keeps it a branch, else each step would multiply")
                w.line("tl.debug_barrier()")
                w.let("tile", "tile * owed")
                w.let("owed", ONE)
            w.let("paid", "1.0 / owed")
            return "owed"
        decay = plan.key_decay if plan.value_decay is None else plan.value_decay
        if decay is None:
            return None
        w.origin("decay", place(decay))
        gate = token.side(decay)
        if not self.tile.exact(decay.kind):  # a factor of no channel may be anything
            live = f"{NAMES[decay.kind]} < {WIDTHS[decay.kind]}"
            gate = w.let("gate", f"tl.where({live}, {gate}, 1.0)")
        return self.tile.across(gate, decay.kind)

    def _read_early(self) -> None:
        """What is read before the decay for what is written, as long as the tile is as it was."""
        plan, w = self.context.plan, self.writer
        for p, pair in enumerate(plan.writing):
            if not pair.after_decay:
                read = self.tile.total(f"tile * {self._along(self.token.live(pair.erase.base))}")
                self.early[p] = w.temp(f"owed * {read}", f"seen{p or ''}")

    def _unknown(self, p: int, gate: str | None, earlier: list[str]) -> str:
        """One unknown of the token: stored by verification, or read off the tile."""
        plan, w, token = self.context.plan, self.writer, self.token
        name, pair = f"u{p}" if len(plan.pairs) > 1 else "u", plan.pairs[p]
        if self.stored:
            plane = f"({p} * {w.arg('capacity', 'i64')} + row)" if p else "row"
            at = f"{plane} * (VALUE_HEADS * D_V) + head * D_V + value"
            dtype = self.context.unknown_dtype
            first = pointer(self.context, w, "unknowns", dtype)
            mask = "" if self.tile.exact(Kind.VALUE) else ", mask=value < D_V, other=0.0"
            now = token.row(name, f"tl.load({first} + {at}{mask})")
            return now if dtype == "fp32" else w.let(name, f"{now}.to(tl.float32)")
        w.origin(name, unknown_place(plan.form, p))
        factors = token.scalars(pair.erase)
        seen = self._along(token.live(pair.erase.base))
        if gate and pair.after_decay:
            if gate.endswith(self._along("")):
                seen = f"({product(gate, seen)})"
            else:
                factors.insert(0, gate.removesuffix(self._rows("")))
        read = self.early.get(p) or self.tile.total(f"tile * {seen}")
        factors += [token.side(pair.gain)] if pair.gain is not None else []
        text = f"{token.side(pair.target)} - {product(*factors, read)}"
        for weight, u in zip(pair.coupling, earlier, strict=True):
            if weight is not None:
                text += f" - {product(token.head(plan.scalar(weight).expr), u)}"
        return w.let(name, text)
