"""Key vectors that the factors kernel leaves in memory where every key channel decays on its own.

A vector that reads the committed state is multiplied by the decays of its whole path, channel by
channel, which no row scalar can do afterwards: the value kernel loads the product. Behind those
lie vectors that a walk up the paths gathers and that are no inputs: decays, computed written
vectors. All are float32, one plane [NODE_BLOCK, D_K] each per request and value head.
"""

from __future__ import annotations

from boleir.codegen.emit.context import Context
from boleir.codegen.emit.tiles import Tiles
from boleir.codegen.naming import leaf
from boleir.codegen.plan import Operand, Plan
from boleir.ir import Expr

Reader = tuple[Expr, bool]
"""A vector that reads the parent's state, and whether it does so after the decay."""


def readers(plan: Plan) -> tuple[Reader, ...]:
    """What reads the state, every vector once."""
    found = [(pair.erase.base, pair.after_decay) for pair in plan.pairs]
    return tuple(dict.fromkeys([*found, (plan.query.base, plan.query_after_decay)]))


def written(plan: Plan) -> tuple[Operand, ...]:
    """What nodes write along."""
    return (*(pair.write for pair in plan.pairs), *(write.key for write in plan.writes))


def computed(plan: Plan) -> tuple[Expr, ...]:
    """What is gathered along the paths and lies in no input: the decay comes first."""
    assert plan.key_decay is not None
    others = (operand.base for operand in written(plan) if not operand.stored)
    return tuple(dict.fromkeys([plan.key_decay, *others]))


def vector_planes(context: Context) -> tuple[Expr | Reader, ...]:
    """What the planes hold, in order; none where channels decay together."""
    plan = context.plan
    return () if plan.key_decay is None else (*readers(plan), *computed(plan))


def vector_names(context: Context) -> list[str]:
    """The planes in words."""
    plan, names = context.plan, []
    for plane in vector_planes(context):
        if isinstance(plane, Expr):
            names.append("decay" if plane == plan.key_decay else leaf(plane))
        else:
            names.append(f"{leaf(plane[0])} times the decays of its path")
    return names


def place_planes(tiles: Tiles, program: str) -> None:
    """Bind the address of the planes of one request and value head."""
    w, count = tiles.writer, len(vector_planes(tiles.context))
    at = f"{w.arg('vectors', '*fp32')} + {program} * ({count} * NODE_BLOCK * D_K)"
    w.let("vector_place", at)


def plane_tile(tiles: Tiles, plane: Expr | Reader, chunk: int, node: str = "node") -> str:
    """Addresses of a key chunk of a plane, in the rows of `node`."""
    number = vector_planes(tiles.context).index(plane)
    first = f"vector_place + {number} * (NODE_BLOCK * D_K)" if number else "vector_place"
    return f"{first} + ({node} * D_K)[:, None] + {tiles.key_name(chunk)}[None, :]"


def channel_mask(tiles: Tiles, chunk: int) -> str:
    """`, mask=...` for a whole plane where the key chunk reaches beyond the last channel."""
    return f", mask=({tiles.key_name(chunk)} < D_K)[None, :]" if tiles.is_partial(chunk) else ""
