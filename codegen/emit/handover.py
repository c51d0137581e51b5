"""What the factors kernel of a split schedule hands to the value kernel, and in which form."""

from __future__ import annotations

from dataclasses import dataclass

from boleir.codegen.emit.context import Context
from boleir.codegen.emit.key_vectors import Reader, readers
from boleir.codegen.emit.writer import Writer
from boleir.codegen.plan import Plan
from boleir.codegen.rewrite import split_factors, split_scale
from boleir.codegen.schedule import blocks, padded
from boleir.ir import Expr, Kind, Mul, walk


def folded_tiles(context: Context) -> int:
    """T x T tiles that the factors kernel hands over."""
    return len(context.plan.readouts) * row_tiles(context)


def row_tiles(context: Context) -> int:
    """T x T tiles through which one reader sees right sides and written values."""
    return len(context.plan.pairs) + len(context.plan.writes)


def folded_pieces(context: Context) -> int:
    """Pieces a folded tile is stored in."""
    if context.schedule.precision != "fp32":
        return 1
    several = blocks(context.schedule, context.shapes) > 1
    return 3 if context.keeps_digits and (several or not context.plan.pairs) else 2


def packs(context: Context) -> bool:
    """Whether two pieces are stored as one word (see `boleir.codegen.emit.packed`)."""
    ahead = context.leaves_rows and context.schedule.prefetch
    return ahead and folded_pieces(context) == 2


def parts_stored(context: Context) -> int:
    """Elements that are stored of an entry: its pieces, or one word of them."""
    return 1 if packs(context) else folded_pieces(context)


def folded_dtype(context: Context) -> str:
    """Element type of what is stored; words pass for numbers."""
    if packs(context):
        return "fp32"
    return "bf16" if context.schedule.precision in ("fp32", "bf16") else "fp32"


def vector_entries(context: Context) -> int:
    """Entries of a piece of a vector that reads the state as the factors kernel has left it, for
    all nodes of a head; none where the state is read by vectors as they come."""
    if not (decayed_readers(context) or context.folds_readers):
        return 0
    return context.schedule.node_block * padded(context.shapes.d_k)


def decayed_readers(context: Context) -> tuple[Reader, ...]:
    """Vectors that are left in pieces with the decays of their paths in them; none where decays
    multiply rows."""
    spread = context.spread_walks and context.schedule.folds
    return readers(context.plan) if context.key_sums or spread else ()


def folded_readers(context: Context) -> tuple[int, ...]:
    """By output: the place among the vectors of what stands for all that it reads the state by.

    That of its query, where this has a place: it is not needed any more.
    """
    if not context.folds_readers:
        return ()
    known, places = decayed_readers(context), list[int]()
    for readout in context.plan.readouts:
        reader = (readout.query.base, readout.after_decay)
        place = known.index(reader) if reader in known else -1
        free = max([len(known) - 1, *places]) + 1
        places.append(free if place < 0 or place in places else place)
    return tuple(places)


def left_vectors(context: Context) -> int:
    """Vectors that the factors kernel leaves."""
    return max([len(decayed_readers(context)) - 1, *folded_readers(context)]) + 1


def folded_entries(context: Context) -> str:
    """Entries that the factors kernel leaves per head, as text: pieces of folded tiles, then of
    vectors."""
    text = f"{folded_tiles(context) * parts_stored(context)} * (NODE_BLOCK * NODE_BLOCK)"
    rows = left_vectors(context) * parts_stored(context) * vector_entries(context)
    return f"({text} + {rows})" if rows else text


CELL = "tl.arange(0, NODE_BLOCK)[:, None] * NODE_BLOCK + tl.arange(0, NODE_BLOCK)[None, :]"
"""Offsets of the entries of a folded tile."""


def place_folded(context: Context, w: Writer, head: str = "program.to(tl.int64)") -> None:
    """Bind `place`, where what is left for a request's head begins; once."""
    if ("place",) not in w.memo:
        folded = w.arg("folded", "*" + folded_dtype(context))
        at = f"{folded} + {head} * {folded_entries(context)}"
        w.memo["place",] = w.let("place", at)


