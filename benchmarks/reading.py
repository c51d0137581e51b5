"""Reads numbers out of result files, for tables and figures."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.serving_shapes import Row

RESULTS = Path(__file__).parent / "results"
OURS, SERIAL = "boleir", "sglang"
Reports = Sequence[Mapping[str, Any]]


def times(
    reports: Reports, mode: str, subject: str, stage: str, kind: str = "gdn"
) -> dict[Row, float]:
    """Median microseconds of a stage (or the sum) by row; later reports go before earlier ones."""
    found: dict[Row, float] = {}
    for case in _cases(reports, mode, kind):
        entry = case["subjects"].get(subject, {})
        value = entry.get("sum") if stage == "sum" else _median(entry, stage)
        if value is not None and not entry.get("wrong"):
            found[Row.parse(case["row"])] = float(value)
    return found


def floors(reports: Reports, mode: str, stage: str) -> dict[Row, float]:
    """Byte floors of a stage by row, microseconds."""
    return {Row.parse(c["row"]): c["floor_us"][stage] for c in _cases(reports, mode, "gdn")}


def _cases(reports: Reports, mode: str, kind: str) -> Iterable[Mapping[str, Any]]:
    for report in reports:
        for case in report.get("cases", ()):
            if case.get("mode") == mode and case.get("kind") == kind:
                yield case


def _median(entry: Mapping[str, Any], stage: str) -> float | None:
    timing = entry.get("stages", {}).get(stage)
    return None if timing is None else float(timing["median"])


def read_results(files: Iterable[Path]) -> list[dict[str, Any]]:
    """Result files of any kind, oldest name first."""
    found = [json.loads(path.read_text()) for path in sorted(files)]
    return [report for report in found if isinstance(report, dict)]


def read_reports(files: Iterable[Path]) -> list[dict[str, Any]]:
    """Those that have cases."""
    return [report for report in read_results(files) if report.get("cases")]
