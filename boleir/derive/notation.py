"""Spelling of expressions: near the language for messages, as formulas in text and in LaTeX.

One walker (`Notation`) and one style per look. A node may have a label, a finished piece of text
that stands for it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction

from boleir.derive.work import spend
from boleir.functions import FUNCTIONS
from boleir.ir import (
    Add,
    Call,
    Conv,
    Dim,
    Div,
    Dot,
    Expr,
    Input,
    Kind,
    Mul,
    Neg,
    Number,
    Outer,
    Previous,
    Read,
    ReadKey,
    Sub,
    walk,
)

_GREEK = re.compile(
    "alpha|beta|gamma|delta|epsilon|zeta|eta|theta|iota|kappa|lambda|mu|nu|xi|pi|rho|sigma|tau|phi"
    "|chi|psi|omega|Gamma|Delta|Theta|Lambda|Xi|Pi|Sigma|Phi|Psi|Omega"
)

# How tightly a piece of a formula binds; a looser piece inside a tighter one needs parentheses.
SUM, PRODUCT, ATOM = 0, 1, 2


@dataclass(frozen=True, slots=True)
class Style:
    """The look of text formulas."""

    product: str = " "
    elementwise: str = " ∘ "
    dot: str = "{}·{}"
    transpose: str = "^T"
    ancestor: str = "≺"
    or_self: str = "≼"
    gate: str = "Γ"
    latex: bool = False

    def name(self, name: str, token: str | None = None) -> str:
        """A name, of the given token if any."""
        return f"{name}_{token}" if token else name

    def number(self, value: Fraction) -> str:
        """An exact number; a decimal where that is exact and short."""
        if value.denominator == 1:
            return str(value.numerator)
        text = f"{float(value):.12g}"
        return text if Fraction(text) == value else f"{value.numerator}/{value.denominator}"

    def fraction(self, top: str, bottom: str) -> str:
        """A quotient; both operands bind tightly already."""
        return f"{top} / {bottom}"

    def group(self, text: str) -> str:
        """Parentheses."""
        return f"({text})"

    def call(self, fn: str, argument: str) -> str:
        """A function call."""
        return f"{fn}({argument})"

    def conv(self, argument: str, width: int) -> str:
        """A causal convolution along the root path."""
        return f"causal_conv({argument}, width={width})"

    def diagonal(self, text: str) -> str:
        """The diagonal matrix of a vector."""
        return f"diag({text})"

    def sum(self, below: str, above: str = "") -> str:
        """A summation sign."""
        return f"sum_{{{below}}}" + (f"^{{{above}}}" if above else "")


@dataclass(frozen=True, slots=True)
class Latex(Style):
    """The look of LaTeX formulas."""

    product: str = r"\,"
    elementwise: str = r" \odot "
    dot: str = r"{}^\top {}"
    transpose: str = r"^\top"
    ancestor: str = r"\prec"
    or_self: str = r"\preceq"
    gate: str = r"\Gamma"
    latex: bool = True

    def name(self, name: str, token: str | None = None) -> str:
        bare = name.rstrip("'")
        head, _, tail = bare.partition("_")
        letter = rf"\{head}" if _GREEK.fullmatch(head) else head
        shown = letter if letter != head or len(head) == 1 else rf"\mathrm{{{head}}}"
        tail = tail.replace("_", r"\_")
        below = [tail if len(tail) == 1 else rf"\mathrm{{{tail}}}"] if tail else []
        below += [token] if token else []
        primes = name[len(bare) :]
        return f"{shown}{primes}" + (f"_{{{','.join(below)}}}" if below else "")

    def number(self, value: Fraction) -> str:
        if value.denominator == 1:
            return str(value.numerator)
        return rf"\tfrac{{{value.numerator}}}{{{value.denominator}}}"

    def fraction(self, top: str, bottom: str) -> str:
        return rf"\frac{{{top}}}{{{bottom}}}"

    def group(self, text: str) -> str:
        return rf"\left({text}\right)"

    def call(self, fn: str, argument: str) -> str:
        return FUNCTIONS[fn].to_latex(argument)

    def conv(self, argument: str, width: int) -> str:
        return rf"\operatorname{{conv}}_{{{width}}}\left({argument}\right)"

    def diagonal(self, text: str) -> str:
        return rf"\operatorname{{diag}}\left({text}\right)"

    def sum(self, below: str, above: str = "") -> str:
        return rf"\sum_{{{below}}}" + (f"^{{{above}}}" if above else "")


TEXT = Style()
LATEX = Latex()
READABLE = 200
"""Pieces of an expression that a message shows as it is."""
LEVELS = 6
"""Levels of a longer one that it shows."""
SOURCE = Style(product=" * ", elementwise=" * ", dot="{}^T {}")


@dataclass(frozen=True, slots=True)
class Notation:
    """Spells expressions in one style; `labels` maps keys of nodes to finished text."""

    style: Style = TEXT
    labels: Mapping[int, str] = field(default_factory=dict)

    def show(self, expr: Expr, tight: int = SUM) -> str:
        """`expr`, in parentheses when it binds looser than `tight`."""
        spend(1)
        if expr.key in self.labels:
            return self.labels[expr.key]
        text, binding = self.open(expr)
        return self.style.group(text) if binding < tight else text

    def open(self, expr: Expr) -> tuple[str, int]:
        """(text, binding) of `expr` by its parts, whatever its own label is."""
        style = self.style
        match expr:
            case Input() | Dim():
                return style.name(expr.name), ATOM
            case Previous():
                return "S", ATOM
            case Number():
                text = style.number(expr.value)
                return text, ATOM if text.replace(".", "").isdigit() else PRODUCT
            case Neg():
                return "-" + self.show(expr.arg, PRODUCT), SUM
            case Add():
                return f"{self.show(expr.left)} + {self.show(expr.right)}", SUM
            case Sub():
                return f"{self.show(expr.left)} - {self.show(expr.right, PRODUCT)}", SUM
            case Call():
                return style.call(expr.fn, self.show(expr.arg)), ATOM
            case Conv():
                return style.conv(self.show(expr.arg), expr.width), ATOM
            case Mul():
                return self._product(expr)
            case Div():
                return self._ratio(expr)
        return self._matrix_product(expr), PRODUCT

    def _product(self, expr: Mul) -> tuple[str, int]:
        factors = list(self._factors(expr))
        dots = [isinstance(f, Dot) and f.key not in self.labels for f in factors]
        # One dot at the end reads well bare; more of them, or one inside, would run together.
        tight = ATOM if sum(dots) > 1 or any(dots[:-1]) else PRODUCT
        text, vector = "", False
        for n, factor in enumerate(factors):
            bare = n == 0 and isinstance(factor, Neg)
            piece = self.show(factor, SUM if bare else tight if dots[n] else PRODUCT)
            both = vector and factor.kind is not Kind.HEAD
            sign = self.style.elementwise if both else self.style.product
            text = f"{text}{sign}{piece}" if n else piece
            vector = vector or factor.kind is not Kind.HEAD
        return text, SUM if text.startswith("-") else PRODUCT

    def _factors(self, expr: Expr) -> Iterator[Expr]:
        if isinstance(expr, Mul) and expr.key not in self.labels:
            yield from self._factors(expr.left)
            yield from self._factors(expr.right)
        else:
            yield expr

    def _ratio(self, expr: Div) -> tuple[str, int]:
        if self.style.latex:
            top, bottom = (self.show(x) for x in expr.children)
            return self.style.fraction(top, bottom), PRODUCT
        top, bottom = self.show(expr.left, PRODUCT), self.show(expr.right, ATOM)
        return self.style.fraction(top, bottom), PRODUCT

    def _matrix_product(self, expr: Expr) -> str:
        operands = self._dot_order(expr) if isinstance(expr, Dot) else expr.children
        left, right = (self.show(x, ATOM) for x in operands)
        match expr:
            case Dot():
                return self.style.dot.format(left, right)
            case Outer():
                return f"{left} {right}{self.style.transpose}"
            case Read():
                return f"{left}{self.style.transpose} {right}"
            case ReadKey():
                return f"{left} {right}"
        raise TypeError(f"no spelling for {type(expr).__name__}")

    def _dot_order(self, expr: Dot) -> tuple[Expr, ...]:
        return expr.children


def plain(expr: Expr) -> str:
    """`expr` as the author would write it: by its parts, with the names of the author inside."""
    return Notation(SOURCE, _names(expr)).open(expr)[0]


def abbreviated(expr: Expr) -> str:
    """`plain`, with what lies deep inside left out where there is too much of it to read."""
    names = _names(expr)
    sizes: dict[int, int] = {}
    for node in walk(expr):
        named = node.key in names
        sizes[node.key] = 1 + (0 if named else sum(sizes[x.key] for x in node.children))
    if sizes[expr.key] > READABLE:
        level = [expr]
        for _ in range(LEVELS):
            level = [x for node in level if node.key not in names for x in node.children]
        names |= {node.key: "..." for node in level if node.children and node.key != expr.key}
    return Notation(SOURCE, names).open(expr)[0]


def _names(expr: Expr) -> dict[int, str]:
    return {
        node.key: node.hint
        for node in walk(expr)
        if node.hint and node.children and node.key != expr.key
    }
