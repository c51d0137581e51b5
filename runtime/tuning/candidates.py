"""Candidates as kernels: lowered here, compiled in parallel, handed on as they are finished."""

from __future__ import annotations

import functools
import hashlib
import re
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol

from boleir.codegen.artifact import Artifact
from boleir.codegen.build import assemble
from boleir.codegen.kernel_spec import CompiledKernel, Job
from boleir.codegen.offline import CompilePool
from boleir.codegen.schedule import Schedule
from boleir.codegen.targets import Target
from boleir.errors import BoleirError, CompileError

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


_DEFINES = re.compile(r"(?:def |class )?(\w+)\s*(?:\(|:|=)")
_STRAY = re.compile(r"\A(?:#.*\n|\s*\n)*\"{3}.*?\"{3}\n", re.DOTALL)
"""Comments and docstring at the head of a module."""


@functools.lru_cache(maxsize=256)
def kernel_digest(source: str, kernel: str) -> str:
    """Digest of what one kernel of an emitted module is compiled from: its function and whatever of
    the module that names. Schedules that differ elsewhere have their commit in common, and mostly
    their prepare kernel.

    By lines, as modules are emitted: parsing is not safe in several threads before Python 3.12.
    """
    always, parts = _parts(source)
    reached: dict[str, None] = {}
    waiting = [kernel]
    while waiting:
        name = waiting.pop()
        if name in parts and name not in reached:
            reached[name] = None
            waiting += re.findall(r"\w+", parts[name])
    text = [*always, *(parts[name] for name in sorted(reached))]
    return hashlib.sha256("\n".join(text).encode()).hexdigest()


def _parts(source: str) -> tuple[list[str], dict[str, str]]:
    """Statements of a module: those that define nothing, and the others by name."""
    blocks: list[list[str]] = []
    decorated = False
    for line in _STRAY.sub("", source, count=1).splitlines():
        inside = not line.strip() or line[0] in " \t)]}"
        if line.startswith("#"):
            continue
        if blocks and (inside or decorated):
            blocks[-1].append(line)
        else:
            blocks.append([line])
        if not inside:
            decorated = line.startswith("@")
    always, parts = [], {}
    for block in blocks:
        first = next((line for line in block if not line.startswith("@")), "")
        found = _DEFINES.match(first)
        if found:
            parts[found.group(1)] = "\n".join(block).rstrip()
        else:
            always.append("\n".join(block).rstrip())
    return always, parts


class SharingPool(CompilePool):
    """A pool that compiles equal kernels once, whatever stands beside them in their modules. A
    shared binary's line numbers may be those of another candidate's module."""

    def __init__(self, workers: int | None = None, timeout: float = 120.0) -> None:
        super().__init__(workers, timeout)
        self._made: dict[tuple[str, str, str], Future[CompiledKernel]] = {}
        self._guard = threading.Lock()

    def compile(self, job: Job) -> CompiledKernel:
        """See `CompilePool.compile`."""
        spec = replace(job.spec, label="")  # which names the schedule
        name = (kernel_digest(job.source, spec.name), repr(spec), job.target.name)
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
        except Exception as error:  # whatever becomes of one candidate, the others go on
            return CompileError(f"internal error: {type(error).__name__}: {error}")

    def close(self) -> None:
        """See `Compiler.close`."""
        self._pool.close()
