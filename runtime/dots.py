"""Try the products emitted kernels are made of, with known answers, on the GPU that is present.

The probes share a process as long as it lives: a probe that crashes or hangs it is a finding, and
the next one gets a fresh process.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

from boleir.codegen.kernel_spec import CompiledKernel, Job
from boleir.codegen.launch_spec import LaunchSpec
from boleir.codegen.offline import CompilePool
from boleir.codegen.targets import Target
from boleir.codegen.worker_process import WorkerProcess
from boleir.errors import BoleirError
from boleir.runtime.findings import Finding, Status
from boleir.runtime.probes import PROBES, probe_source, probe_specs


def try_dots(target: Target, timeout: float) -> Iterator[Finding]:
    """Run every probe on the first GPU; `timeout` in seconds for each."""
    specs, source = probe_specs(), probe_source()
    with CompilePool(timeout=timeout) as pool:
        compiled = pool.run([Job(source, spec, target) for spec in specs])
    with tempfile.TemporaryDirectory(prefix="boleir-probes-") as folder, Prober(timeout) as prober:
        for number, (spec, kernel) in enumerate(zip(specs, compiled, strict=True)):
            subject = f"dot {spec.name}, {spec.num_warps} warps"
            if isinstance(kernel, BoleirError):
                yield Finding(subject, Status.FAILED, kernel.message)
                continue
            launch = LaunchSpec.of(spec, kernel, ("1", "1", "1"))
            yield prober.try_one(subject, launch, kernel, Path(folder) / f"{number}.cubin")


class Prober:
    """Keeps a probing process alive across probes."""

    def __init__(self, timeout: float) -> None:
        self._timeout = timeout
        self._worker: WorkerProcess | None = None

    def __enter__(self) -> Prober:
        return self

    def __exit__(self, *_: object) -> None:
        self._end()

    def _end(self) -> None:
        if self._worker is not None:
            self._worker.close()
            self._worker = None

    def try_one(
        self, subject: str, launch: LaunchSpec, kernel: CompiledKernel, path: Path
    ) -> Finding:
        """The finding for one compiled probe."""
        path.write_bytes(kernel.binary)
        if self._worker is None:
            self._worker = WorkerProcess("boleir.runtime.probes", lambda _: os.environ)
        request = {"do": "probe", "launch": launch.to_json(), "binary": str(path)}
        try:
            error = self._worker.ask(request, self._timeout)["error"]
        except TimeoutError:
            self._end()
            return Finding(subject, Status.FAILED, f"no result after {self._timeout:g} s")
        except EOFError:
            words = self._worker.last_words()
            self._end()
            return Finding(subject, Status.FAILED, f"the process died ({words})")
        return judge(subject, launch.kernel, error)


def judge(subject: str, kernel: str, error: float) -> Finding:
    """Whether a probe's relative error is within what its precision allows."""
    tolerance = next(probe.tolerance for probe in PROBES if probe.kernel == kernel)
    status = Status.OK if error <= tolerance else Status.FAILED
    text = f"relative error {error:.1e}, allowed {tolerance:.0e}"
    return Finding(subject, status, text, {"error": error, "tolerance": tolerance})
