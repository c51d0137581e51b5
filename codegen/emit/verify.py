"""The fused verify kernel: one program takes one value tile of one head of one request through the whole theorem.

    O = D_P Q S + C U,   (I + G) U = R

Node blocks are solved in order: what earlier blocks contribute is subtracted first, then the block's own nilpotent
system is solved.
"""

from __future__ import annotations

from boleir.codegen.emit.precision import Pieces, Precision
from boleir.codegen.emit.state import load_state, state_pieces
from boleir.codegen.emit.system import System
from boleir.codegen.emit.tiles import Context, Tiles
from boleir.codegen.emit.writer import EmittedKernel, Writer
from boleir.codegen.plan import Operand, WritePlan
from boleir.codegen.topology_facts import alive, sweeps_of_block
from boleir.ir import Expr, Input, Kind, Per

DECODE = """\
program = tl.program_id(0)
value_tile = program % VALUE_TILES
head = program // VALUE_TILES % VALUE_HEADS
request = program // (VALUE_TILES * VALUE_HEADS)"""


def emit_verify(context: Context, *, wait: str | None = None) -> EmittedKernel:
    """The fused kernel. Under programmatic launch it waits for its predecessor: at the `start`, or, when that is the
    prepare kernel of the same layer, only before what was `prepared` (the state is not: it loads early)."""
    writer = Writer()
    _Fused(context, writer, wait).emit()
    s = context.schedule
    return writer.kernel(
        "verify",
        "All nodes of a request against one read-only state; one value tile per program.",
        (f"{-(-context.shapes.d_v // s.b_v) * context.shapes.value_heads} * batch", "1", "1"),
        warps=s.warps,
        stages=s.stages,
        registers=s.registers,
        pdl=wait is not None,
    )


