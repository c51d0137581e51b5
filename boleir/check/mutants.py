"""Wrong rules: closed forms broken on purpose, which every check must be able to see.

Each is a mistake that somebody could make in a derivation or a kernel. `apply` gives None where the
mistake makes no difference to the recurrence, such as a missing gate where there is no decay.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from boleir.derive.algebra import ONE, split_scalar
from boleir.derive.canonical import Canon, emit
from boleir.derive.closed_form import (
    Block,
    ClosedForm,
    Gates,
    Mask,
    Nilpotency,
    RightSide,
)
from boleir.derive.structure import is_zero
from boleir.ir import Expr, number


@dataclass(frozen=True, slots=True)
class Mutant:
    """A mistake with a name."""

    name: str
    apply: Callable[[ClosedForm], ClosedForm | None]


def mutants(form: ClosedForm) -> list[tuple[str, ClosedForm]]:
    """Every mistake that concerns `form`, with the broken form."""
    made = [(mutant.name, mutant.apply(form)) for mutant in MUTANTS]
    return [(name, broken) for name, broken in made if broken is not None]


def _in_system(form: ClosedForm, change: Callable[[Block], Block]) -> ClosedForm:
    return replace(form, G=tuple(tuple(change(block) for block in row) for row in form.G))


def _in_readout(form: ClosedForm, change: Callable[[Block], Block]) -> ClosedForm:
    out = form.C
    pairs, writes = (tuple(change(block) for block in group) for group in (out.pairs, out.writes))
    return replace(form, C=replace(out, pairs=pairs, writes=writes))


def _writes(form: ClosedForm) -> bool:
    return bool(form.commit.pairs or form.commit.writes)


def _solves(form: ClosedForm) -> bool:
    """Whether G has entries: there are pairs, and some of them write."""
    return not all(is_zero(vector) for vector in form.commit.pairs)


def _reads(form: ClosedForm) -> bool:
    """Whether the output reads by a query, and not by pairs of its own alone."""
    return not is_zero(form.C.query.vector)


def _seen(form: ClosedForm) -> list[RightSide]:
    """Right sides of the pairs that write or that the output sees; others serve other outputs."""
    pairs = zip(form.R, form.commit.pairs, form.C.pairs, strict=True)
    return [side for side, write, read in pairs if not (is_zero(write) and is_zero(read.own))]


def _gated_system(form: ClosedForm) -> bool:
    return _solves(form) and not form.P.trivial


def one_gate_too_many(form: ClosedForm) -> ClosedForm | None:
    """G counts the decay of the ancestor itself."""
    if not _gated_system(form):
        return None
    return _in_system(form, lambda b: replace(b, gates=replace(b.gates, start=1)))


def one_gate_too_few(form: ClosedForm) -> ClosedForm | None:
    """G misses the decay of the node (or, where that is right, all decays between)."""
    if not _gated_system(form):
        return None
    return _in_system(
        form, lambda b: replace(b, gates=Gates(own=0, between=int(bool(b.gates.own))))
    )


def read_on_the_wrong_side_of_the_decay(form: ClosedForm) -> ClosedForm | None:
    """Erase reads before the decay where it should read after it, and the other way round."""
    if not _gated_system(form):
        return None

    def flipped(gates: Gates) -> Gates:
        return replace(gates, own=1 - gates.own)

    changed = _in_system(form, lambda b: replace(b, gates=flipped(b.gates)))
    return replace(
        changed,
        R=tuple(
            replace(
                side,
                gates=flipped(side.gates),
                writes=tuple(replace(b, gates=flipped(b.gates)) for b in side.writes),
            )
            for side in form.R
        ),
    )


def output_on_the_wrong_side_of_the_decay(form: ClosedForm) -> ClosedForm | None:
    """The output misses the decay of its own node, or sees it where it should not."""
    if form.P.trivial or not _reads(form):
        return None
    gates = replace(form.C.gates, own=1 - form.C.gates.own)
    changed = _in_readout(form, lambda b: replace(b, gates=gates))
    return replace(changed, C=replace(changed.C, gates=gates))


def series_one_too_short(form: ClosedForm) -> ClosedForm | None:
    """The series for the inverse stops one power too early."""
    if not _solves(form):
        return None
    return replace(form, nilpotency=Nilpotency(form.nilpotency.per_level, extra=-1))


def siblings_for_ancestors(form: ClosedForm) -> ClosedForm | None:
    """G couples a node with its earlier siblings."""
    return _in_system(form, lambda b: replace(b, mask=Mask.SIBLINGS)) if _solves(form) else None


def causal_mask(form: ClosedForm) -> ClosedForm | None:
    """G couples a node with all earlier nodes, as if the tree were a sequence."""
    return _in_system(form, lambda b: replace(b, mask=Mask.EARLIER)) if _solves(form) else None


def output_sees_siblings(form: ClosedForm) -> ClosedForm | None:
    """The output of a node sums over all earlier nodes."""
    if not _writes(form) or not _reads(form):
        return None
    return _in_readout(form, lambda b: replace(b, mask=Mask.EARLIER))


def missing_strength(form: ClosedForm) -> ClosedForm | None:
    """G misses the write strength beta."""
    if not _solves(form):
        return None
    canon = Canon()

    def bare(expr: Expr) -> Expr:
        return emit(split_scalar(canon.poly(expr))[1])

    if all(split_scalar(canon.poly(side.erase.vector))[0] == ONE for side in _seen(form)):
        return None
    return _in_system(form, lambda b: replace(b, left=bare(b.left)))


def missing_gain(form: ClosedForm) -> ClosedForm | None:
    """The vector gain of the unknowns is left out."""
    if all(side.gain is None for side in _seen(form)):
        return None
    return replace(form, R=tuple(replace(side, gain=None) for side in form.R))


def output_without_own_node(form: ClosedForm) -> ClosedForm | None:
    """C is strict where it should include the node itself."""
    blocks = form.C.pairs + form.C.writes
    if all(is_zero(block.own) for block in blocks):
        return None
    return _in_readout(form, lambda b: replace(b, own=number(0)))


def commit_without_gates(form: ClosedForm) -> ClosedForm | None:
    """The committed state adds the path's writes undecayed."""
    if form.P.trivial or not _writes(form):
        return None
    gates = Gates(own=0, between=0)
    return replace(form, commit=replace(form.commit, gates=gates))


