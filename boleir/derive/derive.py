"""`derive`: a recurrence in, its closed form out. The one function that puts the steps together."""

from __future__ import annotations

from dataclasses import replace

from boleir.derive.assemble import assemble_all
from boleir.derive.closed_form import (
    Block,
    ClosedForm,
    Commit,
    Gates,
    Nilpotency,
    Output,
    PathDecay,
    RightSide,
)
from boleir.derive.normal_form import NormalForm, Reading
from boleir.derive.recent import Recent
from boleir.ir import Expr, Number, Recurrence, number

_DERIVED: Recent[int, ClosedForm] = Recent(64)
"""By identity: equal recurrences may differ in hints and places. A form keeps its recurrence
alive, so that no other object takes its place."""


def derive(recurrence: Recurrence | str) -> ClosedForm:
    """The closed form over any tree of `recurrence`, or of the one in the library with that name.

    Print it to read the theorem; its fields (`P`, `G`, `C`, `R`, `commit`) hold it as data.

    Raises a `boleir.derive.refusals.Refusal` (a `DerivationError`) when the recurrence lies outside
    the family, with the offending term, its place, the reason and the nearest accepted form.
    """
    from boleir.library import resolve

    given = resolve(recurrence)
    known = _DERIVED.get(id(given))
    if known is not None and known.recurrence is given:
        return known
    first, *more = (from_normal_form(form) for form in assemble_all(given))
    form = replace(first, more=tuple(more))
    _DERIVED.put(id(given), form)
    return form


def from_normal_form(form: NormalForm) -> ClosedForm:
    """The theorem for a normal form: pure bookkeeping of which vectors meet over which decays."""
    writes = tuple((write.key, write.value) for write in form.writes)
    zero = number(0)

    def strict(reading: Reading, right: tuple[Expr, ...]) -> tuple[Block, ...]:
        return tuple(Block(reading.vector, w, _gates(reading), zero) for w in right)

    pair_vectors = tuple(pair.write for pair in form.pairs)
    write_vectors = tuple(write.key for write in form.writes)
    G = tuple(
        tuple(
            Block(pair.erase.vector, w, _gates(pair.erase), pair.coupling[b] if b < a else zero)
            for b, w in enumerate(pair_vectors)
        )
        for a, pair in enumerate(form.pairs)
    )
    R = tuple(
        RightSide(
            pair.target,
            pair.erase,
            _gates(pair.erase),
            strict(pair.erase, write_vectors),
            pair.gain,
        )
        for pair in form.pairs
    )
    return ClosedForm(
        normal=form,
        P=PathDecay(form.decay, form.log_decay, _is_one(form)),
        G=G,
        C=_output(form, pair_vectors, write_vectors),
        R=R,
        commit=Commit(Gates(own=1), pair_vectors, writes),
        nilpotency=Nilpotency(form.micro_steps),
    )


def _output(form: NormalForm, pairs: tuple[Expr, ...], writes: tuple[Expr, ...]) -> Output:
    readout = form.readout
    query = readout.query
    gates = _gates(query)
    return Output(
        query=query,
        gates=gates,
        pairs=tuple(
            Block(query.vector, w, gates, own) for w, own in zip(pairs, readout.pairs, strict=True)
        ),
        writes=tuple(
            Block(query.vector, w, gates, own)
            for w, own in zip(writes, readout.writes, strict=True)
        ),
        gain=readout.gain,
        direct=readout.direct,
    )


def _gates(reading: Reading) -> Gates:
    return Gates(own=int(reading.after_decay))


def _is_one(form: NormalForm) -> bool:
    return isinstance(form.decay, Number) and form.decay.value == 1
