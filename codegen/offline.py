"""Compile emitted kernels for any supported GPU, without owning one.

The compiler runs in worker processes: it aborts on some inputs, prints whole assembly listings on
failure, reads many environment variables and keeps a cache of its own. Here it gets a clean
environment, a private scratch folder and a time limit, and every failure becomes one line that
names kernel, target and schedule.
"""

from __future__ import annotations

import base64
import os
import queue
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from dataclasses import asdict
from pathlib import Path
from types import TracebackType
from typing import Any

from boleir.codegen.kernel_spec import (
    SCRATCH_POINTERS,
    CompiledKernel,
    CompilerCrash,
    CompilerTimeout,
    Job,
    KernelError,
    KernelSpec,
)
from boleir.codegen.resources import ResourceLimit, check_compiled
from boleir.codegen.targets import Target
from boleir.codegen.worker_process import WorkerProcess
from boleir.errors import BoleirError

_KEPT_VARIABLES = ("TRITON_PTXAS_", "TRITON_CUOBJDUMP_", "TRITON_LIBDEVICE_", "TRITON_AMD_CODEGEN_")
_DROPPED_PREFIXES = ("TRITON_", "MLIR_", "LLVM_", "NVPTX_", "AMDGCN_", "PTXAS_", "DISABLE_", "USE_")

Progress = Callable[[int, int, CompiledKernel | BoleirError], None]
"""Called after every kernel with: how many are done, how many there are, the latest result."""


def compiler_environment(scratch: Path) -> dict[str, str]:
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
    }


class CompilePool:
    """Compiler processes that are started when needed and reused until the pool is closed.

    `workers` processes at most (default: the cores this process may use); `timeout` seconds for one
    kernel. Use as a context manager.
    """

    def __init__(self, workers: int | None = None, timeout: float = 120.0) -> None:
        self.workers = workers or len(os.sched_getaffinity(0))
        self.timeout = timeout
        self._idle: queue.LifoQueue[WorkerProcess] = queue.LifoQueue()
        self._alive: set[WorkerProcess] = set()

    def __enter__(self) -> CompilePool:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """End all processes."""
        while self._alive:
            self._alive.pop().close()
        self._idle = queue.LifoQueue()

    def compile(self, job: Job) -> CompiledKernel:
        """One kernel, in this thread. Raises `KernelError` or `ResourceLimit`."""
        try:
            worker = self._idle.get_nowait()
        except queue.Empty:
            worker = WorkerProcess("boleir.codegen.compile_worker", compiler_environment)
            self._alive.add(worker)
        try:
            answer = worker.ask(compile_request(job), self.timeout)
        except TimeoutError:
            self._retire(worker)
            raise CompilerTimeout(job, f"no result after {self.timeout:g} s") from None
        except EOFError:
            reason = f"the compiler died ({worker.last_words()})"
            self._retire(worker)
            raise CompilerCrash(job, reason) from None
        self._idle.put(worker)
        return _accept(job, answer)

    def run(
        self, jobs: Sequence[Job], progress: Progress | None = None
    ) -> list[CompiledKernel | BoleirError]:
        """All `jobs`, in parallel; a failed one leaves its error in its place."""
        results: dict[int, CompiledKernel | BoleirError] = {}
        executor = ThreadPoolExecutor(max_workers=max(1, min(self.workers, len(jobs))))
        try:
            futures = {executor.submit(self.compile, job): at for at, job in enumerate(jobs)}
            for done, future in enumerate(as_completed(futures), start=1):
                result = _outcome(future)
                results[futures[future]] = result
                if progress is not None:
                    progress(done, len(jobs), result)
        except BaseException:
            # Ctrl-C: drop what has not begun and end the processes, which frees the threads.
            executor.shutdown(wait=False, cancel_futures=True)
            self.close()
            raise
        executor.shutdown()
        return [results[at] for at in range(len(jobs))]

    def _retire(self, worker: WorkerProcess) -> None:
        self._alive.discard(worker)
        worker.close()


def compile_kernels(
    source: str,
    specs: Sequence[KernelSpec],
    target: Target,
    *,
    pool: CompilePool | None = None,
    progress: Progress | None = None,
) -> list[CompiledKernel]:
    """Compile kernels of one emitted module for one target, in the order of `specs`.

    A `pool` that outlives the call saves starting processes. Raises the first failure.
    """
    jobs = [Job(source, spec, target) for spec in specs]
    if pool is not None:
        return all_compiled(pool.run(jobs, progress))
    with CompilePool() as own:
        return all_compiled(own.run(jobs, progress))


def all_compiled(results: Sequence[CompiledKernel | BoleirError]) -> list[CompiledKernel]:
    """The kernels, or the first failure raised."""
    kernels = []
    for result in results:
        if isinstance(result, BoleirError):
            raise result
        kernels.append(result)
    return kernels


def _outcome(future: Future[CompiledKernel]) -> CompiledKernel | BoleirError:
    try:
        return future.result()
    except BoleirError as error:
        return error


def compile_request(job: Job) -> dict[str, Any]:
    """What a worker is asked."""
    fields = asdict(job.spec)
    fields["signature"] = dict(job.spec.signature)
    return {"source": job.source, "kernel": fields, "target": job.target.triple}


def _accept(job: Job, answer: dict[str, Any]) -> CompiledKernel:
    """Check a worker's answer against what a launch will assume."""
    if "error" in answer:
        error = answer["error"]
        raise KernelError(job, f"{error['stage']} failed: {error['text']}", error["line"])
    if any(answer["scratch"]):
        raise KernelError(job, "needs scratch memory in global memory, which no launch provides")
    expected = len(job.spec.signature) + SCRATCH_POINTERS
    if answer["parameters"] != expected:
        raise KernelError(
            job, f"the binary takes {answer['parameters']} parameters, a launch passes {expected}"
        )
    try:
        check_compiled(answer["shared"], answer["num_warps"], job.target)
    except ResourceLimit as error:
        error.message = f"{job.spec.name}: {error.message}"
        raise
    return CompiledKernel(
        name=job.spec.name,
        target=job.target.name,
        binary=base64.b64decode(answer["binary"]),
        assembly=answer["assembly"],
        entry=answer["entry"],
        num_warps=answer["num_warps"],
        shared=answer["shared"],
        registers=answer["registers"],
        spills=answer["spills"],
        seconds=answer["seconds"],
        triton=answer["triton"],
        assembler=answer["assembler"],
        pdl=job.spec.pdl,
    )
