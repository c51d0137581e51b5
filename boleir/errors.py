"""Every error a user of boleir can meet, and how an error points at the text that caused it.

One class per message family, all below `BoleirError`, so that a caller can catch as coarsely or as
finely as it likes. An error that stems from text carries a `Span`; printing it shows the file, the
line, a caret under the offending characters and, where there is one, the mend.
"""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Source:
    """A text that spans refer to: a `.bole` file, a string, the Python file of a function."""

    name: str
    text: str

    def line(self, number: int) -> str:
        """Line `number` (counted from 1) without its newline; empty when there is no such line."""
        lines = self.text.split("\n")
        return lines[number - 1] if 1 <= number <= len(lines) else ""


@dataclass(frozen=True, slots=True)
class Span:
    """A stretch of one line. Lines and columns count from 1; `end_column` is exclusive."""

    source: Source
    line: int
    column: int
    end_column: int

    def __str__(self) -> str:
        return f"{self.source.name}:{self.line}:{self.column}"

    def excerpt(self) -> str:
        """The line with a caret under the span; long lines are cut around it."""
        line = self.source.line(self.line).replace("\t", " ")
        # Control characters must not reach a terminal by way of a message about them.
        text = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in line)
        start = self.column - 1
        width = max(1, min(self.end_column, len(text) + 1) - self.column)
        first = max(0, start - 60)
        shown = text[first : first + 120]
        left = " ..." if first else ""
        caret = " " * (start - first + len(left)) + "^" * min(width, 120 - (start - first))
        return f"    {left}{shown}\n    {caret}"


_IN_PYTHON = (
    (r"\b([A-Za-z])\^T (\w)\b", r"\1.T @ \2"),
    (r"\b([a-z]) ([a-z])\^T", r"\1 @ \2.T"),
    (r"\bS ([vw])\b", r"S @ \1"),
    (r"\bdiag\((\w)\) \* S\b", r"boleir.diag(\1) @ S"),
    (r"\bS \* diag\((\w)\)", r"S @ boleir.diag(\1)"),
    (r"\bexp\(", "boleir.exp("),
)


def in_python(mend: str) -> str:
    """A mend with what it writes in the language spelled as a traced function has it."""
    for written, traced in _IN_PYTHON:
        mend = re.sub(written, traced, mend)
    return mend


class BoleirError(Exception):
    """Root of the tree. `span` points at the text, `mend` says what would be accepted."""

    def __init__(self, message: str, *, span: Span | None = None, mend: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.span = span
        self.mend = mend

    def __str__(self) -> str:
        parts = [self.message if self.span is None else f"{self.span}: {self.message}"]
        if self.span is not None and self.span.source.text:  # a function made by exec has none
            parts.append(self.span.excerpt())
        if self.mend:
            traced = self.span is not None and self.span.source.name.endswith(".py")
            parts.append(f"  mend: {in_python(self.mend) if traced else self.mend}")
        return "\n".join(parts)


class SpecError(BoleirError):
    """The text or function does not describe a recurrence (syntax, names, kinds, shapes)."""


class DerivationError(BoleirError):
    """The recurrence is well formed, but no closed form over a tree exists or is supported."""


class CheckError(BoleirError):
    """A closed form or a kernel disagrees with the sequential recurrence."""


class ScheduleError(BoleirError):
    """A schedule is impossible for this recurrence, shape or architecture; the limit is named."""


class CompileError(BoleirError):
    """Emitted code did not compile."""


class TreeError(BoleirError):
    """A proposal tree is malformed; request and node are named."""

    def __init__(
        self,
        message: str,
        *,
        request: int | None = None,
        node: int | None = None,
        mend: str | None = None,
    ) -> None:
        where = [f"request {request}"] if request is not None else []
        where += [f"node {node}"] if node is not None else []
        super().__init__(f"{', '.join(where)}: {message}" if where else message, mend=mend)
        self.request = request
        self.node = node


class CacheError(BoleirError):
    """A stored artefact (compiled folder, tuning entry) is unusable."""


class LaunchError(BoleirError):
    """A kernel was called with arguments that do not fit it.

    The argument and the expected shape are named.
    """
