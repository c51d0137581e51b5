"""What a check ran and what it found, for people and for programs."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from boleir.errors import CheckError


@dataclass(frozen=True, slots=True)
class Finding:
    """One part of a check."""

    subject: str
    """What was compared, in words."""
    ran: int
    """Number of trees or cases."""
    passed: bool
    worst: float | None = None
    """Largest per-node relative error; None for an exact comparison."""
    limit: float | None = None
    """The error that would still pass."""
    where: str = ""
    """Where the largest error or the disagreement was."""
    details: dict[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        mark = "ok  " if self.passed else "FAIL"
        text = f"{mark} {self.subject}: {self.ran} run"
        if self.worst is not None:
            text += f", worst per-node error {self.worst:.1e}"
            text += f" (limit {self.limit:.0e})" if self.limit is not None else ""
        return text + (f", at {self.where}" if self.where else "")


@dataclass(frozen=True, slots=True)
class Report:
    """The result of `check`."""

    recurrence: str
    findings: tuple[Finding, ...]
    notes: tuple[str, ...] = ()
    """What was not run, and why; what the derivation assumes."""

    @property
    def passed(self) -> bool:
        """Whether every part passed."""
        return all(finding.passed for finding in self.findings)

    def require(self) -> Report:
        """This report, or a `CheckError` naming the first part that failed."""
        for finding in self.findings:
            if not finding.passed:
                raise CheckError(f"recurrence '{self.recurrence}': {finding}")
        return self

    def to_json(self) -> dict[str, Any]:
        """Plain dictionaries, lists, numbers and text."""
        return {
            "recurrence": self.recurrence,
            "passed": self.passed,
            "findings": [
                {
                    "subject": f.subject,
                    "ran": f.ran,
                    "passed": f.passed,
                    "worst": f.worst,
                    "limit": f.limit,
                    "where": f.where,
                    "details": f.details,
                }
                for f in self.findings
            ],
            "notes": list(self.notes),
        }

    def __str__(self) -> str:
        verdict = "all checks passed" if self.passed else "CHECK FAILED"
        lines = [f"{self.recurrence}: {verdict}"]
        lines += [f"  {finding}" for finding in self.findings]
        lines += [f"  note: {note}" for note in self.notes]
        return "\n".join(lines)
