"""Files that are whole or absent: written beside their place, made durable, and moved there.

No lock is taken: two writers of one file both write whole ones, and the last one stays. A writer
that dies leaves a file with a suffix that no reader looks at.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
from pathlib import Path

UNFINISHED = ".unfinished"
"""Suffix of files that are being written."""

LARGEST = 16 << 20
"""Bytes above which a file cannot be an entry and is not read."""


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


def read_small(path: Path) -> bytes | None:
    """The content of a file that may be absent. Raises `OSError` for one that cannot be read."""
    try:
        with path.open("rb") as stream:
            content = stream.read(LARGEST + 1)
    except (FileNotFoundError, NotADirectoryError):
        return None
    if len(content) > LARGEST:
        raise OSError(f"larger than {LARGEST >> 20} MiB")
    return content
