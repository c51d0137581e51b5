"""A non-finite input stays with its node and the nodes below."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest


@pytest.mark.parametrize("name", ["gated_delta_rule", "gdn", "mamba2"])
def test_other_branches_keep_every_bit(name: str) -> None:
    command = [sys.executable, "-W", "ignore", "-m", "tests.runtime.interpreted_nonfinite", name]
    environment = os.environ | {"TRITON_INTERPRET": "1"}
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, check=True, timeout=300
    )
    assert done.stdout == ""
