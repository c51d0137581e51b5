"""How far tuning is and the best so far, in one line."""

from __future__ import annotations

from collections.abc import Callable

from boleir.runtime.tuning.choice import best
from boleir.runtime.tuning.entry import Entry

Say = Callable[[str], None]
"""Shows a line; the next one may take its place."""

WIDTH = 16


def bar(done: int, total: int) -> str:
    """A bar of fixed width."""
    filled = WIDTH * min(done, total) // max(1, total)
    return f"[{'#' * filled}{'.' * (WIDTH - filled)}] {done}/{total}"


def line(done: int, total: int, entry: Entry) -> str:
    """The bar, what is tuned, and the fastest that works so far."""
    found = best(entry.outcomes, 0.0)
    text = (
        "nothing works yet" if found is None else f"best {found.us:.2f} us: {short(found.schedule)}"
    )
    key = entry.key
    return f"{bar(done, total)} n{key.nodes} d{key.depth} b{key.batch} {text}"


def short(schedule: object) -> str:
    """The schedule's label without what every candidate has."""
    label = str(getattr(schedule, "label", schedule))
    return label.replace("fusion=", "").replace("solver=", "").replace("gates=", "")
