"""`bolec bench`: the measurements of `benchmarks/`, from a checkout of the source."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

from boleir.errors import BoleirError

SUMMARY = "measure verification against public kernels, side by side, on this GPU"
EXAMPLES = (
    "python -m benchmarks.fetch_peers      # once: the public kernels to compare with",
    "bolec bench",
    "bolec bench --rows 1x64x8 16x64x8 --mode core --peers .peers",
    "bolec bench --kind kda --mode core",
    "bolec bench --recurrence all          # boleir alone, every recurrence of the library",
    "bolec bench --json -- --rounds 50     # anything after -- goes to `python -m benchmarks.run`",
)
PASSED_ON = ("rows", "mode", "kind", "peers", "name", "out")
ALONE = ("rows", "recurrence", "name", "out")
"""What the measurement of recurrences without peers takes of these."""


class NoBenchmarks(BoleirError):
    """The measurements cannot run here; the message says why."""


def configure(parser: argparse.ArgumentParser) -> None:
    """The command's own options: the most used of the runner's."""
    add = parser.add_argument
    add(
        "--rows",
        nargs="+",
        metavar="ROW",
        help="BATCHxNODES[xDEPTH], trees, chains, decode, growth, depth or batch",
    )
    add(
        "--mode",
        nargs="+",
        choices=("core", "full"),
        help="core: from convolved inputs; full: convolution too",
    )
    add("--kind", choices=("gdn", "kda"), help="decay per head (gdn) or per key channel")
    add(
        "--recurrence",
        nargs="+",
        metavar="NAME",
        help="measure these of the library without peers; all: every one",
    )
    add("--peers", metavar="FOLDER", help="folder filled by `python -m benchmarks.fetch_peers`")
    add("--name", help="name of the result file")
    add("--out", metavar="FOLDER", help="folder of the result file")
    add("arguments", nargs="*", metavar="ARGUMENT", help="after --: given to the runner as it is")


def run(args: argparse.Namespace) -> int:
    """Hand over to the runner. Raises `NoBenchmarks`."""
    main = find_runner("recurrences" if args.recurrence else "run")
    from boleir.runtime.present import gpu_is_present

    if not gpu_is_present():
        raise NoBenchmarks("no GPU found: times mean something only on one")
    return main(runner_arguments(args)) or 0


def runner_arguments(args: argparse.Namespace) -> list[str]:
    """What the runner is called with."""
    passed = []
    names = ALONE if args.recurrence else PASSED_ON
    for name in ("mode", "kind", "peers"):
        if args.recurrence and getattr(args, name) is not None:
            raise NoBenchmarks(f"--{name} compares with peers, --recurrence measures without them")
    for name in names:
        value = getattr(args, name)
        if value is not None:
            passed += [f"--{name}", *(value if isinstance(value, list) else [value])]
    return [*passed, *(["--json"] if args.json else []), *args.arguments]


def find_runner(name: str = "run") -> Callable[[list[str]], int | None]:
    """The `main` of a module of `benchmarks`, from the checkout this package is imported from.

    Raises `NoBenchmarks`.
    """
    import boleir

    root = Path(boleir.__file__).resolve().parent.parent
    if not (root / "benchmarks" / "run.py").is_file():
        raise NoBenchmarks(
            "the measurements are not part of the installed package",
            mend="run from a checkout of the source, installed with pip install -e .",
        )
    if str(root) not in sys.path:
        sys.path.insert(0, str(root))
    main: Callable[[list[str]], int | None] = import_module(f"benchmarks.{name}").main
    return main
