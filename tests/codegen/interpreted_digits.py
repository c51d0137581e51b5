"""Run in child processes under the rounding interpreter: systems that need all digits."""

from __future__ import annotations

from boleir.check.inputs import Case
from tests.codegen.hard_systems import ALIKE, HARD, Hard
from tests.runtime.rounding_interpreter import install


def errors() -> dict[str, float]:
    """Worst output error of each system."""
    install()
    return {str(hard): hard.error(hard.harness()) for hard in HARD}


def folded_readers() -> dict[str, float]:
    """The same where one vector stands for all that reads the state, strong decays among them."""
    install()
    cases = (
        *ALIKE,
        *(Case("chain", "identical", 1.0, decay) for decay in (-20.0, -100.0, "mixed")),
    )
    schedule = {"fusion": "split", "solver": "inverse", "gates": "inline", "readers": "folded"}
    systems = (
        Hard("gated", 60, cases, 6, schedule=schedule),
        Hard("kda", 32, cases, 3, schedule=schedule | {"path_sum": "dot"}),
    )
    return {str(system): system.error(system.harness()) for system in systems}
