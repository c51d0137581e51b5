"""Canonical text of a recurrence: parses back to an equal IR, and to the same text when printed
again.

Hinted and shared nodes become lines of their own, operands first, and what is computed from the
inputs alone before what involves the state. A hint is kept as the name of its
line wherever the language allows it: an input or `S` may be bound again only once its old value is
no longer needed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fractions import Fraction

from boleir.errors import SpecError
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
    Recurrence,
    Sub,
    walk,
)
from boleir.language.assemble import LOCAL, STATE_NAME, check_name
from boleir.language.tree_spec import TreeSpec

LONGEST_EXPRESSION = 20_000
"""Characters after which `print_expression` leaves the rest out (sharing can make a text
exponentially long).
"""
LONGEST_DECIMAL = 60
"""Decimal places up to which a constant is printed as a decimal."""

_SUM, _TERM, _UNARY, _PRODUCT, _ATOM = 1, 2, 3, 4, 5
_INFIX: dict[type[Expr], tuple[str, int, int, int]] = {
    Add: ("{} + {}", _SUM, _SUM, _TERM),
    Sub: ("{} - {}", _SUM, _SUM, _TERM),
    Mul: ("{} * {}", _TERM, _TERM, _UNARY),
    Div: ("{} / {}", _TERM, _TERM, _UNARY),
    Dot: ("{}^T {}", _PRODUCT, _ATOM, _ATOM),
    Outer: ("{} {}^T", _PRODUCT, _ATOM, _ATOM),
    Read: ("{}^T {}", _PRODUCT, _ATOM, _ATOM),
    ReadKey: ("{} {}", _PRODUCT, _ATOM, _ATOM),
}
"""Template, level of the whole, least levels of the operands."""

_Text = tuple[str, int]


def print_module(recurrences: Iterable[Recurrence], trees: Iterable[TreeSpec] = ()) -> str:
    """Canonical text of several declarations, recurrences first."""
    blocks = [print_recurrence(item) for item in recurrences]
    declared = "".join(f"{tree}\n" for tree in trees)
    return "\n".join([*blocks, declared] if declared else blocks)


def print_recurrence(recurrence: Recurrence) -> str:
    """Canonical text of one recurrence, ending in a newline."""
    return (
        "\n".join([_signature(recurrence), *(f"  {line}" for line in _Lines(recurrence).lines())])
        + "\n"
    )


def print_expression(
    expr: Expr, names: Mapping[Expr, str] | None = None, *, use_hints: bool = True
) -> str:
    """One expression as text. Nodes in `names`, and below the root those with a hint, appear by
    name.
    """
    given = {node.key: name for node, name in (names or {}).items()}
    if use_hints:
        hinted = {x.key: x.hint for x in walk(expr) if x.hint and x.children and x.key != expr.key}
        given = {**hinted, **given}
    texts: dict[int, _Text] = {}
    for node in walk(expr):
        text = (given[node.key], _ATOM) if node.key in given else _format(node, texts)
        texts[node.key] = text if len(text[0]) <= LONGEST_EXPRESSION else ("(...)", _ATOM)
    return texts[expr.key][0]


def print_number(value: Fraction) -> str:
    """A constant: decimal where that is exact and short, else a ratio."""
    sign, value = ("-", -value) if value < 0 else ("", value)
    places = 0
    while (
        value.denominator > 1 and places < LONGEST_DECIMAL and (value * 10**places).denominator > 1
    ):
        places += 1
    scaled = value * 10**places
    if scaled.denominator > 1:
        return f"{sign}{value.numerator}/{value.denominator}"
    digits = str(scaled.numerator)
    if places == 0:
        zeros = len(digits) - len(digits.rstrip("0"))
        return f"{sign}{digits[:-zeros]}e{zeros}" if zeros > 6 and value else f"{sign}{digits}"
    if places > len(digits) + 3:
        return f"{sign}{digits}e-{places}"
    padded = digits.rjust(places + 1, "0")
    return f"{sign}{padded[:-places]}.{padded[-places:]}"


def _signature(recurrence: Recurrence) -> str:
    tokens, parameters = (
        ", ".join(f"{item.name}: {item.kind}" for item in group)
        for group in (recurrence.tokens, recurrence.parameters)
    )
    return f"recurrence {recurrence.name}({tokens}{'; ' if parameters else ''}{parameters})"


def _format(node: Expr, texts: Mapping[int, _Text]) -> _Text:
    """Text of a node from the texts of its operands."""
    if isinstance(node, Mul) and node.right.kind is Kind.STATE:
        # A vector on the left of a state: written on the side on which the diagonal matrix acts.
        vector, state = texts[node.left.key][0], texts[node.right.key]
        if node.left.kind is Kind.KEY:
            return f"diag({vector}) * {_at_least(state, _UNARY)}", _TERM
        if node.left.kind is Kind.VALUE:
            return f"{_at_least(state, _TERM)} * diag({vector})", _TERM
    if type(node) in _INFIX:
        template, level, *least = _INFIX[type(node)]
        operands = [
            _at_least(texts[x.key], bound) for x, bound in zip(node.children, least, strict=True)
        ]
        return template.format(*operands), level
    match node:
        case Input() | Dim():
            return node.name, _ATOM
        case Previous():
            return STATE_NAME, _ATOM
        case Number():
            text = print_number(node.value)
            return text, _TERM if "/" in text else _UNARY if text[0] == "-" else _ATOM
        case Neg():
            return f"-{_at_least(texts[node.arg.key], _UNARY)}", _UNARY
        case Call():
            return f"{node.fn}({texts[node.arg.key][0]})", _ATOM
        case Conv():
            return f"causal_conv({texts[node.arg.key][0]}, width={node.width})", _ATOM
    raise TypeError(f"no spelling for {type(node).__name__}")


def _at_least(text: _Text, level: int) -> str:
    return text[0] if text[1] >= level else f"({text[0]})"


class _Lines:
    """The statements of one recurrence: which nodes get a line, in which order, and a name."""

    def __init__(self, recurrence: Recurrence) -> None:
        self.recurrence = recurrence
        self.update, self.outputs = recurrence.update, recurrence.outputs
        self.nodes = _in_reading_order(recurrence)
        self.reads_new = any(node.key == self.update.key for node in walk(*self.outputs)) and bool(
            self.update.children
        )
        self.lines_of = self._chosen()
        self.order = [node for node in self.nodes if node.key in self.lines_of]
        self.last_use = self._last_uses()
        self.names = self._assign_names()

    def lines(self) -> list[str]:
        """The statements."""
        texts: dict[int, _Text] = {}
        statements: list[str] = []
        for node in self.nodes:
            text = _format(node, texts)
            if node.key in self.lines_of:
                statements.append(f"{self.names[node.key]} = {text[0]}")
                text = (self.names[node.key], _ATOM)
            texts[node.key] = text
        outs = [f"out {texts[output.key][0]}" for output in self.outputs]
        update = texts[self.update.key][0]
        if self.reads_new and update == STATE_NAME:
            return [*statements, *outs]
        return [*statements, *outs, f"{STATE_NAME} = {update}"]

    def _chosen(self) -> set[int]:
        """Keys of the nodes that get a line: hinted, shared, or the new state when the output reads
        it.
        """
        count: dict[int, int] = {}
        for node in self.nodes:
            for child in node.children:
                count[child.key] = count.get(child.key, 0) + 1
        chosen = {
            node.key
            for node in self.nodes
            if node.children and (node.hint or count.get(node.key, 0) > 1)
        }
        chosen -= {output.key for output in self.outputs if not count.get(output.key)}
        if self.reads_new:
            chosen.add(self.update.key)
        elif not count.get(self.update.key):
            chosen.discard(self.update.key)
        return chosen

    def _last_uses(self) -> dict[int, int]:
        """For each binding (a line, an input, the old state) the last line that reads it."""
        end = len(self.order)
        last: dict[int, int] = {}
        reads: dict[int, frozenset[int]] = {}  # per node: the bindings its text mentions
        position = {node.key: index for index, node in enumerate(self.order)}
        for node in self.nodes:
            below = frozenset[int]().union(*(reads[child.key] for child in node.children))
            if node.key in self.lines_of:
                for key in below:
                    last[key] = max(last.get(key, -1), position[node.key])
                below = frozenset({node.key})
            elif isinstance(node, (Input, Previous)):
                below = frozenset({node.key})
            reads[node.key] = below
        for output in self.outputs:
            last.update(dict.fromkeys(reads[output.key], end))
        for key in reads[self.update.key]:
            last[key] = max(last.get(key, -1), end if key != self.update.key else -1)
        return last

    def _assign_names(self) -> dict[int, str]:
        names: dict[int, str] = {}
        holder = {item.name: item.key for item in self.recurrence.inputs}
        holder[STATE_NAME] = Previous(Kind.STATE).key
        taken = set(holder) | {node.hint for node in self.order if node.hint}
        used: set[str] = set()
        for index, node in enumerate(self.order):
            wanted = node.hint or _inherited_name(node)
            if self.reads_new and node.key == self.update.key:
                wanted = STATE_NAME
            if wanted in holder:
                free = self.last_use.get(holder[wanted], -1) <= index
                if free and (wanted != STATE_NAME or node.kind is Kind.STATE):
                    names[node.key] = wanted
                    holder[wanted] = node.key
                    continue
            elif wanted and wanted == node.hint and wanted not in used and _is_allowed(wanted):
                names[node.key] = wanted
                used.add(wanted)
                continue
            names[node.key] = fresh = _fresh(wanted, node, taken | used)
            used.add(fresh)
        return names


def _in_reading_order(recurrence: Recurrence) -> list[Expr]:
    """Every node once, operands before the nodes that use them: what is computed from the inputs
    alone first, by the first token input it depends on, then what involves the state.
    """
    order = list(walk(recurrence.update, *recurrence.outputs))
    position = {item.key: index for index, item in enumerate(recurrence.tokens)}
    first: dict[int, int] = {}
    stateful: set[int] = set()
    for node in order:
        below = [first[child.key] for child in node.children]
        first[node.key] = min(below, default=position.get(node.key, len(position)))
        if isinstance(node, Previous) or any(child.key in stateful for child in node.children):
            stateful.add(node.key)
    free = [node for node in order if node.key not in stateful]
    free.sort(key=lambda node: first[node.key])
    return list(walk(*free, *order))


def _inherited_name(node: Expr) -> str | None:
    """The name of the value that `node` refines: `l2norm(k) / 2` is still some `k`."""
    while not (node.hint or isinstance(node, Input)):
        same = [child for child in node.children if child.kind is node.kind]
        if not isinstance(node, (Call, Conv, Neg, Mul, Div)) or len(same) != 1:
            return None
        node = same[0]
    return node.hint or (node.name if isinstance(node, Input) else None)


def _is_allowed(name: str) -> bool:
    try:
        check_name(name, None, what=LOCAL)
    except SpecError:
        return False
    return True


def _fresh(wanted: str | None, node: Expr, taken: Iterable[str]) -> str:
    """A name that is not taken: the wanted one with primes for a state, with a number otherwise."""
    refused = set(taken)
    if node.kind is Kind.STATE and (
        wanted is None or not wanted.rstrip("'") or wanted.rstrip("'") == STATE_NAME
    ):
        name = f"{STATE_NAME}'"
        while name in refused:
            name += "'"
        return name
    stem = wanted.rstrip("'") if wanted and _is_allowed(wanted) else "t"
    return next(
        name for number in range(1, len(refused) + 2) if (name := f"{stem}{number}") not in refused
    )
