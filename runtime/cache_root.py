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


def reading_root() -> Path:
    """Where a reader looks: the preferred folder, be it writable or not, unless what this process
    writes goes into a temporary one. Nothing is created."""
    if cache_root.cache_info().currsize:
        return cache_root()
    try:
        return preferred_cache_root()
    except RuntimeError:  # no home folder
        return cache_root()


@functools.cache
def cache_root() -> Path:
    """Where a writer writes: the preferred folder, created; where that fails, a temporary one and
    one warning."""
    try:
        wanted = preferred_cache_root()
    except RuntimeError:
        return _temporary("the user has no home folder")
    try:
        wanted.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=wanted):
            return wanted
    except OSError as error:
        return _temporary(f"{wanted} cannot be written ({error.strerror})")


def _temporary(reason: str) -> Path:
    made = Path(tempfile.mkdtemp(prefix="boleir-cache-"))
    warnings.warn(f"{reason}; using {made} for now", stacklevel=3)
    return made
