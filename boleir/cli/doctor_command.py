"""`bolec doctor`: is this machine fit to compile and run kernels?"""

from __future__ import annotations

import argparse

from boleir.cli.output import Progress, print_json, table

SUMMARY = "report GPU, driver, tools and caches, and try dots with known answers"
EXAMPLES = (
    "bolec doctor",
    "bolec doctor --json",
    "bolec doctor --timeout 30",
)


def configure(parser: argparse.ArgumentParser) -> None:
    """The command's own options."""
    parser.add_argument(
        "--timeout", type=float, default=120.0, help="seconds one step may take (default: 120)"
    )


def run(args: argparse.Namespace) -> int:
    """Print every finding; fail when one of them failed."""
    from boleir.runtime.doctor import examine
    from boleir.runtime.findings import Status

    with Progress(quiet=args.quiet) as progress:
        findings = list(examine(timeout=args.timeout, announce=progress))
    failed = any(finding.status is Status.FAILED for finding in findings)
    if args.json:
        print_json({"healthy": not failed, "findings": [one.to_json() for one in findings]})
    else:
        rows = [(one.subject, one.status.value, one.text) for one in findings]
        print(table(("subject", "status", "finding"), rows))
    return int(failed)
