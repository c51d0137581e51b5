"""Where the compilation of a kernel spends its time: the phases of a worker, in seconds of the
processor (user and system, the assembler's included), which other work on the machine disturbs
less than a clock.

Run as a process by `Phases`, it answers what `boleir.codegen.compile_worker` answers, with a clock
around every stage of Triton.
"""

from __future__ import annotations

import resource
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

from boleir.codegen import compile_worker
from boleir.codegen.kernel_spec import Job
from boleir.codegen.offline import compile_request, compiler_environment
from boleir.codegen.worker_process import WorkerProcess, serve

STAGES = {
    "ttir": "passes",
    "ttgir": "passes",
    "llir": "LLVM",
    "ptx": "LLVM",
    "cubin": "assembler",
}
"""Triton's stages for NVIDIA, and the phases they belong to."""
PHASES = ("Python", "passes", "LLVM", "assembler", "checks", "rest")
"""`Python`: from the text to Triton's first form. `passes`: on that and on its form for GPUs.
`LLVM`: from there to PTX. `checks`: what is read off the binary. `rest`: the module's import,
options, Triton's files."""
LIMIT = 300.0


def processor_seconds() -> float:
    """What this process and the ended ones that it started have used."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(x.ru_utime + x.ru_stime for x in used)


class Phases:
    """A worker that is asked for times; use as a context manager."""

    def __init__(self) -> None:
        self._worker = WorkerProcess("benchmarks.compile_phases", compiler_environment)
        self.start_seconds = float(self._worker.ask({"started": True}, LIMIT)["seconds"])
        """Until Triton is imported."""

    def __enter__(self) -> Phases:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._worker.close()

    def of(self, jobs: Sequence[Job], rounds: int) -> dict[str, dict[str, float]]:
        """Seconds of each phase for each kernel, the least of some rounds of all of them."""
        best: dict[str, dict[str, float]] = {}
        for _ in range(rounds):
            for job in jobs:
                found = self._worker.ask(compile_request(job), LIMIT)
                if "error" in found:
                    raise RuntimeError(f"{job.spec.name}: {found['error']['text']}")
                phases, known = found["phases"], best.setdefault(job.spec.name, found["phases"])
                if sum(phases.values()) < sum(known.values()):
                    best[job.spec.name] = phases
        return best


class _Clock:
    """Adds up what calls of some functions take, by phase."""

    def __init__(self) -> None:
        self.spent = dict.fromkeys(PHASES, 0.0)

    def around(self, phase: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """`function`, timed."""

        def timed(*arguments: Any, **named: Any) -> Any:
            started = processor_seconds()
            try:
                return function(*arguments, **named)
            finally:
                self.spent[phase] += processor_seconds() - started

        return timed

    def watch(self) -> None:
        """Put clocks around Triton's stages and the worker's checks."""
        from triton.backends.nvidia.compiler import CUDABackend
        from triton.compiler import ASTSource

        ASTSource.make_ir = self.around("Python", ASTSource.make_ir)
        for name in ("nvidia_usage", "unset_register_of"):
            setattr(compile_worker, name, self.around("checks", getattr(compile_worker, name)))
        add_stages = CUDABackend.add_stages

        def add_timed(backend: Any, stages: dict[str, Any], *arguments: Any) -> None:
            add_stages(backend, stages, *arguments)
            for name, stage in stages.items():
                stages[name] = self.around(STAGES[name], stage)

        CUDABackend.add_stages = add_timed


def main() -> None:
    """Serve requests until standard input ends."""
    clock, scratch = _Clock(), Path(sys.argv[1])
    compile_worker.without_cache_keys()
    clock.watch()

    def answer(request: dict[str, Any]) -> dict[str, Any]:
        started = processor_seconds()
        if "started" in request:
            return {"seconds": started}
        clock.spent = dict.fromkeys(PHASES, 0.0)
        found = compile_worker.answer(request, scratch, {})  # nothing is remembered: it is cold
        clock.spent["rest"] = processor_seconds() - started - sum(clock.spent.values())
        return {"error": found["error"]} if "error" in found else {"phases": clock.spent}

    serve(answer)


if __name__ == "__main__":
    main()
