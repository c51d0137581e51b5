"""Schedules side by side: `python -m benchmarks.variants gdn@16x64x8:b_k=32,stages=4 ...`

An item is a recurrence, a row (requests x nodes x depth) and fields of a schedule that differ from
the default one for that row; without any it is the default itself. Every item has processes of its
own with a time limit: first its kernels are compiled, all items at once, then it is checked against
the float64 walk with float32 outputs, and only what is right is timed.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

import torch

import boleir
from benchmarks.protocol import environment
from benchmarks.recurrences import shapes_of
from benchmarks.result_file import command_line, keep
from benchmarks.run import RESULTS, make_clock
from benchmarks.serving_shapes import LAYERS, Row
from boleir.codegen.defaults import default_schedule
from boleir.codegen.planner import make_plan
from boleir.codegen.schedule import Schedule
from boleir.derive.derive import derive
from boleir.library import resolve
from boleir.runtime.kernel import Kernel
from boleir.runtime.tuning.entry import Policy
from boleir.runtime.tuning.timing import stage_us

FORMAT = 1
LIMIT = 2e-5
"""Largest relative error of a node's output, and of the committed state unless that is added up
from unknowns in 16 bits."""
SEEDS = (0, 1, 2)


@dataclass(frozen=True, slots=True)
class Item:
    """What is measured: the text it was given as, and what that means."""

    text: str
    recurrence: str
    row: Row
    fields: dict[str, Any]


def item_from(text: str) -> Item:
    """Read `NAME@BxNxD[:field=value,...]`. Raises `ValueError` that names what is wrong."""
    head, _, listed = text.partition(":")
    name, at, row = head.partition("@")
    sizes = row.split("x")
    if not (name and at and len(sizes) == 3 and all(size.isdigit() for size in sizes)):
        raise ValueError(f"{text!r}: expected NAME@REQUESTSxNODESxDEPTH[:field=value,...]")
    known = {f.name: type(getattr(Schedule(), f.name)) for f in fields(Schedule)}
    chosen: dict[str, Any] = {}
    for part in filter(None, listed.split(",")):
        field, _, value = part.partition("=")
        if field not in known:
            raise ValueError(f"{text!r}: a schedule has no field {field!r}")
        try:
            chosen[field] = _value(known[field], value)
        except (KeyError, ValueError):
            raise ValueError(f"{text!r}: {field} cannot be {value!r}") from None
    return Item(text, name, Row(*map(int, sizes)), chosen)


def _value(kind: type, text: str) -> Any:
    return {"True": True, "False": False}[text] if kind is bool else kind(text)


def kernel_of(item: Item, options: argparse.Namespace, out_dtype: str | None = None) -> Kernel:
    """The kernel of an item for the GPU here."""
    recurrence, row = resolve(item.recurrence), item.row
    shapes = shapes_of(recurrence, LAYERS[options.layer], row, "bfloat16", options.key_heads)
    heads = (shapes.key_heads, shapes.value_heads)
    plan = make_plan(derive(recurrence).normal, shapes.d_k, shapes.d_v, *heads)
    return boleir.compile(
        recurrence,
        key_heads=shapes.key_heads,
        value_heads=shapes.value_heads,
        d_k=shapes.d_k,
        d_v=shapes.d_v,
        max_nodes=row.nodes,
        max_depth=row.depth,
        batch=row.batch,
        out_dtype=out_dtype,
        schedule=replace(default_schedule(plan, shapes, row.batch), **item.fields),
    )


def measure(item: Item, options: argparse.Namespace) -> dict[str, Any]:
    """Errors of an item and, where they are small, its times in microseconds per layer."""
    from boleir.runtime.spot_check import errors_of, state_limit

    exact = kernel_of(item, options, "float32")
    errors = [errors_of(exact, resolve(item.recurrence), seed) for seed in SEEDS]
    found: dict[str, Any] = {"errors": {"verify": max(e[0] for e in errors)}}
    found["errors"]["commit"] = max(e[1] for e in errors)
    allowed = state_limit(exact.interface, LIMIT)
    found["wrong"] = not (
        found["errors"]["verify"] <= LIMIT and found["errors"]["commit"] <= allowed
    )
    if not found["wrong"]:
        found["us"] = stages_of(kernel_of(item, options), item, options)
    return found


def stages_of(kernel: Kernel, item: Item, options: argparse.Namespace) -> dict[str, float]:
    """Microseconds per layer of a kernel's stages on the row of `item`."""
    working_set = 3 * make_clock("cuda").l2_bytes()
    policy = replace(Policy(), replays=options.rounds, working_set=working_set)
    return stage_us(kernel, item.row.batch, policy)


