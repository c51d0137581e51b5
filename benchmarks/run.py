"""Measures tree verification side by side: `python -m benchmarks.run --help`."""

from __future__ import annotations

import argparse
import gc
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from benchmarks import registry, table
from benchmarks.fetch_peers import HOW_TO
from benchmarks.floor import floor_microseconds, stage_bytes, verify_operations
from benchmarks.measure import measure
from benchmarks.peers import peers_folder
from benchmarks.protocol import Clock, CudaClock, HostClock, copy_bandwidth, environment
from benchmarks.result_file import command_line, keep
from benchmarks.serving_shapes import LAYERS, ROW_SETS, Kind, LayerShape, Row, layer_shape
from benchmarks.warm import warm
from benchmarks.workload import layer_count, make_workload

RESULTS = Path(__file__).parent / "results"
FORMAT = 1


def rows_from(names: Sequence[str]) -> list[Row]:
    """Expand names of row sets and single rows, in order, each row once."""
    rows: dict[Row, None] = {}
    for name in names:
        rows |= dict.fromkeys(ROW_SETS[name] if name in ROW_SETS else [Row.parse(name)])
    return list(rows)


def run_case(
    shape: LayerShape,
    row: Row,
    kind: Kind,
    mode: str,
    options: argparse.Namespace,
    bandwidth: float,
) -> dict[str, Any]:
    """Measure one row in one mode and return its part of the report."""
    clock = make_clock(options.device)
    full = mode == "full"
    layers = options.layers or layer_count(shape, row, clock.l2_bytes())
    work = make_workload(shape, row, layers, kind=kind, device=clock.device, seed=options.seed)
    folder = peers_folder(options.peers)
    factories = {}
    for name in options.subjects or registry.default_names(row, full=full):
        build = registry.builder(name)
        factories[name] = lambda work, build=build: build(work, full, folder)
    return {
        "layer": shape.name,
        "row": str(row),
        "kind": kind,
        "mode": mode,
        "layers": layers,
        "floor_bytes": stage_bytes(shape, row, kind),
        "floor_us": floor_microseconds(shape, row, kind, bandwidth),
        "operations": verify_operations(shape, row),
        "subjects": measure(work, factories, clock, options.rounds),
    }


def make_clock(device: str) -> Clock:
    """The clock of `cuda` or `cpu`."""
    return CudaClock() if device == "cuda" else HostClock()


def run(options: argparse.Namespace) -> dict[str, Any]:
    """Measure all cases; the report is written anew after each, so that a crash costs one case."""
    rows = rows_from(options.rows)
    shape = layer_shape(options.layer, options.kind)
    clock = make_clock(options.device)
    if "full" in options.mode and options.device == "cuda" and not options.no_warm:
        trees = [row for row in rows if not row.is_chain]
        warm(options.layer, options.kind, trees, peers_folder(options.peers))
    bandwidth = copy_bandwidth(clock) if options.device == "cuda" else 1e9
    report: dict[str, Any] = {
        "format": FORMAT,
        "environment": {"command": options.command, **environment(clock)},
        "copy_bandwidth": bandwidth,
        "cases": [],
    }
    for row in rows:
        for mode in options.mode:
            case = run_case(shape, row, options.kind, mode, options, bandwidth)
            report["cases"].append(case)
            for complaint in complaints(case):
                print(complaint, file=sys.stderr)
            keep(report, options.out / f"{options.name}.json")
            gc.collect()
            if options.device == "cuda":
                torch.cuda.empty_cache()
    return report


def complaints(case: Mapping[str, Any]) -> list[str]:
    """One line per subject that failed or computed something else."""
    lines = []
    for name, subject in case["subjects"].items():
        if "failed" in subject:
            lines.append(f"{case['row']} {case['mode']} {name}: {subject['failed']}")
        elif subject["wrong"]:
            values = ", ".join(f"{key} {subject['errors'][key]:.1e}" for key in subject["wrong"])
            lines.append(f"{case['row']} {case['mode']} {name}: wrong results: {values}")
    return lines


def parser() -> argparse.ArgumentParser:
    """The command line."""
    command = argparse.ArgumentParser(
        prog="python -m benchmarks.run",
        description="Measure tree verification: boleir and its peers on the same tensors.",
        epilog=f"Peers: {HOW_TO}",
    )
    add = command.add_argument
    add(
        "--rows",
        nargs="+",
        default=["trees"],
        help=f"BATCHxNODES[xDEPTH] or sets: {', '.join(ROW_SETS)} (default: trees)",
    )
    add("--layer", choices=LAYERS, default="qwen3.5-9b", help="layer shape")
    add("--kind", choices=("gdn", "kda"), default="gdn", help="decay per head or per key channel")
    add(
        "--mode",
        nargs="+",
        choices=("core", "full"),
        default=["core", "full"],
        help="core: from convolved inputs, verify and commit; full: with the tree convolution",
    )
    add("--subjects", nargs="+", help="what to measure (default: depends on the row)")
    add("--peers", help="folder filled by benchmarks.fetch_peers (default: $BOLEIR_PEERS, .peers)")
    add("--rounds", type=int, default=30, help="timed replays per stage (default: 30)")
    add("--layers", type=int, help="layers per replay (default: three times the L2 cache)")
    add("--seed", type=int, default=0, help="seed of trees and inputs")
    add("--name", default="tree-verification", help="name of the result file")
    add("--out", type=Path, default=RESULTS, help="folder of the result file")
    add("--device", choices=("cuda", "cpu"), default="cuda", help="cpu is for tests only")
    add("--no-warm", action="store_true", help="do not compile peers ahead in parallel")
    add("--json", action="store_true", help="print the report instead of tables")
    return command


def main(arguments: Sequence[str] | None = None) -> int:
    """Run and print; non-zero when a subject failed or was wrong."""
    arguments = sys.argv[1:] if arguments is None else arguments
    options = parser().parse_args(arguments)
    options.command = command_line(arguments)
    try:
        rows_from(options.rows)
        for name in options.subjects or []:
            registry.builder(name)
    except (ValueError, ImportError) as failure:
        print(f"benchmarks.run: {failure}", file=sys.stderr)
        return 2
    if options.device == "cuda" and not torch.cuda.is_available():
        print("benchmarks.run: no GPU found", file=sys.stderr)
        return 2
    report = run(options)
    print(json.dumps(report, indent=1) if options.json else table.markdown(report))
    return 1 if any(complaints(case) for case in report["cases"]) else 0


if __name__ == "__main__":
    raise SystemExit(main())
