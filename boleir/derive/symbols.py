"""The symbols of one recurrence: its inputs and the names its author gave, for formulas.

Formulas are computed, not pasted: vectors and scalars become polynomials over symbols like `beta_i`
or `k_3`, products are taken in the algebra of the derivation, and the result is spelled out. The
names come back by *folding*: where a defined expression divides a term, its name takes its place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from boleir.derive.algebra import ZERO, Monomial, Poly, Rank, atom, divide, rank, split_scalar, term
from boleir.derive.canonical import Canon, contract, emit, rebuilt, reciprocal
from boleir.derive.normal_form import NormalForm
from boleir.derive.notation import SUM, Notation, Style
from boleir.ir import Dot, Expr, Input, Kind, Mul, Number, Per, Recurrence, uses_state, walk

_DEFINED = "="
"""First character of the symbols of defined names, so that none of them equals an input."""


@dataclass(frozen=True, slots=True)
class Definition:
    """A name of the author's: what it stands for, and the symbol that replaces it."""

    name: str
    source: Expr
    poly: Poly
    symbol: Input


class _ByToken(Notation):
    """Factors ordered for reading: k_3·k_1 (row first), k_3·(gamma_3 ∘ gamma_2 ∘ k_1), P_i ∘
    q_i."""

    def _factors(self, expr: Expr) -> Iterator[Expr]:
        factors = list(_flat(expr))
        yield from (f for f in factors if f.kind is Kind.HEAD)
        yield from sorted((f for f in factors if f.kind is not Kind.HEAD), key=_gates_first)

    def _dot_order(self, expr: Dot) -> tuple[Expr, ...]:
        factors = [f for operand in expr.children for f in _flat(operand)]
        row = max(factors, key=lambda f: (_token_weight(f), not _is_gate(f), rank(f)))
        rest = list(factors)
        rest.remove(row)
        return row, _elementwise(rest)


def _elementwise(factors: list[Expr]) -> Expr:
    """The elementwise product of vectors as one expression."""
    product = factors[0]
    for factor in factors[1:]:
        product = Mul(product.kind, product, factor)
    return product


def _flat(expr: Expr) -> Iterator[Expr]:
    if isinstance(expr, Mul):
        yield from _flat(expr.left)
        yield from _flat(expr.right)
    else:
        yield expr


def _gates_first(factor: Expr) -> tuple[int, bool, Rank]:
    return -_token_weight(factor), not _is_gate(factor), rank(factor)


def _is_gate(factor: Expr) -> bool:
    return not isinstance(factor, Input) or factor.name.partition(" ")[0] in ("P", "Γ", "Gamma")


def _token_weight(factor: Expr) -> int:
    """Place of the latest token that occurs: 2 for i, 1 for a gate from j to i, 0 for j; numbers as
    they are."""
    tokens = [node.name.partition(" ")[2] for node in walk(factor) if isinstance(node, Input)]
    weights = [
        int(t) if t.isdigit() else {"i": 2, "p": 2, "j": 0, "": -1}.get(t, 1) for t in tokens
    ]
    return max(weights, default=-1)


