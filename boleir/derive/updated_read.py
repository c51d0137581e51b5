"""Finding the read of the new state in an output that spells it out.

An author may write `out S^T q` behind the update, or the same thing term by term: `D * S^T q`, plus
(q^T w) times what is written along w. Expanded, the two are one affine function of the parent's
state, of which many sums of reads and unknowns are spellings; the one that reads the new state is
preferred wherever it exists, so that both authors get the same closed form.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from boleir.derive.affine import Affine, Side
from boleir.derive.algebra import ONE, ZERO, Poly, divide, split_scalar, term
from boleir.derive.canonical import contract
from boleir.ir import Kind


def as_read_of_update(
    form: Affine,
    definitions: Mapping[int, Affine],
    order: Sequence[int],
    written: Mapping[int, Poly],
    decay: Poly,
    side: Side,
) -> Affine | None:
    """`form` as gain * (q^T S_new) + free for some q, or None.

    `order` holds the references of the pairs, each after those it depends on, `written` the vector
    along which each is written, `decay` what multiplies the parent's state in the new one.
    """
    if not order or side.unknown in decay.vectors:
        return None
    if _is_spelled_so(form, order, written, decay, side):
        return form
    whole = {r: _expanded(definitions[r], definitions, side) for r in order}
    rest = _expanded(form, definitions, side)
    if len(rest.reads) != 1 or any(list(f.reads) != [()] for f in whole.values()):
        return None
    ((gain, vector),) = rest.reads.items()
    weights: dict[int, Poly] = {}
    for r in reversed(order):
        weights[r] = _amount(vector, definitions[r].reads.get((), ZERO))
        vector = vector - weights[r] * whole[r].reads[()]
    query = divide(vector, decay) if vector else None
    if query is None or any(weights[r] != contract(side.write, query * written[r]) for r in order):
        return None
    free, refs = rest.free, {}
    for r, weight in weights.items():
        if weight:
            refs[r] = weight * term(gain)
            free = free - whole[r].free * refs[r]
    return Affine(free, {gain: vector}, refs)


def _is_spelled_so(
    form: Affine, order: Sequence[int], written: Mapping[int, Poly], decay: Poly, side: Side
) -> bool:
    """Whether `form` is that read as it stands: expanding what an author has not written out may
    take long."""
    if len(form.reads) != 1:
        return False
    ((gain, vector),) = form.reads.items()
    query = divide(vector, decay)
    return query is not None and all(
        form.refs.get(r, ZERO) == contract(side.write, query * written[r]) * term(gain)
        for r in order
    )


def _expanded(form: Affine, definitions: Mapping[int, Affine], side: Side) -> Affine:
    """`form` with every reference replaced by its definition."""
    while form.refs:
        last = max(form.refs, key=lambda r: _height(r, definitions))
        rest = Affine(form.free, form.reads, {r: c for r, c in form.refs.items() if r != last})
        form = rest + definitions[last].scaled(form.refs[last], side)
    return form


def _height(r: int, definitions: Mapping[int, Affine]) -> int:
    """How many definitions lie below a reference, one within the other."""
    return 1 + max((_height(x, definitions) for x in definitions[r].refs), default=0)


def _amount(vector: Poly, read: Poly) -> Poly:
    """How often `read` occurs in `vector`, by its first vector; zero when it does not divide."""
    if not read:
        return ZERO
    scalar, direction = split_scalar(read)
    first, part = next(iter(_by_direction(direction).items()))
    found = divide(_by_direction(vector).get(first, ZERO), part * scalar)
    return found if found is not None else ZERO


def _by_direction(poly: Poly) -> dict[Poly, Poly]:
    """Scalar factors by the product of vectors they belong to."""
    groups: dict[Poly, Poly] = {}
    for monomial, size in poly.ordered():
        vectors = term(tuple(ap for ap in monomial if ap[0].kind is not Kind.HEAD))
        scalars = term(tuple(ap for ap in monomial if ap[0].kind is Kind.HEAD), size)
        groups[vectors] = groups.get(vectors, ZERO) + scalars
    return groups or {ONE: ZERO}
