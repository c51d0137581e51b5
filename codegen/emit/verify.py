"""The fused verify kernel: one program takes one value tile of one head of one request through the
whole theorem.

    O = D_P Q S + C U,   (I + G) U = R

Node blocks are solved in order: what earlier blocks contribute is subtracted first, then the
block's own nilpotent system is solved. Here the blocks of a tree are written out one after the
other; `looped` has the form for many blocks.
"""

from __future__ import annotations

from boleir.codegen.emit.context import Context, place, unknown_place
from boleir.codegen.emit.key_walks import WalkedSystem
from boleir.codegen.emit.output import (
    WAITING,
    find_tile,
    finish_output,
    path_decay,
    poison,
    poisoned,
    store_output,
    system_number,
    unknowns_at,
    value_grid,
)
from boleir.codegen.emit.precision import Pieces, Precision
from boleir.codegen.emit.signals import expect, remember, wait_prepared
from boleir.codegen.emit.solve import Solver
from boleir.codegen.emit.state import load_state, state_pieces
from boleir.codegen.emit.system import System
from boleir.codegen.emit.text import product
from boleir.codegen.emit.tiles import Tiles
from boleir.codegen.emit.writer import EmittedKernel, Writer
from boleir.codegen.plan import Operand, ReadPlan, WritePlan
from boleir.codegen.topology_facts import alive
from boleir.ir import Expr, Input, Kind, Per


def emit_verify(context: Context, *, wait: str | None = None) -> EmittedKernel:
    """The fused kernel. Under programmatic launch it waits for its predecessor: at the `start`, or,
    when that is the prepare kernel of the same layer, only before what was `prepared` (the state is
    not: it loads early). There it waits, too, where other programs of its launch prepare."""
    from boleir.codegen.emit.looped import Looped

    writer, s = Writer(context.reserved), context.schedule
    (Looped if context.looped else Fused)(context, writer, wait).emit()
    return writer.kernel(
        "verify",
        "All nodes of a request against one read-only state; one value tile per program.",
        value_grid(context),
        warps=s.warps,
        stages=s.stages,
        registers=s.registers,
        pdl=wait is not None,
    )


