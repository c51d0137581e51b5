"""Every environment variable that tuning reads, in one place."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field

from boleir.errors import CacheError

MODES = ("off", "load", "tune")
EFFORTS = ("quick", "default", "full")


class BadSetting(CacheError):
    """An environment variable holds a word that means nothing; the message lists those that do."""


@dataclass(frozen=True, slots=True)
class Settings:
    """How `boleir.compile` uses the store when it is given no schedule.

    Where the store lies is `BOLEIR_CACHE`, see `boleir.runtime.cache_root`.
    """

    mode: str = field(default="load", metadata={"variable": "BOLEIR_TUNING"})
    """`BOLEIR_TUNING`. `off`: the default schedule, the store is not read. `load`: what the store
    holds, else the default schedule; nothing is ever compiled for or timed. `tune`: what no tuning
    has measured is measured first, on the GPU present, which takes about a minute."""
    effort: str = field(default="quick", metadata={"variable": "BOLEIR_TUNING_EFFORT"})
    """`BOLEIR_TUNING_EFFORT`: how much `tune` tries: `quick`, `default` or `full`."""

    @classmethod
    def from_environment(cls, environ: Mapping[str, str] | None = None) -> Settings:
        """What the variables say. Raises `BadSetting`."""
        given = os.environ if environ is None else environ
        return cls(
            mode=_word(given, "BOLEIR_TUNING", "load", MODES),
            effort=_word(given, "BOLEIR_TUNING_EFFORT", "quick", EFFORTS),
        )


def _word(given: Mapping[str, str], variable: str, default: str, allowed: tuple[str, ...]) -> str:
    word = given.get(variable, "").strip().lower() or default
    if word not in allowed:
        raise BadSetting(f"{variable}={word!r} means nothing", mend=f"one of {', '.join(allowed)}")
    return word
