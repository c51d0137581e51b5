"""The staged schedule: where channels of the unknowns decay apart, or updates act from the right.

Then no inverse of one matrix per head gives the readout: the unknowns themselves are needed.

    factors    walks: G without decays of the unknowns, vectors that read S_pre times their decays
    unknowns   tiles of the unknowns' channels: (I + G) U = R, node after node
    values     walks: o_i from S_pre and from what the ancestors wrote, U included

Without erase/write pairs only the last is there. Right acting, all of this describes S^T: vectors
are written along values, and the unknowns are key vectors. What the kernels hand on:

    folded     [requests, heads, pairs, sources, MAX_NODES (ancestor), MAX_NODES (node)]: G
    vectors    [requests, heads] of planes: erase vectors times decays [MAX_NODES, written side],
               then sums of the logarithms of decays [MAX_NODES, side of the unknowns]
    unknowns   [pairs, nodes, heads * side of the unknowns]: U
"""

from __future__ import annotations

from boleir.codegen.emit.context import Context
from boleir.codegen.emit.groups import GroupTiles
from boleir.codegen.naming import leaf
from boleir.codegen.plan import Operand, Plan
from boleir.ir import Expr, Kind

UNROLLED = 32
"""Channels of the written side in one product with the state."""


def sources(plan: Plan) -> tuple[tuple[Operand, Expr | None], ...]:
    """What nodes write: the vector along the written side, and the other one, None for an
    unknown."""
    pairs: list[tuple[Operand, Expr | None]] = [(pair.write, None) for pair in plan.pairs]
    return (*pairs, *((write.key, write.value) for write in plan.writes))


def gram_count(plan: Plan) -> int:
    """Matrices [MAX_NODES, MAX_NODES] of G per request and head."""
    return len(plan.pairs) * len(sources(plan))


def sum_times(plan: Plan) -> tuple[bool, ...]:
    """Which sums of logarithms the unknowns need: with the node's own decay, then without it."""
    if plan.unknown_log_decay is None:
        return ()
    return (True, False) if any(not pair.after_decay for pair in plan.pairs) else (True,)


def plane_sizes(context: Context) -> list[int]:
    """Channels of each plane of `vectors` of one request and head."""
    plan, shapes = context.plan, context.shapes
    if not plan.pairs:
        return []
    erase = [shapes.width(plan.written)] * len(plan.pairs)
    return erase + [shapes.width(plan.unknown)] * (2 * len(sum_times(plan)))


def plane_names(context: Context) -> list[str]:
    """The planes in words."""
    plan = context.plan
    names = [f"{leaf(pair.erase.base)} times the decays of its path" for pair in plan.pairs]
    for after in sum_times(plan):
        where = "its path" if after else "the path of its parent"
        names += [f"log-decays of {where} in eighths", "what the eighths leave"]
    return names


def gram_rows(tiles: GroupTiles) -> str:
    """Where G of the program's request and head begins; a name."""
    count = gram_count(tiles.whole.plan)
    size = f"({f'{count} * ' if count > 1 else ''}MAX_NODES * MAX_NODES)"
    at = f"{tiles.writer.arg('folded', '*fp32')} + {_program_head()} * {size}"
    return tiles.writer.let("gram_rows", at)


def gram_at(tiles: GroupTiles, pair: int, source: int) -> str:
    """Where one matrix of G begins."""
    number = pair * len(sources(tiles.whole.plan)) + source
    return f"gram_rows + {number} * (MAX_NODES * MAX_NODES)" if number else "gram_rows"


def place_vectors(tiles: GroupTiles) -> None:
    """Bind the address of the planes of the program's request and head."""
    size = sum(plane_sizes(tiles.whole))
    at = f"{tiles.writer.arg('vectors', '*fp32')} + {_program_head()} * ({size} * MAX_NODES)"
    tiles.writer.let("vector_rows", at)


def vector_at(tiles: GroupTiles, plane: int, kind: Kind, channel: str) -> str:
    """Addresses of a tile [nodes of the program, channels] of a plane."""
    node, first = tiles.context.block("node", 0), sum(plane_sizes(tiles.whole)[:plane])
    rows = f"vector_rows + {first} * MAX_NODES" if first else "vector_rows"
    return f"{rows} + ({node} * {tiles.width(kind)})[:, None] + {channel}[None, :]"


def sum_plane(plan: Plan, after: bool, rest: bool) -> int:
    """Number of the plane with sums of logarithms: eighths, or what they leave."""
    return len(plan.pairs) + 2 * sum_times(plan).index(after) + rest


def unknown_rows(tiles: GroupTiles, pair: int, rows: str) -> str:
    """Addresses of the first unknown channel of the program's head, for rows of nodes."""
    width = tiles.width(tiles.unknown)
    capacity = tiles.writer.arg("capacity", "i64")
    plane = f"{pair} * {capacity} + {rows}" if pair > 1 else f"{capacity} + {rows}"
    buffer = tiles.writer.arg("unknowns", "*fp32")
    row = f"({plane if pair else rows})"
    return f"{buffer} + {row} * (VALUE_HEADS * {width}) + head * {width}"


def _program_head() -> str:
    return "(request * VALUE_HEADS + head).to(tl.int64)"
