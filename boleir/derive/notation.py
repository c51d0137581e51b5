"""Spelling of expressions: plain text near the language, text formulas with token subscripts, LaTeX.

One walker (`Notation`) and one style per look. Names that the author gave are used for whole
subexpressions; inputs of the token carry the token as a subscript where one is asked for.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction

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
    Per,
    Previous,
    Read,
    ReadKey,
    Sub,
)

GREEK = frozenset(
    "alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu nu xi pi rho sigma tau phi "
    "chi psi omega Gamma Delta Theta Lambda Xi Pi Sigma Phi Psi Omega".split()
)

# How tightly the parts of a formula bind; a looser part inside a tighter one needs parentheses.
SUM, PRODUCT, ATOM = 0, 1, 2


@dataclass(frozen=True, slots=True)
class Style:
    """The look of text formulas."""

    product: str = " "
    elementwise: str = " ∘ "
    dot: str = "{}·{}"
    transpose: str = "^T"

    def name(self, name: str, token: str | None) -> str:
        """A name, of the given token if any."""
        return f"{name}_{token}" if token else name

    def number(self, value: Fraction) -> str:
        """An exact number; decimals where they are exact and short."""
        if value.denominator == 1:
            return str(value.numerator)
        text = f"{float(value):.12g}"
        return text if Fraction(text) == value else f"{value.numerator}/{value.denominator}"

    def fraction(self, top: str, bottom: str) -> str:
        """Both operands bind tightly already."""
        return f"{top}/{bottom}" if self.product == " " else f"{top} / {bottom}"

    def group(self, text: str) -> str:
        """Parentheses."""
        return f"({text})"

    def call(self, fn: str, argument: str) -> str:
        """A function call."""
        return f"{fn}({argument})"

    def conv(self, argument: str, width: int) -> str:
        """A causal convolution along the root path."""
        return f"causal_conv({argument}, width={width})"


@dataclass(frozen=True, slots=True)
class Latex(Style):
    """The look of LaTeX formulas."""

    product: str = r"\,"
    elementwise: str = r" \odot "
    dot: str = r"{}^\top {}"
    transpose: str = r"^\top"

    def name(self, name: str, token: str | None) -> str:
        bare = name.rstrip("'")
        primes = name[len(bare) :]
        head, _, tail = bare.partition("_")
        shown = "\\" + head if head in GREEK else head if len(head) == 1 else rf"\mathrm{{{head}}}"
        below = [rf"\mathrm{{{tail}}}".replace("_", r"\_")] if tail else []
        below += [token] if token else []
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
        return rf"\operatorname{{conv}}_{{{width}}}({argument})"


TEXT = Style()
LATEX = Latex()
SOURCE = Style(product=" * ", elementwise=" * ", dot="{}^T {}")


@dataclass(frozen=True, slots=True)
class Notation:
    """Spells expressions in one style; `names` maps keys of expressions to names."""

    style: Style = TEXT
    names: Mapping[int, str] = field(default_factory=dict)

    def show(self, expr: Expr, token: str | None = None, tight: int = SUM) -> str:
        """`expr` for a token ("i", "3", None: no subscripts), in parentheses when it binds looser
        than `tight`."""
        text, binding = self._spell(expr, token)
        return self.style.group(text) if binding < tight else text

    def _spell(self, expr: Expr, token: str | None) -> tuple[str, int]:
        if expr.key in self.names:
            return self.style.name(self.names[expr.key], token), ATOM
        return self.spell_open(expr, token)

    def spell_open(self, expr: Expr, token: str | None = None) -> tuple[str, int]:
        """(text, binding) of `expr` by its parts, whatever its own name is."""
        style = self.style
        match expr:
            case Input():
                return style.name(expr.name, token if expr.per is Per.TOKEN else None), ATOM
            case Previous():
                return style.name("S", "p" if token else None), ATOM
            case Number():
                text = style.number(expr.value)
                return text, ATOM if text.replace(".", "").isdigit() else PRODUCT
            case Dim():
                return style.name(expr.name, None) if style is LATEX else expr.name, ATOM
            case Neg():
                return "-" + self.show(expr.arg, token, PRODUCT), SUM
            case Add():
                return f"{self.show(expr.left, token)} + {self.show(expr.right, token, SUM)}", SUM
            case Sub():
                return f"{self.show(expr.left, token)} - {self.show(expr.right, token, PRODUCT)}", SUM
            case Call():
                return style.call(expr.fn, self.show(expr.arg, token)), ATOM
            case Conv():
                return style.conv(self.show(expr.arg, token), expr.width), ATOM
            case _:
                return self._spell_product(expr, token)

    def _spell_product(self, expr: Expr, token: str | None) -> tuple[str, int]:
        style = self.style
        match expr:
            case Mul():
                vectors = Kind.HEAD not in (expr.left.kind, expr.right.kind)
                sign = style.elementwise if vectors else style.product
                left = self.show(expr.left, token, PRODUCT)
                return left + sign + self.show(expr.right, token, PRODUCT), PRODUCT
            case Div():
                if style is LATEX:
                    top, bottom = self.show(expr.left, token), self.show(expr.right, token)
                else:
                    top = self.show(expr.left, token, PRODUCT)
                    bottom = self.show(expr.right, token, ATOM)
                return style.fraction(top, bottom), PRODUCT
            case Dot():
                pair = (self.show(expr.left, token, ATOM), self.show(expr.right, token, ATOM))
                return style.dot.format(*pair), PRODUCT
            case Outer():
                left, right = (self.show(x, token, ATOM) for x in expr.children)
                return f"{left} {right}{style.transpose}", PRODUCT
            case Read():
                state = self.show(expr.state, token, ATOM)
                return f"{state}{style.transpose} {self.show(expr.vector, token, ATOM)}", PRODUCT
            case ReadKey():
                state = self.show(expr.state, token, ATOM)
                return f"{state} {self.show(expr.vector, token, ATOM)}", PRODUCT
        raise TypeError(f"no spelling for {type(expr).__name__}")


class _Hints(Mapping[int, str]):
    """The names that the nodes below one expression carry, the expression itself left open."""

    def __init__(self, root: Expr) -> None:
        from boleir.ir import walk

        self._names = {
            node.key: node.hint
            for node in walk(root)
            if node.hint is not None and node.key != root.key
        }

    def __getitem__(self, key: int) -> str:
        return self._names[key]

    def __iter__(self):  # type: ignore[no-untyped-def]
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


def plain(expr: Expr) -> str:
    """`expr` as the author would write it: by its parts, with the names of the author inside."""
    return Notation(SOURCE, _Hints(expr)).spell_open(expr)[0]
