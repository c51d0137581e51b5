"""A helper process that may crash or hang, seen from outside: requests, time limits, last words.

The process runs a Python module that reads one JSON request per line from standard input and
answers with one JSON line; `serve` is its side of that. Compilers abort on some inputs, and a bad
kernel poisons its process's GPU context: both belong into such a process.
"""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

LAST_WORDS = ("LLVM ERROR", "Assertion", "CUDA error", "fatal error", "error:", "Error:")
"""What marks the line of a log that says why a process ended."""


class WorkerProcess:
    """A running helper: `ask` sends a request and waits for the answer.

    `module` is run as `python -m module SCRATCH`, where the scratch folder is private and removed
    at the end; `environment`, given that folder, makes the process's variables.
    """

    def __init__(self, module: str, environment: Callable[[Path], Mapping[str, str]]) -> None:
        self._nonsense: str | None = None
        self._folder = tempfile.TemporaryDirectory(prefix="boleir-")
        scratch = Path(self._folder.name)
        self._log = (scratch / "log").open("w+b")
        self._process = subprocess.Popen(
            [sys.executable, "-m", module, str(scratch)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            cwd=scratch,
            env={**environment(scratch), "PYTHONPATH": import_path()},
            start_new_session=True,  # its own group: it and all it starts can be ended together
        )

    def ask(self, request: Mapping[str, Any], timeout: float) -> dict[str, Any]:
        """The answer; raises `TimeoutError` or `EOFError` (the process died, or what it says is no
        answer)."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(request).encode() + b"\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            raise EOFError from None
        line = self._read_line(timeout)
        try:
            answer = json.loads(line)
        except (ValueError, RecursionError):
            answer = None
        if not isinstance(answer, dict):
            self._nonsense = line[:80].decode(errors="replace").strip()
            raise EOFError
        return answer

    def _read_line(self, timeout: float) -> bytes:
        assert self._process.stdout is not None
        deadline = time.monotonic() + timeout
        received = bytearray()
        with selectors.DefaultSelector() as selector:
            selector.register(self._process.stdout, selectors.EVENT_READ)
            while not received.endswith(b"\n"):
                if not selector.select(max(0.0, deadline - time.monotonic())):
                    raise TimeoutError
                chunk = os.read(self._process.stdout.fileno(), 1 << 16)
                if not chunk:
                    raise EOFError
                received += chunk
        return bytes(received)

    def last_words(self) -> str:
        """How a process that died ended, and the line of its log that says why, if one does."""
        if self._nonsense is not None:
            return f"its answer was {self._nonsense!r}"
        try:
            code = self._process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            return "it no longer answers"
        how = f"exit status {code}" if code >= 0 else signal.Signals(-code).name
        self._log.seek(0, os.SEEK_END)
        self._log.seek(max(0, self._log.tell() - 20000))
        lines = self._log.read().decode(errors="replace").splitlines()
        why = [line.strip() for line in lines if any(mark in line for mark in LAST_WORDS)]
        return how + (f": {why[-1][:200]}" if why else "")

    def close(self) -> None:
        """End the process with all it started and remove its folder."""
        if self._process.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout, self._log):
            if stream is not None:
                with contextlib.suppress(BrokenPipeError):
                    stream.close()
        self._folder.cleanup()


def import_path() -> str:
    """This process's import path, as PYTHONPATH: helpers must import the same files."""
    return os.pathsep.join(dict.fromkeys(os.path.abspath(entry or ".") for entry in sys.path))


def serve(answer: Callable[[dict[str, Any]], Mapping[str, Any]]) -> None:
    """The helper's side: answer requests until standard input ends.

    Whatever is printed meanwhile goes to standard error, never into the answers.
    """
    replies = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    for line in sys.stdin:
        replies.write(json.dumps(answer(json.loads(line))) + "\n")
        replies.flush()
