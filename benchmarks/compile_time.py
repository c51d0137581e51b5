"""What waiting for kernels costs, without a GPU: `python -m benchmarks.compile_time`.

Import, compilation of one variant on one core (cold: nothing is cached), loading of what was
compiled (a stand-in takes the driver's place), and how long the candidates of a tuning compile.
"""

from __future__ import annotations

import argparse
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any

import torch

import boleir
from benchmarks.host_time import StandIn, processor
from benchmarks.result_file import keep
from benchmarks.serving_shapes import LAYERS, TREE_ROWS, Row
from boleir.codegen.artifact_folder import write
from boleir.codegen.build import assemble
from boleir.codegen.kernel_spec import Job
from boleir.codegen.offline import CompilePool
from boleir.codegen.pipeline import Lowered, lower
from boleir.codegen.request import Shapes
from boleir.codegen.schedule import default_schedule
from boleir.codegen.targets import Target, target
from boleir.library import resolve
from boleir.runtime.tuning.autotune import space_of
from boleir.runtime.tuning.candidates import kernel_digest
from boleir.runtime.tuning.cost_model import predict
from boleir.runtime.tuning.effort import EFFORT_LEVELS, first_candidates
from boleir.runtime.tuning.keys import key_of

RESULT = Path(__file__).parent / "results" / "compile-time.json"
FORMAT = 1
RECURRENCES = ("gdn", "gated_delta_rule")
CORES = 16
"""Of the machine for which the time of a tuning is estimated."""


def import_seconds(rounds: int = 5) -> float:
    """`import boleir` in a fresh process, without starting Python itself."""
    text = "import time; t = time.perf_counter(); import boleir; print(time.perf_counter() - t)"
    times = [
        float(subprocess.run([sys.executable, "-c", text], capture_output=True, check=True).stdout)
        for _ in range(rounds)
    ]
    return median(times)


def shapes_for(row: Row) -> Shapes:
    """The Qwen3.5-9B layer."""
    layer = LAYERS["qwen3.5-9b"]
    heads = (layer.key_heads, layer.value_heads)
    return Shapes(*heads, layer.d_k, layer.d_v, row.nodes, row.depth)


def compile_seconds(
    pool: CompilePool, made: Lowered, wanted: Target, only: Sequence[str] | None = None
) -> dict[str, float]:
    """Seconds of each kernel (of those named) in one worker."""
    specs = [spec for spec in made.specs() if only is None or spec.name in only]
    jobs = [Job(made.text, spec, wanted) for spec in specs]
    found = pool.run(jobs)
    return {x.name: round(x.seconds, 2) for x in found if hasattr(x, "seconds")}


def variant(name: str, row: Row, wanted: Target, pool: CompilePool) -> dict[str, Any]:
    """The default variant of a row: lowering, compiling, loading."""
    started = time.perf_counter()
    made = lower(resolve(name), shapes_for(row), target=wanted, batch=row.batch)
    lowering = time.perf_counter() - started
    kernels = compile_seconds(pool, made, wanted)
    with tempfile.TemporaryDirectory() as folder:
        place = write(assemble([(made, wanted)], pool=pool), Path(folder) / "kernels")
        times = []
        for _ in range(5):
            started = time.perf_counter()
            boleir.load_compiled(place, target=wanted.name, device=0, driver=StandIn())
            times.append(time.perf_counter() - started)
    return {
        "recurrence": name,
        "row": str(row),
        "lowering_seconds": round(lowering, 2),
        "kernel_seconds": kernels,
        "seconds": round(lowering + sum(kernels.values()), 2),
        "load_ms": round(median(times) * 1e3, 1),
        "first_load_ms": round(times[0] * 1e3, 1),
    }


