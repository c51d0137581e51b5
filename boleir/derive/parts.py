"""Pairs and reads of one token while the normal form is being put together, as polynomials."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from boleir.derive.affine import Affine
from boleir.derive.algebra import ZERO, Monomial, Poly, rank, split_scalar, term
from boleir.derive.canonical import emit


@dataclass(frozen=True, slots=True)
class GainedRead:
    """gain * (S_p^T vector): one reading after its gains have been collected."""

    gain: Poly
    vector: Poly


@dataclass(frozen=True, slots=True)
class RawPair:
    """A pair as polynomials; `origin` is the reference it stands for (or a part of)."""

    origin: int
    write: Poly
    read: GainedRead
    target: Poly
    coupling: dict[int, Poly]
    """Origin of an earlier pair -> how much of its unknown is subtracted."""


def height(value: Fraction) -> int:
    """Size of a fraction in lowest terms."""
    return abs(value.numerator) * value.denominator


def collect(form: Affine) -> list[GainedRead]:
    """Readings of a form: those along one vector share one gain."""
    by_direction: dict[Poly, list[tuple[Poly, Monomial]]] = {}
    for gain, vector in form.reads.items():
        scalar, direction = split_scalar(vector)
        by_direction.setdefault(direction, []).append((scalar, gain))
    reads = []
    for direction, parts in by_direction.items():
        if len(parts) == 1:
            ((scalar, gain),) = parts
            reads.append(GainedRead(term(gain), direction * scalar))
        else:
            total = sum((scalar * term(gain) for scalar, gain in parts), ZERO)
            scalar, gain_poly = split_scalar(total)
            reads.append(GainedRead(gain_poly, direction * scalar))
    return sorted(reads, key=lambda r: (rank(emit(r.gain)), rank(emit(r.vector))))


def apart(reads: Mapping[Monomial, Poly]) -> list[GainedRead]:
    """Readings one by one, also where several lie along one vector."""
    return [GainedRead(term(gain), vector) for gain, vector in reads.items()]


def in_order(pairs: list[RawPair]) -> list[RawPair]:
    """Pairs after those they are coupled to, ties broken by spelling."""
    by_origin: dict[int, list[RawPair]] = {}
    for pair in pairs:
        by_origin.setdefault(pair.origin, []).append(pair)
    levels: dict[int, int] = {}

    def level(origin: int) -> int:
        if origin not in levels:
            before = [
                level(r) for pair in by_origin[origin] for r in pair.coupling if r in by_origin
            ]
            levels[origin] = 1 + max(before, default=-1)
        return levels[origin]

    return sorted(
        pairs,
        key=lambda p: (
            level(p.origin),
            rank(emit(p.write)),
            rank(emit(p.read.vector)),
            rank(emit(p.read.gain)),
            rank(emit(p.target)),
        ),
    )
