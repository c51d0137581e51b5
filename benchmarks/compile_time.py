"""What waiting for kernels costs, without a GPU: `python -m benchmarks.compile_time`.

Import, compilation of one variant on one core (cold: nothing is cached; seconds of the processor,
by phase), loading of what was compiled (a stand-in takes the driver's place), and how long the
candidates of a tuning compile.
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
from benchmarks.compile_phases import PHASES, Phases, processor_seconds
from benchmarks.host_time import StandIn, processor
from benchmarks.result_file import command_line, keep
from benchmarks.serving_shapes import LAYERS, TREE_ROWS, Row
from boleir.codegen.artifact_folder import write
from boleir.codegen.build import assemble, jobs_of
from boleir.codegen.defaults import default_schedule
from boleir.codegen.kernel_spec import Job, KernelSpec
from boleir.codegen.offline import CompilePool
from boleir.codegen.pipeline import lower
from boleir.codegen.request import Shapes
from boleir.codegen.targets import Target, target
from boleir.library import resolve
from boleir.runtime.tuning.autotune import space_of
from boleir.runtime.tuning.candidates import kernel_digest
from boleir.runtime.tuning.effort import EFFORT_LEVELS, first_candidates
from boleir.runtime.tuning.keys import key_of
from boleir.runtime.tuning.predictions import Predictions

RESULT = Path(__file__).parent / "results" / "compile-time.json"
FORMAT = 2
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


def variant(
    name: str, row: Row, wanted: Target, phases: Phases, pool: CompilePool, rounds: int
) -> dict[str, Any]:
    """The default variant of a row: lowering, compiling, loading."""
    started = processor_seconds()
    made = lower(resolve(name), shapes_for(row), target=wanted, batch=row.batch)
    lowering = processor_seconds() - started
    kernels = phases.of(jobs_of(made, wanted), rounds)
    whole = {name: sum(of.values()) for name, of in kernels.items()}
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
        "kernel_seconds": {name: round(seconds, 2) for name, seconds in whole.items()},
        "phases": {
            name: {phase: round(seconds, 2) for phase, seconds in of.items()}
            for name, of in kernels.items()
        },
        "seconds": round(lowering + sum(whole.values()), 2),
        "load_ms": round(median(times) * 1e3, 1),
        "first_load_ms": round(times[0] * 1e3, 1),
    }


def empty(wanted: Target) -> Job:
    """A kernel that does nothing: what every kernel costs, whatever is in it."""
    text = "import triton\n\n\n@triton.jit\ndef empty(out):\n    pass\n"
    return Job(text, KernelSpec("empty", {"out": "*fp32"}), wanted)


def tuning(name: str, row: Row, wanted: Target, phases: Phases, every: int) -> dict[str, Any]:
    """How long the first candidates of the default effort compile, from every `every`-th one."""
    recurrence = resolve(name)
    key = key_of(recurrence, shapes_for(row), row.batch)
    assert key is not None
    started = processor_seconds()
    space = space_of(recurrence, key, wanted)
    ranked = Predictions(space.plan, space.shapes, wanted, key.batch).best_first(space)
    ranking = processor_seconds() - started
    effort = EFFORT_LEVELS["default"]
    seed = default_schedule(space.plan, space.shapes, key.batch)
    chosen = first_candidates(ranked, effort.first, [space.finished(seed)])
    times, known = [], set()
    for schedule in chosen[::every]:
        made = lower(recurrence, space.shapes, schedule=schedule, target=wanted)
        new = {spec.name: kernel_digest(made.text, spec.name) for spec in made.specs()}
        fresh = [name for name, digest in new.items() if digest not in known]
        known |= set(new.values())  # candidates share the kernels in which they are equal
        jobs = [Job(made.text, spec, wanted) for spec in made.specs() if spec.name in fresh]
        found = phases.of(jobs, 1)
        times.append(sum(sum(of.values()) for of in found.values()))
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
        "command": command_line(options.command, "benchmarks.compile_time"),
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
    with Phases() as phases, CompilePool(1) as pool:
        nothing = [empty(wanted)]
        first = sum(phases.of(nothing, 1)["empty"].values())
        least = phases.of(nothing, options.rounds)["empty"]
        found["empty_kernel_seconds"] = round(sum(least.values()), 2)
        # what a process does once: its imports, and what Triton sets up for its first kernel
        found["start_seconds"] = round(phases.start_seconds + first - sum(least.values()), 2)
        for name in RECURRENCES:
            for row in rows:
                found["variants"].append(variant(name, row, wanted, phases, pool, options.rounds))
        for row in rows if options.every else ():
            found["tuning"].append(tuning("gdn", row, wanted, phases, options.every))
    return found


def markdown(found: dict[str, Any]) -> str:
    """A line per kernel, then what is not a kernel's."""
    columns = (*PHASES, "sum")
    lines = [f"| seconds of a processor | {' | '.join(columns)} |", "|" + " --- |" * 8]
    for item in found["variants"]:
        where = f"{item['recurrence']} {item['row']}"
        for name, of in item["phases"].items():
            times = " | ".join(f"{of[phase]:.2f}" for phase in PHASES)
            lines.append(f"| {where} {name} | {times} | {item['kernel_seconds'][name]:.2f} |")
        lowering = f"{item['lowering_seconds']:.2f} of lowering"
        lines.append(f"| {where} with {lowering} |{' |' * len(PHASES)} {item['seconds']:.2f} |")
    loads = max(item["load_ms"] for item in found["variants"])
    lines += [
        "",
        f"import boleir: {found['import_seconds']:.2f} s; loading a variant: {loads:.0f} ms",
        f"a worker's start: {found['start_seconds']:.2f} s; a kernel that does nothing: "
        f"{found['empty_kernel_seconds']:.2f} s",
    ]
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
    command.add_argument("--rounds", type=int, default=3, help="of which the fastest counts")
    command.add_argument("--every", type=int, default=4, help="of a tuning's candidates; 0: none")
    command.add_argument("--out", type=Path, default=RESULT)
    given = sys.argv[1:] if arguments is None else arguments
    options = command.parse_args(given, argparse.Namespace(command=given))
    found = report(options)
    keep(found, options.out)
    print(markdown(found))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
