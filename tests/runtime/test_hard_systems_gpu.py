"""Systems that need all digits, on a GPU: every kernel compiled once, side by side."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.codegen.hard_systems import HARD, Hard
from tests.runtime.kernel_harness import LIMIT, Harness

pytestmark = pytest.mark.gpu


@pytest.fixture(scope="module")
def made() -> dict[str, Harness]:
    """The kernels by system."""
    with ThreadPoolExecutor(max_workers=8) as pool:
        found = pool.map(Hard.harness, HARD)
        return dict(zip(map(str, HARD), found, strict=True))


@pytest.mark.parametrize("hard", HARD, ids=str)
def test_hard_systems_are_as_good_as_any(made: dict[str, Harness], hard: Hard) -> None:
    assert hard.error(made[str(hard)]) <= LIMIT
