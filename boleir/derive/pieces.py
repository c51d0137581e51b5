"""Building blocks of the formulas of a closed form: reads, gates, decayed states, entries.

Vectors and scalars are multiplied in the algebra of `Symbols`; what is left to do here is to put
states, unknowns and sums beside them, in text or LaTeX.
"""

from __future__ import annotations

from boleir.derive.algebra import ONE, Poly, split_scalar
from boleir.derive.canonical import contract
from boleir.derive.closed_form import Block, ClosedForm, Gates
from boleir.derive.normal_form import Reading
from boleir.derive.notation import ATOM, PRODUCT, Style
from boleir.derive.symbols import Symbols
from boleir.ir import Expr, Kind


class Pieces:
    """Spelled pieces for one closed form in one style."""

    def __init__(self, form: ClosedForm, style: Style) -> None:
        self.form = form
        self.style = style
        self.symbols = Symbols(form.normal, style)
        self.right = form.normal.side == "right"
        self.write = Kind.VALUE if self.right else Kind.KEY
        self.many = len(form.G) > 1
        self.decay_kind = form.P.decay.kind
        self.on_unknown = self.decay_kind not in (Kind.HEAD, self.write)
        self.t = style.transpose

    def _show(self, expr: Expr, token: str, tight: int = 0) -> str:
        return self.symbols.show(self.symbols.at(expr, token), tight)

    def _log(self) -> str:
        decay = self._show(self.form.P.decay, "", ATOM)
        return rf"\log {decay}" if self.style.latex else f"log {decay}"

    def _state(self, token: str) -> str:
        return self.style.name("S", token)

    def _state_pre(self) -> str:
        return r"S_{\mathrm{pre}}" if self.style.latex else "S_pre"

    def _unknown(self, a: int, token: str) -> str:
        return self._indexed("u", a, token)

    def _indexed(self, letter: str, a: int, token: str) -> str:
        if not self.many:
            return self.style.name(letter, token)
        if self.style.latex:
            return f"{letter}^{{({a + 1})}}_{{{token}}}"
        return f"{letter}{a + 1}_{token}"

    def _names(self, letter: str, a: int, single: bool | None = None) -> tuple[str, str]:
        return (
            self._entry_name(letter, "i", "j", a, single=single),
            self._entry_name(letter, "i", "i", a, single=single),
        )

    def _entry_name(
        self,
        letter: str,
        i: str,
        j: str,
        a: int,
        b: int | None = None,
        *,
        single: bool | None = None,
    ) -> str:
        if not self.many if single is None else single:
            index = f"{i}{j}" if self.style.latex else f"{i},{j}"
        elif b is None:
            index = f"{i},({j},{a + 1})"
        else:
            index = f"({i},{a + 1}),({j},{b + 1})"
        return f"{letter}_{{{index}}}" if self.style.latex else f"{letter}[{index}]"

    def gate(self, gates: Gates, i: str, j: str) -> Poly:
        """Γ as a symbol: from j (exclusive) to i or to the parent of i."""
        if self.form.P.trivial:
            return ONE
        to = i if gates.own else "p"
        return self.symbols.symbol(self.decay_kind, "Gamma" if self.style.latex else "Γ", to + j)

    def path(self, gates: Gates, i: str) -> Poly:
        """P_i or P_p."""
        if self.form.P.trivial:
            return ONE
        return self.symbols.symbol(self.decay_kind, "P", i if gates.own else "p")

    def _entry(self, block: Block, gain: Expr | None = None, tight: int = 0) -> str:
        left, right = self.symbols.at(block.left, "i"), self.symbols.at(block.right, "j")
        poly = contract(self.write, left * right * self.gate(block.gates, "i", "j"))
        if gain is not None:
            poly = poly * self.symbols.at(gain, "i")
        return self.symbols.show(poly, tight)

    def _where(self, strict: bool) -> str:
        if self.style.latex:
            sign = r"\prec" if strict else r"\preceq"
            return rf"\quad (j {sign} i), \text{{ else }} 0"
        return f"   for j {'≺' if strict else '≼'} i, else 0"

    def _sum(self, strict: bool) -> str:
        return self._sum_strict() if strict else self.style.sum(f"j {self.style.or_self} i")

    def _sum_strict(self) -> str:
        return self.style.sum(f"j {self.style.ancestor} i")

    def _read_parent(self, reading: Reading, gain: Expr | None) -> str:
        vector = self.symbols.at(reading.vector, "i")
        decayed = reading.after_decay and not self.form.P.trivial
        if decayed and not self.on_unknown:
            vector = vector * self.symbols.at(self.form.P.decay, "i")
        text = self._read(self._state("p"), vector)
        outside = self.symbols.at(self.form.P.decay, "i") if decayed and self.on_unknown else ONE
        return self._scaled(outside, gain, text)

    def _read(self, state: str, vector: Poly) -> str:
        """state^T vector (right acting: state vector), scalars in front."""
        scalar, direction = split_scalar(vector) if vector else (ONE, vector)
        sign = "-" if scalar.value == -1 else ""
        front = (
            "" if sign or scalar == ONE else self.symbols.show(scalar, PRODUCT) + self.style.product
        )
        shown = self.symbols.show(direction, ATOM)
        return (
            f"{sign}{front}{state} {shown}"
            if self.right
            else f"{sign}{front}{state}{self.t} {shown}"
        )

    def _scaled(self, factor: Poly, gain: Expr | None, text: str) -> str:
        if gain is not None:
            factor = factor * self.symbols.at(gain, "i")
        if factor == ONE:
            return text
        sign = self.style.elementwise if factor.vectors else self.style.product
        return f"{self.symbols.show(factor, PRODUCT)}{sign}{self.style.group(text)}"

    def _base(self, vector: Expr, gates: Gates, gain: Expr | None) -> str:
        poly, path = self.symbols.at(vector, "i"), self.path(gates, "i")
        if not self.on_unknown:
            return self._scaled(ONE, gain, self._read(self._state_pre(), poly * path))
        return self._scaled(path, gain, self._read(self._state_pre(), poly))

    def _decayed_state(self, gates: Gates, i: str, state: str, *, parent: bool = False) -> str:
        if self.form.P.trivial:
            return state
        factor = self.symbols.at(self.form.P.decay, i) if parent else self.path(gates, i)
        if self.decay_kind is Kind.HEAD:
            return f"{self.symbols.show(factor, PRODUCT)}{self.style.product}{state}"
        diagonal = self.style.diagonal(self.symbols.show(factor))
        sides = (diagonal, state) if self.decay_kind is Kind.KEY else (state, diagonal)
        return " ".join(sides)

    def _rank_one(self, write: Poly, column: str) -> str:
        several = sum(len(v) for v in write.by_vectors(self.write)) > 1
        shown = self.symbols.show(write, ATOM if self.right or several else PRODUCT)
        return f"{column} {shown}{self.t}" if self.right else f"{shown} {column}{self.t}"


def minus(line: str, text: str) -> str:
    """`line` minus `text`, with the signs contracted."""
    if text.startswith("-"):
        return f"{line} + {text[1:]}" if line else text[1:]
    return f"{line} - {text}" if line else f"-{text}"
