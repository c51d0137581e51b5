"""From the interpreted update and output to the normal form: pairs, writes, readings, couplings."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction

from boleir.derive.affine import Affine, State, Token, merged
from boleir.derive.algebra import (
    ONE,
    ZERO,
    Monomial,
    Poly,
    constant,
    content,
    divide,
    rank,
    split_scalar,
    term,
)
from boleir.derive.canonical import Canon, contract, emit
from boleir.derive.interpret import CrossRead, Interpreter, Tainted
from boleir.derive.logs import log_of_decay
from boleir.derive.normal_form import NormalForm, Pair, Reading, Readout, Write
from boleir.derive.recognise import recognise
from boleir.derive.refusals import (
    ElementwiseDecay,
    ForgetsParent,
    MixedChannels,
    OutputWithoutState,
    ReadInBetween,
    ReadoutNotSupported,
    StateOutsideProducts,
    TwoSided,
)
from boleir.derive.updated_read import as_read_of_update
from boleir.derive.watched import gains_of, scalar_weights, without_gain, written_out
from boleir.derive.work import bounded
from boleir.ir import Expr, Recurrence, walk


@dataclass(frozen=True, slots=True)
class _Read:
    """gain * (S_p^T vector): one reading after its gains have been collected."""

    gain: Poly
    vector: Poly


@dataclass(frozen=True, slots=True)
class _Pair:
    """A pair as polynomials; `origin` is the reference it stands for (or a part of)."""

    origin: int
    write: Poly
    read: _Read
    target: Poly
    coupling: dict[int, Poly]
    """Origin of an earlier pair -> how much of its unknown is subtracted."""


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


class _Assembly:
    """The steps of `assemble`, which share the token's references and the decay."""

    def __init__(
        self,
        recurrence: Recurrence,
        interpreter: Interpreter,
        state: State,
        *,
        as_read: bool = False,
        watched: bool = False,
    ) -> None:
        """`as_read`: unknowns are what outputs read, later decays in what they are written
        along. `watched`: outputs may have pairs of their own, which write nothing."""
        self.recurrence = recurrence
        self.as_read = as_read
        self.watched = watched
        self.interpreter = interpreter
        self.side = interpreter.side
        self.token: Token = interpreter.token
        self.canon: Canon = interpreter.canon
        self.decay = state.decay
        self.updated = state.seal(self.token)
        self.sealed = dict(self.updated.sealed)
        self.definitions: dict[int, Affine] = {}
        # A reference of the token in terms of those that are left, where it is not one of them.
        self.meanings: dict[int, Affine] = {}

    def forms(self) -> tuple[NormalForm, ...]:
        """All parts put together, for every output."""
        given = self.recurrence
        pairs, writes = self._split()
        pairs = _in_order(pairs)
        found = [self._readout(output, pairs, writes) for output in given.outputs]
        watched = list(dict.fromkeys(read for _, reads in found for read in reads))
        pairs += [_Pair(-1 - n, ZERO, read, ZERO, {}) for n, read in enumerate(watched)]
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
            readout=_with_watched(*found[0], watched),
        )
        more = (
            replace(
                first,
                recurrence=replace(given.with_output(n), inputs=given.inputs),
                readout=_with_watched(readout, reads, watched),
            )
            for n, (readout, reads) in enumerate(found[1:], 1)
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

    def _split(self) -> tuple[list[_Pair], list[tuple[int, Poly]]]:
        """Pairs (unordered) and pure writes (ordered) of the update."""
        self._settle()
        forms = self.definitions
        pairs: list[_Pair] = []
        writes: list[tuple[int, Poly]] = []
        for r, write in self.sealed.items():
            if forms[r].is_free:
                writes.append((r, write))
            else:
                pairs += self._pairs_of(r, write)
        writes.sort(key=lambda rw: (rank(emit(rw[1])), rank(emit(forms[rw[0]].free))))
        return pairs, writes

    def _settle(self) -> None:
        """Final definitions: in terms of each other where one reads another's write."""
        own = self.token.definitions
        # A pure write may come as a multiple of another one: only its full expansion tells.
        full = {r: self.token.whole(r) for r in self.sealed}
        readers = frozenset(r for r, form in full.items() if not form.is_free)
        for r in sorted(self.sealed):
            form = self.token.expand(own[r], readers)
            if any(c.vectors for c in form.refs.values()):  # a coupling must be a scalar
                form = self.token.expand(form, frozenset())
            self.definitions[r] = form
        if self.as_read:
            self._take_as_read(full, readers)
        self._join()
        readers = frozenset(r for r in self.sealed if not self.definitions[r].is_free)
        order = sorted(readers, key=lambda r: (rank(emit(self.sealed[r])), r))
        for r, other in itertools.permutations(order, 2):
            if r in self.sealed and other in self.sealed and not self._depends(other, r):
                self._couple(r, other)

    def _take_as_read(self, full: dict[int, Affine], readers: frozenset[int]) -> None:
        """Where the update writes c * x and an output reads x itself: x for c * x."""
        outputs = [self.interpreter.values[x.key] for x in self.recurrence.outputs]
        refs = {r for output in outputs if isinstance(output, Affine) for r in output.refs}
        seen = refs - set(self.sealed)
        for r, x in itertools.product(sorted(self.sealed), sorted(seen)):
            read = self.token.whole(x)
            scalar = self.token.multiple(full[r], read)
            if scalar and r not in self.meanings:
                self.definitions[r] = self.token.expand(self.token.definitions[x], readers - {r})
                self.sealed[r] = self.sealed[r] * scalar
                self.meanings[r] = Affine(refs={r: scalar})

    def _join(self) -> None:
        """One reference for all that is written along one vector, and no number before that vector:
        what an author has written apart, k v^T and k (S^T k)^T, meets here."""
        directions = {r: split_scalar(write) for r, write in sorted(self.sealed.items())}
        for f, (scalar, direction) in directions.items():
            if not self.definitions[f].is_free:
                continue
            for r, (own, other) in directions.items():
                ratio = divide(scalar, own) if other == direction and r in self.sealed else None
                if ratio and not self.definitions[r].is_free:
                    self._absorb(f, r, ratio)
                    break
        for r, write in self.sealed.items():
            size = next(iter(content(write)[0].terms.values()))
            if size != 1:
                self.sealed[r] = write * constant(1 / size)
                self.definitions[r] = self.definitions[r].scaled(constant(size), self.side)
                meaning = self.meanings.get(r, Affine(refs={r: ONE}))
                self.meanings[r] = Affine(
                    meaning.free, {}, {r: meaning.refs[r] * constant(1 / size)}
                )
        self.definitions = {r: self._translated(form) for r, form in self.definitions.items()}

    def _absorb(self, free: int, r: int, ratio: Poly) -> None:
        """Write `ratio` times reference `free`, which does not read the state, along with `r`."""
        added = self.definitions.pop(free).scaled(ratio, self.side)
        self.definitions[r] = self.definitions[r] + added
        known = self.meanings.get(r, Affine(refs={r: ONE}))
        self.meanings[r] = Affine(known.free - added.free * known.refs[r], {}, known.refs)
        self.meanings[free] = Affine(self.token.definitions[free].free)
        del self.sealed[free]

    def _translated(self, form: Affine) -> Affine:
        """`form` in terms of the references that are left."""
        result = Affine(form.free, form.reads)
        for r, c in form.refs.items():
            result = result + self.meanings.get(r, Affine(refs={r: ONE})).scaled(c, self.side)
        return result

    def _couple(self, r: int, other: int) -> None:
        """Write definition r in terms of `other` where it is a read of what `other` has written."""
        form = recognise(self.definitions[r], {other: self.definitions[other]}, self.side)
        multiple = form.refs.get(other, ZERO) - self.definitions[r].refs.get(other, ZERO)
        if not multiple:
            return
        if not form.reads and not form.free:  # plain multiples: no unknown of their own
            write = self.sealed.pop(r)
            self.sealed = merged(self.sealed, {k: c * write for k, c in form.refs.items()})
            for k, reader in self.definitions.items():  # whoever read it reads the others now
                if r in reader.refs:
                    rest = {x: c for x, c in reader.refs.items() if x != r}
                    instead = Affine(refs=form.refs).scaled(reader.refs[r], self.side)
                    self.definitions[k] = Affine(reader.free, reader.reads, rest) + instead
        elif len(form.reads) == 1:
            (read,) = form.reads.values()
            vector = divide(-read, self.decay) or -read
            if contract(self.side.write, vector * self.sealed[other]) == -multiple:
                self.definitions[r] = form

    def _depends(self, r: int, on: int) -> bool:
        """Whether definition r refers to reference `on`, directly or not."""
        reached: set[int] = set()
        waiting = [r]
        while waiting:
            for k in set(self.definitions[waiting.pop()].refs) - reached:
                reached.add(k)
                waiting.append(k)
        return on in reached

    def _pairs_of(self, origin: int, write: Poly) -> list[_Pair]:
        """The pair of one reference; several when its readings have different gains."""
        form = self.definitions[origin]
        first, *others = _collect(form)
        coupling = {r: -c for r, c in form.refs.items()}
        lead = _Pair(origin, write, _Read(first.gain, -first.vector), form.free, coupling)
        return [
            lead,
            *(_Pair(origin, write, _Read(x.gain, -x.vector), ZERO, {}) for x in others),
        ]

    def _pair(self, pair: _Pair, earlier: list[_Pair]) -> Pair:
        coupling = tuple(self.canon.expr(pair.coupling.get(e.origin, ZERO)) for e in earlier)
        reading, gain = self._reading(pair.read)
        return Pair(
            write=self.canon.expr(pair.write),
            erase=reading,
            target=self.canon.expr(pair.target),
            coupling=coupling,
            gain=gain,
        )

    def _reading(self, read: _Read) -> tuple[Reading, Expr | None]:
        """The reading with its decay split off where it divides, and the gain that remains."""
        after, rest = self._without_decay(read)
        shown = None if rest.gain == ONE else self.canon.expr(rest.gain)
        return Reading(self.canon.expr(rest.vector), after), shown

    def _without_decay(self, read: _Read) -> tuple[bool, _Read]:
        """(True, quotient) when the decay divides a reading, else (False, the reading)."""
        if read.vector and self._may_split(read.vector):
            vector, gain = read.vector, read.gain
            if self.side.unknown in self.decay.vectors:
                scalar, direction = split_scalar(self.decay)
                lower, upper = divide(vector, scalar), divide(gain, direction)
            else:
                lower, upper = divide(vector, self.decay), gain
            if lower is not None and upper is not None:
                return True, _Read(upper, lower)
        return False, read

    def _may_split(self, vector: Poly) -> bool:
        """Whether to look for the decay in `vector`: a number divides everything, so it counts as
        there when the quotient is the simpler number."""
        decay = self.decay.value
        if decay is None:
            return True
        ((_, size),) = content(vector)[0].terms.items()
        return decay != 1 and _height(size / decay) < _height(size)

    def _readout(
        self, node: Expr, pairs: list[_Pair], writes: list[tuple[int, Poly]]
    ) -> tuple[Readout, list[_Read]]:
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
        if len(_collect(form)) != 1:
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
    ) -> tuple[Affine, _Read, list[_Read]]:
        """The output in terms of unknowns, the read that becomes its query, and the reads that
        pairs of their own must take (see `watched`)."""
        reads = _collect(form)
        if not self.watched:
            if len(reads) != 1:
                raise ReadoutNotSupported(node)
            return form, reads[0], []
        found = []
        for start, gain in ((x, g) for x in self._starts(form, expanded) for g in gains_of(x)):
            scaled = scalar_weights(start, self.definitions, self.side, gain)
            if scaled is None:
                continue
            inside = without_gain(scaled, gain)
            for reads in (_collect(Affine(reads=inside)), _apart(inside)):
                query = next((x for x in reads if self._without_decay(x)[1].gain == ONE), None)
                if query is not None:  # the others lie inside the output's gain
                    others = [x for x in reads if x != query]
                    found.append((scaled, _Read(query.gain * gain, query.vector), others))
        if found:
            return min(found, key=lambda choice: len(choice[2]))
        scaled = scalar_weights(form, self.definitions, self.side, ONE)
        assert scaled is not None
        return scaled, _Read(ONE, ZERO), _collect(scaled)

    def _starts(self, form: Affine, expanded: Affine) -> list[Affine]:
        """Ways to write the output: as it is, and with one of its unknowns written out."""
        ways = [form, expanded]
        return ways + [written_out(x, r, self.definitions, self.side) for x in ways for r in x.refs]

    def _recognised_by_reads(self, form: Affine, known: dict[int, Affine]) -> Affine:
        """`form` with the unknowns that its readings hold, also behind a gain of the output."""
        plain = recognise(form, known, self.side, by_reads=True)
        for gain in () if len(_collect(plain)) == 1 else form.reads:
            common = term(gain)
            gained = {r: f.scaled(common, self.side) for r, f in known.items() if not f.refs}
            found = recognise(form, gained, self.side, by_reads=True)
            if len(_collect(found)) == 1:  # what was found stands for `gain` times an unknown
                before, after = form.refs, found.refs
                more = {r: after.get(r, ZERO) - before.get(r, ZERO) for r in gained}
                added = {r: c * common for r, c in more.items() if c}
                return Affine(found.free, found.reads, merged(before, added))
        return plain

    def _share_direct(
        self, free: Poly, read: _Read, weights: dict[int, Poly], writes: list[tuple[int, Poly]]
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
        self, node: Expr, output: CrossRead, pairs: list[_Pair], writes: list[tuple[int, Poly]]
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


def _with_watched(readout: Readout, reads: list[_Read], watched: list[_Read]) -> Readout:
    """`readout` with its weights for pairs that write nothing: -1 for those of this output."""
    weights = tuple(emit(-ONE if read in reads else ZERO) for read in watched)
    return replace(readout, pairs=readout.pairs + weights)


def _height(value: Fraction) -> int:
    """Size of a fraction in lowest terms."""
    return abs(value.numerator) * value.denominator


def _collect(form: Affine) -> list[_Read]:
    """Readings of a form: those along one vector share one gain."""
    by_direction: dict[Poly, list[tuple[Poly, Monomial]]] = {}
    for gain, vector in form.reads.items():
        scalar, direction = split_scalar(vector)
        by_direction.setdefault(direction, []).append((scalar, gain))
    reads = []
    for direction, parts in by_direction.items():
        if len(parts) == 1:
            ((scalar, gain),) = parts
            reads.append(_Read(term(gain), direction * scalar))
        else:
            total = sum((scalar * term(gain) for scalar, gain in parts), ZERO)
            scalar, gain_poly = split_scalar(total)
            reads.append(_Read(gain_poly, direction * scalar))
    return sorted(reads, key=lambda r: (rank(emit(r.gain)), rank(emit(r.vector))))


def _apart(reads: Mapping[Monomial, Poly]) -> list[_Read]:
    """Readings one by one, also where several lie along one vector."""
    return [_Read(term(gain), vector) for gain, vector in reads.items()]


def _in_order(pairs: list[_Pair]) -> list[_Pair]:
    """Pairs after those they are coupled to, ties broken by spelling."""
    by_origin: dict[int, list[_Pair]] = {}
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
