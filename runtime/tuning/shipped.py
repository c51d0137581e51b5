"""Entries that come with the package, so that known GPUs are fast before anything is measured.

Those there are today come from tunings of the gated delta rule on an H200; of what these measured
they hold the candidates within 5 % of the best. An entry whose origin says that it is no tuning
would be a default schedule with its time: mode `tune` measures such keys all the same.

They were made with one release of Triton and are used for that release only; the assembler, which
comes with Triton, is not compared. What the user's own store holds goes before them.
"""

from __future__ import annotations

import functools
import warnings
from pathlib import Path

from boleir.errors import CacheError
from boleir.runtime.tuning.entry import Entry
from boleir.runtime.tuning.environment import Environment
from boleir.runtime.tuning.exchange import read_bundle
from boleir.runtime.tuning.keys import TuningKey

FOLDER = Path(__file__).parent / "shipped"


@functools.cache
def collections(folder: Path = FOLDER) -> tuple[Entry, ...]:
    """All shipped entries; a file that cannot be read is none, and one warning."""
    found: list[Entry] = []
    for path in sorted(folder.glob("*.json")):
        try:
            found += read_bundle(path)
        except CacheError as error:
            warnings.warn(f"shipped tunings are not used: {error.message}", stacklevel=2)
    return tuple(found)


def release(triton: str) -> tuple[str, ...]:
    """Major and minor number of a version: what decides how kernels are compiled."""
    return tuple(triton.split("+")[0].split(".")[:2])


def shipped_entry(environment: Environment, key: TuningKey) -> Entry | None:
    """The shipped entry of a key for this GPU and this release of Triton."""
    if not any(FOLDER.glob(f"{environment.gpu}*.json")):
        return None  # most GPUs: nothing is read or parsed
    for entry in collections():
        there = entry.environment
        same = (there.gpu, there.arch, there.format) == (
            environment.gpu, environment.arch, environment.format,
        )  # fmt: skip
        if same and entry.key == key and release(there.triton) == release(environment.triton):
            return entry
    return None
