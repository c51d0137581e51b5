"""Candidates as kernels: lowered here, compiled in parallel, handed on as they are finished."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from boleir.codegen.artifact import Artifact
from boleir.codegen.build import assemble
from boleir.codegen.kernel_spec import CompiledKernel, Job
from boleir.codegen.offline import CompilePool
from boleir.codegen.schedule import Schedule
from boleir.codegen.targets import Target
from boleir.errors import BoleirError

if TYPE_CHECKING:
    from boleir.codegen.pipeline import Lowered

KERNELS_PER_CANDIDATE = 3
"""About how many kernels of one candidate compile at once."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A schedule and its emitted kernels."""

    schedule: Schedule
    lowered: Lowered

    @property
    def source(self) -> str:
        """Digest of what is compiled."""
        return source_digest(self.lowered)


def source_digest(lowered: Lowered) -> str:
    """Changes when the emitted kernels or their launches do."""
    specs = [repr(spec) for spec in lowered.specs()]
    return hashlib.sha256("\n".join([lowered.text, *specs]).encode()).hexdigest()[:16]


class Compiler(Protocol):
    """Makes binaries; tests provide their own."""

    def compile(
        self, candidates: Sequence[Candidate], target: Target
    ) -> Iterator[tuple[Candidate, Artifact | BoleirError]]:
        """Each candidate with its kernels, or the reason why there are none, in any order."""

    def close(self) -> None:
        """End what is running."""


class SharingPool(CompilePool):
    """A pool that compiles equal jobs once: all candidates have the topology step in common."""

    def __init__(self, workers: int | None = None, timeout: float = 120.0) -> None:
        super().__init__(workers, timeout)
        self._made: dict[tuple[str, str, str], Future[CompiledKernel]] = {}
        self._guard = threading.Lock()

    def compile(self, job: Job) -> CompiledKernel:
        """See `CompilePool.compile`."""
        name = (hashlib.sha256(job.source.encode()).hexdigest(), repr(job.spec), job.target.name)
        with self._guard:
            known = self._made.get(name)
            if known is None:
                own = self._made[name] = Future()
        if known is not None:
            return known.result()
        try:
            own.set_result(super().compile(job))
        except BaseException as error:
            own.set_exception(error)
        return own.result()


class ParallelCompiler:
    """Compiles candidates in worker processes, as many at once as there are cores."""

    def __init__(self, workers: int | None = None, timeout: float = 60.0) -> None:
        self._pool = SharingPool(workers, timeout)

    def compile(
        self, candidates: Sequence[Candidate], target: Target
    ) -> Iterator[tuple[Candidate, Artifact | BoleirError]]:
        """See `Compiler.compile`."""
        threads = max(1, -(-self._pool.workers // KERNELS_PER_CANDIDATE))
        executor = ThreadPoolExecutor(max_workers=threads)
        try:
            jobs = {executor.submit(self._one, item, target): item for item in candidates}
            for job in as_completed(jobs):
                yield jobs[job], job.result()
        except BaseException:
            executor.shutdown(wait=False, cancel_futures=True)
            self.close()
            raise
        executor.shutdown()

    def _one(self, candidate: Candidate, target: Target) -> Artifact | BoleirError:
        try:
            return assemble([(candidate.lowered, target)], pool=self._pool)
        except BoleirError as error:
            return error

    def close(self) -> None:
        """See `Compiler.close`."""
        self._pool.close()
