"""Kernels handed to `boleir.check`: where they can run, and where they cannot."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

import boleir
from boleir.check.check import check
from boleir.runtime.check_kernel import kernels_here


def test_interpreted_kernels_are_checked(run_interpreted: Callable[..., Any]) -> None:
    found = run_interpreted("tests.runtime.interpreted_check:checked")
    subject, passed, worst = found["gdn"][-1]
    assert subject == "kernel interpreted against the float64 walk"
    assert passed
    assert 0 < worst < 2e-5
    assert "'rows' already means something in emitted kernels" in found["none"]


@pytest.mark.gpu
@pytest.mark.parametrize("name", ["gdn", "gated_delta_rule", "kda", "gated_delta_product"])
def test_every_case_of_the_check_passes_on_a_gpu(name: str) -> None:
    recurrence = boleir.load(name)
    here = kernels_here(recurrence)
    assert here.kernels, here.reason
    report = check(
        recurrence, trees=1, kernels=here.kernels, kernel_shape=here.shape, kernel_nodes=here.nodes
    )
    assert any("kernel" in finding.subject for finding in report.findings)
    report.require()


def test_without_a_gpu_there_is_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    if torch.cuda.is_available():
        pytest.skip("there is a GPU")
    monkeypatch.delenv("TRITON_INTERPRET", raising=False)
    here = kernels_here(boleir.load("gdn"))
    assert here.kernels == {}
    assert "no GPU" in here.reason
