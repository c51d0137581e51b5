"""Timing in a process of its own, which may crash, hang or lose its GPU without harming anyone."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Protocol

from boleir.codegen.artifact import Artifact
from boleir.codegen.artifact_folder import write
from boleir.codegen.worker_process import WorkerProcess
from boleir.runtime.tuning.entry import Policy
from boleir.runtime.tuning.keys import TuningKey

VISIBLE = "CUDA_VISIBLE_DEVICES"
WORKER = "boleir.runtime.tuning.measure_worker"


@dataclass(frozen=True, slots=True)
class Measured:
    """A time with the error of the kernels that it belongs to, or the reason why there is none."""

    us: float | None = None
    error: float | None = None
    failure: str | None = None


def measured(answer: Mapping[str, Any]) -> Measured:
    """What a worker has answered; whatever is no time, error or reason is itself a failure."""
    us, error, failure = (answer.get(name) for name in ("us", "error", "failure"))
    real = all(value is None or _is_real(value) for value in (us, error))
    if not real or not isinstance(failure, str | None):
        return Measured(failure=f"the measuring process answered {str(dict(answer))[:120]}")
    return Measured(us, error, failure)


def _is_real(value: object) -> bool:
    """A finite number that is not negative."""
    return type(value) in (int, float) and 0 <= value < float("inf")  # type: ignore[operator]


class Timer(Protocol):
    """Checks and times compiled kernels, one after the other; tests provide their own."""

    def measure(self, artifact: Artifact, key: TuningKey, policy: Policy) -> Measured:
        """Microseconds of one layer of `artifact`. Never raises for what the kernels do."""

    def close(self) -> None:
        """End what is running."""


class WorkerTimer:
    """Measures in a worker process on GPU number `device`; it is started anew after each accident.

    `start` seconds for a process to begin (torch, the float64 reference), `timeout` seconds for one
    candidate.
    """

    def __init__(
        self, device: int = 0, *, start: float = 300.0, timeout: float = 60.0, worker: str = WORKER
    ) -> None:
        self._device, self._start, self._timeout = device, start, timeout
        self._module = worker
        self._process: WorkerProcess | None = None
        self._opened: tuple[TuningKey, Policy] | None = None

    def measure(self, artifact: Artifact, key: TuningKey, policy: Policy) -> Measured:
        """See `Timer.measure`."""
        try:
            return self._measure(artifact, key, policy)
        except OSError as error:  # a full disk, no more processes, a folder that is gone
            self.close()
            return Measured(failure=f"it could not be measured: {error.strerror or error}")

    def _measure(self, artifact: Artifact, key: TuningKey, policy: Policy) -> Measured:
        failure = self._open(key, policy)
        if failure is not None:
            return Measured(failure=failure)
        with tempfile.TemporaryDirectory(prefix="boleir-candidate-") as folder:
            write(artifact, Path(folder) / "kernels")
            answer = self._ask({"do": "measure", "folder": f"{folder}/kernels"}, self._timeout)
        if isinstance(answer, str):
            return Measured(failure=answer)
        if answer.get("poisoned"):
            self.close()  # after an illegal access, every later call in that process would fail
        return measured(answer)

    def _open(self, key: TuningKey, policy: Policy) -> str | None:
        """Have a process that is prepared for this key; the reason if there cannot be one."""
        if self._process is not None and self._opened == (key, policy):
            return None
        request = {"do": "open", "key": key.to_json(), "policy": asdict(policy)}
        answer = self._ask(request, self._start)
        if isinstance(answer, str):
            return f"the measuring process could not begin: {answer}"
        if answer.get("failure"):
            self.close()
            return f"the measuring process could not begin: {answer['failure']}"
        self._opened = (key, policy)
        return None

    def _ask(self, request: Mapping[str, Any], timeout: float) -> dict[str, Any] | str:
        """The answer, or what happened to the process instead."""
        if self._process is None:
            self._process = WorkerProcess(self._module, self._environment)
        try:
            return self._process.ask(request, timeout)
        except TimeoutError:
            self.close()
            return f"no result after {timeout:g} s"
        except EOFError:
            words = self._process.last_words()
            self.close()
            return f"the process died ({words})"
        except BaseException:
            self.close()  # Ctrl-C: an answer on its way would be taken for the next one
            raise

    def _environment(self, scratch: Path) -> dict[str, str]:
        """The worker sees one GPU; nothing is interpreted there."""
        listed = [part for part in os.environ.get(VISIBLE, "").split(",") if part.strip()]
        one = listed[self._device] if self._device < len(listed) else str(self._device)
        kept = {name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"}
        return {**kept, VISIBLE: one, "BOLEIR_TUNING": "off"}

    def close(self) -> None:
        """End the process."""
        if self._process is not None:
            self._process.close()
        self._process, self._opened = None, None
