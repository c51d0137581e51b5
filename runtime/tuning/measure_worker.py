"""The process that checks and times candidates; started by `boleir.runtime.tuning.timer`.

Requests: `open` with a key and a policy prepares inputs and their exact results; `measure` with a
compiled folder answers with `us` and `error`, or with `failure`. After an error of the GPU the
answer is marked `poisoned`, since nothing in this process will work any more.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from boleir.codegen.worker_process import serve
from boleir.errors import BoleirError
from boleir.language.parser import parse
from boleir.runtime.tuning.entry import Policy
from boleir.runtime.tuning.keys import TuningKey
from boleir.runtime.tuning.trial_inputs import Trial, judge, trials

if TYPE_CHECKING:
    from boleir.runtime.kernel import Kernel

Load = Callable[[str], "Kernel"]


class Bench:
    """One key with its trials. `load` makes a kernel of a compiled folder."""

    def __init__(self, key: TuningKey, policy: Policy, load: Load) -> None:
        self.key, self.policy, self.load = key, policy, load
        self.trials: list[Trial] = trials(parse(key.text), key, policy.cases)

    def measure(self, folder: str) -> dict[str, Any]:
        """Check first, then time; what is wrong is not timed."""
        from boleir.runtime.check_kernel import KernelUnderCheck
        from boleir.runtime.tuning.timing import layer_us

        kernel = self.load(folder)
        checked = KernelUnderCheck(kernel)
        worst = 0.0
        for trial in self.trials:
            error, failure = judge(trial, checked(trial.sample), self.key)
            worst = max(worst, error)
            if failure is not None:
                return {"failure": failure, "error": finite(worst)}
        return {"us": layer_us(kernel, self.key.batch, self.policy), "error": finite(worst)}


def finite(error: float) -> float | None:
    """An error as JSON can carry it; None for infinity."""
    return error if error < float("inf") else None


def failed(error: Exception) -> dict[str, Any]:
    """An answer for an error; those of the GPU make the process useless."""
    text = " ".join(str(error).split())[:300]
    return {
        "failure": f"{type(error).__name__}: {text}",
        "poisoned": not isinstance(error, BoleirError) or "CUDA_ERROR" in text,
    }


class Answerer:
    """Keeps the open bench between requests."""

    def __init__(self, load: Load) -> None:
        self._load = load
        self._bench: Bench | None = None

    def __call__(self, request: dict[str, Any]) -> dict[str, Any]:
        """The answer to one request; see the module."""
        try:
            if request["do"] == "open":
                started = time.perf_counter()
                parents = request["key"]["parents"]
                key = TuningKey(
                    **{**request["key"], "parents": None if parents is None else tuple(parents)}
                )
                self._bench = Bench(key, Policy(**request["policy"]), self._load)
                return {"ready": time.perf_counter() - started}
            if self._bench is None:
                return {"failure": "no key is open"}
            return self._bench.measure(request["folder"])
        except Exception as error:
            return failed(error)


def _load(folder: str) -> Kernel:
    from boleir.runtime.api import load_compiled

    return load_compiled(folder)


def main() -> None:
    """Serve requests until standard input ends."""
    serve(Answerer(_load))


if __name__ == "__main__":
    main()
