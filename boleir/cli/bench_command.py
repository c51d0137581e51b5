"""`bolec bench`: the measurements of `benchmarks/`, from a checkout of the source."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

from boleir.errors import BoleirError

SUMMARY = "measure verification against public kernels, side by side, on this GPU"
EXAMPLES = (
    "bolec bench",
    "bolec bench -- --help",
    "bolec bench -- --peers .peers",
)


class NoBenchmarks(BoleirError):
    """The measurements are not part of the installed package and no checkout was found."""


def configure(parser: argparse.ArgumentParser) -> None:
    """The command's own options."""
    parser.add_argument(
        "arguments",
        nargs="*",
        metavar="ARGUMENT",
        help="given to `python -m benchmarks.run`; put -- before the first",
    )


def run(args: argparse.Namespace) -> int:
    """Hand over to the runner."""
    arguments = [*args.arguments, *(["--json"] if args.json else [])]
    return find_runner()(arguments) or 0


def find_runner() -> Callable[[list[str]], int | None]:
    """The `main` of `benchmarks.run`, from the checkout this package is imported from.

    Raises `NoBenchmarks`.
    """
    import sys

    import boleir

    root = Path(boleir.__file__).resolve().parent.parent
    if not (root / "benchmarks" / "run.py").is_file():
        raise NoBenchmarks(
            "the measurements are not part of the installed package",
            mend="run from a checkout of the source, installed with pip install -e .",
        )
    if str(root) not in sys.path:
        sys.path.insert(0, str(root))
    main: Callable[[list[str]], int | None] = import_module("benchmarks.run").main
    return main