@dataclass(slots=True)
class Symbols:
    """Names, folding and spelling for the formulas of one normal form."""

    form: NormalForm
    style: Style
    definitions: list[Definition] = field(init=False)
    _canon: Canon = field(default_factory=Canon)
    _labels: dict[int, str] = field(default_factory=dict)
    _folded: dict[int, Poly] = field(default_factory=dict)
    _placed: dict[tuple[int, str], Poly] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.definitions = _definitions(self.form.recurrence, self._canon)

    def spell_definition(self, definition: Definition) -> str:
        """The right-hand side of a definition, in terms of earlier names."""
        earlier: dict[int, str] = {}
        for other in self.definitions:
            if other.name == definition.name:
                break
            earlier[other.source.key] = self.style.name(other.name)
        return Notation(self.style, earlier).open(definition.source)[0]

    def at(self, expr: Expr, token: str) -> Poly:
        """`expr` for one token, in folded symbols that carry the token as a subscript."""
        place = (expr.key, token)
        if place not in self._placed:
            self._placed[place] = self._canon.poly(self._subscript(emit(self.folded(expr)), token))
        return self._placed[place]

    def symbol(self, kind: Kind, name: str, token: str = "") -> Poly:
        """A symbol that is no input, like P_i."""
        return atom(self._symbol(kind, name, token))

    def show(self, poly: Poly, tight: int = SUM) -> str:
        """A polynomial over symbols, spelled out."""
        return _ByToken(self.style, self._labels).show(emit(poly), tight)

    def folded(self, expr: Expr) -> Poly:
        """`expr` with the author's names in place of what they stand for."""
        if expr.key not in self._folded:
            self._folded[expr.key] = self._fold(self._canon.poly(expr))
        return self._folded[expr.key]

    def _symbol(self, kind: Kind, name: str, token: str) -> Input:
        made = Input(kind, f"{name} {token}", Per.HEAD)
        self._labels[made.key] = self.style.name(name, token or None)
        return made

    def _subscript(self, expr: Expr, token: str) -> Expr:
        known: dict[int, Expr] = {}
        for node in walk(expr):
            if isinstance(node, Input):
                own = token if node.per is Per.TOKEN else ""
                known[node.key] = self._symbol(node.kind, node.name.removeprefix(_DEFINED), own)
            else:
                known[node.key] = rebuilt(node, known)
        return known[expr.key]

    def _fold(self, poly: Poly) -> Poly:
        for definition in self._by_size():
            whole = divide(poly, definition.poly) if len(definition.poly.terms) > 1 else None
            if whole is not None and poly:
                poly = whole * atom(definition.symbol)
        result = ZERO
        for monomial, size in poly.terms.items():
            result = result + self._fold_term(term(monomial, size))
        return _map_atoms(result, self._fold_atom)

    def _fold_term(self, single: Poly) -> Poly:
        for definition in self._by_size():
            if len(definition.poly.terms) > 1:
                continue
            quotient = divide(single, definition.poly)
            if quotient is not None and _size(quotient) < _size(single):
                single = quotient * atom(definition.symbol)
            else:
                single = _fold_dot(single, definition)
        return single

    def _fold_atom(self, expr: Expr) -> Poly:
        """An atom that no name covers, with its operands folded."""
        if isinstance(expr, Input) and not expr.name.startswith(_DEFINED):
            shadowed = any(d.name == expr.name for d in self.definitions)
            return atom(Input(expr.kind, f"{expr.name}_in", expr.per)) if shadowed else atom(expr)
        if isinstance(expr, Input):
            return atom(expr)
        if isinstance(expr, Dot):
            left, right = (self.folded(child) for child in expr.children)
            return contract(expr.children[0].kind, left * right)
        operands = {child.key: emit(self.folded(child)) for child in expr.children}
        return atom(rebuilt(expr, operands))

    def _by_size(self) -> list[Definition]:
        return sorted(self.definitions, key=lambda d: -_size(d.poly))


def _definitions(recurrence: Recurrence, canon: Canon) -> list[Definition]:
    """Named state-free expressions in order; a name that is bound again means the last of them."""
    named: dict[str, Expr] = {}
    for node in walk(recurrence.update, *recurrence.outputs):
        if node.hint and node.children and node.kind is not Kind.STATE and not uses_state(node):
            named.pop(node.hint, None)
            named[node.hint] = node
    found = []
    if all(node.span is not None for node in named.values()):  # as the author ordered them
        named = dict(sorted(named.items(), key=lambda item: _position(item[1])))
    for name, node in named.items():
        poly = canon.poly(node)
        if isinstance(emit(poly), Number | Input):
            continue
        tokens = any(isinstance(x, Input) and x.per is Per.TOKEN for x in walk(node))
        symbol = Input(node.kind, _DEFINED + name, Per.TOKEN if tokens else Per.HEAD)
        found.append(Definition(name, node, poly, symbol))
    return found


def _position(node: Expr) -> tuple[int, int]:
    return (node.span.line, node.span.column) if node.span else (0, 0)


def _map_atoms(poly: Poly, change: Callable[[Expr], Poly]) -> Poly:
    """Every indivisible term replaced by what `change` gives for it."""
    result = ZERO
    for monomial, size in poly.terms.items():
        product = term((), size)
        for factor, power in monomial:
            changed = change(factor)
            product = product * _power(changed, power)
        result = result + product
    return result


def _power(poly: Poly, power: int) -> Poly:
    if power < 0:
        return _power(reciprocal(poly), -power)
    result = term((), 1)
    for _ in range(power):
        result = result * poly
    return result


def _size(poly: Poly) -> int:
    """How much there is to read."""
    return sum(abs(power) for monomial in poly.terms for _, power in monomial)


def _fold_dot(single: Poly, definition: Definition) -> Poly:
    """Take the scalar of a named vector s * x into the dots that contain x: s (x^T y) = name^T
    y."""
    scalar, direction = split_scalar(definition.poly)
    if scalar.value is not None or len(direction.terms) != 1:
        return single
    ((vector, _),) = direction.terms.items()
    ((monomial, _),) = single.terms.items()
    for factor, power in monomial:
        if power != 1 or not isinstance(factor, Dot):
            continue
        other = _other_operand(factor, vector)
        quotient = divide(single, scalar * atom(factor))
        if other is not None and quotient is not None:
            kind = factor.left.kind
            return quotient * contract(kind, atom(definition.symbol) * other)
    return single


def _other_operand(dot: Dot, vector: Monomial) -> Poly | None:
    """The rest of a dot of two plain vectors, one of which is `vector`."""
    if len(vector) != 1 or vector[0][1] != 1:
        return None
    if dot.left == vector[0][0]:
        return Canon().poly(dot.right)
    return Canon().poly(dot.left) if dot.right == vector[0][0] else None
