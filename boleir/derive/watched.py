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
from boleir.derive.algebra import Poly, divide, term
from boleir.derive.parts import GainedRead


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


def without_gain(reads: list[GainedRead], gain: Poly) -> list[GainedRead] | None:
    """`reads` as they stand inside an output's gain; None when it does not divide them all."""
    inside = [(divide(read.gain, gain), read.vector) for read in reads]
    shown = [GainedRead(rest, vector) for rest, vector in inside if rest is not None]
    return shown if len(shown) == len(reads) else None


def _scalar(weight: Poly, gain: Poly) -> Poly | None:
    quotient = divide(weight, gain)
    return None if quotient is None or quotient.vectors else quotient
