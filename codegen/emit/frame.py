"""The frame of a verify kernel: request and node numbers, ancestor words, masks, orientation.

A program handles one value head of one request. Nodes come in blocks; names carry the block as a
suffix when there are several. Value tiles have the orientation of the schedule.
"""

from __future__ import annotations

from collections.abc import Callable

from boleir.codegen.emit.context import Context
from boleir.codegen.emit.text import bracket, conjunction
from boleir.codegen.emit.writer import Writer
from boleir.codegen.topology_facts import is_chain

DECODE = """\
head = program % VALUE_HEADS
request = program // VALUE_HEADS"""
"""Lines that find what a program of one head works on."""

DECODE_SHARED = """\
head = program % KEY_HEADS
request = program // KEY_HEADS"""
"""The same for a key head whose value heads share their system: its planes are numbered like key
heads."""


class Frame:
    """Emits what every verify kernel starts with; remembers in the writer what has been emitted."""

    def __init__(self, context: Context, writer: Writer) -> None:
        self.context = context
        self.writer = writer
        self.memo = writer.memo
        self.rows_ready = context.schedule.gates == "prepare"
        self.nodes_on_rows = context.schedule.orientation == "nodes"

    def program(
        self, decode: str, head: str = "head", *, given: bool = False, shared: bool = False
    ) -> None:
        """The program's number, `given` to a part of a kernel as an argument, and what it works
        on; `shared`: see `request`."""
        if given:
            self.writer.arg("program", "i32")
        else:
            self.writer.let("program", "tl.program_id(0)")
        self.request(decode, head, shared=shared)

    def request(self, decode: str, head: str = "head", *, shared: bool = False) -> None:
        """Lines that find the program's head and request; `decode` assigns both, the head, or one
        of those that share its key head, to `head`: if `shared`, that key head's own number."""
        w = self.writer
        for text in decode.splitlines():
            w.line(text)
        grouped = self.context.shapes.group > 1 and not shared
        w.let("key_head", f"{head} // GROUP" if grouped else head)
        self.node_range()

    def node_range(self) -> None:
        """First row and number of nodes of the request."""
        w = self.writer
        cu = w.arg("cu_nodes", "*i32")
        w.let("start", f"tl.load({cu} + request)")
        w.let("count", f"tl.minimum(tl.load({cu} + request + 1) - start, MAX_NODES)")
        w.let("first", "start.to(tl.int64)")

    def node_block(self, b: int) -> None:
        """Node numbers and validity of block `b`."""
        w, name, first = self.writer, self.context.block, self.context.first_node(b)
        start = "" if first == "0" else f"{first} + "
        node = w.let(name("node", b), f"{start}tl.arange(0, NODE_BLOCK)")
        w.let(name("inside", b), f"{node} < count")

    # -- orientation ------------------------------------------------------------------------------

    def across(self, text: str) -> str:
        """A vector of the nodes that read, broadcast over a value tile or a tile of pairs."""
        return bracket(text) + ("[:, None]" if self.nodes_on_rows else "[None, :]")

    def along(self, text: str) -> str:
        """A vector of value channels, or of the nodes that are read, broadcast the other way."""
        return bracket(text) + ("[None, :]" if self.nodes_on_rows else "[:, None]")

    def value_mask(self, b: int) -> str:
        """Mask of the entries of a value tile that exist."""
        c = self.context
        inside = self.across(c.block("inside", b))
        partial = c.shapes.d_v % c.schedule.b_v
        return f"{inside} & {self.along('(value < D_V)')}" if partial else inside

    # -- ancestry ---------------------------------------------------------------------------------

    def word_index(self, a: int) -> str:
        """Number of the ancestor word that holds the nodes of block `a`."""
        return str(a * self.context.schedule.node_block // 64)

    def ancestors(self, b: int, a: int) -> str:
        """The ancestor word of the nodes of block `b` that holds the nodes of block `a`."""
        c = self.context
        index, node = self.word_index(a), c.block("node", b)
        key = ("ancestors", b, index)
        if key not in self.memo:
            words = c.shapes.words
            name = c.block("word", b) + (f"_w{index}" if words > 1 else "")
            name = c.pair("word", b, a) if c.looped else name
            self.memo[key] = self._word(b, a, name, index, node)
        return self.memo[key]

    def _word(self, b: int, a: int, name: str, index: str, node: str) -> str:
        if is_chain(self.context.shapes.parents):
            self.writer.comment("in a chain the ancestors of a node are all nodes before it")
        inside = self.context.block("inside", b)
        return self.writer.let(name, self.word_of(node, inside, b, index))

    def word_of(self, node: str, inside: str, b: int, index: str) -> str:
        """Ancestor word `index` of some nodes of block `b`, `inside` a request or not."""
        c = self.context
        if is_chain(c.shapes.parents):
            same = self.word_index(b) == index
            bits = f"(2 << ({node} & 63).to(tl.int64)) - 1" if same else f"{node}.to(tl.int64) | -1"
            return f"tl.where({inside}, {bits}, 0)"
        words = c.shapes.words
        where = f"first * {words} + {bracket(index)} + {node} * {words}"
        at = f"{self.writer.arg('ancestors', '*i64')} + "
        at += where if words > 1 else f"first + {node}"
        return f"tl.load({at}, mask={inside}, other=0)"

    def bad_nodes(self, b: int, a: int) -> list[str]:
        """Variables with the bits of nodes with a non-finite input, up to block `b`, in the word of
        block `a`."""
        index = self.word_index(a)
        return [self.context.block("bad", x) for x in range(b + 1) if self.word_index(x) == index]

    def path(self, b: int, a: int) -> str:
        """Like `ancestors`, without the nodes that have a non-finite input (after `scalars`).

        A node's own test is a bit of the block's word: all bits are known to all threads, so that
        masks are computed where they are used. The vector of tests is known where the inputs are.
        """
        key = ("path", b, self.word_index(a))
        if key not in self.memo:
            raw, bad = self.ancestors(b, a), self.bad_nodes(b, a)
            keep = f"{raw} & ~{bracket(' | '.join(bad))}" if bad else raw
            name, bit = raw.replace("word", "path", 1), f"({self.context.block('node', b)} & 63)"
            own = f"({self.context.block('bad', b)} & (1 << {bit}.to(tl.int64))) != 0"
            self.memo[key] = self.writer.let(name, f"tl.where({own}, 0, {keep})")
        return self.memo[key]

    def _half(self, word: str, high: bool) -> str:
        """One 32-bit half of a word: tests of single bits are cheaper on it."""
        key = ("half", word, high)
        if key not in self.memo:
            name, shifted = f"{word}_{'hi' if high else 'lo'}", f"({word} >> 32)" if high else word
            self.memo[key] = self.writer.let(name, f"{shifted}.to(tl.int32)")
        return self.memo[key]

    def is_ancestor(self, b: int, a: int) -> str:
        """Mask of ancestor-or-self pairs, node of block `b` against ancestor in block `a`, without
        the nodes that have a non-finite input.

        Rows are ancestors when values stand on rows, nodes otherwise.
        """
        name, across, along = self.context.block, self.across, self.along
        if is_chain(self.context.shapes.parents):
            tests = (across(name("finite", b)), along(name("finite", a)))
            return conjunction(*self._is_before(b, a, across, along), *tests)
        return self._bits(self.path(b, a), a, across, along)

    def on_path(self, b: int, a: int) -> str:
        """Mask of all ancestor-or-self pairs, oriented like the tiles."""
        if is_chain(self.context.shapes.parents):
            return conjunction(*self._is_before(b, a, self.across, self.along))
        return self._bits(self.ancestors(b, a), a, self.across, self.along)

    def _is_before(self, b: int, a: int, across: Broadcast, along: Broadcast) -> tuple[str, ...]:
        """Ancestry in a chain: the order of the nodes."""
        name = self.context.block
        inside = across(name("inside", b))
        if a < b:
            return (inside,)
        return f"{along(name('node', a))} <= {across(name('node', b))}", inside

    def _bits(self, word: str, a: int, across: Broadcast, along: Broadcast) -> str:
        """Test the bits of the nodes of block `a` in a vector of ancestor words."""
        c = self.context
        node, size = c.block("node", a), c.schedule.node_block
        if size <= 32 and not c.looped:
            bits = across(self._half(word, a * size % 64 >= 32))
        else:
            # one broadcast of words: where they are known in another layout than that of the tile
            # the compiler converts them, not the tests of all pairs
            half = f"{along(f'{node} & 32')}.to(tl.int64)"
            bits = f"({across(word)} >> {half}).to(tl.int32)"
        return f"({bits} & {along(f'1 << ({node} & 31)')}) != 0"


Broadcast = Callable[[str], str]


def _columns(text: str) -> str:
    return f"{bracket(text)}[None, :]"


def _rows(text: str) -> str:
    return f"{bracket(text)}[:, None]"
