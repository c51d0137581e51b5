"""How programs of one launch wait for other programs of the same launch.

A program of the factors of a head counts its launches, and every value program counts those whose
factors it has used: a value program waits until the first number is above its own. Nothing has to
be reset, so that one captured launch can be replayed; the counters start from zero. Programs start
in the order of their numbers and those of the factors come first and wait for none, so that the
others cannot keep them from running.
"""

from __future__ import annotations

from boleir.codegen.emit.context import Context
from boleir.codegen.emit.writer import Writer

ROW = "(1 + VALUE_TILES)"
"""Counters of one head: that of its factors, then one for each value tile."""


def signals(context: Context) -> int:
    """Int32 counters per request."""
    if context.schedule.fusion != "joined":
        return 0
    return context.shapes.value_heads * (1 + context.value_tiles)


def announce(w: Writer) -> None:
    """Say that everything the program has stored is there."""
    w.section("all threads have stored: let the value programs of the head go on")
    w.line("tl.debug_barrier()")
    counter = f"{w.arg('signals', '*i32')} + program * {ROW}"
    w.line(f'tl.atomic_add({counter}, 1, sem="release")')


def expect(w: Writer, system: str) -> None:
    """Which launch the program waits for, given the number of its head among those of all requests;
    early, as nothing depends on it yet."""
    w.let("signals_head", f"{w.arg('signals', '*i32')} + {system} * {ROW}")
    w.let("launch", "tl.load(signals_head + 1 + value_tile) + 1")


def wait(w: Writer) -> None:
    """Wait for the factors of the head. The difference is right beyond 2^31 launches, too."""
    w.section("what follows reads results of the factors of this head")
    with w.block('while tl.atomic_add(signals_head, 0, sem="acquire") - launch < 0:'):
        w.line("pass")
    w.line("tl.store(signals_head + 1 + value_tile, launch)")
