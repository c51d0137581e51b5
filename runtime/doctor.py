"""What `bolec doctor` finds out: GPU, driver, tools, caches, and whether dots give right answers.

Every finding is one line with a status. Without a GPU the checks that need one are skipped, and say
so; compilation for every target is tried all the same. Anything that can crash or hang happens in a
process that is ended after a time limit.
"""

from __future__ import annotations

import os
import platform
import re
from collections.abc import Callable, Iterator
from importlib import metadata
from pathlib import Path

from boleir.codegen.kernel_spec import Job
from boleir.codegen.offline import CompilePool
from boleir.codegen.targets import TARGETS, Target, UnknownTarget, target_of
from boleir.codegen.worker_process import WorkerProcess
from boleir.errors import BoleirError, LaunchError
from boleir.runtime.cache_root import preferred_cache_root
from boleir.runtime.dots import try_dots
from boleir.runtime.driver import cuda_driver
from boleir.runtime.findings import Finding, Status
from boleir.runtime.probes import probe_source, probe_specs

Announce = Callable[[str], None]
"""Called with what is about to be done, for progress."""


def examine(*, timeout: float = 120.0, announce: Announce = lambda _: None) -> Iterator[Finding]:
    """All findings, each as soon as it is known. `timeout` limits each step, in seconds."""
    yield _python()
    yield _package("torch")
    yield _package("triton")
    yield _driver()
    announce("asking torch for GPUs")
    gpus = _ask_gpus(timeout)
    yield gpus
    yield from _caches()
    target = _target(gpus)
    yield from _hazards(target)
    announce("compiling the probes for every target")
    yield from _compilation(timeout)
    if target is None:
        yield Finding("dots", Status.SKIPPED, "no GPU that compiled kernels run on")
    else:
        announce("trying dots with known answers")
        yield from try_dots(target, timeout)


def _python() -> Finding:
    text = f"{platform.python_version()} on {platform.system()} {platform.machine()}"
    return Finding("python", Status.OK, f"{text}, boleir {_version('boleir')}")


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _package(name: str) -> Finding:
    version = _version(name)
    if version is None:
        return Finding(name, Status.FAILED, "not installed")
    return Finding(name, Status.OK, version, {"version": version})


def _driver() -> Finding:
    try:
        major, minor = cuda_driver().version()
    except LaunchError as error:
        return Finding("driver", Status.SKIPPED, error.message)
    return Finding("driver", Status.OK, f"supports CUDA {major}.{minor}", {"cuda": [major, minor]})


def _ask_gpus(timeout: float) -> Finding:
    worker = WorkerProcess("boleir.runtime.probes", lambda _: os.environ)
    try:
        answer = worker.ask({"do": "gpus"}, timeout)
    except TimeoutError:
        return Finding("gpu", Status.FAILED, f"torch did not answer within {timeout:g} s")
    except EOFError:
        return Finding("gpu", Status.FAILED, f"torch's process died ({worker.last_words()})")
    finally:
        worker.close()
    devices = answer["devices"]
    if not devices:
        text = f"none that torch {answer['torch']} can use (built for CUDA {answer['cuda']})"
        return Finding("gpu", Status.SKIPPED, text, answer)
    names = ", ".join(
        f"{device['name']} (sm_{device['capability'][0]}{device['capability'][1]}, "
        f"{device['memory'] / 2**30:.0f} GiB)"
        for device in devices
    )
    return Finding("gpu", Status.OK, names, answer)


def _target(gpus: Finding) -> Target | None:
    devices = gpus.data.get("devices", [])
    try:
        return target_of(tuple(devices[0]["capability"])) if devices else None
    except UnknownTarget:
        return None


def _caches() -> Iterator[Finding]:
    triton = os.environ.get("TRITON_CACHE_DIR") or os.path.join(
        os.environ.get("TRITON_HOME") or os.path.expanduser("~"), ".triton", "cache"
    )
    for subject, folder in (("cache", preferred_cache_root()), ("triton cache", Path(triton))):
        existing = next(parent for parent in (folder, *folder.parents) if parent.exists())
        writable = os.access(existing, os.W_OK) and existing.is_dir()
        status = Status.OK if writable else Status.WARNING
        state = "" if folder.exists() else ", not there yet"
        yield Finding(
            subject,
            status,
            f"{folder}{state}" + ("" if writable else ", not writable"),
            {"path": str(folder), "writable": writable},
        )


def _hazards(target: Target | None) -> Iterator[Finding]:
    """Versions of the compiler with known wrong code on the GPU that is present."""
    numbers = re.match(r"(\d+)\.(\d+)(?:\.(\d+))?", _version("triton") or "")
    if numbers is None or target is None:
        return
    version = tuple(int(part or 0) for part in numbers.groups())
    if target.wgmma and (3, 4, 0) <= version < (3, 7, 1):
        text = "this version can miscompile a dot with a transposed accumulator on Hopper"
        yield Finding("triton", Status.WARNING, f"{text}; 3.7.1 mends it")
    if version == (3, 7, 1):
        yield Finding("triton", Status.WARNING, "invalid shared reads with several dots of 32")


def _compilation(timeout: float) -> Iterator[Finding]:
    """Compile one probe for every target."""
    spec = next(spec for spec in probe_specs() if spec.name == "split")
    jobs = [Job(probe_source(), spec, target) for target in TARGETS.values()]
    with CompilePool(timeout=timeout) as pool:
        results = pool.run(jobs)
    for job, result in zip(jobs, results, strict=True):
        subject = f"compile {job.target.name}"
        if isinstance(result, BoleirError):
            yield Finding(subject, Status.WARNING, result.message)
            continue
        tool = f"ptxas {result.assembler}, " if result.assembler else ""
        text = f"{tool}{result.registers} registers, {result.size} bytes, {result.seconds:.1f} s"
        yield Finding(subject, Status.OK, text, result.facts)
