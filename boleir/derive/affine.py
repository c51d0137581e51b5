"""Abstract values of the derivation: what an expression is as an affine function of the parent's
state.

Left acting (`write` = KEY, `unknown` = VALUE); for right-acting recurrences the two kinds swap:

    Affine  free + sum_g g * (S_p^T e_g) + sum_r c_r u_r        a vector of the unknown kind
    State   decay * S_p + sum_w w f_w^T + sum_r w_r u_r^T       with f_w affine

A *reference* r stands for a vector that the token has written already and that later steps of the
same token read back: its definition is an `Affine` in the `Token`. Keeping references apart,
instead of expanding them, is what leaves micro-steps as a chain."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from boleir.derive.algebra import ONE, ZERO, Monomial, Poly, divide, split_scalar, times
from boleir.derive.canonical import contract
from boleir.ir import Kind

Place = TypeVar("Place")


@dataclass(frozen=True, slots=True)
class Side:
    """Kinds of the vectors that write and of those that are unknown."""

    name: str
    write: Kind
    unknown: Kind


LEFT = Side("left", Kind.KEY, Kind.VALUE)
RIGHT = Side("right", Kind.VALUE, Kind.KEY)


@dataclass(frozen=True, slots=True)
class Affine:
    """free + sum over `reads` of gain * (S_p^T vector) + sum over `refs` of coefficient * u."""

    free: Poly = ZERO
    reads: Mapping[Monomial, Poly] = field(default_factory=dict)
    """Gain (a product of unknown-kind vectors, often 1) -> the vector that reads the state."""
    refs: Mapping[int, Poly] = field(default_factory=dict)

    def __hash__(self) -> int:
        return hash((self.free, frozenset(self.reads.items()), frozenset(self.refs.items())))

    @property
    def is_free(self) -> bool:
        """Whether the state does not occur."""
        return not self.reads and not self.refs

    def __add__(self, other: Affine) -> Affine:
        return Affine(
            self.free + other.free, merged(self.reads, other.reads), merged(self.refs, other.refs)
        )

    def scaled(self, factor: Poly, side: Side) -> Affine:
        """Times a scalar or a vector of the unknown kind."""
        reads: dict[Monomial, Poly] = {}
        for gain, scalars in factor.by_vectors(side.unknown).items():
            for old, vector in self.reads.items():
                reads = merged(reads, {times(gain, old): vector * scalars})
        refs = {r: product for r, c in self.refs.items() if (product := c * factor)}
        return Affine(self.free * factor, reads, refs)


def merged(left: Mapping[Place, Poly], right: Mapping[Place, Poly]) -> dict[Place, Poly]:
    """Sum of two maps of polynomials, zeros dropped."""
    result = dict(left)
    for place, poly in right.items():
        value = result.pop(place, ZERO) + poly
        if value:
            result[place] = value
    return result


@dataclass(slots=True)
class Token:
    """The references of one token, in the order in which they came up."""

    side: Side
    definitions: list[Affine] = field(default_factory=list)
    _index: dict[Affine, int] = field(default_factory=dict)
    _whole: dict[int, Affine] = field(default_factory=dict)

    def reference(self, form: Affine) -> tuple[int, Poly]:
        """(reference, scalar): their product stands for `form`."""
        if form in self._index:
            return self._index[form], ONE
        for r, definition in enumerate(self.definitions):
            multiple = self.multiple(form, definition)
            if multiple is not None:
                return r, multiple
        self._index[form] = len(self.definitions)
        self.definitions.append(form)
        return self._index[form], ONE

    def multiple(self, form: Affine, definition: Affine) -> Poly | None:
        """The scalar c with form = c * definition, for forms that read the state."""
        for gain, vector in definition.reads.items():
            c = divide(form.reads.get(gain, ZERO), vector)
            proportional = c and not c.vectors and definition.scaled(c, self.side) == form
            return c if proportional else None
        return None

    def whole(self, r: int) -> Affine:
        """The definition of a reference, free of other references."""
        if r not in self._whole:
            self._whole[r] = self.expand(self.definitions[r], frozenset())
        return self._whole[r]

    def expand(self, form: Affine, keep: frozenset[int]) -> Affine:
        """`form` with every reference outside `keep` replaced by its definition."""
        if not keep:
            result = Affine(form.free, form.reads)
            for r, c in form.refs.items():
                result = result + self.whole(r).scaled(c, self.side)
            return result
        for r in sorted(set(form.refs) - keep, reverse=True):  # definitions refer backwards only
            if r in form.refs:
                rest = Affine(form.free, form.reads, {k: c for k, c in form.refs.items() if k != r})
                form = rest + self.definitions[r].scaled(form.refs[r], self.side)
                return self.expand(form, keep)
        return form


@dataclass(frozen=True, slots=True)
class State:
    """decay * S_p + sum w f^T over `terms` + sum w u^T over `sealed`."""

    decay: Poly = ZERO
    terms: Mapping[Poly, Affine] = field(default_factory=dict)
    """Direction of the write (no scalar factor) -> what is written along it."""
    sealed: Mapping[int, Poly] = field(default_factory=dict)
    """Reference -> the vector along which it is written."""

    @property
    def is_free(self) -> bool:
        """Whether the parent's state does not occur."""
        return not self.decay and not self.sealed and all(f.is_free for f in self.terms.values())

    def __add__(self, other: State) -> State:
        terms = dict(self.terms)
        for direction, form in other.terms.items():
            value = terms.pop(direction) + form if direction in terms else form
            if value != Affine():
                terms[direction] = value
        return State(self.decay + other.decay, terms, merged(self.sealed, other.sealed))

    def scaled(self, factor: Poly, side: Side) -> State:
        """Times a scalar, a write-side vector (diagonal on that side) or an unknown-side vector."""
        result = State(self.decay * factor)
        on_unknown = side.unknown in factor.vectors
        for direction, form in self.terms.items():
            if on_unknown:
                result = result + outer(direction, form.scaled(factor, side), side)
            else:
                result = result + outer(direction * factor, form, side)
        for r, write in self.sealed.items():
            if on_unknown:
                result = result + outer(write, Affine(refs={r: factor}), side)
            elif product := write * factor:
                result = result + State(sealed={r: product})
        return result

    def seal(self, token: Token) -> State:
        """The same state with every term a reference, so that a reader can name them."""
        sealed = dict(self.sealed)
        for direction, form in self.terms.items():
            own, others = _detach(form)
            sealed = merged(sealed, {r: c * direction for r, c in others.items()})
            if own != Affine():
                r, scalar = token.reference(own)
                sealed = merged(sealed, {r: direction * scalar})
        return State(self.decay, {}, sealed)

    def read(self, vector: Poly, token: Token) -> Affine:
        """state^T vector, contracting the write side."""
        side = token.side
        if self.is_free:
            return Affine(
                sum(
                    (
                        form.free * contract(side.write, direction * vector)
                        for direction, form in self.terms.items()
                    ),
                    ZERO,
                )
            )
        decayed = self.decay * vector
        refs = {
            r: weight
            for r, write in self.seal(token).sealed.items()
            if (weight := contract(side.write, write * vector))
        }
        return Affine(reads=decayed.by_vectors(side.unknown) if decayed else {}, refs=refs)


def _detach(form: Affine) -> tuple[Affine, dict[int, Poly]]:
    """(what must become a reference of its own, plain multiples of existing references)."""
    if form.reads:
        return form, {}
    plain = {r: c for r, c in form.refs.items() if not c.vectors}
    rest = {r: c for r, c in form.refs.items() if c.vectors}
    return Affine(form.free, {}, rest), plain


def outer(vector: Poly, form: Affine, side: Side) -> State:
    """The rank-one term vector * form^T, its scalar factors moved to the unknown side."""
    if not vector:
        return State()
    scalar, direction = split_scalar(vector)
    scaled = form if scalar == ONE else form.scaled(scalar, side)
    return State(terms={direction: scaled}) if scaled != Affine() else State()
