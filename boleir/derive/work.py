"""A bound on the work of one derivation or explanation, counted in terms and spelled pieces.

Written so that it grows exponentially, a recurrence of a few lines can ask for more than any
machine gives. The count makes the refusal of such a one the same everywhere, and a matter of
seconds."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from boleir.errors import DerivationError, Span, SpecError

WORK = 250_000
"""Products of terms, or pieces of text, that one derivation or explanation may take: some seconds.
Recurrences of the library take some hundreds, sixteen micro-steps along sums of vectors half."""

_LEFT: ContextVar[list[int] | None] = ContextVar("work left", default=None)


class TooComplicated(DerivationError):
    """A recurrence expands to more terms than a derivation, or an explanation, may handle."""


@contextmanager
def bounded(what: str, mend: str, span: Span | None) -> Iterator[None]:
    """Raise `TooComplicated` at `span` once the work inside exceeds `WORK`, or once what it makes
    nests too deep to be an expression. `what` is the subject of the message."""
    token = _LEFT.set([WORK])
    try:
        yield
    except SpecError:  # expressions that nobody wrote have no other limit
        raise TooComplicated(f"{what} nests too deep", span=span, mend=mend) from None
    except TooComplicated:
        raise TooComplicated(f"{what} expands to too many terms", span=span, mend=mend) from None
    finally:
        _LEFT.reset(token)


def spend(amount: int) -> None:
    """Count work, where it is bounded."""
    left = _LEFT.get()
    if left is not None:
        left[0] -= amount
        if left[0] < 0:
            raise TooComplicated("too many terms")
