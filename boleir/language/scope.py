"""Names while one recurrence of a text is read: inputs, intermediate values, the state, and who has
been read.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from boleir.errors import Span
from boleir.functions import NAMES
from boleir.ir import Input, Kind, Previous
from boleir.language import build
from boleir.language.assemble import LOCAL, RESERVED, STATE_NAME, check_name
from boleir.language.errors import DuplicateName, UnknownName, UnusedName, did_you_mean
from boleir.language.foreign import foreign
from boleir.language.operators import IDENTITY, Meaning
from boleir.language.terms import Term

MAX_SHOWN = 16
"""Names that a message lists at most."""


@dataclass(slots=True)
class Scope:
    """Inputs and the state may be bound again; any other name is bound once, so that it means one
    thing.
    """

    name: str
    name_span: Span
    inputs: tuple[Input, ...]
    values: dict[str, Meaning] = field(default_factory=dict)
    places: dict[str, Span] = field(default_factory=dict)
    read: set[str] = field(default_factory=set)
    unread: dict[str, Span] = field(default_factory=dict)
    """Inputs whose latest value nobody has read, and where they got it."""
    forgotten: list[tuple[str, Span]] = field(default_factory=list)
    """Inputs that got a new value before anybody had read the old one."""
    state: Meaning = field(default_factory=lambda: Term(Previous(Kind.STATE)))
    update_span: Span | None = None
    outputs: list[tuple[Meaning, Span | None]] = field(default_factory=list)

    def __post_init__(self) -> None:
        for item in self.inputs:
            self.values[item.name] = Term(item)

    def look_up(self, name: str, span: Span) -> Meaning:
        """The value of `name` here. Raises `UnknownName`."""
        if name == STATE_NAME:
            return self.state
        if name in ("d_k", "d_v"):
            return build.dimension(name, span)
        if name == "I":
            return IDENTITY
        if name not in self.values:
            refusal = foreign(name, span)
            if refusal is not None:
                raise refusal
            known = set(self.values) | NAMES | RESERVED
            raise UnknownName(
                f"unknown name '{name}'",
                span=span,
                mend=did_you_mean(name, known) or self._listing(),
            )
        self.read.add(name)
        self.unread.pop(name, None)
        return self.values[name]

    def bind(self, name: str, value: Meaning, span: Span) -> None:
        """Give `name` a value. Raises `DuplicateName` for a second value of a local name,
        `ReservedName`.
        """
        check_name(name, span, what=LOCAL)
        if name == STATE_NAME:
            self.state, self.update_span = build.named(value, name), span
            return
        if name in self.places:
            first = self.places[name]
            raise DuplicateName(
                f"'{name}' already has a value (line {first.line}, column {first.column}); "
                "only inputs and S may be assigned again",
                span=span,
                mend=f"choose another name, {name}' for example",
            )
        if all(item.name != name for item in self.inputs):
            self.places[name] = span
        else:
            if name in self.unread:
                self.forgotten.append((name, self.unread[name]))
            self.unread[name] = span
        self.values[name] = build.named(value, name)

    def check_read(self) -> None:
        """Refuse values that nobody reads. Raises `UnusedName`."""
        unread = [(name, span) for name, span in self.places.items() if name not in self.read]
        for name, span in (*unread, *self.forgotten, *self.unread.items()):
            raise UnusedName(
                f"'{name}' is computed and never read",
                span=span,
                mend="use it or remove the line",
            )

    def _listing(self) -> str:
        shown = ["S", *self.values][:MAX_SHOWN]
        more = ", ..." if len(self.values) >= MAX_SHOWN else ""
        return f"known here: {', '.join(shown)}{more}"
