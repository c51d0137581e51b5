"""The entry point of `bolec`: find the command, run it, turn a failure into one line and a status.

Status 0: done. 1: the command failed, and says why in one line. 2: wrong usage. 130: interrupted.
"""

from __future__ import annotations

import argparse
import io
import os
import sys
import traceback
from collections.abc import Sequence
from importlib import import_module
from types import ModuleType
from typing import Any

from boleir.cli.output import print_json
from boleir.errors import BoleirError

COMMANDS = ("compile", "explain", "check", "doctor", "bench", "autotune", "cache")
"""Each is a module `boleir.cli.NAME_command` with `SUMMARY`, `EXAMPLES`, `configure` and `run`."""

FLAGS = ("--json", "--quiet", "--debug")
"""Options of every command; they take no value and may stand anywhere."""

FAILED = 1
INTERRUPTED = 130


def command_module(name: str) -> ModuleType:
    """The module of a command."""
    return import_module(f"boleir.cli.{name}_command")


def build_parser() -> argparse.ArgumentParser:
    """The parser with every command."""
    parser = argparse.ArgumentParser(
        prog="bolec",
        description="From a recurrence to its closed form over proposal trees and to GPU kernels.",
        epilog="A RECURRENCE is a shipped one (gdn), a .bole file (FILE or FILE:NAME) or a Python\n"
        "function (MODULE:FUNCTION). `bolec COMMAND --help` shows examples.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"bolec {_version()}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name in COMMANDS:
        module = command_module(name)
        sub = commands.add_parser(
            name,
            help=module.SUMMARY,
            description=module.SUMMARY[0].upper() + module.SUMMARY[1:] + ".",
            epilog="examples:\n" + "".join(f"  {line}\n" for line in module.EXAMPLES),
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        module.configure(sub)
        sub.add_argument("--json", action="store_true", help="print one JSON value")
        sub.add_argument("--quiet", action="store_true", help="show no progress")
        sub.add_argument("--debug", action="store_true", help="show the traceback of a failure")
        sub.set_defaults(run=module.run)
    return parser


def _version() -> str:
    from importlib import metadata

    try:
        return metadata.version("boleir")
    except metadata.PackageNotFoundError:
        return "(not installed)"


def main(argv: Sequence[str] | None = None) -> int:
    """Run `bolec` with `argv` (default: the process's own arguments) and return its status."""
    _prepare_streams()
    words = flags_last(join_parents(sys.argv[1:] if argv is None else argv))
    args = build_parser().parse_args(words)
    try:
        return _run(args)
    except BrokenPipeError:
        # The reader of our output left; keep the interpreter from complaining about it at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILED


def _prepare_streams() -> None:
    """Let nothing that is printed fail: not a closed stream, not a letter it has no code for."""
    if sys.stdout is None:
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 - open to the end
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _run(args: argparse.Namespace) -> int:
    """Run the command; every failure but a broken pipe is reported here."""
    try:
        status: int | None = args.run(args)
        sys.stdout.flush()
        return status or 0
    except KeyboardInterrupt:
        print("bolec: interrupted", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:
        raise
    except Exception as error:
        return _report(error, args)


def join_parents(argv: Sequence[str]) -> list[str]:
    """Write `--tree -1,0,0` as `--tree=-1,0,0`: argparse takes a value that begins with a minus
    for an option."""
    joined: list[str] = []
    for argument in argv:
        if joined and joined[-1] == "--tree" and argument.startswith("-1"):
            joined[-1] = f"--tree={argument}"
        else:
            joined.append(argument)
    return joined


def flags_last(argv: Sequence[str]) -> list[str]:
    """Write options without a value after everything else, up to `--`: argparse lets an argument
    that may be missing be missing where an option comes before it, and takes what follows for
    something that it does not know."""
    own = [getattr(command_module(word), "FLAGS", ()) for word in argv if word in COMMANDS][:1]
    flags = {*FLAGS, *(own[0] if own else ())}
    end = argv.index("--") if "--" in argv else len(argv)
    moved = [word for word in argv[:end] if word in flags]
    return [*(word for word in argv[:end] if word not in flags), *moved, *argv[end:]]


def _as_json(error: Exception, text: str) -> dict[str, Any]:
    """What went wrong, and where and what helps if that is known (else null)."""
    span, mend = getattr(error, "span", None), getattr(error, "mend", None)
    return {
        "type": type(error).__name__,
        "message": error.message if isinstance(error, BoleirError) else text,
        "file": span and span.source.name,
        "line": span and span.line,
        "column": span and span.column,
        "mend": mend,
    }


def _report(error: Exception, args: argparse.Namespace) -> int:
    """Say what went wrong: in one line (a spec error adds its caret), or as JSON."""
    if args.debug:
        traceback.print_exc()
    known = isinstance(error, (BoleirError, OSError))
    text = str(error) if known else f"internal error: {type(error).__name__}: {error}"
    if args.json:
        print_json({"error": _as_json(error, text)})
        sys.stdout.flush()
    print(f"bolec {args.command}: {text}", file=sys.stderr)
    if not known and not args.debug:
        print("  run again with --debug for the traceback", file=sys.stderr)
    return FAILED
