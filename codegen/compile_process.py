"""One compiler process, seen from outside: a clean environment, requests, time limits, last words.

The process runs `boleir.codegen.compile_worker`. It is started without the environment variables
that change the compiler's results, so that a user's debugging switches or caches do not.
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
from pathlib import Path
from typing import Any

_KEPT_VARIABLES = ("TRITON_PTXAS_", "TRITON_CUOBJDUMP_", "TRITON_LIBDEVICE_", "TRITON_AMD_CODEGEN_")
_DROPPED_PREFIXES = ("TRITON_", "MLIR_", "LLVM_", "NVPTX_", "AMDGCN_", "PTXAS_", "DISABLE_", "USE_")


def worker_environment(scratch: Path) -> dict[str, str]:
    """The user's environment without what would change the compiler's results."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(_DROPPED_PREFIXES) or name.startswith(_KEPT_VARIABLES)
    }
    cache = str(scratch / "cache")
    return kept | {
        "TRITON_CACHE_DIR": cache,
        "TRITON_HOME": cache,
        "TRITON_ALWAYS_COMPILE": "1",
        "TRITON_DISABLE_LINE_INFO": "1",  # makes binaries independent of paths
        "CUDA_VISIBLE_DEVICES": "",
        "PYTHONUNBUFFERED": "1",
        "PYTHONPATH": os.pathsep.join(entry for entry in sys.path if entry),
    }


class CompilerProcess:
    """One compiler process; `ask` sends a request and waits for the answer."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="boleir-compile-")
        scratch = Path(self._folder.name)
        self._log = (scratch / "log").open("w+b")
        self._process = subprocess.Popen(
            [sys.executable, "-m", "boleir.codegen.compile_worker", str(scratch)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            cwd=scratch,
            env=worker_environment(scratch),
            start_new_session=True,  # its own group: assembler and all can be ended together
        )

    def ask(self, request: dict[str, Any], timeout: float) -> dict[str, Any]:
        """The answer; raises `TimeoutError` or `EOFError` (the process died)."""
        assert self._process.stdin is not None
        self._log.truncate(0)
        try:
            self._process.stdin.write(json.dumps(request).encode() + b"\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            raise EOFError from None
        answer: dict[str, Any] = json.loads(self._read_line(timeout))
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
        """How the process ended, and the line of its log that says why, if one does."""
        code = self._process.wait(timeout=5)
        how = f"exit status {code}" if code >= 0 else signal.Signals(-code).name
        self._log.seek(0)
        lines = self._log.read()[-20000:].decode(errors="replace").splitlines()
        marks = ("LLVM ERROR", "Assertion", "fatal error", "error:", "Error:")
        why = next((line for line in lines if any(mark in line for mark in marks)), "")
        return f"the compiler died ({how})" + (f": {why.strip()[:200]}" if why else "")

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
