"""All committed results in one text: `python -m benchmarks.report`.

The tables of the paper that concern the core (Bole, arXiv 2608.01651: core latency, bytes written,
footprint per node, share of the commit) with its numbers beside those measured here, then every
target and whether it is reached. A line without data says so.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks import limits
from benchmarks.reading import OURS, RESULTS, SERIAL, Reports, floors, read_results, times
from benchmarks.serving_shapes import (
    CHAIN_ROWS,
    LINEAR_LAYERS_PER_MODEL,
    TARGET_CORE_RATIO,
    TREE_ROWS,
    Row,
)

NONE = "not measured"
MODEL_BYTES = 9e9 * 2
"""Weights of Qwen3.5-9B in 16 bits: a forward pass reads them at least once."""
FULL_TARGETS = {Row(1, 16, 5): 4.0, Row(1, 64, 8): 12.0, Row(16, 64, 8): 25.0}
CHAIN_PEERS = (SERIAL, "sglang-replay", "fla-recurrent", "fla-chunk")
DECODE = "sglang-decode"


def paper_tables(reports: Reports) -> str:
    """The paper's numbers beside ours."""
    head = ["what", "paper (A100 / GB10)", "here"]
    lines = [
        ["core vs serial verifier, batch 1", "3.4x / 5.0x", _range(core_ratios(reports, 1))],
        ["core vs serial verifier, batch 16", "7.5x / 7.7x", _range(core_ratios(reports, 16))],
        [
            "with convolution and commit, batch 1 / 16",
            "",
            f"{_range(full_ratios(reports, 1))} / {_range(full_ratios(reports, 16))}",
        ],
        ["bytes written per layer, batch 16", "9.8 MB instead of 824 MB (84x)", _bytes(reports)],
        ["footprint per node vs snapshots", "82-99x smaller", _footprint(reports)],
        ["commit, share of a target forward", "< 0.5 %", _commit_share(reports)],
    ]
    return grid(head, lines)


def core_ratios(reports: Reports, batch: int) -> list[float]:
    """SGLang's time over ours, verification alone, tree rows of a batch size."""
    return _ratios(reports, "core", "verify", batch)


def full_ratios(reports: Reports, batch: int) -> list[float]:
    """The same for all stages of a round."""
    return _ratios(reports, "full", "sum", batch)


def _ratios(reports: Reports, mode: str, stage: str, batch: int) -> list[float]:
    ours, base = times(reports, mode, OURS, stage), times(reports, mode, SERIAL, stage)
    rows = [row for row in TREE_ROWS if row.batch == batch and row in ours and row in base]
    return [base[row] / ours[row] for row in rows]


def _footprints(reports: Reports) -> list[Mapping[str, Any]]:
    return [c for r in reports for c in r.get("cases", ()) if "bytes_per_node" in c]


def _bytes(reports: Reports) -> str:
    found = [
        c for c in _footprints(reports) if c["row"] == "16x64x8" and c["layer"] == "qwen3.5-9b"
    ]
    if not found:
        return NONE
    ours, theirs = (found[0]["written"][name]["verify"] / 1e6 for name in ("boleir", "snapshots"))
    return f"{ours:.0f} MB instead of {theirs:.0f} MB ({theirs / ours:.0f}x) at 64 nodes"


def _footprint(reports: Reports) -> str:
    cases = _footprints(reports)
    kept = [c["snapshot_bytes_per_node"] / c["bytes_per_node"]["replay"] for c in cases]
    if not cases:
        return NONE
    return f"{_range(kept, 0)} smaller"


def _commit_share(reports: Reports) -> str:
    found = times(reports, "full", OURS, "commit")
    widths = [r["copy_bandwidth"] for r in reports if "copy_bandwidth" in r]
    row = Row(1, 64, 8)
    if row not in found or not widths:
        return NONE
    forward = MODEL_BYTES / widths[0] * 1e6
    share = found[row] * LINEAR_LAYERS_PER_MODEL / forward
    return f"{share:.1%} of the time that reading 9B weights takes ({forward / 1e3:.1f} ms)"


