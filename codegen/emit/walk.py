"""Walks: every node of a program goes up its path, and all nodes take their next step together.

    reached = i;  passed = 1
    for reached = i, parent(i), ...:   (use what is reached);   passed = passed * decay(reached)

So `passed` is the decay between two nodes of one path, as a product of the decays between them: no
difference of sums, no overflow, and nothing that is no ancestor is ever looked at. The cost is
linear in the depth. Steps that a node does not take any more change no bit of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from boleir.codegen.emit.context import Context, place
from boleir.codegen.emit.groups import OTHER, GroupTiles, grouped, split_program
from boleir.codegen.emit.text import product
from boleir.codegen.emit.writer import Writer
from boleir.codegen.schedule import padded
from boleir.ir import Kind

NODES = 16
"""Nodes per program, at least."""


def walk_tiles(context: Context, nodes: int = NODES) -> int:
    """Programs that share the nodes of one request and head."""
    return -(-context.shapes.max_nodes // nodes)


class Walk(GroupTiles):
    """Emits walks of the nodes of one program. Vectors are not cut into chunks."""

    def __init__(self, context: Context, writer: Writer, nodes: int = NODES) -> None:
        b_k = padded(context.shapes.d_k)
        super().__init__(context, grouped(context, "reached", nodes, b_k), writer)
        self.nodes = nodes

    @property
    def decay_kind(self) -> Kind | None:
        """What a decay belongs to: a head, key channels or value channels; None without one."""
        plan = self.context.plan
        if plan.key_decay is not None:
            return Kind.KEY
        if plan.value_decay is not None:
            return Kind.VALUE
        return None if plan.log_decay is None else Kind.HEAD

    def channels(self) -> None:
        """All key channels at once."""
        self.writer.let("key", f"tl.arange(0, {padded(self.context.shapes.d_k)})")

    def open(self, before: tuple[tuple[str, int], ...], *, pdl: bool) -> None:
        """Which nodes the program takes. `before`: parts that a head is cut into otherwise, with
        their number."""
        w = self.writer
        tiles = walk_tiles(self.whole, self.nodes)
        whole, parts = self.whole, (*before, ("node_tile", tiles))
        split_program(w, parts, whole.system_heads, given=whole.prepares_first)
        grouped = whole.shapes.group > 1 and not whole.shares_systems
        w.let("key_head", "head // GROUP" if grouped else "head")
        if pdl:
            w.line("tl.extra.cuda.gdc_wait()")
            w.line("tl.extra.cuda.gdc_launch_dependents()")
        self.node_range()
        start = f"node_tile * {self.nodes} + " if tiles > 1 else ""
        w.let("node", f"{start}tl.arange(0, {self.nodes})")
        w.let("inside", "node < count")
        self.channels()

    def begin(self, times: tuple[bool, ...], ones: dict[Kind, str]) -> None:
        """Every node stands at itself and has passed nothing. `times`: whether what is read counts
        the decay of the node itself; `ones`: a neutral tile for each kind of decay."""
        w, words = self.writer, self.whole.shapes.words
        w.section("every node walks up its path; what it reads has decayed by what it has passed")
        own = "~(1 << (node & 63).to(tl.int64))"
        for word in range(words):
            keep = f"tl.where(node // 64 == {word}, {own}, -1)" if words > 1 else own
            w.let(f"left_{word}", f"{ancestor_word(w, word, words)} & {keep}")
        at = f"{w.arg('depths', '*i32')} + first + node"
        w.let("deepest", f"tl.max(tl.load({at}, mask=inside, other=-1), axis=0)")
        w.let("node_reached", "tl.where(inside, node, -1)")
        kind = self.decay_kind
        self.times = times if kind in ones else ()
        for after in self.times:
            assert kind is not None
            w.let(passed(after), ones[kind])

    @contextmanager
    def steps(self) -> Iterator[None]:
        """The loop over the steps; the body uses what has been reached (the second group)."""
        w = self.writer
        with w.block("for step in range(0, deepest + 1):"):
            w.let("inside_reached", "node_reached >= 0")
            w.let("own", "node_reached == node")
            yield
            self._pass()
            self._move_up()

    def _pass(self) -> None:
        """Multiply by the decay of what has been reached: one beyond the end of a path."""
        if not self.times:
            return
        w, across = self.writer, "" if self.decay_kind is Kind.HEAD else "[:, None]"
        decay = w.let("decay_reached", self.decay())
        for after in self.times:
            step = decay if after else f"tl.where(own{across}, 1.0, {decay})"
            w.let(passed(after), f"{passed(after)} * {step}")

    def decay(self) -> str:
        """The decay of what has been reached, over all channels, as text."""
        plan, kind = self.context.plan, self.decay_kind
        if kind is Kind.HEAD:
            return f"tl.exp2({self.own_log_decay(OTHER)})"
        factors = plan.key_decay if kind is Kind.KEY else plan.value_decay
        assert kind is not None and factors is not None
        self.writer.origin("decay", place(factors, plan.form.decay))
        with self.precisely():
            tile = self.whole_vector(kind, factors, OTHER)
        return f"tl.where({self.exists(kind, OTHER)}, {tile}, 1.0)"

    @contextmanager
    def precisely(self) -> Iterator[None]:
        """Exponentials within are taken to the last digit: they are multiplied along paths, and
        what is read of a state that grows apart may be a small difference of such products."""
        self.writer.precise = True
        yield
        self.writer.precise = False

    def _move_up(self, above: str = "node_reached") -> None:
        """`above`, the nearest ancestor that is left: the highest bit."""
        w, words = self.writer, self.whole.shapes.words
        for word in range(words):
            left = f"left_{word}"
            w.let(f"highest_{word}", f"({isolated_highest(left)} >> 23) - 127")
        reached = "-1"
        for word in range(words):
            # the sign bit is node 63, an ancestor only where there are nodes in the next word
            highest = f"highest_{word}"
            if words > 1:
                highest = f"tl.where(left_{word} < 0, {64 * word + 63}, {64 * word} + {highest})"
            reached = f"tl.where(left_{word} != 0, {highest}, {reached})"
        w.let(above, reached)
        w.let("bit", f"1 << (tl.maximum({above}, 0) & 63).to(tl.int64)")
        for word in range(words):
            gone = f"tl.where({above} // 64 == {word}, bit, 0)" if words > 1 else "bit"
            w.let(f"left_{word}", f"left_{word} & ~{gone}")

    def scaled(self, name: str, after: bool) -> str:
        """A vector of the node times the decays it has passed where those are channels of it;
        text."""
        return product(passed(after), name) if after in self.times else name


def passed(after_decay: bool) -> str:
    """Variable of the decays that a walk has passed, that of the node itself included or not."""
    return "passed" if after_decay else "passed_above"


def ancestor_word(w: Writer, word: int, words: int) -> str:
    """A load of one of the words with the ancestors of the program's nodes, themselves included;
    text."""
    at = f"(first + node) * {words} + {word}" if words > 1 else "first + node"
    return f"tl.load({w.arg('ancestors', '*i64')} + {at}, mask=inside, other=0)"


def isolated_highest(bits: str) -> str:
    """The float32, seen as an int32, whose exponent is the number of the highest bit of an int64:
    without the bit below the highest, rounding to a float keeps the exponent; text."""
    return f"({bits} & ~({bits} >> 1)).to(tl.float32).to(tl.int32, bitcast=True)"


def emit_parents(w: Writer, words: int) -> str:
    """The nearest strict ancestor of each node, -1 for a root: the highest bit of its ancestor
    words but its own."""
    w.comment("without the bit below the highest, rounding to a float keeps the exponent")
    w.let("own", "1 << (node & 63).to(tl.int64)")
    parent = "-1"
    for word in range(words):
        own = "own" if words == 1 else f"tl.where(node // 64 == {word}, own, 0)"
        left = w.let(f"left_{word}", f"{ancestor_word(w, word, words)} & ~{own}")
        high = f"{isolated_highest(left)} >> 23"
        number = f"({high}) - {127 - 64 * word}".replace("- -", "+ ")
        if words > 1:  # the sign bit of a word before the last
            number = f"tl.where({left} < 0, {64 * word + 63}, {number})"
        parent = w.let("parent", f"tl.where({left} != 0, {number}, {parent})")
    return parent
