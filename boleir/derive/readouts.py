"""What one output sees: a query, weights of the node's own unknowns, what it adds itself."""

from __future__ import annotations

from boleir.derive.affine import Affine, State, merged
from boleir.derive.algebra import ONE, ZERO, Poly, constant, divide, split_scalar, term
from boleir.derive.canonical import contract
from boleir.derive.interpret import CrossRead, Tainted
from boleir.derive.normal_form import Reading, Readout
from boleir.derive.parts import GainedRead, RawPair, apart, collect
from boleir.derive.recognise import recognise
from boleir.derive.refusals import (
    MixedChannels,
    OutputWithoutState,
    ReadInBetween,
    ReadoutNotSupported,
    TwoSided,
)
from boleir.derive.updated_read import as_read_of_update
from boleir.derive.watched import scalar_weights, without_gain, written_out
from boleir.derive.writing import Writing
from boleir.ir import Expr


class Readouts(Writing):
    """The part of the assembly that concerns the outputs."""

    def _readout(
        self, node: Expr, pairs: list[RawPair], writes: list[tuple[int, Poly]]
    ) -> tuple[Readout, list[GainedRead]]:
        """What an output sees by the pairs of the update, and what it reads beside them."""
        output = self.interpreter.values[node.key]
        if isinstance(output, Tainted):
            if output.refusal is TwoSided:
                raise MixedChannels(output.term)
            raise output.refusal(output.term)
        if isinstance(output, CrossRead):
            return self._cross_readout(node, output, pairs, writes), []
        if not isinstance(output, Affine):
            raise OutputWithoutState(node)
        kept = frozenset({p.origin for p in pairs} | {r for r, _ in writes})
        known = {p.origin: self.definitions[p.origin] for p in reversed(pairs)}
        expanded = self._translated(self.token.expand(output, kept | self.meanings.keys()))
        form = recognise(expanded, known, self.side)
        order = list(dict.fromkeys(p.origin for p in pairs))
        form = (
            as_read_of_update(form, self.definitions, order, self.sealed, self.decay, self.side)
            or form
        )
        if len(collect(form)) != 1:
            form = self._recognised_by_reads(form, known)
        form, read, others = self._query(node, form, expanded)
        reading, gain = self._reading(read)
        _, bare = self._without_decay(read)
        weights: dict[int, Poly] = {}
        for r, c in form.refs.items():
            weight = divide(c, bare.gain)
            if weight is None or weight.vectors:
                raise ReadoutNotSupported(node)
            weights[r] = weight
        direct = self._share_direct(form.free, bare, weights, writes)
        readout = Readout(
            query=reading,
            pairs=tuple(self.canon.expr(weights.get(p.origin, ZERO)) for p in pairs),
            writes=tuple(self.canon.expr(weights.get(r, ZERO)) for r, _ in writes),
            direct=self.canon.expr(direct) if direct else None,
            gain=gain,
        )
        return readout, others

    def _query(
        self, node: Expr, form: Affine, expanded: Affine
    ) -> tuple[Affine, GainedRead, list[GainedRead]]:
        """The output in terms of unknowns, the read that becomes its query, and the reads that
        pairs of their own must take (see `watched`)."""
        reads = collect(form)
        if not self.watched:
            if len(reads) != 1:
                raise ReadoutNotSupported(node)
            return form, reads[0], []
        found = []
        for start in self._starts(form, expanded):
            for gain in dict.fromkeys([ONE, *map(self._gain_of, apart(start.reads))]):
                scaled = scalar_weights(start, self.definitions, self.side, gain)
                if scaled is None:
                    continue
                for reads in (collect(scaled), apart(scaled.reads)):
                    query = next((x for x in reads if self._gain_of(x) == gain), None)
                    others = without_gain([x for x in reads if x != query], gain)
                    if query is not None and others is not None:
                        found.append((scaled, query, others))
        if found:
            return min(found, key=lambda choice: len(choice[2]))
        scaled = scalar_weights(form, self.definitions, self.side, ONE)
        assert scaled is not None
        return scaled, GainedRead(ONE, ZERO), collect(scaled)

    def _gain_of(self, read: GainedRead) -> Poly:
        """The gain of an output whose query is `read`."""
        return self._without_decay(read)[1].gain

    def _starts(self, form: Affine, expanded: Affine) -> list[Affine]:
        """Ways to write the output: as it is, and with one of its unknowns written out."""
        ways = [form, expanded]
        return ways + [written_out(x, r, self.definitions, self.side) for x in ways for r in x.refs]

    def _recognised_by_reads(self, form: Affine, known: dict[int, Affine]) -> Affine:
        """`form` with the unknowns that its readings hold, also behind a gain of the output."""
        plain = recognise(form, known, self.side, by_reads=True)
        for gain in () if len(collect(plain)) == 1 else form.reads:
            common = term(gain)
            gained = {r: f.scaled(common, self.side) for r, f in known.items() if not f.refs}
            found = recognise(form, gained, self.side, by_reads=True)
            if len(collect(found)) == 1:  # what was found stands for `gain` times an unknown
                before, after = form.refs, found.refs
                more = {r: after.get(r, ZERO) - before.get(r, ZERO) for r in gained}
                added = {r: c * common for r, c in more.items() if c}
                return Affine(found.free, found.reads, merged(before, added))
        return plain

    def _share_direct(
        self, free: Poly, read: GainedRead, weights: dict[int, Poly], writes: list[tuple[int, Poly]]
    ) -> Poly:
        """Settle what the output sees of a pure write through the state and what it adds itself.

        A bonus q^T (b * k) v may be written as a read of a state or as a term of its own; both come
        out alike: the plain weight q^T kappa where it is there, the rest in `direct`; else all of
        it in `weights`. Returns what remains direct."""
        for r, write in writes:
            value = self.definitions[r].free * read.gain
            scalar, direction = split_scalar(value)
            seen = weights.get(r, ZERO)
            if len(direction.terms) == 1:
                ((vector, _),) = direction.terms.items()
                part = divide(free.by_vectors(self.side.unknown).get(vector, ZERO), scalar)
                if part:
                    free = free - part * value
                    seen = seen + part
            plain = contract(self.side.write, read.vector * write)
            seen_directly = free + seen * value
            expected = (plain * value).terms.items()
            if plain and all(seen_directly.terms.get(m) == c for m, c in expected):
                free = seen_directly - plain * value
                seen = plain
            weights[r] = seen
        return free

    def _cross_readout(
        self, node: Expr, output: CrossRead, pairs: list[RawPair], writes: list[tuple[int, Poly]]
    ) -> Readout:
        """Right acting: the output contracts the unknown side, so its own weights are shares."""
        output = self._unscaled(output)
        state, free = output.state, output.free
        missing = self._not_yet_written(state, output)
        if missing is not None:
            state, free = self.updated, free - missing
        after = state.decay == self.decay
        if not after and state.decay != ONE:
            raise ReadInBetween(node)
        written = {p.origin: p.write for p in pairs} | dict(writes)
        read_after = state == self.updated
        shares: dict[int, Poly] = dict.fromkeys(written, ONE) if read_after else {}
        for r, write in () if read_after else self._settled(node, state).items():
            share = divide(write, written[r]) if r in written else None
            if share is None or share.vectors:
                raise ReadInBetween(node)
            shares[r] = share
        return Readout(
            query=Reading(self.canon.expr(output.vector), after and self.decay != ONE),
            pairs=tuple(self.canon.expr(shares.get(p.origin, ZERO)) for p in pairs),
            writes=tuple(self.canon.expr(shares.get(r, ZERO)) for r, _ in writes),
            direct=self.canon.expr(free) if free else None,
            gain=None if output.gain == ONE else self.canon.expr(output.gain),
        )

    def _unscaled(self, output: CrossRead) -> CrossRead:
        """The same read of a state that has decayed like the parent's or like the new one, what
        scales it moved to the query, (c S)^T q = S^T (c q), or to the gain."""
        state = output.state.seal(self.token)
        for decay in (self.decay, ONE):
            ratio = divide(state.decay, decay)
            if not ratio or len(ratio.vectors) > 1:
                continue
            of_query = self.side.write not in ratio.vectors
            if self.side.unknown in ratio.vectors and state.sealed:
                continue  # S^T (c q) would see c also in what the token has written itself
            writes = {r: divide(write, ratio) for r, write in state.sealed.items()}
            if all(writes.values()):
                sealed = {r: write for r, write in writes.items() if write}
                return CrossRead(
                    State(decay, {}, sealed),
                    output.vector * ratio if of_query else output.vector,
                    output.gain if of_query else output.gain * ratio,
                    output.free,
                )
        return CrossRead(state, output.vector, output.gain, output.free)

    def _settled(self, node: Expr, state: State) -> dict[int, Poly]:
        """What a state has written, in terms of the references that are left."""
        found: dict[int, Poly] = {}
        for r, write in state.sealed.items():
            meaning = self.meanings.get(r, Affine(refs={r: ONE}))
            if meaning.free:
                raise ReadInBetween(node)
            found = merged(found, {k: c * write for k, c in meaning.refs.items()})
        return found

    def _not_yet_written(self, state: State, output: CrossRead) -> Poly | None:
        """What the output adds by itself when it reads the new state but for pure writes, which it
        spells out; None when it does not."""
        if state.decay != self.decay or state == self.updated:
            return None
        missing = ZERO
        for direction, form in self._difference(state).items():
            if not form.is_free:
                return None
            seen = contract(self.side.unknown, form.free * output.vector)
            missing = missing + direction * seen * output.gain
        there = output.free.terms
        return missing if all(there.get(m) == c for m, c in missing.terms.items()) else None

    def _difference(self, state: State) -> dict[Poly, Affine]:
        """By direction, what the new state has and `state` has not, all references expanded."""
        total: dict[Poly, Affine] = {}
        for sign, sealed in ((1, self.updated.sealed), (-1, state.sealed)):
            for r, write in sealed.items():
                scalar, direction = split_scalar(write)
                form = self.token.whole(r)
                scaled = form.scaled(scalar * constant(sign), self.side)
                total[direction] = total.get(direction, Affine()) + scaled
        return total