class _Fused:
    def __init__(self, context: Context, writer: Writer, wait: str | None) -> None:
        self.context = context
        self.writer = writer
        self.wait = wait
        self.tiles = Tiles(context, writer)
        self.precision = Precision(context.schedule.precision)
        self.system = System(self.tiles, self.precision)
        self.solved: dict[tuple[int, int], Pieces] = {}
        self.values: dict[tuple[int, int], Pieces] = {}

    def emit(self) -> None:
        """The whole body."""
        w, c = self.writer, self.context
        self.tiles.request(DECODE)
        if self.wait == "start":
            w.line("tl.extra.cuda.gdc_wait()")
        w.let("value", "value_tile * B_V + tl.arange(0, B_V)")
        self.tiles.channels()
        for b in range(c.blocks):
            self.tiles.node_block(b)
        loaded = load_state(self.tiles)
        if self.wait == "prepared":
            w.comment("what follows reads results of the previous kernel")
            w.line("tl.extra.cuda.gdc_wait()")
        if c.blocks == 1:
            for word in range(c.shapes.words):
                self.tiles.ancestors(0, word)
            head = frozenset() if self.tiles.rows_ready else frozenset({Kind.HEAD})
            self.tiles.prefetch(frozenset({Kind.KEY, Kind.VALUE}) | head)
        state = state_pieces(self.tiles, self.precision, loaded)
        for b in range(c.blocks):
            self.tiles.scalars(b)
        for b in range(c.blocks):
            if c.blocks > 1:
                w.comment(f"node block {b}")
            self._block(b, state)

    def _block(self, b: int, state: list[Pieces]) -> None:
        plan, c = self.context.plan, self.context
        right = [self._right_side(p, b, state) for p in range(len(plan.pairs))]
        out = self._read_state(plan.query, plan.query_after_decay, b, state, "out_tile")
        for a in range(b):
            if alive(c, b, a):
                self._from_earlier(b, a, right, out)
        self._own_writes(b, right, out)
        self._solve(b, right)
        self._own_readout(b, out)
        self._store(b, out)

    # -- reading the state -------------------------------------------------------------------------------------------

    def _read_state(self, operand: Operand, after_decay: bool, b: int, state: list[Pieces], stem: str) -> str:
        """scale * P * (base^T S_pre) as a value tile."""
        w, t = self.writer, self.tiles
        name, start = self.context.block(stem, b), None
        for chunk, pieces in enumerate(state):
            keys = self.system.key_pieces(operand.base, b, chunk)
            if t.nodes_on_rows:
                start = self.precision.dot(w, name, keys, pieces.transposed(), start)
            else:
                start = self.precision.dot(w, name, pieces, keys.transposed(), start)
        factors = [f for f in (self._path_decay(b, after_decay), t.scale(operand, b)) if f]
        if factors:
            w.let(name, f"{t.across('(' + ' * '.join(factors) + ')')} * {name}")
        return name

    def _path_decay(self, b: int, after_decay: bool) -> str | None:
        c = self.context
        if c.plan.log_decay is None:
            return None
        if after_decay:
            return f"tl.exp({c.block('c', b)})"
        return f"tl.exp({c.block('c', b)} - {c.block('g', b)})"

    def _right_side(self, p: int, b: int, state: list[Pieces]) -> str:
        pair, t, w = self.context.plan.pairs[p], self.tiles, self.writer
        erased = self._read_state(pair.erase, pair.after_decay, b, state, f"erased{p or ''}")
        target = t.value(pair.target, b)
        gain = "" if pair.gain is None else f"{t.value(pair.gain, b)} * "
        name = self.context.block(f"u{p or ''}", b)
        w.let(name, f"{target} - {gain}{erased}")
        return t.absorb(name, b)

    # -- other blocks and pure writes ---------------------------------------------------------------------------------

    def _from_earlier(self, b: int, a: int, right: list[str], out: str) -> None:
        plan = self.context.plan
        for q, source in enumerate(plan.pairs):
            for p, pair in enumerate(plan.pairs):
                tile = self.system.coupling(
                    f"minus_g{p}{q}_{b}_{a}", b, a, pair.erase, source.write, pair.after_decay, sign="-", strict=True
                )
                self._accumulate(right[p], p, b, self.solved[q, a], tile)
            self._into_output(b, a, out, source.write, self.solved[q, a], f"c{q}_{b}_{a}", None)
        for m, write in enumerate(plan.writes):
            self._write_into(b, a, m, write, right, out, None)

    def _own_writes(self, b: int, right: list[str], out: str) -> None:
        plan = self.context.plan
        for m, write in enumerate(plan.writes):
            own = None if plan.inclusive else (plan.own_writes[m] or "0.0")
            self._write_into(b, b, m, write, right, out, own)

    def _write_into(
        self, b: int, a: int, m: int, write: WritePlan, right: list[str], out: str, own: str | None
    ) -> None:
        for p, pair in enumerate(self.context.plan.pairs):
            tile = self.system.coupling(
                f"minus_n{p}{m}_{b}_{a}", b, a, pair.erase, write.key, pair.after_decay, sign="-", strict=True
            )
            self._accumulate(right[p], p, b, self._value_pieces(m, write.value, a), tile)
        self._into_output(b, a, out, write.key, self._value_pieces(m, write.value, a), f"d{m}_{b}_{a}", own)

    def _accumulate(self, name: str, p: int, b: int, unknown: Pieces, tile: str) -> None:
        gain = self.context.plan.pairs[p].gain
        pieces = self.precision.pieces(self.writer, tile)
        if gain is None:
            self.system.apply(name, unknown, pieces, name)
        else:
            seen = self.system.apply(f"{name}_seen", unknown, pieces, None)
            self.writer.let(name, f"{name} + {self.tiles.finite_value(gain, b)} * {seen}")

    def _value_pieces(self, m: int, value: Expr, a: int) -> Pieces:
        if (m, a) not in self.values:
            tile = self.tiles.finite_value(value, a)
            stored = isinstance(value, Input) and value.per is Per.TOKEN
            if stored and self.context.dtype == "bf16" and self.precision.plan in ("fp32", "bf16"):
                self.values[m, a] = Pieces((self.writer.let(f"{tile}_16", f"{tile}.to(tl.bfloat16)"),))
            else:
                self.values[m, a] = self.precision.pieces(self.writer, tile)
        return self.values[m, a]

    def _into_output(
        self, b: int, a: int, out: str, written: Operand, source: Pieces, name: str, own: str | None
    ) -> None:
        plan = self.context.plan
        diagonal = None if own is None else ("0.0" if own == "0.0" else self.context.block(own, b))
        strict = own is not None
        tile = self.system.coupling(
            name, b, a, plan.query, written, plan.query_after_decay, strict=strict,
            own=None if diagonal in (None, "0.0") else diagonal,
        )  # fmt: skip
        self.system.apply(out, source, self.precision.pieces(self.writer, tile), out)

    # -- the block's own system -----------------------------------------------------------------------------------------

    def _solve(self, b: int, right: list[str]) -> None:
        plan, c, w = self.context.plan, self.context, self.writer
        if not plan.pairs:
            return
        tiles = self._own_system(b)
        sweeps = sweeps_of_block(c, b)
        solver = c.schedule.solver
        if not sweeps:
            pass
        elif solver in ("horner", "levels"):
            self._sweep(b, right, tiles, sweeps)
        else:
            build = self.system.inverse if solver == "inverse" else self.system.product
            inverse = build(c.block("inverse", b), b, tiles[0, 0], sweeps)
            pieces = self.precision.pieces(w, inverse)
            self.system.apply(right[0], self.precision.pieces(w, right[0]), pieces, None)
        for p, name in enumerate(right):
            self.solved[p, b] = self.precision.pieces(w, name)
            if c.schedule.commit == "factors":
                self._store_unknown(p, b, name)

    def _own_system(self, b: int) -> dict[tuple[int, int], str]:
        plan, c = self.context.plan, self.context
        tiles = {}
        for p, pair in enumerate(plan.pairs):
            for q, source in enumerate(plan.pairs):
                own = pair.coupling[q] if q < p else None
                tiles[p, q] = self.system.coupling(
                    f"minus_g{p}{q}_{b}", b, b, pair.erase, source.write, pair.after_decay, sign="-", strict=True,
                    own=c.block(own, b) if own else None,
                )  # fmt: skip
        return tiles

    def _sweep(self, b: int, right: list[str], tiles: dict[tuple[int, int], str], sweeps: int) -> None:
        w, t, c, n = self.writer, self.tiles, self.context, len(right)
        pieces = {at: self.precision.pieces(w, tile) for at, tile in tiles.items()}
        levels = c.schedule.solver == "levels"
        if levels:
            depth = c.block("depth", b)
            where = f"{w.arg('depths', '*i32')} + first + {c.block('node', b)}"
            w.let(depth, f"tl.load({where}, mask={c.block('inside', b)}, other=-1)")
        for p, name in enumerate(right):
            start = f"tl.where({t.across(depth)} == 0, {name}, 0.0)" if levels else name
            w.let(f"{name}_next", start)
        for step in range(1, sweeps + 1):
            now = [self.precision.pieces(w, w.let(f"{name}_now", f"{name}_next")) for name in right]
            for p, name in enumerate(right):
                gain = c.plan.pairs[p].gain
                total = name if gain is None else None
                for q in range(n):
                    total = self.system.apply(f"{name}_swept", now[q], pieces[p, q], total)
                if gain is not None:
                    w.let(f"{name}_swept", f"{name} + {t.finite_value(gain, b)} * {name}_swept")
                keep = f"tl.where({t.across(depth)} == {step}, {name}_swept, {name}_now)" if levels else f"{name}_swept"
                w.let(f"{name}_next", keep)
        for name in right:
            w.let(name, f"{name}_next")

    # -- output --------------------------------------------------------------------------------------------------------

    def _own_readout(self, b: int, out: str) -> None:
        plan, t, w = self.context.plan, self.tiles, self.writer
        for q, source in enumerate(plan.pairs):
            own = None if plan.inclusive else (plan.own_pairs[q] or "0.0")
            self._into_output(b, b, out, source.write, self.solved[q, b], f"c{q}_{b}", own)
        if plan.gain is not None:
            w.let(out, f"{out} * {t.value(plan.gain, b)}")
        if plan.direct is not None:
            w.let(out, f"{out} + {t.value(plan.direct, b)}")

    def _store(self, b: int, out: str) -> None:
        w, name = self.writer, self.context.block("poisoned", b)
        w.let(name, poisoned(self.tiles, b))
        w.let(out, f'tl.where({self.tiles.across(name)}, float("nan"), {out})')
        store_output(self.tiles, b, out)

    def _store_unknown(self, p: int, b: int, name: str) -> None:
        w, t, c = self.writer, self.tiles, self.context
        plane = f"({p} * {w.arg('capacity', 'i64')} + first)" if p else "first"
        pointer = f"{w.arg('unknowns', '*fp32')} + {plane} * (VALUE_HEADS * D_V) + head * D_V"
        node = c.block("node", b)
        at = f"{t.across(f'({node} * (VALUE_HEADS * D_V))')} + {t.along('value')}"
        w.line(f"tl.store({pointer} + {at}, {name}, mask={t.value_mask(b)})")


