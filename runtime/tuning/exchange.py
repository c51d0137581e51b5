"""Tunings in one file, to be carried to another machine or shipped; and a tidy store.

A bundle is a JSON list of the very files of the store, checksums included.
"""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from boleir.codegen.artifact import dump
from boleir.errors import CacheError
from boleir.runtime.tuning.entry import Entry, InvalidEntry
from boleir.runtime.tuning.environment import FORMAT
from boleir.runtime.tuning.files import read_small, write_whole
from boleir.runtime.tuning.store import Store


class InvalidBundle(CacheError):
    """A file that is no collection of tunings; path and reason are named."""


class KeepsNothing(CacheError):
    """Pruning that would remove every environment; those there are are named."""


def write_bundle(entries: Iterable[Entry], path: Path) -> int:
    """Write entries into one file; how many there are. Raises `InvalidBundle`."""
    content = [json.loads(entry.to_bytes()) for entry in entries]
    try:
        write_whole(path, dump({"format": FORMAT, "entries": content}))
    except OSError as error:
        raise InvalidBundle(f"{path} cannot be written: {error.strerror or error}") from None
    return len(content)


def read_bundle(path: Path) -> tuple[Entry, ...]:
    """The entries of a file that `write_bundle` wrote. Raises `InvalidBundle`."""
    try:
        data = read_small(path)
        if data is None:
            raise InvalidBundle(f"{path} does not exist")
        whole = json.loads(data.decode("utf-8"))
        if not isinstance(whole, dict) or whole.get("format") != FORMAT:
            raise InvalidBundle(f"{path} holds no tunings of format {FORMAT}")
        return tuple(Entry.from_bytes(dump(item)) for item in whole["entries"])
    except OSError as error:
        raise InvalidBundle(f"{path} cannot be read: {error.strerror or error}") from None
    except InvalidEntry as error:
        raise InvalidBundle(f"{path}: {error.message}") from None
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise InvalidBundle(f"{path} holds no tunings ({type(error).__name__})") from None


@dataclass(frozen=True, slots=True)
class Added:
    """What became of the entries of a bundle or of another store."""

    new: int
    extended: int
    """Entries that were there and learned something."""
    kept: int
    """Entries that hold all of it already, or were measured in another way."""


def add(store: Store, entries: Iterable[Entry]) -> Added:
    """Put entries into a store. Where a key is there, its own measurements stay, and those it lacks
    are added. Raises `CacheError` if the store cannot be written."""
    counts = Counter(new=0, extended=0, kept=0)
    for entry in entries:
        if not store.change(entry.environment, entry.key, partial(_added, entry, counts)):
            raise CacheError(f"{store.root} cannot be written")
    return Added(**counts)


def _added(entry: Entry, counts: Counter[str], there: Entry | None) -> Entry | None:
    """What to write of an entry where `there` is, None for nothing; it is counted."""
    if there is None:
        counts["new"] += 1
        return entry
    made = entry.with_outcomes(there.outcomes) if entry.policy == there.policy else there
    made = made.after_tuning(there.origin)
    if set(made.outcomes) == set(there.outcomes):
        counts["kept"] += 1
        return None
    counts["extended"] += 1
    return made


def prune(store: Store, keep: str | None = None, *, dry: bool = False) -> list[Path]:
    """Remove damaged entries, what dead writers left, and, with `keep`, the environments whose
    folder's name does not contain it.

    Returns what was (or with `dry` would be) removed. Raises `OSError`, and `KeepsNothing` for a
    text that would leave no environment: more likely a slip than a wish.
    """
    found = store.unfinished()
    found += [path for path in store.files() if store.read(path) is None]
    if keep is not None:
        folders = sorted(path for path in store.root.glob("*") if path.is_dir())
        going = [folder for folder in folders if keep not in folder.name]
        if folders and going == folders:
            names = ", ".join(folder.name for folder in folders) or "none"
            raise KeepsNothing(f"no environment is called like {keep!r}; there are: {names}")
        found += going
    found = sorted(set(found))
    if not dry:
        for path in found:
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink(missing_ok=True)
    return found
