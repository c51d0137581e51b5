"""Result files: how they are written, and the command in them that repeats the run."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any


def keep(report: Mapping[str, Any], path: Path) -> None:
    """Write a report; its folder is made."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(report, indent=1) + "\n")


def command_line(arguments: Sequence[str], module: str = "benchmarks.run") -> str:
    """The command that repeats a run, without the folders of the machine it ran on."""
    kept, skip = [f"python -m {module}"], False
    for argument in arguments:
        named = argument.split("=")[0] in ("--out", "--peers")
        if not (skip or named):
            kept.append(argument)
        skip = named and "=" not in argument
    return " ".join(kept)
