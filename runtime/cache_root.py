"""Where boleir keeps what it can make again: one folder, chosen once, never a reason to fail."""

from __future__ import annotations

import functools
import os
import tempfile
import warnings
from pathlib import Path

VARIABLE = "BOLEIR_CACHE"
"""Environment variable that names the folder."""


def preferred_cache_root() -> Path:
    """`BOLEIR_CACHE`, else `boleir` in the user's cache folder; it need not exist."""
    named = os.environ.get(VARIABLE)
    if named:
        return Path(named).expanduser()
    base = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(base).expanduser() / "boleir"


@functools.cache
def cache_root() -> Path:
    """The preferred folder, created; where that fails, a temporary one and one warning."""
    wanted = preferred_cache_root()
    try:
        wanted.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=wanted):
            return wanted
    except OSError as error:
        made = Path(tempfile.mkdtemp(prefix="boleir-cache-"))
        warnings.warn(
            f"{wanted} cannot be written ({error.strerror}); using {made} for now", stacklevel=2
        )
        return made