def poisoned(tiles: Tiles, b: int) -> str:
    """Mask of the nodes of block `b` with a non-finite input on their path."""
    c = tiles.context
    per_word: dict[int, list[str]] = {}
    for a in range(b + 1):
        per_word.setdefault(a * c.schedule.node_block // 64, []).append(c.block("bad", a))
    tests = [f"(({tiles.ancestors(b, word)} & ({' | '.join(names)})) != 0)" for word, names in per_word.items()]
    return " | ".join(tests)


def store_output(tiles: Tiles, b: int, out: str) -> None:
    """Store an output tile: zero for a padding row."""
    w, c = tiles.writer, tiles.context
    w.let(out, f"tl.where(slot >= 0, {out}, 0.0)")
    pointer, stride = w.arg("out", "*" + c.out_dtype), w.arg("out_stride", "i64")
    if b == 0:
        w.let("out_rows", f"{pointer} + first * {stride} + head * D_V")
        w.let("out_step", f"{stride}.to(tl.int32)")
    node = c.block("node", b)
    row = tiles.across(f"({node} * out_step)")
    value = f"{out}.to({pointer}.dtype.element_ty)"
    w.line(f"tl.store(out_rows + {row} + {tiles.along('value')}, {value}, mask={tiles.value_mask(b)})")


__all__ = ["DECODE", "emit_verify", "poisoned", "store_output"]
