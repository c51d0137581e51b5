"""One vector for all that reads the committed state.

Outputs read the state along their queries, and along what the nodes of their paths erase:

    O = D_P Q S + F (r - D_E E^T S)  =  (D_P Q - F D_E E) S + F r

No value channel occurs in the bracket, so that the factors kernel takes it once per head: one
vector for each node and output, left in the pieces that products take. Value tiles multiply the
state once, and find right sides that do not depend on it. Vectors of nodes with a non-finite input
on their path are NaN, and count as zero for others.
"""

from __future__ import annotations

from boleir.codegen.emit.handover import (
    decayed_readers,
    first_handed_plane,
    folded_pieces,
    folded_readers,
    handover,
)
from boleir.codegen.emit.key_pieces import vector_at
from boleir.codegen.emit.key_vectors import Reader, plane_tile
from boleir.codegen.emit.precision import Pieces
from boleir.codegen.emit.system import System
from boleir.codegen.emit.tiles import Tiles
from boleir.codegen.naming import leaf
from boleir.codegen.schedule import padded
from boleir.ir import Input

WIDTH = 64
"""Key channels at a time: products of warp groups with fewer are compiled wrongly for sm_90, and
more take registers."""

_KEY_TILES = ("raw", "key", "live key", "pieces", "whole")


class ReaderTiles(Tiles):
    """Key tiles of the channels of a step, zero in nodes that are not clean. What other tiles know
    of row scalars these know, too."""

    def __init__(self, tiles: Tiles, width: int) -> None:
        super().__init__(tiles.context, tiles.writer)
        self.rows_ready = tiles.rows_ready
        self.memo = {k: name for k, name in tiles.memo.items() if k[0] not in _KEY_TILES}
        self.width = width

    def key_name(self, chunk: int) -> str:
        """Name of the channel numbers of a step."""
        return "read_channel"

    def key_part(self, chunk: int) -> str:
        """What names of key tiles end in."""
        return "_read"

    def _address(
        self, item: Input, b: int, channel: str, node: str | None = None
    ) -> tuple[str, str]:
        """The same from node numbers that the compiler does not know."""
        return super()._address(item, b, channel, node or "node_again")

    def is_partial(self, chunk: int) -> bool:
        """Whether a step reaches beyond the last channel."""
        return self.context.shapes.d_k % self.width != 0

    def key_mask(self, b: int, chunk: int, rows: str | None = None) -> str:
        """Mask of the entries of clean nodes."""
        return super().key_mask(b, chunk, rows or "clean")


def fold_readers(system: System, folds: list[str]) -> None:
    """The vector of every output, given F of each; what multiplies rows has been stored."""
    w, c, parts = system.writer, system.context, handover(system.context)
    w.section("one vector for all that reads the state: q^T S - F (e^T S) = (q - F e)^T S")
    w.comment(
        "what was stored before, and inputs once more: they would wait in registers, as would"
    )
    w.comment("their addresses, if the compiler knew that these are the same")
    w.line("tl.debug_barrier()")
    w.let("again", f"tl.load({w.arg('cu_nodes', '*i32')} + request) - start")
    w.let("node_again", "node + again")
    w.let("place_again", "place + 64 * again")
    for name in (*parts.out_rows, *parts.erase_rows):
        number = first_handed_plane(c) + parts.names.index(name)
        at = system.tiles.plane_at(number, name, "head", 0, "again + node")
        w.let(name, f"tl.load({at}, mask=inside, other=0.0)")
    w.let("clean", f"inside & ({parts.out_rows[0]} == {parts.out_rows[0]})")
    (erase,) = parts.erase_rows
    taken = []
    for readout, fold in zip(c.plan.readouts, folds, strict=True):
        name = w.let(f"erased_fold{readout.mark}", f"{fold} * -{erase}[None, :]")
        taken.append(system.precision.pieces(w, name))
    size = padded(c.shapes.d_k)
    width = min(WIDTH, size)
    if width == size:
        w.let("read_channel", f"tl.arange(0, {width})")
        _step(system, ReaderTiles(system.tiles, width), taken)
    else:
        with w.block(f"for step in range(0, {-(-c.shapes.d_k // width)}):"):
            w.let("read_channel", f"step * {width} + tl.arange(0, {width})")
            _step(system, ReaderTiles(system.tiles, width), taken)


def _step(system: System, tiles: ReaderTiles, taken: list[Pieces]) -> None:
    """Some key channels of the vectors."""
    w, plan, c = system.writer, system.context.plan, system.context
    precision, known = system.precision, decayed_readers(system.context)
    (pair,) = plan.pairs
    erased = _pieces(system, tiles, (pair.erase.base, pair.after_decay))
    results = []
    for readout, pieces in zip(plan.readouts, taken, strict=True):
        query = _whole(system, tiles, (readout.query.base, readout.after_decay))
        row = handover(c).out_rows[readout.number]
        name = w.let(f"reader{readout.mark}", f"{row}[:, None] * {query}")
        precision.dot(w, name, pieces, erased, name)
        results.append(precision.pieces(w, name))
    if known:
        w.comment("queries that other threads have loaded are overwritten below")
        w.line("tl.debug_barrier()")
    for vector, result in zip(folded_readers(c), results, strict=True):
        for number, piece in enumerate(result.names):
            w.line(f"tl.store({vector_at(tiles, vector, number, 0, place='place_again')}, {piece})")


def _pieces(system: System, tiles: ReaderTiles, reader: Reader) -> Pieces:
    """A vector that reads the state, with the decays of its path where no row has them, as products
    take it."""
    c, w = system.context, system.writer
    if reader in decayed_readers(c):
        return _left(system, tiles, reader)
    if c.key_walks:
        return system.precision.pieces(w, _whole(system, tiles, reader))
    return System(tiles, system.precision).key_pieces(reader[0], 0, 0)


def _whole(system: System, tiles: ReaderTiles, reader: Reader) -> str:
    """The same as a float32 tile; text."""
    c, w = system.context, system.writer
    if reader in decayed_readers(c):
        pieces = [f"{piece}.to(tl.float32)" for piece in _left(system, tiles, reader).names]
        return f"({' + '.join(pieces)})"
    if not c.key_walks:
        return tiles.key(reader[0], 0, 0)
    known = ("read plane", *reader)
    if known not in tiles.memo:
        at = plane_tile(tiles, reader, 0, 0, "node_again")
        load = f"tl.load({at}, mask={tiles.key_mask(0, 0)}, other=0.0)"
        tiles.memo[known] = w.temp(load, f"{leaf(reader[0])}_decayed_read")
    return tiles.memo[known]


def _left(system: System, tiles: ReaderTiles, reader: Reader) -> Pieces:
    """The pieces in which it has been left."""
    known = ("read left", *reader)
    if known not in tiles.memo:
        vector, names = decayed_readers(system.context).index(reader), []
        for number in range(folded_pieces(system.context)):
            at = vector_at(tiles, vector, number, 0, place="place_again")
            load = f"tl.load({at}, mask={tiles.key_mask(0, 0)}, other=0.0)"
            names.append(system.writer.temp(load, f"{leaf(reader[0])}_decayed_read_{number}"))
        tiles.memo[known] = " ".join(names)
    return Pieces(tuple(tiles.memo[known].split()))
