"""Compiles SGLang's tree convolutions ahead of a measurement, all at once in child processes.

Its loop over the nodes is unrolled, so that 64 nodes compile for about a minute; the children fill
Triton's cache from which the measuring process then reads.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import cast

from benchmarks.peers import load_sglang
from benchmarks.serving_shapes import Kind, Row, layer_shape
from benchmarks.sglang_subject import SGLangSerial
from benchmarks.workload import make_workload

SECONDS_ALLOWED = 400


def compile_one(layer: str, kind: Kind, row: Row, folder: Path) -> None:
    """Run every stage once on the GPU for one layer of `row`."""
    work = make_workload(layer_shape(layer, kind), row, layers=1, kind=kind, device="cuda")
    subject = SGLangSerial(work, load_sglang(folder), full=True)
    subject.prepare(0)
    for stage in subject.stages:
        getattr(subject, stage)()


def warm(layer: str, kind: Kind, rows: Sequence[Row], folder: Path) -> None:
    """Compile for all `rows` in parallel; a child that fails is reported and left aside."""
    base = [sys.executable, "-m", "benchmarks.warm", layer, kind, str(folder)]
    children = {row: subprocess.Popen([*base, str(row)]) for row in rows}
    for row, child in children.items():
        try:
            if child.wait(SECONDS_ALLOWED) != 0:
                print(f"warm-up of {row} failed with {child.returncode}", file=sys.stderr)
        except subprocess.TimeoutExpired:
            child.kill()
            print(f"warm-up of {row} took over {SECONDS_ALLOWED} s", file=sys.stderr)


if __name__ == "__main__":
    compile_one(sys.argv[1], cast(Kind, sys.argv[2]), Row.parse(sys.argv[4]), Path(sys.argv[3]))
