"""Everything that needs a GPU, in one command with a time limit: `python -m benchmarks.session`.

Tests, measurements and tuning run one after the other, each in a process of its own with a limit
and a log, the most important first. After each part the output folder holds the state of things:

    summary.json   what ran, how it ended, how long it took
    results.json   the measurements' reports by name
    tunings.json   the tuned schedules (`bolec cache import` reads it)
    logs.txt       what the parts printed, long logs shortened

Another call with the same folder (or `--resume FOLDER`) goes on with what was not done. `--unpack`
puts the reports of a folder among the committed results.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.reading import RESULTS
from benchmarks.result_file import keep

ROOT = Path(__file__).resolve().parent.parent
LOG_BYTES = 300_000
"""Of one part's log; the middle of a longer one is left out."""
RESERVE = 8.0
"""Seconds at the end for writing and packing."""
TAIL_LINES = 12


@dataclass(frozen=True, slots=True)
class Part:
    """One process. `{work}` in its command stands for a folder for files."""

    name: str
    command: tuple[str, ...]
    seconds: float
    """Its limit."""
    least: float = 20.0
    """With less time than this left it is not begun."""
    always: bool = False
    """Prepares the machine for measurements: done again in every session with one."""


def bench(name: str, *arguments: str, seconds: float, module: str = "run") -> Part:
    """A measurement whose report is called `name`."""
    own = (sys.executable, "-m", f"benchmarks.{module}", "--name", name, "--out", "{work}/results")
    return Part(name, (*own, *arguments), seconds)


def tune(recurrence: str, nodes: int, depth: int, batch: int, effort: str) -> Part:
    """The tuning of one key, exported as far as it came."""
    command = (
        sys.executable, "-m", "boleir", "autotune", recurrence, "--nodes", str(nodes),
        "--depth", str(depth), "--batch", str(batch), "--effort", effort, "--json",
    )  # fmt: skip
    return Part(f"autotune-{recurrence}-{batch}x{nodes}x{depth}", command, 90.0, least=25.0)


def gpu_tests(folder: Path = ROOT / "tests") -> list[Part]:
    """The test files that need a GPU, each a part, so that a hang costs one of them. Kernels whose
    programs wait for each other could hang: they are a part of their own."""
    files = sorted(p for p in folder.rglob("test_*.py") if "mark.gpu" in p.read_text())
    pytest = (sys.executable, "-m", "pytest", "-q", "-m", "gpu", "-p", "no:cacheprovider")
    parts = []
    for path in files:
        name, file = f"tests-{path.stem}", str(path.relative_to(folder.parent))
        if "joined" not in path.read_text():
            parts.append(Part(name, (*pytest, file), 150.0))
            continue
        many = (*pytest, *_workers(), "-k")
        parts += [
            Part(name, (*many, "not joined", file), 240.0),
            Part(f"{name}-joined", (*many, "joined", file), 120.0),
        ]
    return parts


