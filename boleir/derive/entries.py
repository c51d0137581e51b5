"""The closed form of one concrete tree: G, C and (I + G)^-1 written out entry by entry.

All products are taken in the algebra of `Symbols`, so every entry comes out simplified: common
gates and write strengths stand outside, and the finite Neumann series shows as a sum over ancestor
chains."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from boleir.derive.algebra import ONE, ZERO, Poly
from boleir.derive.canonical import contract
from boleir.derive.closed_form import Block, ClosedForm
from boleir.derive.explain import Section
from boleir.derive.notation import Style
from boleir.derive.symbols import Symbols
from boleir.ir import Kind

MOST_TERMS = 32
"""An entry of the inverse with more terms is written in terms of earlier entries instead."""

Place: TypeAlias = tuple[int, int]
"""(node, pair)."""

Table: TypeAlias = dict[tuple[Place, Place], Poly | None]
"""(row, column) -> entry; None for one that is too long to write out."""


def tree_sections(form: ClosedForm, style: Style, tree: Sequence[int]) -> list[Section]:
    """The drawing, the sizes, and the non-zero entries of G, (I + G)^-1 and C."""
    from boleir.trees.drawing import draw
    from boleir.trees.tree import Tree

    shape = tree if isinstance(tree, Tree) else Tree(tuple(int(p) for p in tree))
    parents = tuple(shape.parents)
    entries = Entries(form, style, parents)
    depth = max(shape.depth, default=0)
    facts = [f"{len(parents)} nodes, depth d = {depth}"]
    if form.G:
        facts.append(f"nilpotency index {form.nilpotency_index(depth)}")
    sections = [Section("Tree", (draw(shape), ", ".join(facts)), prose=True)]
    if form.G:
        sections.append(Section("G", entries.lines("G", entries.system()), _REST_ZERO))
        inverse = entries.inverse()
        sections.append(Section("(I + G)^-1", entries.lines("X", inverse), _DIAGONAL))
    if not entries.right:
        for letter, table in entries.readouts():
            sections.append(Section(_TITLES[letter], entries.lines(letter, table), _REST_ZERO))
    return sections


_TITLES = {"C": "C", "N": "C of the pure writes"}
_REST_ZERO = "All other entries are 0."
_DIAGONAL = "The diagonal is 1, all other entries are 0."


class Entries:
    """Entries over the nodes of one tree."""

    def __init__(self, form: ClosedForm, style: Style, parents: tuple[int, ...]) -> None:
        self.form = form
        self.style = style
        self.parents = parents
        self.symbols = Symbols(form.normal, style)
        self.right = form.normal.side == "right"
        self.write = Kind.VALUE if self.right else Kind.KEY
        self.pairs = len(form.G)
        self._known_rows: dict[Place, dict[Place, Poly]] = {}
        self._known_inverse: Table = {}

    def system(self) -> Table:
        """G: (row, column) -> entry."""
        table: Table = {}
        for i in range(len(self.parents)):
            for a, row in enumerate(self.form.G):
                gain = self.form.R[a].gain
                scale = ONE if gain is None else self.symbols.at(gain, str(i))
                for j in self._ancestors(i):
                    for b, block in enumerate(row):
                        table[(i, a), (j, b)] = self._entry(block, i, j) * scale
                for b, block in enumerate(row):
                    table[(i, a), (i, b)] = self.symbols.at(block.own, str(i))
        return {place: value for place, value in table.items() if value}

    def inverse(self) -> Table:
        """(I + G)^-1 below its diagonal, by substitution: X_ij = -sum_k G_ik X_kj.

        The series of a pair of nodes has 2^(n-1) terms for n steps between them; with more than
        MOST_TERMS, an entry is None (see `recursion`).
        """
        if self._known_inverse:
            return self._known_inverse
        result: dict[Place, dict[Place, Poly | None]] = {}
        for row, entries in self._rows().items():
            sums: dict[Place, Poly | None] = {}
            for middle, value in entries.items():
                for column, known in [(middle, ONE), *result.get(middle, {}).items()]:
                    sums[column] = _less(sums.get(column, ZERO), value, known)
            result[row] = {column: x for column, x in sums.items() if x is None or x}
        self._known_inverse = {(r, c): v for r in result for c, v in result[r].items()}
        return self._known_inverse

    def recursion(self, row: Place, column: Place) -> str:
        """The entry (row, column) of the inverse in terms of G and of earlier entries."""
        single = self.pairs == 1
        text = ""
        for middle in self._rows()[row]:
            g = self._name("G", row, middle, single)
            if middle == column:
                text += f" - {g}"
            elif (middle, column) in self.inverse():
                text += f" - {g} {self._name('X', middle, column, single)}"
        return text.removeprefix(" ")

    def _rows(self) -> dict[Place, dict[Place, Poly]]:
        if not self._known_rows:
            self._known_rows = {place: {} for place in self._places()}
            for (row, column), value in self.system().items():
                assert value is not None
                self._known_rows[row][column] = value
        return self._known_rows

    def readouts(self) -> list[tuple[str, Table]]:
        """C for the pairs and N for the pure writes, those there are."""
        found: list[tuple[str, Table]] = []
        for letter, blocks in (("C", self.form.C.pairs), ("N", self.form.C.writes)):
            table: Table = {}
            for i in range(len(self.parents)):
                for a, block in enumerate(blocks):
                    for j in self._ancestors(i):
                        table[(i, 0), (j, a)] = self._entry(block, i, j)
                    table[(i, 0), (i, a)] = self.symbols.at(block.own, str(i))
            if blocks:
                found.append((letter, {p: v for p, v in table.items() if v}))
        return found

    def lines(self, letter: str, table: Table) -> tuple[str, ...]:
        """One line per entry, sorted by row and column."""
        single = self.pairs == 1 if letter != "N" else len(self.form.C.writes) == 1
        shown = []
        for row, column in sorted(table):
            name = self._name(letter, row, column, single)
            value = table[row, column]
            text = self.recursion(row, column) if value is None else self.symbols.show(value)
            shown.append(f"{name} = {text}")
        return tuple(shown) or ("0",)

    def _name(self, letter: str, row: Place, column: Place, single: bool) -> str:
        if single:
            index = f"{row[0]},{column[0]}"
        elif letter in "CN":
            index = f"{row[0]},({column[0]},{column[1] + 1})"
        else:
            index = f"({row[0]},{row[1] + 1}),({column[0]},{column[1] + 1})"
        if letter == "X":
            letter = r"\left[(I + G)^{-1}\right]" if self.style.latex else "(I+G)^-1"
        return f"{letter}_{{{index}}}" if self.style.latex else f"{letter}[{index}]"

    def _places(self) -> list[Place]:
        return [(i, a) for i in range(len(self.parents)) for a in range(self.pairs)]

    def _ancestors(self, node: int) -> list[int]:
        found = []
        while (node := self.parents[node]) >= 0:
            found.append(node)
        return found[::-1]

    def _entry(self, block: Block, i: int, j: int) -> Poly:
        left, right = self.symbols.at(block.left, str(i)), self.symbols.at(block.right, str(j))
        poly = left * right
        if not self.form.P.trivial:
            path = [i] if block.gates.own else []
            node = self.parents[i]
            while node != j:
                path.append(node)
                node = self.parents[node]
            for node in path:
                poly = poly * self.symbols.at(self.form.P.decay, str(node))
        return contract(self.write, poly)


def _less(total: Poly | None, value: Poly, known: Poly | None) -> Poly | None:
    """total - value * known; None once that is too long."""
    if total is None or known is None or len(value.terms) * len(known.terms) > MOST_TERMS:
        return None
    result = total - value * known
    return result if len(result.terms) <= MOST_TERMS else None
