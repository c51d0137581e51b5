"""Where the time of a joined kernel goes: `python -m benchmarks.stages`

Stages are removed from the emitted text one after the other, the last ones of the chain first, and
what is left is timed: results are wrong then, the time that is missing is what a stage costs where
it stands, next to all others. For the joined schedule of recurrences with one pair.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from benchmarks.protocol import environment
from benchmarks.result_file import command_line, keep
from benchmarks.run import RESULTS, make_clock
from benchmarks.serving_shapes import LAYERS
from benchmarks.variants import Item, answer_of, item_from, kernel_of, stages_of
from boleir.codegen import pipeline
from boleir.runtime.kernel import Kernel

FORMAT = 1


@dataclass(frozen=True, slots=True)
class Removal:
    """A stage, and what stands for it in the emitted text when it is gone."""

    name: str
    edits: tuple[tuple[str, str], ...]
    """Patterns and what takes their place, in order."""

    def apply(self, text: str) -> str:
        """The text without the stage. Raises `ValueError` where it has none."""
        for pattern, instead in self.edits:
            text, count = re.subn(pattern, instead, text, flags=re.MULTILINE | re.DOTALL)
            if not count:
                raise ValueError(f"nothing to remove for {self.name!r}: {pattern}")
        return text


def _line(start: str) -> str:
    """A pattern of one statement, continuation lines included."""
    return rf"^    {start}[^\n]*\n(?:        [^\n]*\n)*"


REMOVALS = (
    Removal(
        "correction of the inverse",
        (
            (_line(r"inverse_residual = tl\.dot\("), ""),
            (
                _line(r"inverse_correction = tl\.dot\("),
                "    inverse_correction = inverse_residual\n",
            ),
            (_line(r"fold = tl\.dot\(fold_"), ""),
        ),
    ),
    Removal("sweeps of the inverse", ((_line(r"inverse_rough = tl\.dot\("), ""),)),
    Removal(
        "Gram matrices, decays, folding",
        (
            (
                r"^    # G \(with a minus sign\) and C\n.*?(?=^    # all threads have stored: let)",
                "",
            ),
        ),
    ),
    Removal(
        "rest of the systems: loads and row scalars",
        (
            (
                r"(^def one_system.*?^    inside = node < count\n).*?"
                r"(?=^    # all threads have stored: let)",
                r"\1\n",
            ),
        ),
    ),
    Removal(
        "waiting for systems",
        ((r"^    while tl\.atomic_add\(signals_head[^\n]*\n        pass\n", ""),),
    ),
    Removal("F times right sides", ((_line(r"out_tile = tl\.dot\("), ""),)),
    Removal(
        "state: loads and products",
        (
            (
                _line(r"(state_dot_\w+) = tl\.dot\("),
                "    \\1 = tl.zeros([NODE_BLOCK, B_V], tl.float32)\n",
            ),
        ),
    ),
)
"""The end of the chain first: what is left is always a kernel."""


def removed(text: str, count: int) -> str:
    """The emitted text without the first `count` stages of `REMOVALS`."""
    for removal in REMOVALS[:count]:
        text = removal.apply(text)
    return text


def kernel_without(item: Item, count: int, options: argparse.Namespace) -> Kernel:
    """The kernel of an item without the first `count` stages."""
    original = pipeline.module_text

    def shortened(*arguments: Any) -> str:
        return removed(original(*arguments), count)

    pipeline.module_text = shortened
    return kernel_of(item, options)


def step_of_child(item: Item, options: argparse.Namespace) -> dict[str, float]:
    """What a child does: compile, or measure the microseconds of verification per layer."""
    kernel = kernel_without(item, options.count, options)
    if options.step == "compile":
        return {}
    return {"us": stages_of(kernel, item, options)["verify"]}


def in_child(item: Item, count: int, options: argparse.Namespace, step: str) -> dict[str, Any]:
    """A step in a process of its own, and with a cache of its own: shortened kernels go into no
    other's."""
    own = [sys.executable, "-m", "benchmarks.stages", item.text, "--count", str(count)]
    own += ["--layer", options.layer, "--rounds", str(options.rounds), "--step", step]
    cache = options.cache / f"{item.text}-{count}".replace(":", "_")
    place = {**os.environ, "BOLEIR_CACHE": str(cache), "BOLEIR_TUNING": "off"}
    return answer_of(own, options.seconds, place)