def in_child(item: Item, options: argparse.Namespace, step: str) -> dict[str, Any]:
    """`step` (compile or measure) of an item in a process of its own."""
    own = [sys.executable, "-m", "benchmarks.variants", item.text, "--step", step]
    own += ["--layer", options.layer, "--rounds", str(options.rounds)]
    own += ["--key-heads", str(options.key_heads)]
    return answer_of(own, options.seconds)


def answer_of(
    command: Sequence[str], seconds: float, environ: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """What a process prints last, as JSON, or why it has `failed`; `environ`: not that of this
    one."""
    try:
        child = subprocess.run(
            command, capture_output=True, text=True, timeout=seconds, check=False, env=environ
        )
    except subprocess.TimeoutExpired:
        return {"failed": f"not done after {seconds:.0f} s"}
    if child.returncode:
        lines = child.stderr.strip().splitlines() or [f"exit status {child.returncode}"]
        return {"failed": lines[-1][:500]}
    answer: dict[str, Any] = json.loads(child.stdout.splitlines()[-1])
    return answer


def step_of_child(item: Item, options: argparse.Namespace) -> dict[str, Any]:
    """What a child does."""
    if options.step == "measure":
        return measure(item, options)
    for out_dtype in (None, "float32"):
        kernel_of(item, options, out_dtype)
    return {}


def run(items: Sequence[Item], options: argparse.Namespace) -> dict[str, Any]:
    """Compile all side by side, then measure one after the other; the report is written anew after
    each."""
    report: dict[str, Any] = {
        "format": FORMAT,
        "environment": {"command": options.command, **environment(make_clock("cuda"))},
        "layer": options.layer,
        "items": [],
    }
    with ThreadPoolExecutor(max(1, (os.cpu_count() or 2) // 2)) as pool:
        compiled = list(pool.map(lambda item: in_child(item, options, "compile"), items))
    for item, before in zip(items, compiled, strict=True):
        found = before if "failed" in before else in_child(item, options, "measure")
        report["items"].append({**asdict(item), "row": str(item.row), **found})
        print(line(report["items"][-1]), flush=True)
        keep(report, options.out / f"{options.name}.json")
    return report


def line(found: dict[str, Any]) -> str:
    """An item in one line."""
    if "failed" in found:
        return f"{found['text']}: failed: {found['failed']}"
    errors = "errors {verify:.1e} {commit:.1e}".format(**found["errors"])
    if found["wrong"]:
        return f"{found['text']}: WRONG, {errors}"
    us = "verify {verify:.2f}, commit {commit:.2f}, whole {whole:.2f} us".format(**found["us"])
    return f"{found['text']}: {us}, {errors}"


def parser() -> argparse.ArgumentParser:
    """The command line."""
    command = argparse.ArgumentParser(
        prog="python -m benchmarks.variants", description=(__doc__ or "").split(":")[0]
    )
    add = command.add_argument
    add("items", nargs="+", help="NAME@REQUESTSxNODESxDEPTH[:field=value,...]")
    add("--layer", choices=LAYERS, default="qwen3.5-9b", help="layer shape")
    add("--key-heads", type=int, default=0, help="instead of those that benchmarks.recurrences has")
    add("--rounds", type=int, default=15, help="timed replays")
    add("--seconds", type=float, default=90.0, help="limit of each process")
    add("--name", default="variants", help="name of the result file")
    add("--out", type=Path, default=RESULTS, help="folder of the result file")
    add("--step", choices=("compile", "measure"), help=argparse.SUPPRESS)
    return command


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print; non-zero when an item failed or was wrong."""
    arguments = sys.argv[1:] if arguments is None else arguments
    options = parser().parse_args(arguments)
    try:
        items = [item_from(text) for text in options.items]
    except ValueError as error:
        print(f"benchmarks.variants: {error}", file=sys.stderr)
        return 2
    if options.step:
        print(json.dumps(step_of_child(items[0], options)))
        return 0
    if not torch.cuda.is_available():
        print("benchmarks.variants: no GPU found", file=sys.stderr)
        return 2
    options.command = command_line(arguments, "benchmarks.variants")
    report = run(items, options)
    return 1 if any("failed" in found or found["wrong"] for found in report["items"]) else 0


if __name__ == "__main__":
    raise SystemExit(main())
