"""The last step of both front ends: from checked expressions to a `Recurrence`, or the reason why
not.
"""

from __future__ import annotations

import keyword
import unicodedata
from collections.abc import Sequence
from dataclasses import replace

from boleir.errors import Source, Span
from boleir.functions import NAMES
from boleir.ir import Expr, Input, Kind, Recurrence, walk
from boleir.language.errors import (
    DuplicateName,
    DuplicateOutput,
    MissingOutput,
    MissingUpdate,
    ReservedName,
    UnusedInput,
)
from boleir.language.kinds import NOUN
from boleir.language.operators import Meaning
from boleir.language.terms import Term

STATE_NAME = "S"
RESERVED = frozenset({STATE_NAME, "d_k", "d_v", "I"})
"""Names with a fixed meaning: the state, the head dimensions, the identity."""
LOCAL = "a value"
"""What `check_name` calls an intermediate value."""
KEYWORDS = frozenset({"recurrence", "tree", "out"})
"""Words that begin a declaration or a statement."""


def normal_name(name: str) -> str:
    """`name` as Python would normalise it, so that two spellings of one letter are one name.

    A plain string: the parser's own compares slowly, and the IR outlives the parser.
    """
    return unicodedata.normalize("NFKC", str(name))


def check_name(name: str, span: Span | None, *, what: str = "an input") -> None:
    """Refuse a name that means something already. Raises `ReservedName`.

    `what` is the thing to be named; only `"a value"` may be called `S` or carry primes.
    """
    local = what == LOCAL
    if name in NAMES:
        raise ReservedName(
            f"'{name}' is a function and cannot name {what}", span=span, mend=f"call it '{name}_'"
        )
    if name in RESERVED and not (local and name == STATE_NAME):
        raise ReservedName(f"'{name}' has a fixed meaning and cannot name {what}", span=span)
    if name in KEYWORDS or keyword.iskeyword(name):
        raise ReservedName(f"'{name}' is a reserved word", span=span, mend=f"call it '{name}_'")
    if not (name.rstrip("'") if local else name).isidentifier():
        raise ReservedName(
            f"'{name}' cannot name {what}", span=span, mend="use letters, digits and '_'"
        )


def check_inputs(inputs: Sequence[Input]) -> None:
    """Refuse reserved and repeated names in a signature. Raises `ReservedName`, `DuplicateName`."""
    seen: dict[str, Input] = {}
    for item in inputs:
        check_name(item.name, item.span)
        if item.name in seen:
            first = seen[item.name].span
            where = f" (first in line {first.line}, column {first.column})" if first else ""
            raise DuplicateName(
                f"input '{item.name}' is declared twice{where}",
                span=item.span,
                mend="rename one of them",
            )
        seen[item.name] = item


def finish(
    name: str,
    inputs: tuple[Input, ...],
    update: Meaning | None,
    outputs: Sequence[tuple[Meaning, Span | None]],
    *,
    source: Source | None,
    name_span: Span | None,
    update_span: Span | None,
) -> Recurrence:
    """The recurrence, once the update is a state, the outputs values and every input used."""
    if update is None:
        raise MissingUpdate(
            f"recurrence '{name}' never assigns to S, so its state would never change",
            span=name_span,
            mend="S = S + k v^T",
        )
    if not outputs:
        raise MissingOutput(f"recurrence '{name}' has no output", span=name_span, mend="out S^T q")
    if not isinstance(update, Term) or update.shape != Kind.STATE:
        raise MissingUpdate(
            f"the new state must be {NOUN[Kind.STATE]}, not {update.describe()}",
            span=update_span,
            mend="S = S + k v^T",
        )
    first, *more = _outputs(outputs)
    used = {node.name for node in walk(update.expr, first, *more) if isinstance(node, Input)}
    for item in inputs:
        if item.name not in used:
            raise UnusedInput(
                f"input '{item.name}' takes no part in the new state or the output",
                span=item.span,
                mend="use it or remove it",
            )
    return Recurrence(str(name), inputs, update.expr, first, source, tuple(more))


def _outputs(outputs: Sequence[tuple[Meaning, Span | None]]) -> list[Expr]:
    """Every output a value vector, no two of them the same."""
    found: list[Expr] = []
    places: dict[int, Span | None] = {}
    for output, span in outputs:
        if not isinstance(output, Term) or output.expr.kind is not Kind.VALUE:  # q^T S will do
            raise MissingOutput(
                f"the output must be {NOUN[Kind.VALUE]}, not {output.describe()}",
                span=span,
                mend="out S^T q",
            )
        read = output.expr
        if read.key in places:
            first = places[read.key]
            where = f" (first in line {first.line})" if first else ""
            raise DuplicateOutput(
                f"this output is put out twice{where}", span=span, mend="keep one of them"
            )
        places[read.key] = span
        # An input is blamed where it is put out, not where it is declared.
        found.append(replace(read, span=span) if isinstance(read, Input) else read)
    return found
