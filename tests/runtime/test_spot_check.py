"""What `bolec compile` does with its binaries where they can run."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

import boleir
from boleir.runtime.spot_check import spot_check


def test_interpreted_kernels_agree_with_the_walk(run_interpreted: Callable[..., Any]) -> None:
    where = "tests.runtime.interpreted_spot_check:errors"
    for outputs, state in run_interpreted(where, names=["gdn", "delta_rule"]):
        assert outputs < 1e-5
        assert state < 1e-5


@pytest.mark.skipif(torch.cuda.is_available(), reason="says what happens without a GPU")
def test_without_a_gpu_it_says_so(tmp_path: Path) -> None:
    found = spot_check(tmp_path, boleir.load("gdn"))
    assert not found.ran
    assert "no GPU" in found.line
