"""What kernels leave in memory where every key channel decays on its own: planes of vectors, and of
products with the decays between their nodes.

A vector that reads the committed state is multiplied by the decays of its whole path, channel by
channel, which no row scalar can do afterwards: whoever reads the state loads the product. Behind
those lie vectors that a walk up the paths gathers and that are no inputs: decays, computed written
vectors. `decayed` has a float32 plane [nodes, D_K] of each for every value head, `products` one
[nodes, COLUMNS] for every pair of a reading and a written vector: row i, column j couples node i to
its ancestor j, other entries are never written.
"""

from __future__ import annotations

from boleir.codegen.emit.context import Context, plane_of
from boleir.codegen.emit.tiles import Tiles
from boleir.codegen.naming import leaf
from boleir.codegen.plan import Operand, Plan
from boleir.codegen.rewrite import sign
from boleir.codegen.schedule import blocks
from boleir.ir import Call, Dot, Expr, Input, Kind, Per, walk

Reader = tuple[Expr, bool]
"""A vector that reads the parent's state, and whether it does so after the decay."""

Plane = Expr | Reader
"""What a plane holds: a computed vector, or a reader times the decays of its path."""


def readers(plan: Plan) -> tuple[Reader, ...]:
    """What reads the state, every vector once."""
    found = [(pair.erase.base, pair.after_decay) for pair in plan.pairs]
    found += [(readout.query.base, readout.after_decay) for readout in plan.readouts]
    return tuple(dict.fromkeys(found))


def written(plan: Plan) -> tuple[Operand, ...]:
    """What nodes write along."""
    return (*(pair.write for pair in plan.pairs), *(write.key for write in plan.writes))


def written_bases(plan: Plan) -> tuple[Expr, ...]:
    """The vectors of `written`, every one once."""
    return tuple(dict.fromkeys(operand.base for operand in written(plan)))


def computed(plan: Plan) -> tuple[Expr, ...]:
    """What is gathered along the paths and lies in no input: the decay comes first."""
    assert plan.key_decay is not None
    others = (operand.base for operand in written(plan) if not operand.stored)
    return tuple(dict.fromkeys([plan.key_decay, *others]))


# -- sums along the paths -------------------------------------------------------------------------


def own_products(plan: Plan) -> tuple[tuple[Reader, Expr], ...]:
    """Queries, and written vectors that they read at the node that writes them."""
    readouts = [x for x in plan.readouts if x.inclusive]
    queries = dict.fromkeys((x.query.base, x.after_decay) for x in readouts)
    return tuple((query, base) for query in queries for base in written_bases(plan))


def by_logarithm(plan: Plan) -> bool:
    """Whether the logarithm of a decay tells all about it."""
    return isinstance(plan.key_decay, Call) and plan.key_decay.fn == "exp"


def is_sized(plan: Plan) -> bool:
    """Whether decays may be not finite where all inputs are."""
    assert plan.key_log_decay is not None
    return not by_logarithm(plan) or sign(plan.key_log_decay) >= 0


def key_parameters(plan: Plan) -> tuple[Input, ...]:
    """Numbers of the layer per key channel in the decays."""
    assert plan.key_decay is not None
    found = dict.fromkeys(x for x in walk(plan.key_decay) if isinstance(x, Input))
    return tuple(x for x in found if x.per is Per.HEAD and x.kind is Kind.KEY)


def multiplied(plan: Plan) -> tuple[Expr, ...]:
    """All vectors that stand in products with decays."""
    return tuple(dict.fromkeys([*(base for base, _ in readers(plan)), *written_bases(plan)]))


def decay_vectors(plan: Plan) -> tuple[Expr, ...]:
    """What sums of decays are computed from."""
    found = (plan.key_log_decay, None if by_logarithm(plan) else plan.key_decay)
    return tuple(x for x in found if x is not None)


def key_sums_of(expr: Expr) -> tuple[Expr, ...]:
    """The sums over key channels in a HEAD expression."""
    return tuple(x for x in walk(expr) if is_key_sum(x))


def is_key_sum(expr: Expr) -> bool:
    """Whether an expression is a sum over key channels."""
    if isinstance(expr, Dot):
        return expr.left.kind is Kind.KEY
    return isinstance(expr, Call) and expr.fn == "sum" and expr.arg.kind is Kind.KEY


# -- planes ---------------------------------------------------------------------------------------


def vector_planes(context: Context) -> tuple[Plane, ...]:
    """What the planes of `decayed` hold, in order; none where channels decay together."""
    plan = context.plan
    if not context.key_walks:
        return ()
    if context.spread_walks:
        return () if context.schedule.folds else readers(plan)
    return (*readers(plan), *computed(plan))


def vector_names(context: Context) -> list[str]:
    """The planes in words."""
    plan, names = context.plan, []
    for plane in vector_planes(context):
        if isinstance(plane, Expr):
            names.append("decay" if plane == plan.key_decay else leaf(plane))
        else:
            names.append(f"{leaf(plane[0])} times the decays of its path")
    return names


def product_planes(context: Context) -> tuple[tuple[Reader, Expr], ...]:
    """The pairs of vectors whose products have a plane, in order; none where channels decay
    together, or where programs that walk take all that is to be made of products."""
    plan = context.plan
    if not context.key_walks or context.leaves_rows:
        return ()
    return tuple((reader, base) for reader in readers(plan) for base in written_bases(plan))


def product_names(context: Context) -> list[str]:
    """The planes in words."""
    return [f"{leaf(reader[0])} with {leaf(base)}" for reader, base in product_planes(context)]


def columns(context: Context) -> int:
    """Entries of a row of a plane of products: one for each node of a request, blocks filled up."""
    return blocks(context.schedule, context.shapes) * context.schedule.node_block


# -- addresses ------------------------------------------------------------------------------------


def plane_tile(tiles: Tiles, plane: Plane, chunk: int, b: int, node: str = "") -> str:
    """Addresses of a key chunk of a plane, in the rows of block `b` or of other nodes."""
    w, number = tiles.writer, vector_planes(tiles.context).index(plane)
    key = ("vector plane", number)
    if key not in tiles.memo:
        decayed, capacity = w.arg("decayed", "*fp32"), w.arg("capacity", "i64")
        row = plane_of(number, tiles.context.system_head)
        at = f"{decayed} + ({row} * {capacity} + first) * D_K"
        tiles.memo[key] = w.temp(at, f"decayed_{number}_rows")
    row = f"({node or tiles.context.block('node', b)} * D_K)[:, None]"
    return f"{tiles.memo[key]} + {row} + {tiles.key_name(chunk)}[None, :]"


def plane_mask(tiles: Tiles, chunk: int, b: int) -> str:
    """Mask of the entries of a plane's tile that exist: rows belong to the nodes of a request."""
    return f", mask={tiles.key_mask(b, chunk)}"


def product_rows(tiles: Tiles, reader: Reader, base: Expr) -> str:
    """Variable with the address of the request's first row of a plane of products."""
    w, number = tiles.writer, product_planes(tiles.context).index((reader, base))
    key = ("product plane", number)
    if key not in tiles.memo:
        products, capacity = w.arg("products", "*fp32"), w.arg("capacity", "i64")
        plane = plane_of(number, tiles.context.system_head)
        at = f"{products} + ({plane} * {capacity} + first) * COLUMNS"
        tiles.memo[key] = w.temp(at, f"{leaf(reader[0])}_{leaf(base)}_rows")
    return tiles.memo[key]
