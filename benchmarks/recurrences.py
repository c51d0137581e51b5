"""Every recurrence of the library, measured alike: `python -m benchmarks.recurrences --help`.

The peers know one or two recurrences; this measurement is boleir alone. Each kernel is checked on
an adversarial tree against the float64 walk, then verification, commit and both are timed as graph
replays over layers that exceed the caches.
"""

from __future__ import annotations

import argparse
import gc
import json
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

import boleir
from benchmarks.protocol import Clock, copy_bandwidth, environment
from benchmarks.result_file import command_line, keep
from benchmarks.run import RESULTS, make_clock, rows_from
from benchmarks.serving_shapes import LAYERS, LayerShape, Row
from boleir.codegen.plan import NoKernel
from boleir.codegen.planner import make_plan
from boleir.codegen.request import Shapes
from boleir.derive.derive import derive
from boleir.ir import Recurrence
from boleir.library import names, resolve
from boleir.runtime.kernel import Kernel
from boleir.runtime.tuning.entry import Policy
from boleir.runtime.tuning.timing import stage_us
from boleir.runtime.tuning.work import floor_bytes

FORMAT = 1
TOLERATED_ERROR = 2e-2
"""Of outputs that are stored in 16 bits."""


def key_heads_for(recurrence: Recurrence, shape: LayerShape) -> tuple[int, ...]:
    """Numbers of key heads that a recurrence is measured with: the layer's; where decays belong to
    key channels, as many as value heads, too, as in their published layers."""
    key_heads, value_heads = shape.key_heads, shape.value_heads
    plan = make_plan(derive(recurrence).normal, shape.d_k, shape.d_v, key_heads, value_heads)
    return (key_heads,) if plan.key_decay is None else (value_heads, key_heads)


def shapes_of(
    recurrence: Recurrence, shape: LayerShape, row: Row, dtype: str, key_heads: int = 0
) -> Shapes:
    """What is compiled for a row, with the first of `key_heads_for` unless told. Raises
    `NoKernel`."""
    key_heads = key_heads or key_heads_for(recurrence, shape)[0]
    heads = (key_heads, shape.value_heads)
    return Shapes(*heads, shape.d_k, shape.d_v, row.nodes, row.depth, dtype)


def compile_for(recurrence: Recurrence, shapes: Shapes, batch: int) -> Kernel:
    """The kernel that a user would get for these shapes."""
    return boleir.compile(
        recurrence,
        key_heads=shapes.key_heads,
        value_heads=shapes.value_heads,
        d_k=shapes.d_k,
        d_v=shapes.d_v,
        max_nodes=shapes.max_nodes,
        max_depth=shapes.max_depth,
        dtype=shapes.dtype,
        batch=batch,
    )


def measure(
    name: str, shape: LayerShape, row: Row, policy: Policy, bandwidth: float, dtype: str,
    key_heads: int = 0,
) -> dict[str, Any]:  # fmt: skip
    """One recurrence on one row: times and errors, or the reason why there are none."""
    recurrence = resolve(name)
    found: dict[str, Any] = {"recurrence": name, "row": str(row)}
    try:
        shapes = shapes_of(recurrence, shape, row, dtype, key_heads)
        form = derive(recurrence)
        kernel = compile_for(recurrence, shapes, row.batch)
        found["heads"] = [shapes.key_heads, shapes.value_heads]
        found["solve"] = bool(form.normal.pairs)
        found["launches"] = len(kernel.interface.verifying)
        from boleir.runtime.spot_check import errors_of

        outputs, state = errors_of(kernel, recurrence)
        found["errors"] = {"verify": outputs, "commit": state}
        found["wrong"] = not max(outputs, state) <= TOLERATED_ERROR
        plan = make_plan(form.normal, shapes.d_k, shapes.d_v, shapes.key_heads, shapes.value_heads)
        found["floor_us"] = floor_bytes(plan, shapes, row.batch) / bandwidth * 1e6
        found["us"] = stage_us(kernel, row.batch, policy)
    except NoKernel as reason:
        found["no_kernel"] = str(reason)
    except Exception as failure:
        found["failed"] = f"{type(failure).__name__}: {failure}"[:500]
    return found