def targets(reports: Reports) -> str:
    """Every target that results decide."""
    head = ["target", "row", "wanted", "found", ""]
    lines: list[list[str]] = []
    core, base = times(reports, "core", OURS, "verify"), times(reports, "core", SERIAL, "verify")
    for row, wanted in TARGET_CORE_RATIO.items():
        lines.append(_at_least("core vs SGLang serial", row, wanted, core, base))
    full, sums = times(reports, "full", OURS, "sum"), times(reports, "full", SERIAL, "sum")
    for row, wanted in FULL_TARGETS.items():
        lines.append(_at_least("full round vs SGLang", row, wanted, full, sums))
    floor = floors(reports, "core", "verify")
    for row in TREE_ROWS:
        if row.batch == 16:
            lines.append(_at_most("core / byte floor", row, 1.5, core, floor))
    commits, least = times(reports, "core", OURS, "commit"), floors(reports, "core", "commit")
    for row in TREE_ROWS:
        lines.append(_at_most("commit / floor", row, 1.3, commits, least))
    best = _best(reports, CHAIN_PEERS)
    for row in CHAIN_ROWS:
        lines.append(_at_most("chain / best peer", row, 1.0, core, best))
    decode = times(reports, "core", DECODE, "verify")
    step = {Row(b, 16, 7): decode[Row(b, 1, 0)] for b in (1, 16) if Row(b, 1, 0) in decode}
    for batch in (1, 16):
        lines.append(_at_most("16 nodes / one decoded token", Row(batch, 16, 7), 1.5, core, step))
    kda = [times(reports, "core", subject, "verify", kind="kda") for subject in (OURS, SERIAL)]
    for row, wanted in ((Row(1, 64, 8), 8.0), (Row(16, 64, 8), 12.0)):
        lines.append(_at_least("KDA core vs SGLang serial", row, wanted, *kda))
    return grid(head, [*lines, *limits.lines(reports)])


def _best(reports: Reports, subjects: Sequence[str]) -> dict[Row, float]:
    """The fastest of several subjects by row."""
    best: dict[Row, float] = {}
    for subject in subjects:
        for row, us in times(reports, "core", subject, "verify").items():
            best[row] = min(us, best.get(row, us))
    return best


def _at_least(
    what: str, row: Row, wanted: float, ours: Mapping[Row, float], base: Mapping[Row, float]
) -> list[str]:
    return _line(what, row, wanted, base, ours, at_least=True)


def _at_most(
    what: str, row: Row, wanted: float, ours: Mapping[Row, float], base: Mapping[Row, float]
) -> list[str]:
    return _line(what, row, wanted, ours, base, at_least=False)


def _line(
    what: str,
    row: Row,
    wanted: float,
    over: Mapping[Row, float],
    under: Mapping[Row, float],
    *,
    at_least: bool,
) -> list[str]:
    sign = ">=" if at_least else "<="
    line = [what, str(row), f"{sign} {wanted:g}x"]
    if row not in over or row not in under:
        return [*line, NONE, ""]
    found = over[row] / under[row]
    reached = found >= wanted if at_least else found <= wanted
    return [*line, f"{found:.1f}x" if found >= 3 else f"{found:.2f}x", "yes" if reached else "no"]


def _range(values: Sequence[float], digits: int = 1) -> str:
    """The least and the largest."""
    if not values:
        return NONE
    low, high = f"{min(values):.{digits}f}", f"{max(values):.{digits}f}"
    return f"{low}x" if low == high else f"{low}-{high}x"


def grid(head: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    """A markdown table."""
    return "\n".join("| " + " | ".join(line) + " |" for line in (head, ["---"] * len(head), *lines))


def main(arguments: Sequence[str] | None = None) -> int:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split(":")[0])
    parser.add_argument("files", nargs="*", type=Path, help="result files (default: all committed)")
    options = parser.parse_args(sys.argv[1:] if arguments is None else arguments)
    reports = read_results(options.files or RESULTS.glob("*.json"))
    print(paper_tables(reports), targets(reports), sep="\n\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
