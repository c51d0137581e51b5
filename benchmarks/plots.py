"""Draws the stages of a result file as stacked bars: `python -m benchmarks.plots RESULT.json`.

Needs matplotlib, which nothing else here does.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

STAGES = ("conv", "verify", "commit")


def bars(report: Mapping[str, Any], mode: str) -> list[tuple[str, dict[str, float]]]:
    """Label and microseconds per stage of every subject that was timed in `mode`."""
    found = []
    for case in report["cases"]:
        for name, subject in case["subjects"].items():
            if case["mode"] == mode and "stages" in subject:
                times = {s: t["median"] for s, t in subject["stages"].items() if s in STAGES}
                found.append((f"{case['row']}  {name}", times))
    return found


def draw(report: Mapping[str, Any], mode: str, target: Path) -> None:
    """Write one figure with a logarithmic time axis."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    found = bars(report, mode)
    figure, axes = pyplot.subplots(figsize=(8, 0.35 * len(found) + 1.2), layout="constrained")
    labels = [label for label, _ in found]
    left = [0.0] * len(found)
    for stage in STAGES:
        widths = [times.get(stage, 0.0) for _, times in found]
        axes.barh(labels, widths, left=left, label=stage)
        left = [start + width for start, width in zip(left, widths, strict=True)]
    axes.invert_yaxis()
    axes.set_xscale("log")
    axes.set_xlabel("µs per layer")
    axes.set_title(f"{mode}, {report['environment']['device']}")
    axes.legend()
    figure.savefig(target)


def main(arguments: Sequence[str] | None = None) -> int:
    """Draw one file."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split(":")[0])
    parser.add_argument("file", type=Path)
    parser.add_argument("--mode", choices=("core", "full"), default="full")
    parser.add_argument("--out", type=Path, help="picture file (default: beside the result)")
    options = parser.parse_args(arguments)
    target = options.out or options.file.with_suffix(".svg")
    try:
        draw(json.loads(options.file.read_text()), options.mode, target)
    except ImportError as failure:
        print(f"benchmarks.plots: {failure}; pip install matplotlib", file=sys.stderr)
        return 1
    print(target)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
