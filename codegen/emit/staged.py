"""The staged schedule: where channels of the unknowns decay apart, or updates act from the right.

Then no inverse of one matrix per head gives the readout: the unknowns themselves are needed.

    factors    walks: G without decays of the unknowns, vectors that read S_pre times their decays
    unknowns   tiles of the unknowns' channels: (I + G) U = R, each node from its ancestors
    values     walks: o_i from S_pre and from what the ancestors wrote, U included

Without erase/write pairs only the last is there. Right acting, all of this describes S^T: vectors
are written along values, and the unknowns are key vectors. What the kernels hand on:

    folded     [requests, heads] of planes [MAX_NODES (node), PATH (steps up its path)]: G for every
               pair and source, then the numbers of the ancestors
    vectors    [requests, heads] of planes: erase vectors times decays [MAX_NODES, written side],
               then sums of the logarithms of decays [MAX_NODES, side of the unknowns]
    unknowns   [pairs, nodes, heads * side of the unknowns]: U
"""

from __future__ import annotations

from boleir.codegen.emit.context import Context
from boleir.codegen.emit.groups import OWN, GroupTiles
from boleir.codegen.naming import leaf
from boleir.codegen.plan import Operand, Plan
from boleir.codegen.request import Shapes
from boleir.ir import Expr, Kind

TOGETHER = 16
"""Ancestors of a node whose unknowns are read at the same time."""
UNROLLED = 32
"""Channels of the written side in one product with the state."""


def sources(plan: Plan) -> tuple[tuple[Operand, Expr | None], ...]:
    """What nodes write: the vector along the written side, and the other one, None for an
    unknown."""
    pairs: list[tuple[Operand, Expr | None]] = [(pair.write, None) for pair in plan.pairs]
    return (*pairs, *((write.key, write.value) for write in plan.writes))


def gram_count(plan: Plan) -> int:
    """Planes of G per request and head."""
    return len(plan.pairs) * len(sources(plan))


def path_length(shapes: Shapes) -> int:
    """Room for the ancestors of a node, in whole groups of those that are read together."""
    most = max(1, min(shapes.max_depth, shapes.max_nodes - 1))
    return -(-most // TOGETHER) * TOGETHER


def path_entries(plan: Plan, shapes: Shapes) -> int:
    """Entries of `folded` per request and head."""
    return (gram_count(plan) + 1) * shapes.max_nodes * path_length(shapes) if plan.pairs else 0


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


def place_paths(tiles: GroupTiles) -> None:
    """Bind the address of the planes along paths of the program's request and head."""
    size = gram_count(tiles.whole.plan) + 1
    at = f"{tiles.writer.arg('folded', '*fp32')} + {_program_head()} * ({size} * MAX_NODES * PATH)"
    tiles.writer.let("path_rows", at)


def path_at(tiles: GroupTiles, plane: int, node: str, step: str) -> str:
    """Addresses in one of these planes: what belongs to a node and a step up its path."""
    rows = f"path_rows + {plane} * (MAX_NODES * PATH)" if plane else "path_rows"
    return f"{rows} + {node} * PATH + {step}"


def gram_plane(plan: Plan, pair: int, source: int) -> int:
    """Number of a plane of G; the plane after the last has the numbers of the ancestors."""
    return pair * len(sources(plan)) + source


def place_vectors(tiles: GroupTiles) -> None:
    """Bind the address of the planes of the program's request and head."""
    size = sum(plane_sizes(tiles.whole))
    at = f"{tiles.writer.arg('vectors', '*fp32')} + {_program_head()} * ({size} * MAX_NODES)"
    tiles.writer.let("vector_rows", at)


def vector_at(tiles: GroupTiles, plane: int, kind: Kind, channel: str, b: int = OWN) -> str:
    """Addresses of a tile [nodes of a group, channels] of a plane."""
    node, first = tiles.context.block("node", b), sum(plane_sizes(tiles.whole)[:plane])
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
