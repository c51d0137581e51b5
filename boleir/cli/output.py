"""What commands print: tables, JSON, and progress on standard error."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from typing import Any


def print_json(value: Any) -> None:
    """One JSON value on standard output; what JSON does not know is printed as text."""
    print(json.dumps(value, indent=2, default=str))


def table(header: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Columns padded to their widest entry; numbers to the right, text to the left."""
    shown = [[_cell(value) for value in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(header, *shown, strict=True)]
    numeric = [
        bool(rows) and all(isinstance(row[at], int | float) or row[at] is None for row in rows)
        for at in range(len(header))
    ]
    return "\n".join(
        "  ".join(
            cell.rjust(width) if right else cell.ljust(width)
            for cell, width, right in zip(line, widths, numeric, strict=True)
        ).rstrip()
        for line in [list(header), *shown]
    )


def _cell(value: object) -> str:
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:.2f}"
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)


class Progress:
    """Steps of long work on standard error: one line that is rewritten on a terminal, plain lines
    elsewhere, nothing when `quiet`. Use as a context manager."""

    def __init__(self, *, quiet: bool = False) -> None:
        self._quiet = quiet
        self._rewrites = sys.stderr.isatty()
        self._width = 0

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *_: object) -> None:
        self.clear()

    def __call__(self, text: str) -> None:
        """Show what is being done now."""
        if self._quiet:
            return
        if not self._rewrites:
            print(text, file=sys.stderr)
            return
        line = text[:100]
        sys.stderr.write("\r" + line.ljust(self._width))
        sys.stderr.flush()
        self._width = len(line)

    def count(self, done: int, total: int, text: str) -> None:
        """Show step `done` of `total`."""
        self(f"[{done}/{total}] {text}")

    def clear(self) -> None:
        """Remove the line, so that the result starts on a clean one."""
        if self._width and not self._quiet:
            sys.stderr.write("\r" + " " * self._width + "\r")
            sys.stderr.flush()
            self._width = 0
