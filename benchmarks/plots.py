"""Draws the committed results: `python -m benchmarks.plots` writes `results/plots/*.svg`.

One figure per question, each from the result files that answer it; a figure without data is left
out. Needs matplotlib (`pip install 'boleir[bench]'`), which nothing else here does.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.reading import OURS, RESULTS, SERIAL, Reports, floors, read_reports, times
from benchmarks.serving_shapes import Row


@dataclass(frozen=True, slots=True)
class Series:
    """A line or a group of bars: points (x, y) under one name."""

    name: str
    points: tuple[tuple[float, float], ...]


@dataclass(frozen=True, slots=True)
class Chart:
    """What a figure shows, before anything is drawn."""

    name: str
    title: str
    x: str
    y: str
    series: tuple[Series, ...]
    log_x: bool = True
    log_y: bool = True
    ticks: tuple[str, ...] = ()
    """Names of the x positions 0, 1, ...: then the figure has bars."""


def speed_up(reports: Reports) -> Chart:
    """Over SGLang's serial verifier, core and full, by tree row."""
    rows = sorted(times(reports, "core", OURS, "verify"), key=lambda r: (r.batch, r.nodes))
    rows = [row for row in rows if not row.is_chain and row in _serial(reports)]
    series = []
    for name, mode, stage in (
        ("verification", "core", "verify"),
        ("convolution + verification + commit", "full", "sum"),
    ):
        ours, base = times(reports, mode, OURS, stage), times(reports, mode, SERIAL, stage)
        points = [
            (float(at), base[row] / ours[row])
            for at, row in enumerate(rows)
            if row in ours and row in base
        ]
        series.append(Series(name, tuple(points)))
    return Chart(
        "speed-up", "Speed-up over SGLang's serial tree verifier", "batch x nodes x depth", "times",
        tuple(series), log_y=False, ticks=tuple(map(str, rows)),
    )  # fmt: skip


def _serial(reports: Reports) -> dict[Row, float]:
    return times(reports, "core", SERIAL, "verify")


def roofline(reports: Reports) -> Chart:
    """Microseconds against the byte floor; the diagonal is the floor itself."""
    floor = floors(reports, "core", "verify")
    series = []
    for subject in (OURS, SERIAL):
        found = times(reports, "core", subject, "verify")
        points = sorted((floor[row], us) for row, us in found.items() if row in floor)
        series.append(Series(subject, tuple(points)))
    ends = sorted(floor.values())
    line = tuple((us, us) for us in (ends[:1] + ends[-1:]))
    return Chart(
        "roofline", "Verification against the bytes that must move",
        "byte floor, µs", "µs per layer", (*series, Series("byte floor", line)),
    )  # fmt: skip


def _growth(
    reports: Reports, name: str, what: str, x: Callable[[Row], int], keep: Callable[[Row], bool]
) -> Chart:
    """Microseconds over one size, a line per subject and batch (or nodes)."""
    series = []
    for subject in (OURS, SERIAL):
        found = times(reports, "core", subject, "verify")
        groups: dict[str, list[tuple[float, float]]] = {}
        for row, us in found.items():
            if keep(row):
                group = f"{subject}, batch {row.batch}" if name != "growth-batch" else subject
                groups.setdefault(group, []).append((float(x(row)), us))
        series += [Series(g, tuple(sorted(p))) for g, p in sorted(groups.items()) if len(p) > 2]
    return Chart(name, f"Verification over {what}", what, "µs per layer", tuple(series))


def growth_nodes(reports: Reports) -> Chart:
    """From one token to 256 nodes."""
    return _growth(
        reports, "growth-nodes", "nodes per request", lambda row: row.nodes,
        lambda row: row.depth == min(7, row.nodes - 1),
    )  # fmt: skip


def growth_depth(reports: Reports) -> Chart:
    """From a star to a chain."""
    return _growth(
        reports, "growth-depth", "depth of 64 nodes", lambda row: row.depth,
        lambda row: row.nodes == 64,
    )  # fmt: skip


def growth_batch(reports: Reports) -> Chart:
    """Linear, once the GPU is full."""
    return _growth(
        reports, "growth-batch", "requests of 64 nodes, depth 8", lambda row: row.batch,
        lambda row: (row.nodes, row.depth) == (64, 8),
    )  # fmt: skip


