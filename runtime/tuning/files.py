"""Files that are whole or absent: written beside their place, made durable, and moved there.

A reader needs no lock: two writers of one file both write whole ones, and the last one stays. A
writer that dies leaves a file with a suffix that no reader looks at. Those who write what they have
read hold their folder meanwhile (`held`).
"""

from __future__ import annotations

import contextlib
import os
import stat
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

try:
    import fcntl
except ImportError:  # no POSIX system
    fcntl = None  # type: ignore[assignment]

UNFINISHED = ".unfinished"
"""Suffix of files that are being written."""

LARGEST = 16 << 20
"""Bytes above which a file cannot be an entry and is not read."""

PATIENCE = 10.0
"""Seconds to wait for whoever holds a folder: to read and to write one file takes milliseconds."""


def write_whole(path: Path, content: bytes) -> None:
    """Replace `path` by `content` so that a reader sees the old or the new, even after a power cut.

    Raises `OSError`.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(prefix=".", suffix=UNFINISHED, dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
            os.fchmod(stream.fileno(), 0o644)
        os.replace(name, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(name)
        raise
    _make_durable(path.parent)


def _make_durable(folder: Path) -> None:
    """Write the folder's own list of names; where that cannot be done, only durability is lost."""
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


@contextlib.contextmanager
def held(folder: Path, patience: float = PATIENCE) -> Iterator[bool]:
    """Be alone among those who hold `folder`, which is created: a lock on the folder itself.

    There is no lock file to be left behind, and the system frees what a dead process held. Yields
    whether it is held: not where file systems know no locks, where the folder cannot be made, nor
    after `patience` seconds of waiting for a process that is stopped; none of that is a reason to
    lose what is to be written.
    """
    handle = _held(folder, time.monotonic() + patience)
    try:
        yield handle is not None
    finally:
        if handle is not None:
            os.close(handle)


def _held(folder: Path, until: float) -> int | None:
    """An open folder that is locked, or None."""
    if fcntl is None:
        return None
    try:
        folder.mkdir(parents=True, exist_ok=True)
        handle = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    while True:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return handle
        except BlockingIOError:
            if time.monotonic() < until:
                time.sleep(0.005)
                continue
        except OSError:
            pass
        os.close(handle)
        return None


def read_small(path: Path) -> bytes | None:
    """The content of a file that may be absent. Raises `OSError` for one that cannot be read, and
    for what is no regular file: a pipe would be waited for without end."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC | getattr(os, "O_NONBLOCK", 0))
    except (FileNotFoundError, NotADirectoryError):
        return None
    with os.fdopen(handle, "rb") as stream:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise OSError("it is no regular file")
        content = stream.read(LARGEST + 1)
    if len(content) > LARGEST:
        raise OSError(f"larger than {LARGEST >> 20} MiB")
    return content
