"""The formulas of the theorem for one closed form, in text or LaTeX.

Vectors and scalars are taken from the closed form and multiplied in the algebra of `Symbols`; this
module only puts the pieces side by side.
"""

from __future__ import annotations

from boleir.derive.algebra import ONE, Poly, constant
from boleir.derive.canonical import contract
from boleir.derive.closed_form import Block, Gates
from boleir.derive.normal_form import Reading
from boleir.derive.notation import ATOM, PRODUCT
from boleir.derive.pieces import Pieces, minus
from boleir.derive.structure import is_zero
from boleir.ir import Call, Expr


class Formulas(Pieces):
    """One method per part of the explanation; each gives finished lines."""

    def definitions(self) -> tuple[str, ...]:
        """The author's names, and the decay with its logarithm."""
        lines = [
            f"{self.style.name(d.name)} = {self.symbols.spell_definition(d)}"
            for d in self.symbols.definitions
        ]
        decay = self.form.P.decay
        if not self.form.P.trivial and not (isinstance(decay, Call) and decay.hint is None):
            lines.append(f"{self._log()} = {self._show(self.form.P.log_decay, '')}")
        return tuple(lines)

    def conventions(self) -> tuple[str, ...]:
        """What the letters mean."""
        if self.style.latex:
            return self._conventions_latex()
        lines = [
            "i, j: nodes; p: the parent of i; S_pre: the committed state, parent of the roots",
            "j ≺ i: j is a strict ancestor of i; j ≼ i: an ancestor or i itself",
        ]
        if not self.form.P.trivial:
            decay = self._show(self.form.P.decay, "", ATOM)
            lines += [
                f"P_i: product of {decay} over the root path of i, itself included; 1 for S_pre",
                "Γ_ij = P_i / P_j = exp(c_i - c_j), c_i the sum of the logarithms along the path",
            ]
        return tuple(lines)

    def _conventions_latex(self) -> tuple[str, ...]:
        lines = [
            r"p = \pi(i) \text{ is the parent of } i,\quad j \prec i \text{ a strict ancestor},"
            r"\quad j \preceq i \text{ an ancestor or } i \text{ itself}"
        ]
        if not self.form.P.trivial:
            decay = self.symbols.show(self.symbols.at(self.form.P.decay, "t"), ATOM)
            lines.append(
                rf"P_i = \prod_{{t \preceq i}} {decay},\qquad "
                r"\Gamma_{ij} = P_i / P_j = \exp(c_i - c_j)"
            )
        return tuple(lines)

    def token(self) -> tuple[str, ...]:
        """The recurrence of one token in normal form."""
        normal = self.form.normal
        lines = []
        for a, pair in enumerate(normal.pairs):
            line = "" if is_zero(pair.target) else self._show(pair.target, "i")
            line = minus(line, self._read_parent(pair.erase, pair.gain))
            for b, coupling in enumerate(pair.coupling):
                if not is_zero(coupling):
                    weight = self.style.group(self._show(coupling, "i"))
                    line = minus(line, f"{weight} {self._unknown(b, 'i')}")
            lines.append(f"{self._unknown(a, 'i')} = {line}")
        state = self._decayed_state(Gates(1), "i", self._state("p"), parent=True)
        lines.append(f"{self._state('i')} = " + " + ".join([state, *self._own_terms()]))
        lines.append(f"o_i = {self._own_output()}")
        return tuple(lines)

    def lemma_path(self) -> tuple[str, ...]:
        """S_i along the root path."""
        state = self._decayed_state(Gates(1), "i", self._state_pre())
        return (f"{self._state('i')} = " + " + ".join([state, *self._path_sums("i")]),)

    def lemma_system(self) -> tuple[str, ...]:
        """(I + G) U = R with its entries."""
        lines = ["(I + G) U = R"]
        if all(is_zero(vector) for vector in self.form.commit.pairs):
            lines.append("G = 0")
        for a, row in enumerate(self.form.G):
            for b, block in enumerate(row):
                if is_zero(block.right):  # a pair that writes nothing is read by none
                    continue
                name = self._entry_name("G", "i", "j", a, b)
                gain = self.form.R[a].gain
                lines.append(f"{name} = {self._entry(block, gain)}{self._where(True)}")
                if not is_zero(block.own):
                    own = self._entry_name("G", "i", "i", a, b)
                    lines.append(f"{own} = {self._show(block.own, 'i')}")
        for a, side in enumerate(self.form.R):
            line = "" if is_zero(side.target) else self._show(side.target, "i")
            line = minus(line, self._base(side.erase.vector, side.gates, side.gain))
            for block, (_, value) in zip(side.writes, self.form.commit.writes, strict=True):
                entry = self._entry(block, side.gain)
                sign = "-" if entry.startswith("-") else ""
                weight = self.style.group(entry.removeprefix("-"))
                term = f"{self._sum_strict()} {weight} {self._show(value, 'j', PRODUCT)}"
                line = minus(line, sign + term)
            lines.append(f"{self._indexed('R', a, 'i')} = {line}")
        return tuple(lines)

    def lemma_inverse(self) -> tuple[str, ...]:
        """The finite series."""
        n = self.form.nilpotency.per_level
        index = "d+1" if n == 1 else f"{n}(d+1)"
        last = "d" if n == 1 else f"{n}(d+1)-1"
        if self.style.latex:
            series = self.style.sum("m=0", last)
            return (rf"G^{{{index}}} = 0,\qquad (I + G)^{{-1}} = {series} (-G)^m",)
        return (f"G^({index}) = 0, hence (I + G)^-1 = {self.style.sum('m=0', last)} (-G)^m",)

    def theorem(self) -> tuple[str, ...]:
        """The outputs of all nodes from the committed state."""
        out = self.form.C
        lines = []
        reads = not is_zero(out.query.vector)
        inner = [self._output_base()] if reads else []
        for a, block in enumerate(out.pairs):
            if is_zero(block.right):
                seen = not is_zero(block.own)
                inner += [self._own_share(block.own, self._unknown(a, "i"))] if seen else []
                continue
            strict = is_zero(block.own)
            weight = self._entry_name("C", "i", "j", a)
            inner.append(
                f"{self._sum(strict)} {self._weighted(weight, block, self._unknown(a, 'j'))}"
            )
        for b, block in enumerate(out.writes if reads else ()):
            weight = self._entry_name("N", "i", "j", b, single=len(out.writes) == 1)
            value = self._show(self.form.commit.writes[b][1], "j", PRODUCT)
            inner.append(f"{self._sum(is_zero(block.own))} {self._weighted(weight, block, value)}")
        lines.append(f"o_i = {self._with_gain(inner)}")
        for a, block in enumerate(out.pairs):
            if not is_zero(block.right):
                lines += self._entry_lines(self._names("C", a), block, self._unknown(a, "j"))
        for b, block in enumerate(out.writes if reads else ()):
            value = self._show(self.form.commit.writes[b][1], "j", ATOM)
            names = self._names("N", b, single=len(out.writes) == 1)
            lines += self._entry_lines(names, block, value)
        if self.form.G:
            inverse = "(I + G)^{-1}" if self.style.latex else "(I + G)^-1"
            lines.append(f"U = {inverse} R")
        return tuple(lines)

    def commit(self) -> tuple[str, ...]:
        """The state after an accepted path."""
        new = r"S_{\mathrm{new}}" if self.style.latex else "S_new"
        state = self._decayed_state(Gates(1), "l", self._state_pre())
        line = " + ".join([state, *self._path_sums("l")])
        return (
            f"{new} = {line}"
            + (r"\quad(l \text{ accepted})" if self.style.latex else "   for the accepted node l"),
        )

    def _entry_lines(self, names: tuple[str, str], block: Block, column: str) -> list[str]:
        if self.right:
            query = self._show(self.form.C.query.vector, "i", ATOM)
            if self.on_unknown:
                gate = self.symbols.show(self.gate(block.gates, "i", "j"))
                column = self.style.group(f"{gate}{self.style.elementwise}{column}")
            return [
                f"{names[0]} = {self.style.dot.format(query, column)}"
                + self._where(is_zero(block.own))
            ]
        lines = [f"{names[0]} = {self._entry(block)}{self._where(not self._inclusive(block))}"]
        if not self._inclusive(block) and not is_zero(block.own):
            lines.append(f"{names[1]} = {self._show(block.own, 'i')}")
        return lines

    def _inclusive(self, block: Block) -> bool:
        """Whether the entry at i = j follows the rule of the others (Γ_ii = 1)."""
        if not block.gates.own and not self.form.P.trivial:
            return False
        left, right = self.symbols.folded(block.left), self.symbols.folded(block.right)
        return contract(self.write, left * right) == self.symbols.folded(block.own)

    def _own_terms(self) -> list[str]:
        normal = self.form.normal
        terms = [
            self._rank_one(self.symbols.at(pair.write, "i"), self._unknown(a, "i"))
            for a, pair in enumerate(normal.pairs)
            if not is_zero(pair.write)
        ]
        terms += [
            self._rank_one(self.symbols.at(w.key, "i"), self._show(w.value, "i", ATOM))
            for w in normal.writes
        ]
        return terms

    def _path_sums(self, i: str) -> list[str]:
        commit = self.form.commit
        gate = self.gate(commit.gates, i, "j")
        below = self.style.sum(f"j {self.style.or_self} {i}")
        columns = [self._unknown(a, "j") for a in range(len(commit.pairs))]
        columns += [self._show(value, "j", ATOM) for _, value in commit.writes]
        vectors = [*commit.pairs, *(key for key, _ in commit.writes)]
        terms = []
        for vector, column in zip(vectors, columns, strict=True):
            if is_zero(vector):
                continue
            write = self.symbols.at(vector, "j")
            if self.on_unknown:
                column = self.style.group(
                    f"{self.symbols.show(gate)}{self.style.elementwise}{column}"
                )
            else:
                write = write * gate
            terms.append(f"{below} {self._rank_one(write, column)}")
        return terms

    def _own_output(self) -> str:
        out = self.form.normal.readout
        inner = [] if is_zero(out.query.vector) else [self._query_parent()]
        columns = [self._unknown(a, "i") for a in range(len(out.pairs))]
        columns += [self._show(w.value, "i", PRODUCT) for w in self.form.normal.writes]
        vectors = [pair.write for pair in self.form.normal.pairs]
        vectors += [write.key for write in self.form.normal.writes]
        for weight, column, vector in zip(out.pairs + out.writes, columns, vectors, strict=True):
            if is_zero(weight):
                continue
            if self.right:
                query = self._show(out.query.vector, "i", ATOM)
                dot = self.style.group(self.style.dot.format(query, column))
                column = f"{dot} {self._show(vector, 'i', PRODUCT)}"
            inner.append(self._own_share(weight, column))
        return self._with_gain(inner)

    def _own_share(self, weight: Expr, column: str) -> str:
        """A weight of the node's own times a column."""
        folded = self.symbols.folded(weight)
        if folded in (constant(1), constant(-1)):
            return column if folded == constant(1) else f"-{column}"
        return f"{self._show(weight, 'i', ATOM)} {column}"

    def _query_parent(self) -> str:
        query = self.form.normal.readout.query
        if not self.right:
            return self._read_parent(query, None)
        after = query.after_decay and not self.form.P.trivial
        decay = self.symbols.at(self.form.P.decay, "i") if after else ONE
        return self._cross_read(self._state("p"), query, decay)

    def _cross_read(self, state: str, query: Reading, decay: Poly) -> str:
        """Right acting: decay * (state^T q), a gate over the keys inside."""
        vector = self.symbols.at(query.vector, "i")
        if self.on_unknown:
            vector, decay = vector * decay, ONE
        return self._scaled(decay, None, f"{state}{self.t} {self.symbols.show(vector, ATOM)}")

    def _output_base(self) -> str:
        out = self.form.C
        if not self.right:
            return self._base(out.query.vector, out.gates, None)
        return self._cross_read(self._state_pre(), out.query, self.path(out.gates, "i"))

    def _with_gain(self, inner: list[str]) -> str:
        out = self.form.C
        text = " + ".join(inner).replace(" + -", " - ")
        if out.gain is not None:
            text = self._scaled(ONE, out.gain, text)
        if out.direct is None:
            return text
        return f"{text} + {self._show(out.direct, 'i')}".replace(" + -", " - ")

    def _weighted(self, weight: str, block: Block, column: str) -> str:
        """C_ij u_j; right acting, C_ij times the decayed write vector."""
        if not self.right:
            return f"{weight} {column}"
        vector = self.symbols.at(block.right, "j")
        if not self.on_unknown:
            vector = vector * self.gate(block.gates, "i", "j")
        return f"{weight} {self.symbols.show(vector, ATOM)}"
