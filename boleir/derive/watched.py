"""Outputs that see what no pair writes: reads of their own for what does not fit one query.

An output may read an intermediate state behind which channels of values decay once more, or one of
two unknowns that are written along the same vector with different gains. As an affine function of
the parent's state it is then several reads with different gains, of which a readout holds one. Each
of the others becomes a pair that is written along nothing: its unknown -gain * (e^T S_p) is solved
for like any other, the output takes it with the weight -1, and the state never sees it.
"""

from __future__ import annotations

from collections.abc import Mapping

from boleir.derive.affine import Affine, Side
from boleir.derive.algebra import ONE, Monomial, Poly, divide, term


def scalar_weights(
    form: Affine, definitions: Mapping[int, Affine], side: Side, gain: Poly
) -> Affine | None:
    """`form` with the definition of every unknown that does not come as gain * scalar * unknown put
    in its place; None when a read does not have the gain."""
    while True:
        missing = [r for r, c in form.refs.items() if _scalar(c, gain) is None]
        if not missing:
            break
        form = written_out(form, missing[-1], definitions, side)
    return form if all(divide(term(g), gain) for g in form.reads) else None


def written_out(form: Affine, r: int, definitions: Mapping[int, Affine], side: Side) -> Affine:
    """`form` with the definition of one unknown in its place."""
    refs = {other: c for other, c in form.refs.items() if other != r}
    return Affine(form.free, form.reads, refs) + definitions[r].scaled(form.refs[r], side)


def gains_of(form: Affine) -> list[Poly]:
    """Gains that an output may have: none, or one of those of its reads."""
    return [ONE, *(term(g) for g in form.reads if g != ())]


def without_gain(form: Affine, gain: Poly) -> dict[Monomial, Poly]:
    """The reads of `form` divided by a gain that they all have."""
    reads: dict[Monomial, Poly] = {}
    for old, vector in form.reads.items():
        quotient = divide(term(old), gain)
        assert quotient is not None
        ((monomial, size),) = quotient.terms.items()
        reads[monomial] = vector * term((), size)
    return reads


def _scalar(weight: Poly, gain: Poly) -> Poly | None:
    quotient = divide(weight, gain)
    return None if quotient is None or quotient.vectors else quotient