def tuning(name: str, row: Row, wanted: Target, pool: CompilePool, every: int) -> dict[str, Any]:
    """How long the first candidates of the default effort compile, from every `every`-th one."""
    recurrence = resolve(name)
    key = key_of(recurrence, shapes_for(row), row.batch)
    assert key is not None
    started = time.perf_counter()
    space = space_of(recurrence, key, wanted)
    ranked = sorted(space, key=lambda s: predict(s, space.plan, space.shapes, wanted, key.batch).us)
    ranking = time.perf_counter() - started
    effort = EFFORT_LEVELS["default"]
    seed = default_schedule(space.plan, space.shapes, key.batch)
    chosen = first_candidates(ranked, effort.first, [space.finished(seed)])
    times, known = [], set()
    for schedule in chosen[::every]:
        made = lower(recurrence, space.shapes, schedule=schedule, target=wanted)
        new = {spec.name: kernel_digest(made.text, spec.name) for spec in made.specs()}
        fresh = [name for name, digest in new.items() if digest not in known]
        known |= set(new.values())  # candidates share the kernels in which they are equal
        found = compile_seconds(pool, made, wanted, only=fresh)
        times.append(sum(found.values()))
    mean = sum(times) / len(times)
    return {
        "recurrence": name,
        "key": key.name,
        "schedules": len(ranked),
        "ranking_seconds": round(ranking, 1),
        "candidates": effort.most,
        "compiled": len(times),
        "mean_seconds": round(mean, 2),
        "slowest_seconds": round(max(times), 2),
        "estimated_compile_seconds": round(mean * effort.most / CORES, 1),
        "cores": CORES,
    }


def report(options: argparse.Namespace) -> dict[str, Any]:
    """Measure everything."""
    import triton

    wanted = target(options.target)
    found: dict[str, Any] = {
        "format": FORMAT,
        "command": "python -m benchmarks.compile_time",
        "processor": processor(),
        "load": round(os.getloadavg()[0], 1),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "triton": triton.__version__,
        "target": wanted.name,
        "import_seconds": round(import_seconds(), 3),
        "variants": [],
        "tuning": [],
    }
    rows = [Row.parse(row) for row in options.rows] if options.rows else list(TREE_ROWS)
    with CompilePool(1) as pool:
        pool.run([])
        warm = lower(resolve("delta_rule"), shapes_for(rows[0]), target=wanted)
        compile_seconds(pool, warm, wanted)  # starts the worker: its imports are not a variant's
        for name in RECURRENCES:
            for row in rows:
                found["variants"].append(variant(name, row, wanted, pool))
        for row in rows if options.every else ():
            found["tuning"].append(tuning("gdn", row, wanted, pool, options.every))
    return found


def markdown(found: dict[str, Any]) -> str:
    """A line per variant."""
    lines = ["| variant | lowering s | kernels s | whole s | load ms |", "|" + " --- |" * 5]
    for item in found["variants"]:
        kernels = " + ".join(f"{name} {s:.1f}" for name, s in item["kernel_seconds"].items())
        lines.append(
            f"| {item['recurrence']} {item['row']} | {item['lowering_seconds']:.1f} | {kernels} "
            f"| {item['seconds']:.1f} | {item['load_ms']:.0f} |"
        )
    lines += ["", f"import boleir: {found['import_seconds']:.2f} s"]
    for item in found["tuning"]:
        lines.append(
            f"{item['key']}: {item['candidates']} candidates of {item['mean_seconds']:.1f} s: "
            f"about {item['estimated_compile_seconds']:.0f} s on {item['cores']} cores, "
            f"ranking {item['ranking_seconds']:.1f} s"
        )
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print, keep."""
    command = argparse.ArgumentParser(description=(__doc__ or "").split(":")[0])
    command.add_argument("--target", default="sm_90")
    command.add_argument("--rows", nargs="+", help="default: the tree rows")
    command.add_argument("--every", type=int, default=4, help="of a tuning's candidates; 0: none")
    command.add_argument("--out", type=Path, default=RESULT)
    options = command.parse_args(sys.argv[1:] if arguments is None else arguments)
    found = report(options)
    keep(found, options.out)
    print(markdown(found))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
