"""What `bolec compile` does with its binaries where they can run."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

import boleir
from boleir.runtime.spot_check import spot_check


def test_interpreted_kernels_agree_with_the_walk() -> None:
    command = [sys.executable, "-m", "tests.runtime.interpreted_spot_check", "gdn", "delta_rule"]
    environment = os.environ | {"TRITON_INTERPRET": "1"}
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, check=True, timeout=120
    )
    for outputs, state in json.loads(done.stdout.splitlines()[-1]).values():
        assert outputs < 1e-5
        assert state < 1e-5


@pytest.mark.skipif(torch.cuda.is_available(), reason="says what happens without a GPU")
def test_without_a_gpu_it_says_so(tmp_path: Path) -> None:
    found = spot_check(tmp_path, boleir.load("gdn"))
    assert not found.ran
    assert "no GPU" in found.line
