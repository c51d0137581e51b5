"""The table of pointers that one commit of all layers reads, kept on the device.

It is uploaded only when a pointer has changed, from pinned memory and without waiting. Several
tables are kept, because an allocator hands the same few sets of addresses out again and again.

A CUDA graph reads its table at every replay, so a table that was used during a capture never gets
another content; one that was filled during a capture is filled again by every replay of that graph
and serves nobody else.
"""

from __future__ import annotations

from collections.abc import Callable

import torch

KEPT = 8
"""Tables kept at the same time; also how many rounds an upload may lag behind."""

Key = tuple[tuple[int, ...], ...]
"""Rows of pointers."""


class _Table:
    """`entries` pointers on the device and the pinned memory they come from."""

    __slots__ = ("copied", "device", "host", "key")

    def __init__(self, entries: int, place: torch.device) -> None:
        gpu = place.type == "cuda"
        self.device = torch.zeros(entries, dtype=torch.int64, device=place)
        self.host = torch.zeros(entries, dtype=torch.int64, pin_memory=gpu)
        self.copied: torch.cuda.Event | None = None
        self.key: Key = ()
        if gpu:
            self.copied = torch.cuda.Event()  # type: ignore[no-untyped-call]

    def fill(self, key: Key, *, capturing: bool) -> None:
        """Upload `key`; waits only if this table's previous content is still on its way."""
        if self.copied is not None and not capturing:
            self.copied.synchronize()
        flat = [pointer for row in key for pointer in row]
        self.host.numpy()[: len(flat)] = flat
        self.device.copy_(self.host, non_blocking=True)
        self.key = key
        if self.copied is not None and not capturing:
            self.copied.record(torch.cuda.current_stream(self.device.device))


class PointerTables:
    """Tables of up to `entries` pointers on `place`."""

    def __init__(self, entries: int, place: torch.device) -> None:
        self._entries = entries
        self._place = place
        self._free = [_Table(entries, place) for _ in range(KEPT)]
        """Tables that may be given another content, the one used longest ago first."""
        self._found: dict[Key, _Table] = {}
        """Tables with content that has been uploaded outside any capture."""
        self._captured: list[_Table] = []

    def get(self, key: Key, check: Callable[[], None] | None = None) -> torch.Tensor:
        """The device table that holds `key`, row after row; nothing is uploaded if one has it.

        `check` is called before an upload: what it refuses is in no table."""
        if self._place.type == "cuda" and torch.cuda.is_current_stream_capturing():
            return self._get_captured(key, check)
        table = self._found.get(key)
        if table is None:
            if check is not None:
                check()
            while len(self._free) < KEPT:
                self._free.insert(0, _Table(self._entries, self._place))
            table = self._free.pop(0)
            self._found.pop(table.key, None)
            table.fill(key, capturing=False)
            self._free.append(table)
            self._found[key] = table
        return table.device

    def _get_captured(self, key: Key, check: Callable[[], None] | None = None) -> torch.Tensor:
        table = self._found.get(key)
        if table is not None:  # shared from now on with the graph, so its content stays
            self._free = [other for other in self._free if other is not table]
            return table.device
        if check is not None:
            check()
        table = self._free.pop(0) if self._free else _Table(self._entries, self._place)
        self._found.pop(table.key, None)
        table.fill(key, capturing=True)
        self._captured.append(table)
        return table.device
