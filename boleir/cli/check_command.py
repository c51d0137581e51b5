"""`bolec check`: is the closed form the recurrence? In exact arithmetic, in float64, on the GPU.

Kernels are checked where they can run: on the GPU present, or interpreted with TRITON_INTERPRET=1.
"""

from __future__ import annotations

import argparse
from dataclasses import replace

from boleir.cli.arguments import add_recurrence, find_recurrence, positive
from boleir.cli.output import Progress, print_json

SUMMARY = "prove the closed form against the sequential recurrence"
EXAMPLES = (
    "bolec check gdn",
    "bolec check gdn --trees 200 --seed 7",
    "bolec check my.bole --json",
)


def configure(parser: argparse.ArgumentParser) -> None:
    """The command's own options."""
    add_recurrence(parser)
    parser.add_argument(
        "--trees", type=positive, default=25, help="random trees for the exact proof (25)"
    )
    parser.add_argument("--seed", type=int, default=0, help="seed of trees and inputs (0)")


def run(args: argparse.Namespace) -> int:
    """Check and say what was run and how far off it was; fail when something disagrees."""
    recurrence = find_recurrence(args.recurrence)
    from boleir.check.check import check
    from boleir.runtime.check_kernel import kernels_here

    with Progress(quiet=args.quiet) as progress:
        progress("compiling the kernels")
        here = kernels_here(recurrence)
        result = check(
            recurrence,
            trees=args.trees,
            seed=args.seed,
            kernels=here.kernels,
            kernel_shape=here.shape,
            kernel_nodes=here.nodes,
            progress=progress,
        )
    if here.reason:
        result = replace(result, notes=(*result.notes, f"no kernels were run: {here.reason}"))
    if args.json:
        print_json(result.to_json())
    else:
        print(result)
    return 0 if result.passed else 1
