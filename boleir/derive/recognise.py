"""Finding known unknowns in expanded forms, so that spelling a read out does not hide it.

An author may read an intermediate state back (`S''^T j`) or write the same thing by hand
(`S'^T j + (k^T j) * u`). The interpretation expands the second; here multiples of a definition that
occur term by term in a form are put back as references to it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from boleir.derive.affine import Affine, Side
from boleir.derive.algebra import ZERO, Poly, divide, split_scalar


def recognise(
    form: Affine, known: Mapping[int, Affine], side: Side, *, by_reads: bool = False
) -> Affine:
    """`form` with multiples of the definitions in `known` replaced by their references.

    `by_reads`: what reads the state decides alone, and the rest of the definition is taken off
    again. So an unknown is found although something was written along with it afterwards.
    """
    for r, definition in known.items():
        looked_for = replace(definition, free=ZERO) if by_reads else definition
        multiple = _multiple(form, looked_for, side)
        if multiple:
            rest = form + definition.scaled(-multiple, side)
            refs = {**rest.refs, r: rest.refs.get(r, ZERO) + multiple}
            form = Affine(rest.free, rest.reads, {k: c for k, c in refs.items() if c})
    return form


def _multiple(form: Affine, definition: Affine, side: Side) -> Poly | None:
    """The scalar c for which every term of c * definition is a term of `form`, if there is one."""
    for candidate in _candidates(form, definition, side):
        if candidate and not candidate.vectors and _contains(form, definition, candidate, side):
            return candidate
    return None


def _candidates(form: Affine, definition: Affine, side: Side) -> Iterable[Poly]:
    """Scalars read off from the free part, or from the readings where there is none."""
    if definition.free:
        scalar, direction = split_scalar(definition.free)
        ours = form.free.by_vectors(side.unknown)
        for vector, part in direction.by_vectors(side.unknown).items():
            found = divide(ours.get(vector, ZERO), part * scalar)
            if found is not None:
                yield found
                yield from (_one(found, m) for m in found.terms)
    else:
        for gain, read in definition.reads.items():
            found = divide(form.reads.get(gain, ZERO), read)
            if found is not None:
                yield found


def _one(poly: Poly, monomial: object) -> Poly:
    return Poly({m: c for m, c in poly.terms.items() if m == monomial})


def _contains(form: Affine, definition: Affine, multiple: Poly, side: Side) -> bool:
    scaled = definition.scaled(multiple, side)
    if not scaled.reads and not scaled.refs:
        return False
    parts = [(form.free, scaled.free)]
    parts += [(form.reads.get(gain, ZERO), vector) for gain, vector in scaled.reads.items()]
    parts += [(form.refs.get(r, ZERO), c) for r, c in scaled.refs.items()]
    return all(_within(ours, theirs) for ours, theirs in parts)


def _within(ours: Poly, theirs: Poly) -> bool:
    return all(ours.terms.get(monomial) == size for monomial, size in theirs.terms.items())