class Fused:
    """Emits the body of the kernel, block by block."""

    def __init__(self, context: Context, writer: Writer, wait: str | None) -> None:
        self.context = context
        self.writer = writer
        self.wait = wait
        self.tiles = self.make_tiles()
        self.precision = Precision(context.schedule.precision)
        self.system = (WalkedSystem if context.walked else System)(self.tiles, self.precision)
        self.solver = Solver(self.system)
        self.solved: dict[tuple[int, int], Pieces] = {}
        """Pieces of the unknowns of a pair and block."""
        self.unknown: dict[tuple[int, int], str] = {}
        """Their names."""

    def make_tiles(self) -> Tiles:
        """What loads and names the operands."""
        return Tiles(self.context, self.writer)

    def emit(self) -> None:
        """The whole body."""
        c = self.context
        loaded = self.prologue(range(c.blocks))
        if c.blocks == 1:
            self.tiles.ancestors(0, 0)
            if self.tiles.rows_ready:
                self.tiles.prefetch_rows(0)
            self.tiles.prefetch(self.token_kinds() | {Kind.VALUE})
        state = state_pieces(self.tiles, self.precision, loaded)
        for b in range(c.blocks):
            self.tiles.scalars(b)
        for b in range(c.blocks):
            if c.blocks > 1:
                self.writer.section(f"node block {b}")
            self.block(b, state)

    def token_kinds(self) -> frozenset[Kind]:
        """Token inputs that are needed before the value tiles: keys, unless walks have multiplied
        them; what row scalars are computed from, unless they are prepared."""
        keys = not (self.context.walked and self.tiles.rows_ready)
        return frozenset({Kind.KEY} if keys else ()) | (
            frozenset() if self.tiles.rows_ready else frozenset({Kind.HEAD})
        )

    def prologue(self, blocks: range) -> list[str]:
        """Indices, and the loads of the state."""
        w = self.writer
        if self.wait == "start":
            w.line("tl.extra.cuda.gdc_wait()")
        find_tile(self.tiles)
        if self.context.prepares_first:
            expect(self.context, w, system_number(self.context))
        w.let("value", "value_tile * B_V + tl.arange(0, B_V)")
        self.tiles.channels()
        for b in blocks:
            self.tiles.node_block(b)
        loaded = load_state(self.tiles)
        if self.wait == "prepared":
            w.comment(WAITING)
            w.line("tl.extra.cuda.gdc_wait()")
        if self.context.prepares_first:
            self._wait_prepared(len(blocks) == 1)
        self.system.pointers()
        return loaded

    def _wait_prepared(self, alone: bool) -> None:
        """Wait for other programs; the ancestors of a block that is `alone` are not from them."""
        if alone:
            self.tiles.ancestors(0, 0)
        wait_prepared(self.writer)
        remember(self.writer)

    def block(self, b: int, state: list[Pieces]) -> None:
        """One block: right sides, what comes from other nodes, the solve, the readout."""
        c = self.context
        right, outs = self.state_terms(b, state)
        for a in range(b):
            if alive(c, b, a):
                self.from_earlier(b, a, right, outs)
        self.own_terms(b, right, outs)
        self.store(b, outs, poisoned(self.tiles, b))

    def store(self, b: int, outs: list[str], poisoned: str) -> None:
        """The outputs of a block, NaN for the nodes in the mask `poisoned`."""
        poison(self.tiles, b, outs, poisoned)
        for readout, out in zip(self.context.plan.readouts, outs, strict=True):
            store_output(self.tiles, b, readout, out)

    def state_terms(self, b: int, state: list[Pieces]) -> tuple[list[str], list[str]]:
        """Right sides and outputs as far as the committed state determines them."""
        plan, w = self.context.plan, self.writer
        if plan.pairs:
            w.section("right side: R = r - P (e^T S_pre)")
        right = [self._right_side(p, b, state) for p in range(len(plan.pairs))]
        outs = []
        for readout in plan.readouts:
            w.section("output: P (q^T S_pre)")
            w.origin("readout", place(readout.output))
            stem = f"out_tile{readout.mark}"
            outs.append(self._read_state(readout.query, readout.after_decay, b, state, stem))
        return right, outs

    def own_terms(self, b: int, right: list[str], outs: list[str]) -> None:
        """What the nodes of the block do to each other: pure writes, the solve, the readouts."""
        self._own_writes(b, right, outs)
        self._solve(b, right)
        if self.context.plan.pairs:
            self.writer.section("output: + C U")
        for readout, out in zip(self.context.plan.readouts, outs, strict=True):
            self._own_readout(b, readout, out)

    # -- reading the state ------------------------------------------------------------------------

    def _read_state(
        self, operand: Operand, after_decay: bool, b: int, state: list[Pieces], stem: str
    ) -> str:
        """scale * P * (base^T S_pre) as a value tile."""
        w, t, c = self.writer, self.tiles, self.context
        name, start = c.block(stem, b), None
        for chunk, pieces in enumerate(state):
            keys = self.system.state_reader(operand.base, after_decay, b, chunk)
            start = self.system.read(name, keys, pieces, start)
        factors = [f for f in (path_decay(c, after_decay, b), t.scale(operand, b)) if f]
        if factors:
            w.let(name, f"{t.across(product(*factors))} * {name}")
        return name

    def _right_side(self, p: int, b: int, state: list[Pieces]) -> str:
        pair, t, c = self.context.plan.pairs[p], self.tiles, self.context
        self.writer.origin(f"u{p or ''}", unknown_place(c.plan.form, p))
        erased = self._read_state(pair.erase, pair.after_decay, b, state, f"erased{p or ''}")
        seen = erased if pair.gain is None else product(t.value(pair.gain, b), erased)
        name = c.block(f"right{p or ''}", b)
        return t.absorb(f"{t.value(pair.target, b)} - {seen}", name, b)

    # -- other blocks and pure writes -------------------------------------------------------------

    def from_earlier(self, b: int, a: int, right: list[str], outs: list[str]) -> None:
        """What an earlier block contributes to right sides and outputs."""
        plan, c = self.context.plan, self.context
        for q, source in enumerate(plan.writing):
            for p, pair in enumerate(plan.pairs):
                tile = self.system.coupling(
                    c.pair(f"minus_g{_index(p, q, plan.pairs)}", b, a), b, a, pair.erase,
                    source.write, pair.after_decay, sign="-", strict=True,
                )  # fmt: skip
                self._accumulate(right[p], p, b, self.solved[q, a], tile)
            for readout, out in zip(plan.readouts, outs, strict=True):
                name = c.pair(f"readout{q or ''}{readout.mark}", b, a)
                self._into_output(readout, b, a, out, source.write, self.solved[q, a], name, None)
        for m, write in enumerate(plan.writes):
            self._write_into(b, a, m, write, right, outs)

    def _own_writes(self, b: int, right: list[str], outs: list[str]) -> None:
        plan = self.context.plan
        if plan.writes:
            self.writer.section("pure writes of the block's own nodes")
        for m, write in enumerate(plan.writes):
            self._write_into(b, b, m, write, right, outs)

    def _write_into(
        self, b: int, a: int, m: int, write: WritePlan, right: list[str], outs: list[str]
    ) -> None:
        c = self.context
        for p, pair in enumerate(c.plan.pairs):
            stem = f"minus_seen{_index(p, m, c.plan.pairs, c.plan.writes)}"
            tile = self.system.coupling(
                c.pair(stem, b, a), b, a, pair.erase, write.key, pair.after_decay, sign="-",
                strict=True,
            )  # fmt: skip
            self._accumulate(right[p], p, b, self._value_pieces(m, write.value, a), tile)
        pieces = self._value_pieces(m, write.value, a)
        for readout, out in zip(c.plan.readouts, outs, strict=True):
            inclusive = a != b or readout.inclusive
            own = None if inclusive else (readout.own_writes[m] or "0.0")
            name = c.pair(f"write_readout{m or ''}{readout.mark}", b, a)
            self._into_output(readout, b, a, out, write.key, pieces, name, own)

    def _accumulate(self, name: str, p: int, b: int, unknown: Pieces, tile: str) -> None:
        gain = self.context.plan.pairs[p].gain
        pieces = self.system.pieces(tile)
        if gain is None:
            self.system.apply(name, unknown, pieces, name)
        else:
            seen = self.system.apply(f"{name}_seen", unknown, pieces, None)
            self.writer.let(name, f"{name} + {product(self.tiles.finite_value(gain, b), seen)}")

    def _value_pieces(self, m: int, value: Expr, a: int) -> Pieces:
        known = ("value pieces", m, a)
        memo = self.writer.memo
        if known not in memo:
            tile = self.tiles.finite_value(value, a)
            pieces = written_pieces(self.system, value, tile)
            memo[known] = " ".join(pieces.names)
        return Pieces(tuple(memo[known].split()))

    def _into_output(
        self, readout: ReadPlan, b: int, a: int, out: str, written: Operand, source: Pieces,
        name: str, own: str | None,
    ) -> None:  # fmt: skip
        diagonal = None if own in (None, "0.0") else self.context.block(str(own), b)
        tile = self.system.coupling(
            name, b, a, readout.query, written, readout.after_decay, strict=own is not None,
            own=diagonal,
        )  # fmt: skip
        self.system.apply(out, source, self.system.pieces(tile), out)

    # -- the block's own system -------------------------------------------------------------------

    def _solve(self, b: int, right: list[str]) -> None:
        plan, c, w = self.context.plan, self.context, self.writer
        if not plan.pairs:
            return
        w.section("the block's own system: (I+G) U = R")
        names = self.solver.solve(b, right, self._own_system(b))
        for p, name in enumerate(names):
            if c.keeps_unknowns:
                at, mask = unknowns_at(self.tiles, p, b), self.tiles.value_mask(b)
                stored = name if c.unknown_dtype == "fp32" else f"{name}.to(tl.bfloat16)"
                w.line(f"tl.store({at}, {stored}, mask={mask})")
            self.unknown[p, b] = name
            self.solved[p, b] = self.system.pieces(name)

    def _own_system(self, b: int) -> dict[tuple[int, int], str]:
        plan, c = self.context.plan, self.context
        tiles = {}
        for p, pair in enumerate(plan.pairs):
            for q, source in enumerate(plan.writing):
                own = pair.coupling[q] if q < p else None
                tiles[p, q] = self.system.coupling(
                    c.block(f"minus_g{_index(p, q, plan.pairs)}", b), b, b, pair.erase,
                    source.write, pair.after_decay, sign="-", strict=True,
                    own=c.block(own, b) if own else None,
                )  # fmt: skip
        return tiles

    # -- output -----------------------------------------------------------------------------------

    def _own_readout(self, b: int, readout: ReadPlan, out: str) -> None:
        plan, t, w, c = self.context.plan, self.tiles, self.writer, self.context
        for q, source in enumerate(plan.pairs):
            weight = None if readout.inclusive else readout.own_pairs[q]
            if source.watched:
                if weight:
                    w.let(out, f"{out} + {t.across(c.block(weight, b))} * {self.unknown[q, b]}")
                continue
            own = None if readout.inclusive else (weight or "0.0")
            name, unknown = c.block(f"readout{q or ''}{readout.mark}", b), self.solved[q, b]
            self._into_output(readout, b, b, out, source.write, unknown, name, own)
        finish_output(t, b, readout, out)


def _index(p: int, q: int, *of: tuple[object, ...]) -> str:
    """Two indices of a tile, none where there is only one."""
    return f"{p}{q}" if max(map(len, of)) > 1 else ""


def written_pieces(system: System, value: Expr, tile: str) -> Pieces:
    """Pieces of the value of a pure write: one where it is exact in bfloat16."""
    w = system.writer
    stored = isinstance(value, Input) and value.per is Per.TOKEN
    exact = system.precision.plan in ("fp32", "bf16")
    if stored and exact and system.context.dtype == "bf16":
        return Pieces((w.let(f"{tile}_16", f"{tile}.to(tl.bfloat16)"),))
    return system.pieces(tile if tile.isidentifier() else w.temp(tile, "written"))