def piece_at(number: int, cell: str = "cell") -> str:
    """Addresses of a piece of a folded tile, relative to the program's `place`."""
    return f"place + {number} * (NODE_BLOCK * NODE_BLOCK) + {cell}" if number else f"place + {cell}"


@dataclass(frozen=True, slots=True)
class Handover:
    """How row scalars are divided between the two kernels.

    Scalars common to the target and the erase vector of a single pair multiply columns of F. What
    else scales the erased part and the output is multiplied out by the factors kernel, one plane
    each; scalars inside value vectors follow.
    """

    common: tuple[str, ...]
    out_rows: tuple[str, ...]
    """Variables with what multiplies each output's part of the committed state."""
    targets: tuple[Expr, ...]
    """What each pair writes but for what it erases, without the common scalars."""
    erase_scalars: tuple[tuple[str, ...], ...]
    others: tuple[str, ...]
    prepared: bool = False
    """Whether value tiles find all but what multiplies outputs where it has been prepared."""
    folded: bool = False
    """Whether the factors kernel alone needs what multiplies outputs and erased parts."""

    @property
    def erase_rows(self) -> tuple[str, ...]:
        """Variables with what multiplies the erased part of each pair."""
        return tuple(f"erase_row{p or ''}" for p in range(len(self.targets)))

    @property
    def names(self) -> tuple[str, ...]:
        """Variables of the value kernel with a plane of their own, in the order of these."""
        rows = (*self.out_rows, *self.erase_rows)
        if self.prepared:
            return rows if self.folded else self.out_rows
        return (*rows, *self.others)


def handover(context: Context) -> Handover:
    """Divide the row scalars of a plan."""
    plan = context.plan
    common, targets, erase = _divided_pairs(plan)
    inside = [*targets, *(x for read in plan.readouts for x in (read.direct, read.gain))]
    inside += [write.value for write in plan.writes]
    vectors = [v for x in inside if x is not None for v in walk(x) if v.kind is not Kind.HEAD]
    scalars = [n for v in vectors for n in v.children if n.kind is Kind.HEAD]
    used = {n.key for n in scalars} | {f.key for n in scalars for f in split_factors(n)}
    others = tuple(s.name for s in plan.scalars if s.expr.key in used)
    rows = tuple(f"out_row{readout.mark}" for readout in plan.readouts)
    prepared, folded = context.spread_walks, context.folds_readers
    return Handover(common, rows, targets, erase, others, prepared, folded)


_Scalars = tuple[str, ...]


def _divided_pairs(plan: Plan) -> tuple[_Scalars, tuple[Expr, ...], tuple[_Scalars, ...]]:
    """Scalars common to target and erase vector, targets without them, the other erase scalars.

    The unknowns of several pairs of a token see each other through weights of their own, in which
    such scalars already stand: there none is set apart.
    """
    if len(plan.pairs) != 1:
        targets = tuple(pair.target for pair in plan.pairs)
        return (), targets, tuple(pair.erase.scalars for pair in plan.pairs)
    by_expr = {s.expr: s.name for s in plan.scalars}
    factors, target = split_scale(plan.pairs[0].target)
    erase = list(plan.pairs[0].erase.scalars)
    common: list[str] = []
    kept: list[Expr] = []
    for factor in factors:
        name = by_expr.get(factor)
        if name in erase:
            common.append(name)
            erase.remove(name)
        else:
            kept.append(factor)
    for factor in reversed(kept):
        target = Mul(target.kind, factor, target)
    return tuple(common), (target,), (tuple(erase),)


def handed_planes(context: Context) -> int:
    """Planes of the row buffer that the factors kernel writes for the value kernel."""
    return len(handed_names(context))


def first_handed_plane(context: Context) -> int:
    """The first of them: behind row scalars and what walks keep."""
    return prepared_planes(context) + len(context.walk_planes)


def prepared_planes(context: Context) -> int:
    """Planes of the row buffer that the prepare kernel fills."""
    return len(context.plan.scalars) + len(context.path_planes)


def handed_names(context: Context) -> tuple[str, ...]:
    """Names of these planes. Where there are several node blocks, the last says which of them have
    nodes with an ancestor in an earlier one."""
    several = context.schedule.folds and context.blocks > 1
    return (*handover(context).names, *(("reached",) if several else ()))
