"""One line of a diagnosis, and how it is to be taken."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any


class Status(StrEnum):
    """How a finding is to be taken."""

    OK = "ok"
    WARNING = "warning"
    FAILED = "failed"
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of the report."""

    subject: str
    status: Status
    text: str
    data: Mapping[str, Any] = field(default_factory=dict)
    """The same in numbers, for programs."""

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return asdict(self)
