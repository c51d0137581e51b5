"""A measuring process that does what the artifact's name says, for tests of the timer."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

from boleir.codegen.worker_process import serve


def answer(request: dict[str, Any]) -> dict[str, Any]:
    """An answer, an accident, or none at all."""
    if request["do"] == "open":
        with Path(os.environ["STARTS"]).open("a") as starts:
            starts.write(f"{os.getpid()} {os.environ['CUDA_VISIBLE_DEVICES']}\n")
        if os.environ.get("REFUSE"):
            return {"failure": "RuntimeError: no driver"}
        return {"ready": 0.0}
    manifest = json.loads((Path(request["folder"]) / "manifest.json").read_text())
    match manifest["name"]:
        case "wrong":
            return {"failure": "wrong output: error 1.0e+00", "error": 1.0}
        case "list":
            return [1]  # type: ignore[return-value]
        case "text":
            return {"us": "fast", "error": 1e-6}
        case "infinite":
            return {"us": float("inf")}
        case "hang":
            time.sleep(60)
        case "crash":
            print("CUDA error: illegal memory access", file=sys.stderr, flush=True)
            os.kill(os.getpid(), signal.SIGABRT)
        case "poison":
            return {"failure": "RuntimeError: illegal memory access", "poisoned": True}
        case "leave":
            os._exit(7)
    return {"us": 5.5, "error": 1e-6}


if __name__ == "__main__":
    serve(answer)