def run(items: Sequence[Item], options: argparse.Namespace) -> dict[str, Any]:
    """Compile all side by side, then measure one after the other."""
    report: dict[str, Any] = {
        "format": FORMAT,
        "environment": {"command": options.command, **environment(make_clock("cuda"))},
        "layer": options.layer,
        "items": [{"text": item.text, "row": str(item.row), "left": []} for item in items],
    }
    counts = range(len(REMOVALS) + 1)
    jobs = [(number, count) for number in range(len(items)) for count in counts]
    with ThreadPoolExecutor(max(1, (os.cpu_count() or 2) // 2)) as pool:
        list(pool.map(lambda job: in_child(items[job[0]], job[1], options, "compile"), jobs))
    for number, count in jobs:
        name = REMOVALS[count - 1].name if count else ""
        found = {"without": name, **in_child(items[number], count, options, "measure")}
        report["items"][number]["left"].append(found)
        print(f"{items[number].text}: {found}", flush=True)
        keep(report, options.out / f"{options.name}.json")
    return report


def markdown(report: dict[str, Any]) -> str:
    """A column for each item: what is left, and what the stage took."""
    items = report["items"]
    lines = [["removed, one after the other", *(item["text"] for item in items)]]
    lines.append(["---"] * len(lines[0]))
    for at, stage in enumerate(items[0]["left"] if items else ()):
        cells = [f"{i['left'][at]['us']:.1f}" if "us" in i["left"][at] else "" for i in items]
        lines.append([stage["without"] or "nothing", *cells])
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def parser() -> argparse.ArgumentParser:
    """The command line."""
    command = argparse.ArgumentParser(
        prog="python -m benchmarks.stages", description=(__doc__ or "").split(":")[0]
    )
    add = command.add_argument
    default = ["gated_delta_rule@1x64x8", "gated_delta_rule@16x64x8"]
    add("items", nargs="*", default=default, help="as for benchmarks.variants")
    add("--layer", choices=LAYERS, default="qwen3.5-9b", help="layer shape")
    add("--key-heads", type=int, default=0, help=argparse.SUPPRESS)
    add("--rounds", type=int, default=15, help="timed replays")
    add("--seconds", type=float, default=60.0, help="limit of each process")
    add("--name", default="stages", help="name of the result file")
    add("--out", type=Path, default=RESULTS, help="folder of the result file")
    add("--count", type=int, help=argparse.SUPPRESS)
    add("--step", choices=("compile", "measure"), help=argparse.SUPPRESS)
    return command


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print; non-zero when a measurement failed."""
    arguments = sys.argv[1:] if arguments is None else arguments
    options = parser().parse_args(arguments)
    try:
        items = [item_from(text) for text in options.items]
    except ValueError as error:
        print(f"benchmarks.stages: {error}", file=sys.stderr)
        return 2
    if not torch.cuda.is_available():
        print("benchmarks.stages: no GPU found", file=sys.stderr)
        return 2
    if options.step:
        print(json.dumps(step_of_child(items[0], options)))
        return 0
    options.command = command_line(arguments, "benchmarks.stages")
    with tempfile.TemporaryDirectory() as cache:
        options.cache = Path(cache)
        report = run(items, options)
    print(markdown(report))
    return 1 if any("failed" in x for item in report["items"] for x in item["left"]) else 0


if __name__ == "__main__":
    raise SystemExit(main())
