"""The fused verify kernel for many nodes: two loops over node blocks instead of copies of the text.

The outer loop solves block after block; the inner one takes in what earlier blocks contribute.
Nothing of an earlier block stays in registers: its unknowns are read back from a buffer of the
request (each program its own value tile), its row scalars from the prepared rows. All that is
carried along are the bits of the nodes with a non-finite input, one word per 64 nodes.
"""

from __future__ import annotations

from boleir.codegen.emit.context import EARLIER, OWN
from boleir.codegen.emit.output import output_rows, unknowns_at
from boleir.codegen.emit.state import state_pieces
from boleir.codegen.emit.tiles import Tiles
from boleir.codegen.emit.verify import Fused
from boleir.codegen.plan import Scalar
from boleir.codegen.rewrite import head_factors


class LoopTiles(Tiles):
    """Operands of the block that is being solved, and of one earlier block at a time."""

    def word_index(self, a: int) -> str:
        """The word of the block's nodes, as a variable."""
        return self.context.block("word_index", a)

    def node_block(self, b: int) -> None:
        """Node numbers and validity, and which ancestor word the block lies in."""
        super().node_block(b)
        if self.context.shapes.words > 1:
            self.writer.let(self.word_index(b), f"{self.context.first_node(b)} // 64")

    def bad_nodes(self, b: int, a: int) -> list[str]:
        """Bits of the bad nodes in the word of block `a`, from what the loop carries."""
        known = ("bad nodes", a)
        if known not in self.memo:
            index, (first, *others) = self.word_index(a), self.carried
            value = first
            for word, name in enumerate(others, 1):
                value = f"tl.where({index} == {word}, {name}, {value})"
            name = first if not others else self.context.block("bad_nodes", a)
            self.memo[known] = self.writer.let(name, value)
        return [self.memo[known]]

    @property
    def carried(self) -> list[str]:
        """Variables with the bits of all bad nodes so far, one per ancestor word."""
        return [f"bad_w{word}" for word in range(self.context.shapes.words)]

    def carry_bad(self) -> None:
        """Add the bad nodes of the block to what the loop carries."""
        w, index = self.writer, self.word_index(OWN)
        if len(self.carried) == 1:
            w.let(self.carried[0], f"{self.carried[0]} | bad")
            return
        for word, name in enumerate(self.carried):
            w.let(name, f"{name} | tl.where({index} == {word}, bad, 0)")

    def earlier_scalars(self) -> None:
        """The row scalars of an earlier block that written vectors and values need, and c."""
        c = self.context
        for scalar in self._written_scalars():
            self.row_scalar(scalar, EARLIER)
        if c.plan.log_decay is not None:
            self.load_path_sums(EARLIER)

    def _written_scalars(self) -> list[Scalar]:
        plan = self.context.plan
        operands = [pair.write for pair in plan.pairs] + [write.key for write in plan.writes]
        names = {name for operand in operands for name in operand.scalars}
        inside = [x.base for x in operands] + [write.value for write in plan.writes]
        used = {factor.key for expr in inside for factor in head_factors(expr)}
        return [s for s in plan.scalars if s.name in names or s.expr.key in used]


class Looped(Fused):
    """Emits the body of the kernel as loops over node blocks."""

    tiles: LoopTiles

    def make_tiles(self) -> LoopTiles:
        """What loads and names the operands."""
        return LoopTiles(self.context, self.writer)

    def emit(self) -> None:
        """The whole body."""
        w, c = self.writer, self.context
        loaded = self.prologue(range(0))
        state = state_pieces(self.tiles, self.precision, loaded)
        self._pointers()
        for name in self.tiles.carried:
            w.let(name, "tl.zeros([], tl.int64)")
        with w.block("for block in range(0, (count + NODE_BLOCK - 1) // NODE_BLOCK):"):
            self.tiles.node_block(OWN)
            self.tiles.prefetch(self.token_kinds())
            self.tiles.scalars(OWN)
            self.tiles.carry_bad()
            right, outs = self.state_terms(OWN, state)
            for pair in c.plan.pairs:
                if pair.gain is not None:
                    self.tiles.finite_value(pair.gain, OWN)
            w.let("lost", f"{self.tiles.ancestors(OWN, OWN)} & {self.tiles.bad_nodes(OWN, OWN)[0]}")
            self.tiles.path(OWN, OWN)
            w.section("what earlier blocks contribute")
            with w.block("for earlier in range(0, block):"):
                self._take_in(right, outs)
            self.own_terms(OWN, right, outs)
            self.store(OWN, outs, "lost != 0")
            if c.keeps_unknowns:
                w.comment("later blocks read the unknowns of this one")
                w.line("tl.debug_barrier()")

    def _pointers(self) -> None:
        """Addresses that do not change from block to block."""
        c, t = self.context, self.tiles
        for readout in c.plan.readouts:
            output_rows(t, readout)
        for p in range(len(c.plan.pairs)):
            unknowns_at(t, p, OWN)

    def _take_in(self, right: list[str], outs: list[str]) -> None:
        """One pass of the inner loop."""
        w, t, c = self.writer, self.tiles, self.context
        t.node_block(EARLIER)
        t.earlier_scalars()
        w.let("lost", f"lost | {t.ancestors(OWN, EARLIER)} & {t.bad_nodes(OWN, EARLIER)[0]}")
        for q in range(len(c.plan.pairs)):
            name = c.block(f"u{q or ''}", EARLIER)
            load = f"tl.load({unknowns_at(t, q, EARLIER)}, mask={t.value_mask(EARLIER)}, other=0.0)"
            w.let(name, load)
            self.solved[q, EARLIER] = self.system.pieces(name)
        self.from_earlier(OWN, EARLIER, right, outs)
