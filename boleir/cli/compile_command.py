"""`bolec compile`: kernels for one recurrence and shape, for GPUs that need not be present."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from boleir.cli.arguments import (
    add_recurrence,
    dims,
    find_recurrence,
    find_tree,
    heads,
    natural,
    positive,
)
from boleir.cli.output import Progress, print_json, table
from boleir.errors import ScheduleError

if TYPE_CHECKING:
    from boleir.codegen.artifact import Artifact
    from boleir.codegen.request import Shapes
    from boleir.ir import Recurrence

SUMMARY = "compile a recurrence into verification and commit kernels"
EXAMPLES = (
    "bolec compile gdn --heads 16:32 --dims 128x128 --nodes 64 --depth 8 --target sm_90",
    "bolec compile gdn --target sm_80,sm_90,sm_120 --out kernels/gdn --json",
    "bolec compile gdn --tree 'beam(width=4, depth=5)' --target sm_90",
    "bolec compile my.bole --dtype float16 --print-after schedule",
    "bolec compile my_package.rules:decayed --dims 64x96",
)
DTYPES = ("bfloat16", "float16", "float32")
NODES, DEPTH = 64, 8
"""Bounds of the trees where nothing is asked for; the depth less where there are fewer nodes."""


def configure(parser: argparse.ArgumentParser) -> None:
    """The command's own options."""
    add_recurrence(parser)
    add = parser.add_argument
    add("--heads", type=heads, default=(16, 32), metavar="H:HV", help="key and value heads (16:32)")
    add("--dims", type=dims, default=(128, 128), metavar="KxV", help="d_k and d_v (128x128)")
    add("--nodes", type=positive, help=f"most nodes of one request's tree ({NODES})")
    add("--depth", type=natural, help=f"largest depth, in edges below a root ({DEPTH})")
    add(
        "--batch",
        type=positive,
        default=1,
        help="about how many requests at once; chooses the schedule (1)",
    )
    add(
        "--tree",
        help="a tree instead of --nodes and --depth: -1,0,0,1, beam(width=4, depth=5) or a name "
        "of the file",
    )
    add("--dtype", choices=DTYPES, default="bfloat16", help="token inputs and outputs (bfloat16)")
    add("--state-dtype", choices=DTYPES, default="float32", help="states (float32)")
    add("--target", default="sm_90", help="GPU architectures, separated by commas (sm_90)")
    add(
        "--set",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="a choice of the schedule: solver=horner (--print-after schedule shows all)",
    )
    add("--out", type=Path, help="folder to write (default: compiled/NAME)")
    add("--assembly", action="store_true", help="write the assembly listings too")
    add(
        "--jobs",
        type=positive,
        default=len(os.sched_getaffinity(0)),
        help="compilers at once (all cores)",
    )
    add(
        "--print-after",
        action="append",
        default=[],
        metavar="STEP",
        help="print the result of a step of the lowering: recurrence, closed-form, plan, schedule, "
        "kernels or module; 'all' for every step",
    )


def run(args: argparse.Namespace) -> None:
    """Compile, write the folder, say what is in it."""
    recurrence = find_recurrence(args.recurrence)
    from boleir.codegen.artifact_folder import check_replaceable, write
    from boleir.codegen.build import build
    from boleir.codegen.request import Request
    from boleir.codegen.targets import targets

    wanted = tuple(found.name for found in targets(args.target))
    request = Request(recurrence, shapes(args), wanted, args.batch)
    chosen = choices(args.set)
    printed = steps(args.print_after)
    folder = args.out or Path("compiled") / recurrence.name
    check_replaceable(folder)
    with Progress(quiet=args.quiet) as progress:

        def show(step: str, text: str) -> None:
            if step in printed:
                progress.clear()
                print(f"# after {step}\n{text}\n", file=sys.stderr if args.json else sys.stdout)

        artifact = build(
            request,
            choices=chosen,
            progress=progress,
            show=show,
            workers=args.jobs,
            assembly=args.assembly,
        )
    write(artifact, folder)
    tried = try_out(folder, recurrence)
    if args.json:
        print_json({"folder": str(folder), **summary(artifact), "run": tried})
    else:
        print(report(artifact, folder))
        print(f"  {tried}")


