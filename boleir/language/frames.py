"""Where in the user's Python file an operation of a traced function stands, and which name its
result gets.

Both are read from the code object of the calling frame: positions give line and column, and the
instruction after the operation tells whether the result is stored at once (`u = beta * v`),
unpacked, or returned to a caller who stores it.
"""

from __future__ import annotations

import ast
import dis
import inspect
import linecache
import os
import sys
import textwrap
from collections.abc import Callable
from functools import lru_cache
from itertools import islice, pairwise
from types import CodeType, FrameType
from typing import Any

from boleir.errors import Source, Span

_OURS = frozenset({"boleir.language.frames", "boleir.language.symbols", "boleir.language.tracing"})
_LIBRARIES = frozenset({"numpy", "torch"})
"""Packages that hand an operation on traced values back to the tracer from inside themselves."""
_STORES = frozenset({"STORE_FAST", "STORE_NAME", "STORE_DEREF", "STORE_GLOBAL"})
_NOISE = frozenset({"CACHE", "EXTENDED_ARG", "NOP", "NOT_TAKEN"})
_MAX_CALLERS = 20


def user_frame() -> FrameType | None:
    """The innermost frame that is neither part of the tracer nor of a library that called it."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and _is_foreign(frame.f_globals.get("__name__")):
        frame = frame.f_back
    return frame


def _is_foreign(module: object) -> bool:
    return module in _OURS or (isinstance(module, str) and module.split(".")[0] in _LIBRARIES)


def span_of(frame: FrameType | None) -> Span | None:
    """The expression that `frame` is evaluating, or its line where columns are not recorded."""
    if frame is None:
        return None
    return code_span(frame.f_code, frame.f_lasti, frame.f_lineno, frame.f_globals)


def code_span(code: CodeType, at: int, line_number: int, module_globals: dict[str, Any]) -> Span:
    """The expression whose instruction lies `at` bytes into `code`, or its line."""
    source = source_of(code.co_filename, module_globals)
    positions = next(islice(code.co_positions(), at // 2, None), (None,) * 4)
    line, end_line, start, end = positions
    line = line or line_number
    text = source.line(line)
    if start is None or end is None:
        return Span(source, line, len(text) - len(text.lstrip()) + 1, len(text) + 1)
    stop = _column(text, end) if end_line == line else len(text) + 1
    return Span(source, line, _column(text, start), stop)


def target_names(frame: FrameType | None) -> tuple[str, ...]:
    """Names that the value computed in `frame` is about to be bound to; empty when it is used
    otherwise.
    """
    for _ in range(_MAX_CALLERS):
        if frame is None:
            return ()
        names = _stores(frame.f_code).get(frame.f_lasti)
        if names is not None:
            return names
        if frame.f_lasti not in _returns(frame.f_code):
            return ()
        frame = frame.f_back
    return ()


def source_of(filename: str, module_globals: dict[str, Any] | None = None) -> Source:
    """The text of a Python file under the path that a reader in the current folder would use."""
    return _source(filename, "".join(linecache.getlines(filename, module_globals)))


def parameter_spans(function: Callable[..., Any]) -> dict[str, Span]:
    """Where the parameters of `function` are declared, and under its own name the function; empty
    without source.
    """
    try:
        lines, first = inspect.getsourcelines(function)
        tree = ast.parse(textwrap.dedent("".join(lines))).body[0]
    except (OSError, TypeError, SyntaxError, IndexError):
        return {}
    if not isinstance(tree, (ast.FunctionDef, ast.AsyncFunctionDef)):
        return {}
    source = source_of(function.__code__.co_filename)
    indent = len(lines[0]) - len(lines[0].lstrip())
    spans = {}
    arguments = tree.args
    for item in [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]:
        line = first + item.lineno - 1
        start = _column(source.line(line), item.col_offset + indent)
        spans[item.arg] = Span(source, line, start, start + len(item.arg))
    line = first + tree.lineno - 1
    at = source.line(line).find(tree.name) + 1
    spans[""] = Span(source, line, max(at, 1), max(at, 1) + len(tree.name))
    return spans


@lru_cache(maxsize=64)
def _source(filename: str, text: str) -> Source:
    try:
        relative = os.path.relpath(filename)
    except ValueError:  # another drive
        relative = filename
    inside = os.path.isabs(filename) and not relative.startswith(os.pardir)
    return Source(relative if inside else filename, text)


def _column(text: str, offset: int) -> int:
    """Column (from 1) of a UTF-8 byte offset in a line."""
    return len(text.encode()[:offset].decode(errors="ignore")) + 1


@lru_cache(maxsize=256)
def _stores(code: CodeType) -> dict[int, tuple[str, ...]]:
    """For each instruction whose result is stored right away: the names it is stored to."""
    steps = _steps(code)
    found: dict[int, tuple[str, ...]] = {}
    for index, (step, after) in enumerate(pairwise(steps)):
        wanted = int(after.arg or 0) if after.opname == "UNPACK_SEQUENCE" else 1
        names = _stored(steps, index + 1 + (after.opname == "UNPACK_SEQUENCE"), wanted)
        if names:
            found.update(dict.fromkeys(range(step.offset, after.offset, 2), names))
    return found


def _stored(steps: list[dis.Instruction], start: int, wanted: int) -> tuple[str, ...]:
    """The next `wanted` names that the instructions from `start` on store; empty for other ones."""
    names: list[str] = []
    for step in steps[start:]:
        if len(names) >= wanted:
            break
        if step.opname in _STORES:
            names.append(str(step.argval))
        elif step.opname == "STORE_FAST_STORE_FAST":  # pairs of instructions, from Python 3.13 on
            names.extend(map(str, step.argval))
        elif step.opname == "STORE_FAST_LOAD_FAST":
            names.append(str(step.argval[0]))
        else:
            return ()
    return tuple(names[:wanted])


@lru_cache(maxsize=256)
def _returns(code: CodeType) -> frozenset[int]:
    """Offsets of the instructions whose result is returned."""
    return frozenset(
        offset
        for step, after in pairwise(_steps(code))
        if after.opname == "RETURN_VALUE"
        for offset in range(step.offset, after.offset, 2)
    )


def _steps(code: CodeType) -> list[dis.Instruction]:
    """Instructions that do something. While a frame waits for a call, its position is inside the
    caches of the call.
    """
    return [step for step in dis.get_instructions(code) if step.opname not in _NOISE]