def _workers() -> tuple[str, ...]:
    """For many kernels, which compile side by side where pytest-xdist is installed."""
    if importlib.util.find_spec("xdist") is None:
        return ()
    return ("-n", str(max(1, min(12, (os.cpu_count() or 1) // 2))))


SUMS = "path_sum=dot,factor_warps=4,orientation=nodes,b_k=64"
ALONE = "walk_nodes=0,prepare=launch,gates=inline"
SPLIT = "fusion=split,lead=0"
TURNS = "fusion=joined,lead=256"
CONTENDERS = tuple(
    f"{name}@{row}{fields and ':' + fields}"
    for name, row, choices in (
        ("gated_delta_rule", "1x16x5", ("", "b_v=32,warps=2", f"{SPLIT},b_v=16,warps=1")),
        ("gated_delta_rule", "1x64x8", ("", "b_k=128", f"{SPLIT},b_k=128", "b_k=32,stages=4")),
        ("gated_delta_rule", "16x16x5", ("", "fusion=joined,lead=512", "b_v=16,warps=1")),
        ("gated_delta_rule", "16x32x8", ("", "gates=inline", f"{TURNS},gates=inline")),
        (
            "gated_delta_rule",
            "16x64x8",
            (
                "",
                "lead=0",
                "lead=256",
                "lead=384",
                "gates=prepare",
                "b_v=128,registers=0",
                f"{SPLIT},gates=prepare",
                f"{SPLIT},gates=prepare,order=heads",
                f"{SPLIT},gates=prepare,pdl=False",
                f"{SPLIT},gates=prepare,b_k=32,stages=4",
                f"{SPLIT},gates=prepare,factor_heads=2",
                f"{SPLIT},gates=inline,factor_heads=2",
            ),
        ),
        ("gdn", "16x16x5", ("", "commit=factors", "commit=factors16")),
        ("gdn", "1x64x8", ("", f"{SPLIT},b_k=128")),
        ("gdn", "16x64x8", ("", SPLIT)),
        ("kda", "1x64x8", ("", ALONE, f"{ALONE},{SUMS}")),
        (
            "kda",
            "16x64x8",
            ("", "registers=128", "path_sum=select,factor_stages=1,factor_warps=8,b_k=32"),
        ),
        ("gla", "16x64x8", ("", "path_sum=select,factor_stages=1,factor_warps=8,b_k=32")),
        ("gated_delta_product", "16x64x8", ("", "b_k=32,stages=4")),
    )
    for fields in choices
)
"""Default schedules and those that may be better."""


def all_parts(effort: str = "default") -> list[Part]:
    """In the order of importance."""
    prewarm = (sys.executable, "-m", "benchmarks.prewarm")
    ours = ("--subjects", "boleir")
    both = ("--subjects", "boleir", "sglang")
    readme = (
        sys.executable, "-m", "boleir", "compile", "gdn", "--heads", "16:32", "--dims", "128x128",
        "--nodes", "64", "--depth", "8", "--target", "sm_80,sm_90", "--out", "{work}/compiled",
    )  # fmt: skip
    core = ("--mode", "core", "--rounds", "15")
    return [
        Part("prewarm", prewarm, 150.0, always=True),
        *gpu_tests(),
        Part("readme", readme, 60.0),
        bench("variants", *CONTENDERS, "--seconds", "40", seconds=300.0, module="variants"),
        bench("trees", "--rows", "trees", "--rounds", "20", *both, seconds=180.0),
        bench("chains", "--rows", "chains", *core, seconds=90.0),
        bench("decode", "--rows", "decode", "1x16x7", "16x16x7", *core, seconds=60.0),
        bench("kda", "--kind", "kda", "--rows", "trees", *core, *both, seconds=90.0),
        bench("recurrences", "--rounds", "15", seconds=120.0, module="recurrences"),
        bench("growth", "--rows", "growth", *core, *ours, seconds=150.0),
        bench("depth", "--rows", "depth", *core, *ours, seconds=90.0),
        bench("batch", "--rows", "batch", *core, *both, seconds=90.0),
        *(
            tune(recurrence, nodes, depth, batch, effort)
            for recurrence in ("gated_delta_rule", "gdn")
            for batch, nodes, depth in ((1, 16, 5), (1, 64, 8), (16, 32, 8), (16, 64, 8))
        ),
    ]


@dataclass(slots=True)
class Outcome:
    """How a part ended: `passed`, `failed`, `stopped` at its limit, or `cut` by the budget."""

    status: str
    seconds: float
    returncode: int | None
    tail: list[str]

    @property
    def done(self) -> bool:
        """Whether there is no point in another try."""
        return self.status != "cut"


def run_part(part: Part, limit: float, work: Path, log: Path) -> Outcome:
    """One part in a process group of its own, ended with all its children at `limit` seconds."""
    command = [argument.replace("{work}", str(work)) for argument in part.command]
    started = time.monotonic()
    with log.open("wb") as out:
        child = subprocess.Popen(
            command, stdout=out, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, cwd=ROOT,
            start_new_session=True,
        )  # fmt: skip
        try:
            code: int | None = child.wait(limit)
        except subprocess.TimeoutExpired:
            code = None
        finally:
            _end(child)
    status = "passed" if code == 0 else "failed"
    if code is None:
        status = "stopped" if limit >= part.seconds else "cut"
    tail = log.read_bytes()[-4000:].decode(errors="replace").splitlines()[-TAIL_LINES:]
    return Outcome(status, round(time.monotonic() - started, 1), code, tail)


def _end(child: subprocess.Popen[bytes]) -> None:
    """End what is left of the process group, asking first: a tuner then ends its workers too."""
    for name in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(child.pid, name)
        except (ProcessLookupError, PermissionError):
            break
        try:
            child.wait(3)
        except subprocess.TimeoutExpired:
            continue
    child.wait()


@dataclass(slots=True)
class Session:
    """The parts of one call."""

    parts: Sequence[Part]
    out: Path
    work: Path
    budget: float
    before: Mapping[str, Any]
    """The summary of an earlier call: its parts by name."""
    again: Sequence[str] = ()
    results: dict[str, Any] | None = None
    say: Callable[[str], None] = print

    def run(self) -> dict[str, Any]:
        """Run what is not done yet and return the summary."""
        started = time.monotonic()
        (self.work / "results").mkdir(parents=True, exist_ok=True)
        outcomes: dict[str, Any] = {**self.before}
        for part in self.parts:
            if not self._wanted(part):
                continue
            left = self.budget - RESERVE - (time.monotonic() - started)
            limit = min(part.seconds, left)
            if limit < min(part.least, part.seconds):
                self.say(f"{part.name}: no time left")
                outcomes.setdefault(part.name, _unbegun())
                continue
            log = self.work / f"{part.name}.log"
            outcome = run_part(part, limit, self.work, log)
            outcomes[part.name] = {
                "status": outcome.status, "done": outcome.done, "seconds": outcome.seconds,
                "returncode": outcome.returncode, "tail": outcome.tail,
            }  # fmt: skip
            self.say(f"{part.name}: {outcome.status} after {outcome.seconds:.0f} s")
            self._write(outcomes, time.monotonic() - started)
        return self._write(outcomes, time.monotonic() - started)

    def _wanted(self, part: Part) -> bool:
        done = self.before.get(part.name, {}).get("done", False)
        return part.always or part.name in self.again or not done

    def _write(self, outcomes: Mapping[str, Any], seconds: float) -> dict[str, Any]:
        """The files of the output folder, each replaced whole."""
        summary = {"seconds": round(seconds, 1), "parts": dict(outcomes)}
        results = dict(self.results or {})
        for path in sorted((self.work / "results").glob("*.json")):
            try:
                results[path.stem] = json.loads(path.read_text())
            except ValueError:  # ended while it was written
                continue
        _replace(self.out / "results.json", json.dumps(results))
        _replace(self.out / "logs.txt", _logs(self.work))
        _replace(self.out / "summary.json", json.dumps(summary, indent=1) + "\n")
        return summary


def _only(parts: Sequence[Part], names: tuple[str, ...]) -> list[Part]:
    """The parts whose names begin so; tests and tuning need none that prepares measurements."""
    measures = any(not name.startswith(("tests", "autotune", "readme")) for name in names)
    return [p for p in parts if (p.always and measures) or p.name.startswith(names)]


def _unbegun() -> dict[str, Any]:
    return {"status": "not begun", "done": False, "seconds": 0.0, "returncode": None, "tail": []}


def _logs(work: Path) -> str:
    """All logs one after the other, each short enough."""
    texts = []
    for path in sorted(work.glob("*.log"), key=lambda p: p.stat().st_mtime):
        data = path.read_bytes()
        if len(data) > LOG_BYTES:
            half = LOG_BYTES // 2
            data = data[:half] + b"\n[...]\n" + data[-half:]
        texts.append(f"===== {path.stem}\n{data.decode(errors='replace')}\n")
    return "".join(texts)


def _replace(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_name(f".{path.name}.new")
    fresh.write_text(text)
    fresh.replace(path)


def _cache(*arguments: str) -> None:
    """`bolec cache ...`, whose failure is told and survived."""
    done = subprocess.run(
        [sys.executable, "-m", "boleir", "cache", *arguments], cwd=ROOT, check=False, timeout=60,
        capture_output=True, text=True,
    )  # fmt: skip
    if done.returncode:
        print(f"cache {arguments[0]}: {done.stderr.strip()[-300:]}", file=sys.stderr)


def unpack(folder: Path, prefix: str, results: Path = RESULTS) -> list[Path]:
    """The reports of a session's folder as result files `PREFIX-NAME.json`."""
    written = []
    for name, report in json.loads((folder / "results.json").read_text()).items():
        if report.get("cases"):
            target = results / f"{prefix}-{name}.json"
            keep(report, target)
            written.append(target)
    return written


def read_json(path: Path) -> dict[str, Any]:
    """A file of an earlier call; empty if there is none."""
    try:
        found: dict[str, Any] = json.loads(path.read_text())
    except (OSError, ValueError):
        return {}
    return found


def parser() -> argparse.ArgumentParser:
    """The command line."""
    command = argparse.ArgumentParser(
        prog="python -m benchmarks.session", description=(__doc__ or "").split("\n")[0]
    )
    add = command.add_argument
    add("--out", type=Path, default=Path("out/session"), help="output folder (out/session)")
    add("--budget", type=float, default=540.0, help="seconds for everything (540)")
    add("--resume", type=Path, help="folder of an earlier call (default: the output folder)")
    add("--only", nargs="+", metavar="PART", help="parts whose names begin so")
    add("--again", nargs="+", default=[], metavar="PART", help="parts to do once more")
    add("--effort", choices=("quick", "default", "full"), default="quick", help="of tuning (quick)")
    add("--list", action="store_true", help="show the parts and their limits")
    add("--unpack", metavar="PREFIX", help="write the folder's reports to results/PREFIX-NAME.json")
    return command


def main(arguments: Sequence[str] | None = None, parts: Sequence[Part] | None = None) -> int:
    """Status 0 when everything is done and passed."""
    options = parser().parse_args(arguments)
    if options.unpack:
        print(*unpack(options.out, options.unpack), sep="\n")
        return 0
    real = parts is None
    chosen = list(all_parts(options.effort) if parts is None else parts)
    if options.only:
        chosen = _only(chosen, tuple(options.only))
    if options.list:
        print(*(f"{part.name:40} {part.seconds:4.0f} s" for part in chosen), sep="\n")
        return 0
    earlier = options.resume or options.out
    if real and (earlier / "tunings.json").exists():
        _cache("import", str(earlier / "tunings.json"))
    with tempfile.TemporaryDirectory(prefix="boleir-session-") as work:
        session = Session(
            chosen, options.out, Path(work), options.budget,
            read_json(earlier / "summary.json").get("parts", {}), options.again,
            read_json(earlier / "results.json"),
        )  # fmt: skip
        summary = session.run()
    if real and any(name.startswith("autotune") for name in summary["parts"]):
        _cache("export", str(options.out / "tunings.json"))
    return 0 if all(p["status"] == "passed" for p in summary["parts"].values()) else 1


if __name__ == "__main__":
    raise SystemExit(main())
