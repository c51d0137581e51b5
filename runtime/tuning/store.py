"""The store: a folder for each environment, a file for each key, and nothing that can fail a user.

    ROOT/tuning/h200_sm_90_triton-3.6.0_ptxas-12.9.86_v1/gdn_h16-32_..._5f0c.json

Files are small, checksummed and readable. Whatever is wrong with one, it counts as absent and one
warning says so. Writers need no locks, see `boleir.runtime.tuning.files`.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from boleir.runtime.cache_root import cache_root
from boleir.runtime.tuning.entry import Entry, InvalidEntry
from boleir.runtime.tuning.environment import Environment
from boleir.runtime.tuning.files import UNFINISHED, read_small, write_whole
from boleir.runtime.tuning.keys import TuningKey

FOLDER = "tuning"

_warned: set[str] = set()


class TuningStoreWarning(UserWarning):
    """Something in the store cannot be used; tuning goes on without it."""


@dataclass(frozen=True, slots=True)
class Store:
    """Entries below one folder, which need not exist."""

    root: Path

    @classmethod
    def default(cls) -> Store:
        """The store of this user, see `boleir.runtime.cache_root`."""
        return cls(cache_root() / FOLDER)

    def place(self, environment: Environment, key: TuningKey) -> Path:
        """Where an entry lies, or would."""
        return self.root / environment.folder / key.file

    def load(self, environment: Environment, key: TuningKey) -> Entry | None:
        """The entry of a key, or None: absent, unreadable, damaged, or somebody else's."""
        path = self.place(environment, key)
        entry = self.read(path)
        if entry is not None and (entry.key, entry.environment) != (key, environment):
            _warn(path, "it is about something else than its name says")
            return None
        return entry

    def save(self, entry: Entry) -> bool:
        """Write an entry, keeping what another process has added to it meanwhile.

        False, after one warning, where the folder cannot be written.
        """
        there = self.load(entry.environment, entry.key)
        if there is not None and there.policy == entry.policy:
            entry = there.with_outcomes(entry.outcomes)
        return self.replace(entry)

    def replace(self, entry: Entry) -> bool:
        """Write an entry as it is."""
        path = self.place(entry.environment, entry.key)
        try:
            write_whole(path, entry.to_bytes())
        except OSError as error:
            _warn(path.parent, f"it cannot be written: {error.strerror or error}")
            return False
        return True

    def read(self, path: Path) -> Entry | None:
        """The entry in a file; None, after one warning, if it is none."""
        try:
            data = read_small(path)
            return None if data is None else Entry.from_bytes(data)
        except OSError as error:
            _warn(path, f"it cannot be read: {error.strerror or error}")
        except InvalidEntry as error:
            _warn(path, error.message)
        return None

    def files(self) -> list[Path]:
        """Every file that should be an entry, in order."""
        return sorted(self.root.glob("*/*.json"))

    def entries(self) -> Iterator[tuple[Path, Entry]]:
        """Every valid entry with its file."""
        for path in self.files():
            entry = self.read(path)
            if entry is not None:
                yield path, entry

    def unfinished(self) -> list[Path]:
        """What writers that died have left."""
        return sorted(self.root.glob(f"*/.*{UNFINISHED}"))


def _warn(path: Path, what: str) -> None:
    """One warning for each file and process."""
    if str(path) not in _warned:
        _warned.add(str(path))
        warnings.warn(f"tuning store: {path} is ignored, {what}", TuningStoreWarning, stacklevel=4)
