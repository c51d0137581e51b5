"""The process of `test_worker_process`: it does what it is told, also what workers should not."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from typing import Any

from boleir.codegen.worker_process import serve


def answer(request: dict[str, Any]) -> dict[str, Any]:
    """Obey."""
    match request["do"]:
        case "print":
            print("noise")
            os.system("echo more noise")
        case "abort":
            print("LLVM ERROR: out of ideas", file=sys.stderr, flush=True)
            os.abort()
        case "exit":
            os._exit(7)
        case "hang":
            time.sleep(600)
        case "spawn":
            return {"value": subprocess.Popen(["sleep", "600"]).pid}
        case "list":
            return [request["value"]]  # type: ignore[return-value]
        case "folder":
            return {"value": sys.argv[1]}
    return {"value": request["value"]}


if __name__ == "__main__":
    serve(answer)
