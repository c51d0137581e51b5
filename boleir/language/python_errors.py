"""What goes wrong in a user's Python, told as a mistake in a text is: place, caret, and a mend in
Python's own spelling."""

from __future__ import annotations

import builtins
import re
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType, TracebackType

from boleir.errors import Source, Span, SpecError
from boleir.functions import NAMES
from boleir.language.errors import UnknownName, did_you_mean
from boleir.language.frames import code_span, source_of

_FACTOR = r"([A-Za-z]|state|key|value)(\^T)?"
_PRODUCT = re.compile(rf"\b{_FACTOR} {_FACTOR}(?![\w^])")
_PHRASES = (
    (") S", ") @ S"),
    ("S (I", "S @ (I"),
    ("^T", ".T"),
    ("out S.T @ q", "return S, S.T @ q"),
    ("without '*'", "with '@'"),
)
"""Of the text language and in Python, after the products have been written with `@`."""


class UnknownPythonName(UnknownName, NameError):
    """A traced function read a name that nothing defines."""


@contextmanager
def spoken() -> Iterator[None]:
    """What is refused while a function is traced: mends in Python, unknown names with their
    place."""
    try:
        yield
    except SpecError as error:
        error.mend = error.mend and in_python(error.mend)
        raise
    except NameError as error:
        raise unknown_name(error) from error


def in_python(mend: str) -> str:
    """A mend that shows formulas of the text language (`k v^T`), in Python (`k @ v.T`)."""
    mend = _PRODUCT.sub(_product, mend)
    for text, python in _PHRASES:
        mend = mend.replace(text, python)
    return mend


def _product(match: re.Match[str]) -> str:
    left, left_turned, right, right_turned = match.groups(default="")
    if not (left_turned or right_turned or left == "S"):
        return match.group()  # two words
    return f"{left}{left_turned} @ {right}{right_turned}"


def unknown_name(error: NameError) -> UnknownPythonName:
    """The error for a name that Python did not find."""
    name = getattr(error, "name", None) or ""
    return UnknownPythonName(
        " ".join(str(error).split()), span=place_of(error), mend=_meant(name, error.__traceback__)
    )


def _meant(name: str, trace: TracebackType | None) -> str | None:
    """What was to be written instead of `name`."""
    if name in NAMES or name in ("d_k", "d_v", "I", "diag", "dot", "outer", "causal_conv"):
        return f"boleir.{name}"
    frame: FrameType | None = None
    while trace is not None:
        frame, trace = trace.tb_frame, trace.tb_next
    if frame is None or not name:
        return None
    known = {**vars(builtins), **frame.f_globals, **frame.f_locals}
    return did_you_mean(name, [item for item in known if item != name])


def place_of(error: BaseException) -> Span | None:
    """Where `error` was raised, or where the text stands that Python cannot read; None without
    source."""
    if isinstance(error, SyntaxError):
        return _unreadable(error)
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    if trace is None:
        return None
    frame = trace.tb_frame
    span = code_span(frame.f_code, trace.tb_lasti, trace.tb_lineno, frame.f_globals)
    return span if span.source.text else None


def _unreadable(error: SyntaxError) -> Span | None:
    if error.filename is None or error.lineno is None:
        return None
    source = source_of(error.filename)
    if not source.text:
        source = Source(error.filename, "\n" * (error.lineno - 1) + (error.text or ""))
    start = max(1, error.offset or 1)
    same_line = error.end_lineno in (None, error.lineno)
    end = error.end_offset if same_line and error.end_offset else start + 1
    return Span(source, error.lineno, start, max(start + 1, end))
