"""From the interpreted update and outputs to the normal form: pairs, writes, reads, couplings."""

from __future__ import annotations

from dataclasses import replace

from boleir.derive.affine import State
from boleir.derive.algebra import ONE, ZERO
from boleir.derive.canonical import emit
from boleir.derive.interpret import Interpreter, Tainted
from boleir.derive.logs import log_of_decay
from boleir.derive.normal_form import NormalForm, Pair, Readout, Write
from boleir.derive.parts import GainedRead, RawPair, in_order
from boleir.derive.readouts import Readouts
from boleir.derive.refusals import (
    ElementwiseDecay,
    ForgetsParent,
    ReadoutNotSupported,
    StateOutsideProducts,
)
from boleir.derive.work import bounded
from boleir.ir import Expr, Recurrence, walk


def assemble(recurrence: Recurrence) -> NormalForm:
    """The normal form of a recurrence, by its first output. Raises a `Refusal` for one outside the
    family, and `TooComplicated` for one that grows beyond reason."""
    return assemble_all(recurrence)[0]


def assemble_all(recurrence: Recurrence) -> tuple[NormalForm, ...]:
    """One normal form for each output. All have the same pairs and pure writes, so that one solve
    serves them."""
    mend = "fewer steps per token; or make a repeated factor an input"
    with bounded("the recurrence", mend, recurrence.update.span):
        return _assemble(recurrence)


def _assemble(recurrence: Recurrence) -> tuple[NormalForm, ...]:
    interpreter = Interpreter(recurrence)
    state = interpreter.values[recurrence.update.key]
    if isinstance(state, Tainted):
        raise state.refusal(state.term)
    if not isinstance(state, State):
        raise StateOutsideProducts(recurrence.update)
    if not state.decay:
        raise ForgetsParent(recurrence.update)
    if len(state.decay.vectors) > 1:
        raise ElementwiseDecay(interpreter.elementwise or recurrence.update)
    first: ReadoutNotSupported | None = None
    for ways in ({}, {"as_read": True}, {"watched": True}):
        try:
            return _Assembly(recurrence, interpreter, state, **ways).forms()
        except ReadoutNotSupported as refusal:
            first = first or refusal
    assert first is not None
    raise first


class _Assembly(Readouts):
    """The steps of `assemble`, which share the token's references and the decay."""

    def forms(self) -> tuple[NormalForm, ...]:
        """All parts put together, for every output."""
        given = self.recurrence
        pairs, writes = self._split()
        pairs = in_order(pairs)
        found = [self._readout(output, pairs, writes) for output in given.outputs]
        watched = list(dict.fromkeys(read for _, reads in found for read in reads))
        pairs += [RawPair(-1 - n, ZERO, read, ZERO, {}) for n, read in enumerate(watched)]
        readouts = [_with_watched(readout, reads, watched) for readout, reads in found]
        first = NormalForm(
            recurrence=given,
            side=self.side.name,
            decay=self.canon.expr(self.decay),
            log_decay=log_of_decay(self.decay, self.canon, self._decaying()),
            pairs=tuple(self._pair(pair, pairs[:n]) for n, pair in enumerate(pairs)),
            writes=tuple(
                Write(self.canon.expr(w), self.canon.expr(self.definitions[r].free))
                for r, w in writes
            ),
            readout=readouts[0],
            further=tuple(readouts[1:]),
        )
        more = (
            replace(
                first,
                recurrence=replace(given.with_output(n), inputs=given.inputs),
                readout=readout,
                further=(),
            )
            for n, readout in enumerate(readouts[1:], 1)
        )
        return (first, *more)

    def _decaying(self) -> Expr:
        """Where the state has decayed as far as the new one."""
        values, update = self.interpreter.values, self.recurrence.update
        for node in walk(update):
            value = values[node.key]
            if isinstance(value, State) and value.decay == self.decay:
                return node
        return update

    def _pair(self, pair: RawPair, earlier: list[RawPair]) -> Pair:
        coupling = tuple(self.canon.expr(pair.coupling.get(e.origin, ZERO)) for e in earlier)
        reading, gain = self._reading(pair.read)
        return Pair(
            write=self.canon.expr(pair.write),
            erase=reading,
            target=self.canon.expr(pair.target),
            coupling=coupling,
            gain=gain,
        )


def _with_watched(readout: Readout, reads: list[GainedRead], watched: list[GainedRead]) -> Readout:
    """`readout` with its weights for pairs that write nothing: -1 for those of this output."""
    weights = tuple(emit(-ONE if read in reads else ZERO) for read in watched)
    return replace(readout, pairs=readout.pairs + weights)
