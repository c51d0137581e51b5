"""How programs of one launch wait for other programs of the same launch.

A program of the factors of a head counts its launches, and every value program counts those whose
factors it has used: a value program waits until the first number is above its own. Programs that
prepare all add to one number of their request; who waits for them waits until it is as many times
theirs as there have been launches, its own among them. Where nothing is solved, programs that walk
take the place of the factors: all of a head add to its number. Nothing has to be reset, so that one
captured launch can be replayed; the counters start from zero. Programs start in the order of their
numbers: those that prepare come first and wait for none, those of the factors next, so that the
others cannot keep them from running.
"""

from __future__ import annotations

from boleir.codegen.emit.context import Context
from boleir.codegen.emit.writer import Writer


def tiles_of_system(context: Context) -> str:
    """Value tiles of a system, as a factor."""
    return "GROUP * VALUE_TILES" if context.shares_systems else "VALUE_TILES"


def _row(context: Context) -> str:
    """Counters of a system, as a factor: that of its factors, then one for each value tile."""
    return f"(1 + {tiles_of_system(context)})"


def signals(context: Context) -> int:
    """Int32 counters per request: that of what is prepared, if others wait for it, then those of
    its heads."""
    if context.schedule.fusion != "joined" and not context.prepares_first:
        return 0
    return waits_for_request(context) + context.systems * (1 + context.tiles_per_system)


def waits_for_request(context: Context) -> bool:
    """Whether programs wait for all that is prepared for their request, not for a head's alone."""
    return context.prepares_first and not context.leaves_rows


def announce_prepared(w: Writer) -> None:
    """Say that everything a program has prepared is there."""
    w.section("all threads have stored: one program less that others of the request wait for")
    w.line("tl.debug_barrier()")
    counter = f"{w.arg('signals', '*i32')} + request * SIGNALS"
    w.line(f'tl.atomic_add({counter}, 1, sem="release")')


def announce_rows(context: Context, w: Writer) -> None:
    """Say that all rows of a program that walks are there."""
    w.section("all threads have stored: one program less that value programs of the head wait for")
    w.line("tl.debug_barrier()")
    system = f"(request * {context.system_heads} + head)"
    w.line(f'tl.atomic_add({_head(context, w, system)}, 1, sem="release")')


def announce(context: Context, w: Writer) -> None:
    """Say that everything a program of the factors has stored is there."""
    w.section("all threads have stored: let the value programs of the head go on")
    w.line("tl.debug_barrier()")
    at = "signals_head" if context.prepares_first else _head(context, w, "program")
    w.line(f'tl.atomic_add({at}, 1, sem="release")')


def expect(context: Context, w: Writer, system: str) -> None:
    """Which launch a value program waits for, given the number of its system among those of all
    requests; early, as nothing depends on it yet."""
    w.let("signals_head", _head(context, w, system))
    tile = "head % GROUP * VALUE_TILES + value_tile" if context.shares_systems else "value_tile"
    w.let("seen_at", f"signals_head + 1 + {tile}")
    w.let("launch", "tl.load(seen_at) + 1")


def expect_prepared(context: Context, w: Writer) -> None:
    """The same for a program of the factors."""
    w.let("signals_head", _head(context, w, "program"))
    w.let("launch", "tl.load(signals_head) + 1")


def wait(context: Context, w: Writer) -> None:
    """Wait for the factors of the head, or for all programs that walk for it. The difference is
    right beyond 2^31 launches, too."""
    expected = "launch"
    if context.leaves_rows:
        w.section("what follows reads results of the programs that walk for this head")
        expected = w.let("walked", "launch * WALKING")
    else:
        w.section("what follows reads results of the factors of this head")
    with w.block(f'while tl.atomic_add(signals_head, 0, sem="acquire") - {expected} < 0:'):
        w.line("pass")
    remember(w)


def wait_prepared(w: Writer) -> None:
    """Wait for all that is prepared for the request."""
    w.section("what follows reads what other programs prepare for this request")
    at = f"{w.arg('signals', '*i32')} + request * SIGNALS"
    w.let("prepared", "launch * PREPARING")
    with w.block(f'while tl.atomic_add({at}, 0, sem="acquire") - prepared < 0:'):
        w.line("pass")


def remember(w: Writer) -> None:
    """Count a launch in which a value program has waited."""
    w.line("tl.store(seen_at, launch)")


def _head(context: Context, w: Writer, system: str) -> str:
    """Where the counters of a head begin."""
    first = f"{w.arg('signals', '*i32')} + "
    if not waits_for_request(context):
        return f"{first}{system} * {_row(context)}"
    return f"{first}request * SIGNALS + 1 + {context.system_head} * {_row(context)}"
