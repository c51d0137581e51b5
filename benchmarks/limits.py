"""Targets that bound something in its own unit: growth, launches, bytes, host time, compilation.

Lines for the table of `benchmarks.report`, judged from committed results alone. Where those hold an
estimate or a part of what the target is about, the line says so and gives no verdict.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from benchmarks.reading import OURS, Reports, times
from benchmarks.serving_shapes import TREE_ROWS, Row

NONE = "not measured"
CLIFFS = ((8, 9), (16, 17), (32, 33), (64, 65))
CLIFF = 1.25
"""What one node more may cost, relative: from here on it is a cliff."""
WITHOUT_SOLVE = 1.3
"""How much faster than the gated delta rule recurrences without a solve should be."""
LINEAR = 2.1
"""What twice the requests may cost once the GPU is full."""
FEW_REQUESTS = 4
"""Up to so many, a layer should be one launch; two for more."""
BETWEEN = frozenset({"topology", "commit", "record", "flush", "replay"})
"""Kernels that are launched for all layers at once, or are part of another one."""

Line = list[str]


def lines(reports: Reports) -> list[Line]:
    """All of them."""
    found = [*_without_solve(reports), *_growth(reports), *_launches(reports)]
    found += _footprint(reports)
    return [*found, *_host(reports), *_waiting(reports)]


def line(what: str, row: str, wanted: float, found: float | None, unit: str, sign: str) -> Line:
    """One line; `sign` is <= or >=."""
    start = [what, row, f"{sign} {wanted:g}{unit}"]
    if found is None:
        return [*start, NONE, ""]
    reached = found <= wanted if sign == "<=" else found >= wanted
    return [*start, f"{found:.3g}{unit}", "yes" if reached else "no"]


def _without_solve(reports: Reports) -> Iterable[Line]:
    """Recurrences without a solve beside the gated delta rule at the same shape."""
    cases = [c for r in reports for c in r.get("cases", ()) if "solve" in c and "us" in c]
    rule = {
        (c["row"], *c["heads"]): c["us"]["verify"]
        for c in cases
        if c["recurrence"] == "gated_delta_rule"
    }
    for case in cases:
        shape = (case["row"], *case["heads"])
        if not case["solve"] and shape in rule:
            ratio = _ratio(case["us"]["verify"], rule[shape])
            what = f"{case['recurrence']} vs the gated delta rule"
            yield line(what, case["row"], WITHOUT_SOLVE, ratio, "x", ">=")


def _growth(reports: Reports) -> Iterable[Line]:
    core = times(reports, "core", OURS, "verify")
    for batch in (1, 16):
        for few, more in CLIFFS:
            pair = core.get(Row(batch, few, 7)), core.get(Row(batch, more, 7))
            row = f"{batch}x{few} to {batch}x{more}"
            yield line("one node more", row, CLIFF, _ratio(*pair), "x", "<=")
    for batch in (16, 32):
        pair = core.get(Row(batch, 64, 8)), core.get(Row(2 * batch, 64, 8))
        row = f"{batch}x64 to {2 * batch}x64"
        yield line("twice the requests", row, LINEAR, _ratio(*pair), "x", "<=")


def _ratio(under: float | None, over: float | None) -> float | None:
    return None if under is None or over is None else over / under


def _launches(reports: Reports) -> Iterable[Line]:
    """Of the default schedules that were compiled: the kernels of a layer in one round."""
    seen = False
    for report in reports:
        for variant in report.get("variants", ()):
            seen = True
            wanted = 1 if Row.parse(variant["row"]).batch <= FEW_REQUESTS else 2
            own = set(variant["kernel_seconds"]) - BETWEEN
            what = f"launches per layer, {variant['recurrence']}"
            yield line(what, variant["row"], wanted, len(own), "", "<=")
    if not seen:
        yield line("launches per layer", "", 2, None, "", "<=")


def _footprint(reports: Reports) -> Iterable[Line]:
    """Of the layer and the rows that all other lines are about, the smallest ratio."""
    cases = [case for report in reports for case in report.get("cases", ())]
    cases = [c for c in cases if "bytes_per_node" in c and c["layer"] == "qwen3.5-9b"]
    for commit, wanted in (("replay", 160), ("factors", 99)):
        ratios = [c["snapshot_bytes_per_node"] / c["bytes_per_node"][commit] for c in cases]
        least = min(ratios) if ratios else None
        yield line(f"snapshot / bytes per node, commit {commit}", "all", wanted, least, "x", ">=")


def _host(reports: Reports) -> Iterable[Line]:
    """Host time of a layer's launches, driver included, as it was on the GPU's own machine."""
    for row in TREE_ROWS:
        found = [
            case["subjects"][OURS]["host"]
            for report in reports
            for case in report.get("cases", ())
            if case.get("mode") == "core" and case.get("kind") == "gdn"
            if case["row"] == str(row) and case["subjects"].get(OURS, {}).get("host")
        ]
        yield line("host time of a layer", str(row), 10, max(found, default=None), " us", "<=")


def _waiting(reports: Reports) -> Iterable[Line]:
    """Import, compilation and loading, and tunings: measured ones, and estimates of what others
    compile."""
    for report in reports:
        for name, tuning in report.get("tunings", {}).items():
            yield line("autotune one shape", name, 60, tuning["seconds"], " s", "<=")
    found = next((report for report in reports if "import_seconds" in report), None)
    if found is None:
        yield line("import boleir", "", 0.3, None, " s", "<=")
        return
    yield line("import boleir", "", 0.3, found["import_seconds"], " s", "<=")
    for variant in found["variants"]:
        name = f"{variant['recurrence']} {variant['row']}"
        yield line("compile one variant", name, 3, variant["seconds"], " s", "<=")
        yield line("load a variant", name, 50, _slowest_load(variant), " ms", "<=")
    for tuning in found["tuning"]:
        seconds = tuning["estimated_compile_seconds"] + tuning["ranking_seconds"]
        text = f"{seconds:.0f} s of compiling, estimated; timing {NONE}"
        yield ["autotune one shape", tuning["key"], "<= 60 s", text, ""]


def _slowest_load(variant: Mapping[str, Any]) -> float:
    return float(max(variant["load_ms"], variant.get("first_load_ms", 0.0)))