def markdown(report: dict[str, Any]) -> str:
    """One line per recurrence and row."""
    head = [
        "recurrence", "row", "heads", "launches", "verify", "commit", "whole", "verify / floor",
        "error",
    ]  # fmt: skip
    lines = [head, ["---"] * len(head)]
    for case in report["cases"]:
        line = [case["recurrence"], case["row"], ":".join(map(str, case.get("heads", ())))]
        if "us" in case:
            us = case["us"]
            line += [str(case["launches"]), *(f"{us[x]:.1f}" for x in ("verify", "commit"))]
            line += [f"{us['whole']:.1f}", f"{us['verify'] / case['floor_us']:.1f}x"]
            line += [f"{case['errors']['verify']:.1e}" + (" (wrong)" if case["wrong"] else "")]
        else:
            line += ["", "", "", "", "", "no kernel" if "no_kernel" in case else "failed"]
        lines.append(line)
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def run(options: argparse.Namespace) -> dict[str, Any]:
    """Measure all; the report is written anew after each."""
    clock: Clock = make_clock(options.device)
    known = names() if "all" in options.recurrence else options.recurrence
    bandwidth = copy_bandwidth(clock) if options.device == "cuda" else 1e9
    policy = replace(Policy(), replays=options.rounds, working_set=3 * clock.l2_bytes())
    report: dict[str, Any] = {
        "format": FORMAT,
        "environment": {"command": options.command, **environment(clock)},
        "copy_bandwidth": bandwidth,
        "layer": options.layer,
        "cases": [],
    }
    options.out.mkdir(parents=True, exist_ok=True)
    target = options.out / f"{options.name}.json"
    for row in rows_from(options.rows):
        for name in known:
            shape = LAYERS[options.layer]
            for key_heads in key_heads_for(resolve(name), shape):
                case = measure(name, shape, row, policy, bandwidth, options.dtype, key_heads)
                report["cases"].append(case)
                if "failed" in case or case.get("wrong"):
                    what = case.get("failed", "wrong results")
                    print(f"{name} {row}: {what}", file=sys.stderr)
                keep(report, target)
                gc.collect()
                if options.device == "cuda":
                    torch.cuda.empty_cache()
    return report


def parser() -> argparse.ArgumentParser:
    """The command line."""
    command = argparse.ArgumentParser(
        prog="python -m benchmarks.recurrences", description=(__doc__ or "").split(":")[0]
    )
    add = command.add_argument
    add("--recurrence", nargs="+", default=["all"], help="names, or all (default)")
    add("--rows", nargs="+", default=["1x64x8", "16x64x8"], help="as for benchmarks.run")
    add("--layer", choices=LAYERS, default="qwen3.5-9b", help="layer shape")
    add("--rounds", type=int, default=20, help="timed replays")
    add("--dtype", default="bfloat16", help="inputs and outputs")
    add("--name", default="recurrences", help="name of the result file")
    add("--out", type=Path, default=RESULTS, help="folder of the result file")
    add("--json", action="store_true", help="print the report instead of a table")
    add("--device", choices=("cuda", "cpu"), default="cuda", help="cpu: interpreted, for tests")
    return command


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print; non-zero when a recurrence failed or was wrong."""
    arguments = sys.argv[1:] if arguments is None else arguments
    options = parser().parse_args(arguments)
    options.command = command_line(arguments, "benchmarks.recurrences")
    if options.device == "cuda" and not torch.cuda.is_available():
        print("benchmarks.recurrences: no GPU found", file=sys.stderr)
        return 2
    report = run(options)
    print(json.dumps(report, indent=1) if options.json else markdown(report))
    return 1 if any("failed" in case or case.get("wrong") for case in report["cases"]) else 0


if __name__ == "__main__":
    raise SystemExit(main())
