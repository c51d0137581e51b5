"""What one token writes: references of the interpretation become pairs and pure writes."""

from __future__ import annotations

import itertools

from boleir.derive.affine import Affine, State, Token, merged
from boleir.derive.algebra import ONE, ZERO, Poly, constant, content, divide, rank, split_scalar
from boleir.derive.canonical import Canon, contract, emit
from boleir.derive.interpret import Interpreter
from boleir.derive.normal_form import Reading
from boleir.derive.parts import GainedRead, RawPair, collect, height
from boleir.derive.recognise import recognise
from boleir.ir import Expr, Recurrence


class Writing:
    """The part of the assembly that concerns the update, with what the other parts share."""

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

    def _split(self) -> tuple[list[RawPair], list[tuple[int, Poly]]]:
        """Pairs (unordered) and pure writes (ordered) of the update."""
        self._settle()
        forms = self.definitions
        pairs: list[RawPair] = []
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
            self.definitions[r] = self._coupled(own[r], readers)
        if self.as_read:
            self._take_as_read(full, readers)
        self._join()
        readers = frozenset(r for r in self.sealed if not self.definitions[r].is_free)
        order = sorted(readers, key=lambda r: (rank(emit(self.sealed[r])), r))
        for r, other in itertools.permutations(order, 2):
            if r in self.sealed and other in self.sealed and not self._depends(other, r):
                self._couple(r, other)

    def _coupled(self, form: Affine, readers: frozenset[int]) -> Affine:
        """`form` in terms of the references that read the state, or of none: a coupling must be a
        scalar."""
        form = self.token.expand(form, readers)
        scalars = not any(c.vectors for c in form.refs.values())
        return form if scalars else self.token.expand(form, frozenset())

    def _take_as_read(self, full: dict[int, Affine], readers: frozenset[int]) -> None:
        """Where the update writes c * x and an output reads x itself: x for c * x."""
        outputs = [self.interpreter.values[x.key] for x in self.recurrence.outputs]
        refs = {r for output in outputs if isinstance(output, Affine) for r in output.refs}
        seen = refs - set(self.sealed)
        for r, x in itertools.product(sorted(self.sealed), sorted(seen)):
            read = self.token.whole(x)
            scalar = self.token.multiple(full[r], read)
            if scalar and r not in self.meanings:
                self.definitions[r] = self._coupled(self.token.definitions[x], readers - {r})
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

    def _pairs_of(self, origin: int, write: Poly) -> list[RawPair]:
        """The pair of one reference; several when its readings have different gains."""
        form = self.definitions[origin]
        first, *others = collect(form)
        coupling = {r: -c for r, c in form.refs.items()}
        lead = RawPair(origin, write, GainedRead(first.gain, -first.vector), form.free, coupling)
        return [
            lead,
            *(RawPair(origin, write, GainedRead(x.gain, -x.vector), ZERO, {}) for x in others),
        ]

    def _reading(self, read: GainedRead) -> tuple[Reading, Expr | None]:
        """The reading with its decay split off where it divides, and the gain that remains."""
        after, rest = self._without_decay(read)
        shown = None if rest.gain == ONE else self.canon.expr(rest.gain)
        return Reading(self.canon.expr(rest.vector), after), shown

    def _without_decay(self, read: GainedRead) -> tuple[bool, GainedRead]:
        """(True, quotient) when the decay divides a reading, else (False, the reading)."""
        if read.vector and self._may_split(read.vector):
            vector, gain = read.vector, read.gain
            if self.side.unknown in self.decay.vectors:
                scalar, direction = split_scalar(self.decay)
                lower, upper = divide(vector, scalar), divide(gain, direction)
            else:
                lower, upper = divide(vector, self.decay), gain
            if lower is not None and upper is not None:
                return True, GainedRead(upper, lower)
        return False, read

    def _may_split(self, vector: Poly) -> bool:
        """Whether to look for the decay in `vector`: a number divides everything, so it counts as
        there when the quotient is the simpler number."""
        decay = self.decay.value
        if decay is None:
            return True
        ((_, size),) = content(vector)[0].terms.items()
        return decay != 1 and height(size / decay) < height(size)
