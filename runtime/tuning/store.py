"""The store: a folder for each environment, a file for each key, and nothing that can fail a user.

    ROOT/tuning/h200_sm_90_triton-3.6.0_ptxas-12.9.86_v1/gdn_h16-32_..._5f0c.json

Files are small, checksummed and readable. Whatever is wrong with one, it counts as absent and one
warning says so. Readers need no lock, see `boleir.runtime.tuning.files`.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from boleir.runtime.cache_root import cache_root, preferred_cache_root, reading_root
from boleir.runtime.tuning.entry import Entry, InvalidEntry
from boleir.runtime.tuning.environment import Environment
from boleir.runtime.tuning.files import UNFINISHED, held, read_small, write_whole
from boleir.runtime.tuning.keys import TuningKey

FOLDER = "tuning"

_warned: set[str] = set()


class TuningStoreWarning(UserWarning):
    """Something in the store cannot be used; tuning goes on without it."""


@dataclass(frozen=True, slots=True)
class Store:
    """Entries below one folder, which need not exist."""

    root: Path
    behind: Path | None = None
    """Another root, only read: where `root` does not have an entry, this one's counts."""

    @classmethod
    def default(cls) -> Store:
        """The store of this user to look at, writable or not; see `boleir.runtime.cache_root`."""
        return cls._at(reading_root())

    @classmethod
    def writable(cls) -> Store:
        """The same to write to: a temporary one before it where it cannot be written."""
        return cls._at(cache_root())

    @classmethod
    def _at(cls, root: Path) -> Store:
        try:
            own = preferred_cache_root()
        except RuntimeError:
            own = root
        return cls(root / FOLDER, None if own == root else own / FOLDER)

    def place(self, environment: Environment, key: TuningKey) -> Path:
        """Where an entry lies, or would."""
        return self.root / environment.folder / key.file

    def load(self, environment: Environment, key: TuningKey) -> Entry | None:
        """The entry of a key, or None: absent, unreadable, damaged, or somebody else's."""
        found = self._load(self.place(environment, key), environment, key)
        if found is None and self.behind is not None:
            return Store(self.behind).load(environment, key)
        return found

    def _load(self, path: Path, environment: Environment, key: TuningKey) -> Entry | None:
        entry = self.read(path)
        if entry is not None and (entry.key, entry.environment) != (key, environment):
            _warn(path, "it is about something else than its name says")
            return None
        return entry

    def save(self, entry: Entry) -> bool:
        """Write an entry, keeping what another process has added to it meanwhile.

        False, after one warning, where the folder cannot be written.
        """

        def with_others(there: Entry | None) -> Entry:
            same = there is not None and there.policy == entry.policy
            if there is None or not same:
                return entry
            there = there.after_tuning(entry.origin)
            return there.with_outcomes(entry.outcomes)

        return self.change(entry.environment, entry.key, with_others)

    def change(
        self, environment: Environment, key: TuningKey, to: Callable[[Entry | None], Entry | None]
    ) -> bool:
        """Write what `to` makes of the entry that is there, None for nothing, while no other
        process changes one of this folder. False as for `save`."""
        with held(self.place(environment, key).parent):
            made = to(self.load(environment, key))
            return made is None or self.replace(made)

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
