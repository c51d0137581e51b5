"""Products over the key channels in a loop over chunks of them, whose loads run ahead.

Written out, a tile is waited for where it is loaded: a key tile goes to shared memory at once, a
state tile takes registers until its products are done. In a loop of several stages the compiler
makes asynchronous copies of them, which are all on their way before the first one is used and need
no registers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from boleir.codegen.emit.context import Context
from boleir.codegen.emit.key_vectors import Reader, readers
from boleir.codegen.emit.state import load_chunk, place_state, state_pieces
from boleir.codegen.emit.system import System
from boleir.codegen.emit.tiles import Tiles
from boleir.codegen.emit.writer import Writer
from boleir.codegen.naming import leaf
from boleir.ir import Expr


@dataclass(frozen=True, slots=True)
class KeyLoopContext(Context):
    """The context of a kernel that holds one key chunk at a time, whichever it is."""

    @property
    def key_chunks(self) -> int:
        """One: names need not tell chunks apart."""
        return 1


class KeyLoopTiles(Tiles):
    """Tiles whose key channels are those of the loop's chunk."""

    def channels(self) -> None:
        """Nothing: they are the loop's."""

    def is_partial(self, chunk: int) -> bool:
        """Whether some chunk reaches beyond the last channel."""
        c = self.context
        return c.shapes.d_k % c.schedule.b_k != 0


def looped_tiles(context: Context, writer: Writer) -> KeyLoopTiles:
    """Tiles of a kernel, or of a part of it, that walks key chunks."""
    return KeyLoopTiles(KeyLoopContext(context.plan, context.shapes, context.schedule), writer)


def read_state(system: System) -> dict[Reader, str]:
    """base^T S_pre for every operand that reads the state, before or after the decay."""
    w, tiles, context = system.writer, system.tiles, system.context
    place_state(tiles)
    bases = dict.fromkeys(base for base, _ in readers(context.plan))
    tiles.place_keys(*bases)
    shape = "[NODE_BLOCK, B_V]" if tiles.nodes_on_rows else "[B_V, NODE_BLOCK]"
    names = {base: _zeros(w, f"state_dot_{leaf(base)}", shape) for base in bases}
    with _chunks(tiles):
        (state,) = state_pieces(tiles, system.precision, [load_chunk(tiles, 0)])
        for base, name in names.items():
            system.read(name, system.key_pieces(base, 0, 0), state, name)
    return {(base, after): name for base, name in names.items() for after in (False, True)}


def multiply_keys(system: System, pairs: Iterable[tuple[Expr, Expr]]) -> None:
    """Gram matrices of `pairs`, a reader and a written vector each: remembered, not returned."""
    w, pairs = system.writer, dict.fromkeys(pairs)
    tiles = looped_tiles(system.context, w)
    tiles.place_keys(*(base for pair in pairs for base in pair))
    looped = System(tiles, system.precision)
    shape = "[NODE_BLOCK, NODE_BLOCK]"
    names = {(r, b): _zeros(w, f"gram_{leaf(r)}_{leaf(b)}", shape) for r, b in pairs}
    with _chunks(tiles):
        for (reader, written), name in names.items():
            looped.add_gram(name, 0, 0, reader, written, name)
    for (reader, written), name in names.items():
        w.memo["gram", 0, 0, reader.key, written.key] = name


def _zeros(w: Writer, name: str, shape: str) -> str:
    return w.let(w.fresh(name), f"tl.zeros({shape}, tl.float32)")


@contextmanager
def _chunks(tiles: Tiles) -> Iterator[None]:
    """The body of the loop over key chunks."""
    w, stages = tiles.writer, tiles.context.schedule.stages
    with w.block(f"for chunk in tl.range(0, D_K, B_K, num_stages={stages}):"):
        w.let(tiles.key_name(0), "chunk + tl.arange(0, B_K)")
        yield
