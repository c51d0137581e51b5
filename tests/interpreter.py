"""Calls in children in which Triton interprets kernels on the CPU.

The interpreter is chosen when a kernel is defined, and a wild access ends the process; hence a
child per call. Importing torch and Triton takes longer than many calls, so one process imports
them and is forked for each. What a call imports, changes or breaks ends with its child.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import traceback
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn

from boleir.codegen.worker_process import WorkerProcess, serve
from tests import lighter_interpreter

ROOT = Path(__file__).resolve().parent.parent
_IMPORTED_BEFORE = (
    "torch",
    "triton.language",
    "boleir.codegen.pipeline",
    "boleir.runtime.api",
    "boleir.language.parser",
    "tests.runtime.kernel_harness",
)


class ChildFailed(Exception):
    """A call that raised, died or took too long: what its child printed last."""


class Interpreter:
    """Makes the calls, one at a time; the process that is forked starts with the first."""

    def __init__(self) -> None:
        self._parent: WorkerProcess | None = None

    def call(
        self,
        module_function: str,
        arguments: Mapping[str, Any],
        timeout: float,
        lighter: bool = True,
    ) -> Any:
        """The result of `module:function`, as JSON, in the lighter interpreter or in Triton's as it
        is. Raises `ChildFailed`."""
        if self._parent is None:
            self._parent = WorkerProcess("tests.interpreter", lambda _: _interpreting())
        module, function = module_function.split(":")
        request = {
            "module": module,
            "function": function,
            "arguments": arguments,
            "environment": _interpreting(),
            "lighter": lighter,
        }
        try:
            answer = self._parent.ask(request, timeout)
        except TimeoutError:
            self.close()  # ends the child, too
            raise ChildFailed(f"{module_function} took more than {timeout:g} s") from None
        except EOFError:
            reason = self._parent.last_words()
            self.close()
            raise ChildFailed(f"the process that is forked ended: {reason}") from None
        if answer["code"]:
            raise ChildFailed(f"{module_function} ended with {answer['code']}:\n{answer['said']}")
        return json.loads(answer["result"])

    def close(self) -> None:
        """End the process that is forked."""
        if self._parent is not None:
            self._parent.close()
        self._parent = None


def _interpreting() -> dict[str, str]:
    return {**os.environ, "TRITON_INTERPRET": "1"}


def answer(request: dict[str, Any], scratch: Path) -> dict[str, Any]:
    """Make a call in a child of this process; its exit code (a signal's, negative), its result and
    the end of what it printed."""
    result, said = scratch / "result", scratch / "said"
    result.unlink(missing_ok=True)
    said.write_bytes(b"")
    child = os.fork()
    if not child:
        _run(request, result, said)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return {
        "code": code,
        "result": "" if code else result.read_text(),
        "said": said.read_text(errors="replace")[-4000:],
    }


def _run(request: dict[str, Any], result: Path, said: Path) -> NoReturn:
    """The child: never returns, so that nothing of its parent runs twice."""
    code = 1
    try:
        printed = os.open(said, os.O_WRONLY | os.O_APPEND)
        os.dup2(printed, 1)
        os.dup2(printed, 2)
        os.environ.clear()
        os.environ.update(request["environment"])
        os.chdir(ROOT)
        if request["lighter"]:
            lighter_interpreter.install()
        function = getattr(importlib.import_module(request["module"]), request["function"])
        result.write_text(json.dumps(function(**request["arguments"])))
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def main() -> None:
    """Serve calls until standard input ends."""
    for name in _IMPORTED_BEFORE:
        importlib.import_module(name)
    serve(lambda request: answer(request, Path(sys.argv[1])))


if __name__ == "__main__":
    main()
