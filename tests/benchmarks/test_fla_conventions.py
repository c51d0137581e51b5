"""Every shipped recurrence against fla-core, on a chain, where its files have been fetched."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

import boleir as bole
from benchmarks import fetch_peers
from benchmarks.fla_conventions import COMPARISONS, draw
from tests.benchmarks.test_peers import FOLDER, ROOT

needs_fla = pytest.mark.skipif(
    not (FOLDER / "fla/ops/comba").is_dir(), reason=f"no fla-core: {fetch_peers.HOW_TO}"
)
TOLERANCE = 3e-6
"""Float32 references against float64; measured: 7e-7."""


@pytest.fixture(scope="module")
def found() -> dict[str, dict[str, float]]:
    """All errors, from one child: stand-in modules and the interpreter must not leak."""
    result = subprocess.run(
        [sys.executable, "-m", "benchmarks.fla_conventions", str(FOLDER)],
        cwd=ROOT,
        env={**os.environ, "TRITON_INTERPRET": "1", "CUDA_VISIBLE_DEVICES": ""},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)  # type: ignore[no-any-return]


def test_every_shipped_recurrence_is_compared() -> None:
    agreeing = {item.recurrence for item in COMPARISONS if item.agrees}
    assert agreeing == {*bole.names(), "kda_bounded"}


def test_inputs_are_drawn_for_value_heads_that_share_a_key_head() -> None:
    made = draw(bole.load("kda"), (2, 4))
    assert made["q"].shape == (23, 2, 8)
    assert made["v"].shape == (23, 4, 6)
    assert (made["dt_bias"][0] == made["dt_bias"][1]).all()


@needs_fla
@pytest.mark.parametrize("comparison", COMPARISONS, ids=lambda item: item.name)
def test_conventions(comparison: object, found: dict[str, dict[str, float]]) -> None:
    item = next(c for c in COMPARISONS if c is comparison)
    errors = {what: size for what, size in found[item.name].items() if what != "agrees"}
    if item.agrees:
        assert max(errors.values()) < TOLERANCE, errors
    else:
        assert errors["output"] > 0.1, "it agrees now: say so where it is registered"
