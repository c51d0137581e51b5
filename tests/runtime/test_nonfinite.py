"""A non-finite input stays with its node and the nodes below."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest


@pytest.mark.parametrize("name", ["gated_delta_rule", "gdn", "mamba2"])
def test_other_branches_keep_every_bit(name: str, run_interpreted: Callable[..., Any]) -> None:
    assert run_interpreted("tests.runtime.interpreted_nonfinite:spread", name=name) == []
