"""Turns a result file into markdown tables: `python -m benchmarks.table results/NAME.json`."""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

Case = Mapping[str, Any]
BASELINE = "sglang"
STAGES = ("topology", "conv", "verify", "commit", "sum", "whole", "window", "host")


def markdown(report: Mapping[str, Any]) -> str:
    """All tables of a report, under a line that says where it was measured."""
    parts = [_heading(report)]
    for mode, title, build in (
        ("core", "Recurrent core (verification from convolved inputs), µs per layer", _core_table),
        ("full", "Convolution, verification and commit, µs per layer", _stage_table),
        ("core", "Stages of the core, µs per layer", _stage_table),
    ):
        cases = [case for case in report["cases"] if case["mode"] == mode]
        if cases:
            parts += ["", f"**{title}**", "", *build(cases)]
    return "\n".join(parts)


def _heading(report: Mapping[str, Any]) -> str:
    place = report["environment"]
    facts = [str(place["device"])]
    facts += [f"driver {place['driver']}"] if "driver" in place else []
    facts += [f"torch {place['torch']}", f"Triton {place['triton']}"]
    facts += [f"copy bandwidth {report['copy_bandwidth'] / 1e12:.2f} TB/s"]
    return f"{', '.join(facts)}. `{place['command']}`"


def _core_table(cases: Sequence[Case]) -> list[str]:
    """One line per case, one column per subject."""
    names = list(dict.fromkeys(name for case in cases for name in case["subjects"]))
    ours = names[0]
    header = ["layer", "batch x nodes x depth", "byte floor", *names]
    versus = BASELINE in names and ours != BASELINE
    header += [f"{ours} vs {BASELINE}"] if versus else []
    header += [f"{ours} / floor", "worst error " + " / ".join(names)]
    lines = []
    for case in cases:
        times = [_time(case, name, "verify") for name in names]
        base = _time(case, BASELINE, "verify")
        line = [case["layer"], case["row"], _number(case["floor_us"]["verify"])]
        line += [_number(value) for value in times]
        line += [_ratio(base, times[0])] if versus else []
        line += [_ratio(times[0], case["floor_us"]["verify"])]
        line += [" / ".join(_error(case, name, "verify_max") for name in names)]
        lines.append(line)
    return _grid(header, lines)


def _stage_table(cases: Sequence[Case]) -> list[str]:
    """One line per case and subject, one column per stage."""
    stages = [s for s in STAGES if any(_time(c, n, s) for c in cases for n in c["subjects"])]
    header = ["batch x nodes x depth", "subject", *stages, f"{BASELINE} sum / sum"]
    header += ["errors: conv", "verify", "commit"]
    lines = []
    for case in cases:
        base = _time(case, BASELINE, "sum")
        for name in case["subjects"]:
            line = [case["row"], name, *(_number(_time(case, name, stage)) for stage in stages)]
            line += [_ratio(base, _time(case, name, "sum"))]
            line += [_error(case, name, key) for key in ("conv", "verify_max", "commit")]
            lines.append(line)
        floors = [_number(case["floor_us"].get(stage)) for stage in stages]
        lines.append([case["row"], "byte floor", *floors, "", "", "", ""])
    return _grid(header, lines)


def _time(case: Case, name: str, stage: str) -> float | None:
    """Median of a stage, or the subject's sum."""
    subject = case["subjects"].get(name, {})
    direct = stage in ("sum", "host")
    value = subject.get(stage) if direct else subject.get("stages", {}).get(stage, {}).get("median")
    return None if value is None else float(value)


def _error(case: Case, name: str, key: str) -> str:
    subject = case["subjects"].get(name, {})
    if "failed" in subject:
        return "failed"
    value = subject.get("errors", {}).get(key)
    if value is None:
        return ""
    return f"{value:.1e}" + (" (wrong)" if key in subject["wrong"] else "")


def _number(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:.0f}" if value >= 100 else f"{value:.1f}"


def _ratio(over: float | None, under: float | None) -> str:
    return f"{over / under:.1f}x" if over and under else ""


def _grid(header: Sequence[str], lines: Sequence[Sequence[str]]) -> list[str]:
    rows = [header, ["---"] * len(header), *lines]
    return ["| " + " | ".join(row) + " |" for row in rows]


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the tables of each file."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split(":")[0])
    parser.add_argument("files", nargs="+", type=Path)
    for file in parser.parse_args(arguments).files:
        print(markdown(json.loads(file.read_text())))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
