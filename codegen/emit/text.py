"""Small helpers for the text of Triton expressions: brackets where they are needed, and only there.

Emitted operators stand between single spaces, so the loosest operator outside brackets can be read
off the text itself.
"""

from __future__ import annotations

from collections.abc import Callable

from boleir.codegen.emit.writer import Writer, balanced
from boleir.functions import FUNCTIONS
from boleir.ir import Add, Call, Div, Expr, Mul, Neg, Number, Sub

LOGIC, SUM, TERM, UNARY, ATOM = range(5)
"""How tightly the loosest operator of a text binds."""

_LEVELS = {"+": SUM, "-": SUM, "*": TERM, "/": TERM, "//": TERM, "%": TERM}
_LOGIC = {"<", "<=", ">", ">=", "==", "!=", "&", "|", "<<", ">>"}


def level(text: str) -> int:
    """The level of the loosest operator outside brackets."""
    depth, found = 0, UNARY if text.startswith(("-", "~")) else ATOM
    for at, char in enumerate(text):
        depth += (char in "([") - (char in ")]")
        if char == " " and not depth:
            operator = text[at + 1 :].split(" ", 1)[0]
            found = min(found, LOGIC if operator in _LOGIC else _LEVELS.get(operator, ATOM))
    return found


def bracket(text: str, least: int = ATOM) -> str:
    """`text`, in brackets unless it binds at least as tightly as `least`."""
    return text if level(text) >= least else f"({text})"


def product(*factors: str) -> str:
    """The product of texts, from left to right."""
    first, *rest = factors
    return " * ".join([bracket(first, TERM) if rest else first, *(bracket(x, UNARY) for x in rest)])


def conjunction(*tests: str) -> str:
    """All of several masks."""
    return tests[0] if len(tests) == 1 else " & ".join(bracket(test) for test in tests)


def arithmetic(expr: Expr, spell: Callable[[Expr], str], writer: Writer) -> str:
    """An elementwise node over the texts of its operands, which `spell` gives."""
    match expr:
        case Number(value=value):
            return repr(float(value))
        case Neg(arg=arg):
            return f"-{bracket(spell(arg))}"
        case Add(left=left, right=right):
            return f"{bracket(spell(left), SUM)} + {bracket(spell(right), TERM)}"
        case Sub(left=left, right=right):
            return f"{bracket(spell(left), SUM)} - {bracket(spell(right), TERM)}"
        case Mul(left=left, right=right):
            return f"{bracket(spell(left), TERM)} * {bracket(spell(right), UNARY)}"
        case Div(left=left, right=right):
            return f"{bracket(spell(left), TERM)} / {bracket(spell(right), UNARY)}"
        case Call(fn=fn, arg=arg):
            return call(fn, spell(arg), writer)
    raise TypeError(f"{type(expr).__name__} is not elementwise")


def call(fn: str, argument: str, writer: Writer) -> str:
    """A function of the table applied to a text; an argument it needs several times gets a name."""
    if fn == "exp" and writer.precise:
        return f"precise_exp({argument})"
    function = FUNCTIONS[fn]
    template = function.triton + function.part
    if template.count("@") > 1 and not argument.isidentifier():
        argument = writer.temp(argument, f"{fn}_argument")
    elif "(@)" not in template and "(@," not in template:
        argument = bracket(argument)
    part = function.part.replace("@", argument)
    named = writer.temp(part, f"{fn}_part") if part else ""
    spelled = function.to_triton(argument, axis=1, part=named)
    inner = spelled[1:-1]
    return inner if spelled.startswith("(") and balanced(inner) else spelled