def right_side_without_state(form: ClosedForm) -> ClosedForm | None:
    """R forgets the committed state."""
    if not _seen(form):
        return None
    return replace(
        form,
        R=tuple(replace(s, erase=replace(s.erase, vector=number(0))) for s in form.R),
    )


def right_side_without_writes(form: ClosedForm) -> ClosedForm | None:
    """R forgets the pure writes of the ancestors."""
    if not any(side.writes for side in _seen(form)):
        return None
    return replace(
        form,
        R=tuple(
            replace(s, writes=tuple(replace(b, left=number(0)) for b in s.writes)) for s in form.R
        ),
    )


def uncoupled_micro_steps(form: ClosedForm) -> ClosedForm | None:
    """The pairs of one token do not see each other."""
    if form.nilpotency.per_level < 2:
        return None
    return _in_system(form, lambda b: replace(b, own=number(0)))


MUTANTS = tuple(
    Mutant(rule.__name__.replace("_", " "), rule)
    for rule in (
        one_gate_too_many,
        one_gate_too_few,
        read_on_the_wrong_side_of_the_decay,
        output_on_the_wrong_side_of_the_decay,
        series_one_too_short,
        siblings_for_ancestors,
        causal_mask,
        output_sees_siblings,
        missing_strength,
        missing_gain,
        output_without_own_node,
        commit_without_gates,
        right_side_without_state,
        right_side_without_writes,
        uncoupled_micro_steps,
    )
)
