"""Random trials of kernels, as many as there is time for; failures are shrunk and printed as JSON.

    python -m tests.runtime.fuzz --count 1000 --seed 0
    python -m tests.runtime.fuzz --case '{...}'     # one printed case again

Trials run in a child process, which is replaced when it dies or hangs. About two seconds a case.
"""

from __future__ import annotations

import argparse
import json
import os
import selectors
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.runtime import fuzz_cases

ROOT = Path(__file__).resolve().parents[2]
LIMIT = 120.0
"""Seconds for one trial."""
PLAIN: tuple[tuple[str, Any], ...] = (
    ("static", None),
    ("dtype", "float32"),
    ("state_dtype", "float32"),
    ("out_dtype", "float32"),
    ("shape", [1, 1, 16, 16]),
)
"""Simpler values of fields of a case."""
SIMPLE = {
    "gates": "inline", "commit": "replay", "solver": "horner", "orientation": "values",
    "precision": "ieee", "path_sum": "select", "prefetch": False, "b_v": 16, "b_k": 16,
    "node_block": 16, "fusion": "fused", "factor_warps": 4, "warps": 4,
    "factor_heads": 1, "order": "tiles", "persistent": 0, "walk_nodes": 0, "prepare": "launch",
    "readers": "apart",
    "prepare_nodes": 16, "prepare_warps": 0,
}  # fmt: skip
"""Simpler values of fields of a schedule."""


class Worker:
    """A process that tries one case after the other."""

    def __init__(self) -> None:
        self._cache = tempfile.TemporaryDirectory()
        self._child: subprocess.Popen[str] | None = None

    def __call__(self, case: dict[str, Any]) -> list[str]:
        """What was wrong with a case; a dead or silent child counts."""
        child = self._child = self._child or self._start()
        assert child.stdin is not None and child.stdout is not None
        try:
            print(json.dumps(case), file=child.stdin, flush=True)
            with selectors.DefaultSelector() as ready:
                ready.register(child.stdout, selectors.EVENT_READ)
                line = child.stdout.readline() if ready.select(LIMIT) else ""
        except BrokenPipeError:
            line = ""
        if line:
            found: list[str] = json.loads(line)
            return found
        code = child.poll()
        self.close()
        return ["the process hung" if code is None else f"the process died with {code}"]

    def _start(self) -> subprocess.Popen[str]:
        environment = os.environ | {"TRITON_INTERPRET": "1", "BOLEIR_CACHE": self._cache.name}
        return subprocess.Popen(
            [sys.executable, "-W", "ignore", "-m", "tests.runtime.fuzz", "--serve"],
            cwd=ROOT, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip

    def close(self) -> None:
        """End the child."""
        if self._child is not None:
            self._child.kill()
            self._child.wait()
        self._child = None


def shrunk(case: dict[str, Any], worker: Worker) -> dict[str, Any]:
    """The simplest failing case that single steps lead to."""
    again = True
    while again:
        again = False
        for simpler in _simpler(case):
            if fuzz_cases.accepted(simpler) and worker(simpler):
                case, again = simpler, True
                break
    return case


def _simpler(case: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Cases that differ by one simplification."""
    requests = case["requests"]
    if len(requests) > 1:
        for at in range(len(requests)):
            yield case | {"requests": requests[:at] + requests[at + 1 :]}
    for name, value in PLAIN:
        if case[name] != value:
            yield case | {name: value}
    for name, value in SIMPLE.items():
        if case["schedule"][name] != value:
            yield case | {"schedule": case["schedule"] | {name: value}}
    plain = {"keys": "random", "strength": None, "log_decay": None, "twist": "none", "track": -1}
    for at, request in enumerate(requests):
        for name, value in plain.items():
            if request[name] != value:
                changed = [*requests[:at], request | {name: value}, *requests[at + 1 :]]
                yield case | {"requests": changed}
        if case["static"] is None and len(request["parents"]) > 1:
            for keep in (len(request["parents"]) // 2, len(request["parents"]) - 1):
                fewer = request | {"parents": request["parents"][:keep]}
                fewer["accepted"] = min(request["accepted"], keep - 1)
                yield case | {"requests": [*requests[:at], fewer, *requests[at + 1 :]]}


def serve() -> None:
    """Read cases from the standard input, answer with what was wrong."""
    from tests import lighter_interpreter
    from tests.runtime.fuzz_trial import trial

    lighter_interpreter.install()
    for line in sys.stdin:
        print(json.dumps(trial(json.loads(line))), flush=True)


def main() -> int:
    """The command line; 1 when a case failed."""
    parser = argparse.ArgumentParser(description="random trials of kernels under the interpreter")
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0, help="of the first case")
    parser.add_argument("--case", help="one case as JSON, not shrunk")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        serve()
        return 0
    worker, failed = Worker(), 0
    for seed in range(options.seed, options.seed + (1 if options.case else options.count)):
        case = json.loads(options.case) if options.case else fuzz_cases.draw(seed)
        faults = worker(case)
        if faults:
            failed += 1
            case = case if options.case else shrunk(case, worker)
            print(json.dumps(case), *worker(case), sep="\n  ", flush=True)
        print(f"{seed}: {failed} failed", file=sys.stderr)
    worker.close()
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
