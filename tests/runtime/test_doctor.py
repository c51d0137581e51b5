"""The doctor, without a GPU and on one."""

from __future__ import annotations

import json

import pytest
import torch

from boleir.codegen.kernel_spec import Job
from boleir.codegen.offline import CompilePool, all_compiled
from boleir.codegen.targets import TARGETS
from boleir.codegen.worker_process import WorkerProcess
from boleir.runtime import doctor, dots
from boleir.runtime.doctor import examine
from boleir.runtime.dots import judge
from boleir.runtime.findings import Finding, Status
from boleir.runtime.probes import PROBES, WARPS, probe_source, probe_specs, relative_error
from tests.codegen.sample import fake_kernel, launch


@pytest.fixture(scope="module")
def findings() -> list[Finding]:
    return list(examine())


def test_every_subject_is_reported(findings: list[Finding]) -> None:
    subjects = [finding.subject for finding in findings]
    for subject in ("python", "torch", "triton", "driver", "gpu", "cache", "triton cache"):
        assert subject in subjects
    assert {f"compile {name}" for name in TARGETS} <= set(subjects)


def test_every_target_compiles_here(findings: list[Finding]) -> None:
    compiled = [finding for finding in findings if finding.subject.startswith("compile")]
    assert {finding.status for finding in compiled} == {Status.OK}


def test_findings_are_single_lines_and_plain(findings: list[Finding]) -> None:
    for finding in findings:
        assert len(finding.text.splitlines()) == 1
        assert json.loads(json.dumps(finding.to_json()))["subject"] == finding.subject


@pytest.mark.skipif(torch.cuda.is_available(), reason="a GPU is present")
def test_without_a_gpu_dots_are_skipped(findings: list[Finding]) -> None:
    status = {finding.subject: finding.status for finding in findings}
    assert status["gpu"] is Status.SKIPPED
    assert status["dots"] is Status.SKIPPED
    assert Status.FAILED not in status.values()


@pytest.mark.gpu
def test_on_a_gpu_every_dot_is_right(findings: list[Finding]) -> None:
    dots = [finding for finding in findings if finding.subject.startswith("dot ")]
    assert len(dots) == len(PROBES) * len(WARPS)
    assert {finding.status for finding in dots} == {Status.OK}


def test_every_probe_compiles_for_every_required_target(pool: CompilePool) -> None:
    """With every number of warps for one target, whose products are those of warp groups."""
    jobs = [
        Job(probe_source(), spec, TARGETS[name])
        for spec in probe_specs()
        for name in ("sm_80", "sm_90", "sm_100")
        if name == "sm_90" or spec.num_warps == WARPS[0]
    ]
    assert len(all_compiled(pool.run(jobs))) == len(PROBES) * (len(WARPS) + 2)


def test_integer_probes_are_exact_in_bf16() -> None:
    # Sums of 64 products of integers up to 2 stay within what bf16 holds exactly.
    largest = 64 * 2 * 2
    assert float(torch.tensor(largest).bfloat16()) == largest


@pytest.mark.parametrize("probe", PROBES, ids=lambda probe: probe.kernel)
def test_errors_are_judged_by_the_probes_own_tolerance(probe) -> None:
    assert judge("dot", probe.kernel, probe.tolerance).status is Status.OK
    assert judge("dot", probe.kernel, probe.tolerance + 1e-3).status is Status.FAILED


def test_results_that_are_not_finite_count_as_infinitely_wrong() -> None:
    expected = torch.ones(2, 2).double()
    assert relative_error(torch.full((2, 2), float("nan")), expected) == float("inf")
    assert relative_error(expected.float(), expected) == 0.0
    assert judge("dot", "tf32", float("inf")).status is Status.FAILED


def test_known_hazards_depend_on_version_and_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    def texts(version: str, target: str) -> list[str]:
        monkeypatch.setattr(doctor, "_version", lambda _: version)
        return [finding.text for finding in doctor._hazards(TARGETS[target])]

    assert "transposed accumulator" in texts("3.6.0", "sm_90")[0]
    assert texts("3.6.0", "sm_80") == []
    assert "dots of 32" in texts("3.7.1", "sm_90")[0]
    assert texts("3.9.0+cu130", "sm_90") == []


class _Dying(WorkerProcess):
    """A worker that dies at once, or never answers."""

    failure: type[Exception] = EOFError

    def __init__(self, *_: object) -> None:
        pass

    def ask(self, *_: object) -> dict[str, object]:
        raise self.failure

    def last_words(self) -> str:
        return "SIGSEGV: CUDA error"

    def close(self) -> None:
        pass


@pytest.mark.parametrize(
    ("failure", "text"), [(EOFError, "died (SIGSEGV: CUDA error)"), (TimeoutError, "9 s")]
)
def test_crashes_and_hangs_are_findings(
    monkeypatch: pytest.MonkeyPatch, tmp_path, failure: type[Exception], text: str
) -> None:
    monkeypatch.setattr(_Dying, "failure", failure)
    monkeypatch.setattr(doctor, "WorkerProcess", _Dying)
    monkeypatch.setattr(dots, "WorkerProcess", _Dying)
    gpu = doctor._ask_gpus(9)
    spec = probe_specs()[0]
    with dots.Prober(9) as prober:
        dot = prober.try_one("dot", launch(spec), fake_kernel(spec, "sm_90"), tmp_path / "x")
    for finding in (gpu, dot):
        assert finding.status is Status.FAILED
        assert text in finding.text
