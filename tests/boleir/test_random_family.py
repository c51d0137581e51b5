"""A sample of the random recurrences that `tests.boleir.prove` runs by the thousand."""

from __future__ import annotations

from functools import cache

import pytest

from boleir.check.proof import prove
from boleir.derive.derive import derive
from tests.boleir.affine_recurrences import outputs_recurrence, random_recurrence
from tests.boleir.prove import PROVED, REFUSED, Outcome, outcome

SEEDS = range(60)
OUTSIDE = {"ElementwiseDecay", "TwoSided"}
"""What a draw may be refused for: it has gates on both sides, or low-rank parts on both."""

draw = cache(outcome)


@pytest.mark.parametrize("seed", SEEDS)
def test_draws_are_proved_or_lie_outside(seed: int) -> None:
    found: Outcome = draw(seed)
    inside = found.verdict == PROVED
    outside = found.verdict == REFUSED and found.detail in OUTSIDE
    assert inside or outside, f"{found.detail}\n{found.recurrence}"


OUTPUTS = [*range(20), 449, 1151]
"""449 once took a decay out of the output's gain, but not out of what stood inside it; 1151 coupled
unknowns by a vector."""
NO_OUTPUT = {"ReadInBetween", "SeveralReads", "OutputWithoutState"}
"""Why outputs may be refused: they read in between, right-acting, or what they read cancels."""


@pytest.mark.parametrize("seed", OUTPUTS)
def test_outputs_of_every_linear_kind(seed: int) -> None:
    found = outcome(seed, 2, outputs_recurrence)
    outside = found.verdict == REFUSED and found.detail in OUTSIDE | NO_OUTPUT
    assert found.verdict == PROVED or outside, f"{found.detail}\n{found.recurrence}"


def test_the_sample_covers_the_axes() -> None:
    met = frozenset[str]().union(*(draw(seed).axes for seed in SEEDS))
    wanted = {f"{n} pairs" for n in range(3)} | {f"{n} writes" for n in range(3)}
    wanted |= {f"decay {kind}" for kind in ("number", "head", "key", "value")}
    wanted |= {"left", "right", "gain", "micro-steps", "read before a decay", "two-sided gate"}
    wanted |= {"output before the update", "output gain", "direct"}
    assert wanted <= met


MENDED = (1250, 1805, 2422)
"""Refused once: outputs that read an intermediate state behind gains or decays, and writes that
partly cancel."""


@pytest.mark.parametrize("seed", MENDED)
def test_what_was_refused_once_is_proved(seed: int) -> None:
    assert prove(derive(random_recurrence(seed)), trees=3, seed=seed).passed
