"""Run in child processes under the rounding interpreter: systems that need all digits."""

from __future__ import annotations

from tests.codegen.hard_systems import HARD
from tests.runtime.rounding_interpreter import install


def errors() -> dict[str, float]:
    """Worst output error of each system."""
    install()
    return {str(hard): hard.error(hard.harness()) for hard in HARD}
