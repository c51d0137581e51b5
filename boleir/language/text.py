"""From bytes to text the parser may trust: encoding, control characters, size, brackets, line
continuation.

Everything here is one pass of a regular expression, so hostile input costs no more than honest
input. Offsets into the prepared text are offsets into the source, which is what makes exact carets
cheap.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass
from pathlib import Path

from boleir.errors import Source, Span
from boleir.ir import MAX_DEPTH
from boleir.language.errors import (
    BadCharacter,
    BadEncoding,
    NestingTooDeep,
    TextTooLong,
    UnbalancedBracket,
)

MAX_CHARACTERS = 32_000
"""Longest text that is read; the longest shipped recurrence has about 2,000 characters."""
MAX_BRACKETS = 2 * MAX_DEPTH
"""Deepest nesting of brackets; more than the printer ever needs for an expression of `MAX_DEPTH`.
"""

_LONGEST_FILE = 4 * MAX_CHARACTERS + 3  # a character takes at most four bytes, the mark three
_FORBIDDEN = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufeff]"
)
_LAYOUT = re.compile(r"#[^\n]*|[()\[\]{}]|\n")
_PARTNER = {")": "(", "]": "[", "}": "{"}


@dataclass(frozen=True, slots=True)
class Text:
    """A source, its prepared form (same length plus a final newline) and the offsets at which its
    lines start.
    """

    source: Source
    prepared: str
    starts: tuple[int, ...]

    def span(self, start: int, end: int) -> Span:
        """Span of the characters `start` to `end`, cut at the end of the first line."""
        line = bisect_right(self.starts, start)
        first = self.starts[line - 1]
        limit = self.starts[line] - 1 if line < len(self.starts) else len(self.source.text)
        return Span(self.source, line, start - first + 1, max(start, min(end, limit)) - first + 1)


def read_text(path: Path) -> str:
    """Contents of a file, which must be UTF-8 (a byte order mark is accepted).

    Raises `BadEncoding`, `TextTooLong` (before more than a little is read), `OSError`.
    """
    with path.open("rb") as file:
        data = file.read(_LONGEST_FILE + 1)
    if len(data) > _LONGEST_FILE:
        raise _too_long(str(path), f"more than {_LONGEST_FILE:,} bytes")
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise BadEncoding(f"{path}: the file is UTF-16", mend="save it as UTF-8")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        before = data[: error.start].decode("utf-8")
        source = Source(str(path), data.decode("utf-8", errors="replace"))
        line = before.count("\n") + 1
        column = len(before) - (before.rfind("\n") + 1) + 1
        raise BadEncoding(
            f"byte 0x{data[error.start]:02x} is not UTF-8",
            span=Span(source, line, column, column + 1),
            mend="save it as UTF-8",
        ) from None


def _too_long(name: str, size: str) -> TextTooLong:
    return TextTooLong(
        f"{name}: the text has {size}; at most {MAX_CHARACTERS:,} characters are read",
        mend="put recurrences into several files",
    )


def prepare(text: str, name: str) -> Text:
    """Check `text` and join the lines that brackets hold together. Raises one of the errors
    imported above.
    """
    if len(text) > MAX_CHARACTERS:
        raise _too_long(name, f"{len(text):,} characters")
    normal = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    bare = Text(Source(name, normal), "", tuple([0] + [m.end() for m in re.finditer("\n", normal)]))
    bad = _FORBIDDEN.search(normal)
    if bad is not None:
        raise BadCharacter(
            f"character U+{ord(bad.group()):04X} has no place here",
            span=bare.span(bad.start(), bad.end()),
        )
    return Text(bare.source, _join_lines(bare) + "\n", bare.starts)


def _join_lines(text: Text) -> str:
    """The text with comments, and line ends inside brackets, blanked out one for one."""
    pieces: list[str] = []
    opened: list[int] = []
    normal, done = text.source.text, 0
    for match in _LAYOUT.finditer(normal):
        token, at = match.group(), match.start()
        if token[0] == "#" or (token == "\n" and opened):
            pieces += [normal[done:at], " " * len(token)]
            done = match.end()
        elif token in "([{":
            opened.append(at)
            if len(opened) > MAX_BRACKETS:
                raise NestingTooDeep(
                    f"brackets nest deeper than {MAX_BRACKETS} levels",
                    span=text.span(at, at + 1),
                    mend="give inner expressions names",
                )
        elif token in _PARTNER:
            _close(text, opened, token, at)
    if opened:
        raise _never_closed(text, opened[-1])
    return "".join(pieces) + normal[done:]


def _close(text: Text, opened: list[int], token: str, at: int) -> None:
    if not opened:
        raise UnbalancedBracket(
            f"'{token}' closes nothing: no '{_PARTNER[token]}' is open here",
            span=text.span(at, at + 1),
            mend=f"remove it, or write its '{_PARTNER[token]}' before it",
        )
    start = opened.pop()
    if text.source.text[start] != _PARTNER[token]:
        where = text.span(start, start + 1)
        raise UnbalancedBracket(
            f"'{token}' cannot close the '{text.source.text[start]}' "
            f"of line {where.line}, column {where.column}",
            span=text.span(at, at + 1),
            mend="close what was opened last first",
        )


def _never_closed(text: Text, start: int) -> UnbalancedBracket:
    return UnbalancedBracket(
        f"'{text.source.text[start]}' is opened here and never closed",
        span=text.span(start, start + 1),
        mend="close it",
    )