def try_out(folder: Path, recurrence: Recurrence) -> str:
    """Run what was compiled if a GPU is at hand. Raises `CheckError` for wrong results."""
    from boleir.runtime.spot_check import spot_check

    return spot_check(folder, recurrence).line


def shapes(args: argparse.Namespace) -> Shapes:
    """The sizes asked for; a tree given brings its own bounds. Raises `RequestError`."""
    from boleir.codegen.request import RequestError, Shapes

    tree = None if args.tree is None else find_tree(args.tree, args.recurrence)
    if tree is not None and (args.nodes is not None or args.depth is not None):
        raise RequestError(
            "--nodes and --depth come from the tree when one is given",
            mend="leave them out, or --tree 'dynamic(nodes=64, depth=8)' alone",
        )
    nodes = NODES if args.nodes is None else args.nodes
    depth = min(DEPTH, nodes - 1) if args.depth is None else args.depth
    return Shapes(
        key_heads=args.heads[0],
        value_heads=args.heads[1],
        d_k=args.dims[0],
        d_v=args.dims[1],
        max_nodes=tree.max_nodes if tree else nodes,
        max_depth=tree.max_depth if tree else depth,
        dtype=args.dtype,
        state_dtype=args.state_dtype,
        parents=getattr(tree, "parents", None),
    )


def steps(names: list[str]) -> set[str]:
    """The steps whose results are to be printed. Raises `ScheduleError` for one that is none."""
    from boleir.codegen.pipeline import STEPS

    unknown = [name for name in names if name not in (*STEPS, "all")]
    if unknown:
        raise ScheduleError(
            f"--print-after {unknown[0]}: no such step", mend=f"one of {', '.join(STEPS)}, all"
        )
    return set(STEPS) if "all" in names else set(names)


def choices(pairs: list[str]) -> dict[str, Any]:
    """`KEY=VALUE` pairs as fields of a `Schedule`. Raises `ScheduleError`."""
    from boleir.codegen.schedule import Schedule

    known = Schedule().to_json()
    chosen: dict[str, Any] = {}
    for pair in pairs:
        key, separator, value = pair.partition("=")
        if not separator:
            raise ScheduleError(f"--set {pair}: not like KEY=VALUE", mend="--set warps=8")
        if key not in known:
            raise ScheduleError(f"--set {pair}: no such choice", mend=f"one of {', '.join(known)}")
        chosen[key] = _like(known[key], pair, value)
    return chosen


def _like(example: object, pair: str, value: str) -> object:
    """`value` as the type of `example`."""
    if isinstance(example, bool):
        if value not in ("true", "false"):
            raise ScheduleError(f"--set {pair}: expected true or false, got {value!r}")
        return value == "true"
    if isinstance(example, int):
        if not value.isdecimal():
            raise ScheduleError(f"--set {pair}: expected a number, got {value!r}")
        return int(value)
    return value


def summary(artifact: Artifact) -> dict[str, Any]:
    """What was compiled, as plain values."""
    return {
        "recurrence": artifact.name,
        "shapes": dict(artifact.shapes),
        "dtypes": dict(artifact.dtypes),
        "toolchain": dict(artifact.toolchain),
        "variants": [
            {
                "target": variant.target,
                "schedule": dict(variant.schedule),
                "kernels": {name: dict(facts) for name, facts in variant.report.items()},
            }
            for variant in artifact.variants
        ],
        "files": sorted(artifact.files),
    }


def report(artifact: Artifact, folder: Path) -> str:
    """One row for each kernel and target, and where everything is."""
    rows = [
        (
            variant.target,
            kernel,
            facts["registers"],
            facts["spills"],
            facts["shared"],
            facts["num_warps"],
            facts["size"],
            facts["seconds"],
        )
        for variant in artifact.variants
        for kernel, facts in variant.report.items()
    ]
    header = ("target", "kernel", "registers", "spills", "shared", "warps", "bytes", "seconds")
    sources = sorted({variant.source for variant in artifact.variants})
    return "\n".join(
        (
            f"{artifact.name}: {len(rows)} kernels",
            "",
            table(header, rows),
            "",
            f"written to {folder}",
            f"  read the kernels: {', '.join(str(folder / source) for source in sources)}",
            f"  what was compiled and how it is launched: {folder / 'manifest.json'}",
        )
    )