def bytes_per_node(reports: Reports) -> Chart:
    """What a node costs until the commit."""
    found = {
        case["layer"]: case
        for report in reports
        for case in report.get("cases", ())
        if "bytes_per_node" in case
    }
    kinds = (
        ("state snapshot", lambda c: c["snapshot_bytes_per_node"]),
        ("P, U, K in float32", lambda c: c["bytes_per_node"]["paper_factors"]),
        ("boleir", lambda c: c["bytes_per_node"]["replay"]),
    )
    series = tuple(
        Series(name, tuple((float(i), float(get(c))) for i, c in enumerate(found.values())))
        for name, get in kinds
    )
    return Chart(
        "bytes-per-node", "Bytes per node and layer until the commit", "layer", "bytes",
        series if found else (), ticks=tuple(found),
    )  # fmt: skip


def recurrences(reports: Reports) -> Chart:
    """All of the library at one glance, the largest row that was measured."""
    cases = [c for r in reports for c in r.get("cases", ()) if "recurrence" in c and "us" in c]
    rows = sorted({c["row"] for c in cases}, key=lambda text: Row.parse(text).total_nodes)
    last: dict[str, Any] = {}
    for case in cases:
        if case["row"] == rows[-1]:
            last.setdefault(case["recurrence"], case)
    series = tuple(
        Series(stage, tuple((float(i), c["us"][stage]) for i, c in enumerate(last.values())))
        for stage in ("verify", "commit")
    )
    return Chart(
        "recurrences", f"The library at {rows[-1] if rows else ''}", "", "µs per layer",
        series if last else (), log_y=False, ticks=tuple(last),
    )  # fmt: skip


CHARTS: tuple[Callable[[Reports], Chart], ...] = (
    speed_up,
    roofline,
    growth_nodes,
    growth_depth,
    growth_batch,
    bytes_per_node,
    recurrences,
)


def charts(reports: Reports) -> list[Chart]:
    """Those that the reports have data for."""
    made = [make(reports) for make in CHARTS]
    return [chart for chart in made if any(series.points for series in chart.series)]


def draw(chart: Chart, target: Path, place: str) -> None:
    """Write one figure; the same data gives the same bytes."""
    import matplotlib

    matplotlib.use("Agg")
    matplotlib.rcParams["svg.hashsalt"] = chart.name
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(7.5, 4.2), layout="constrained")
    width = 0.8 / max(1, len(chart.series))
    for at, series in enumerate(chart.series):
        xs, ys = [x for x, _ in series.points], [y for _, y in series.points]
        if chart.ticks:
            axes.bar([x + width * (at + 0.5) - 0.4 for x in xs], ys, width, label=series.name)
        else:
            axes.plot(xs, ys, "--" if series.name == "byte floor" else "o-", label=series.name)
    if chart.ticks:
        turned = 35 if sum(map(len, chart.ticks)) > 80 else 0
        side = "right" if turned else "center"
        axes.set_xticks(range(len(chart.ticks)), chart.ticks, rotation=turned, ha=side)
    elif chart.log_x:
        axes.set_xscale("log", base=2)
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    if chart.log_y:
        axes.set_yscale("log")
        axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axes.set(xlabel=chart.x, ylabel=chart.y, title=f"{chart.title}{place}")
    axes.grid(alpha=0.3)
    axes.legend()
    target.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(target, metadata={"Date": None} if target.suffix == ".svg" else None)
    pyplot.close(figure)


def main(arguments: Sequence[str] | None = None) -> int:
    """Draw all figures that there is data for."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split(":")[0])
    parser.add_argument("files", nargs="*", type=Path, help="result files (default: all committed)")
    parser.add_argument("--out", type=Path, default=RESULTS / "plots", help="folder of the figures")
    options = parser.parse_args(arguments)
    reports = read_reports(options.files or RESULTS.glob("*.json"))
    devices = {r["environment"]["device"] for r in reports if "device" in r.get("environment", {})}
    for chart in charts(reports):
        counted = chart.name == "bytes-per-node"
        place = f" ({', '.join(sorted(devices))})" if devices and not counted else ""
        target = options.out / f"{chart.name}.svg"
        try:
            draw(chart, target, place)
        except ImportError as failure:
            print(f"benchmarks.plots: {failure}; pip install 'boleir[bench]'", file=sys.stderr)
            return 1
        print(target)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
