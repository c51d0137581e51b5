"""Kernels handed to `boleir.check`: where they can run, and where they cannot."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

import boleir
from boleir.runtime.check_kernel import kernels_here

ROOT = Path(__file__).resolve().parent.parent.parent

_CHECK = """
import json
import boleir
from boleir.check.check import check
from boleir.check.inputs import Case
from boleir.runtime.check_kernel import kernels_here

def findings(recurrence):
    here = kernels_here(recurrence)
    over = [Case("roots", "cosine", log_decay=-0.03), Case("chain", log_decay=-100.0),
            Case("roots", "identical", 1.0, -100.0)]  # here an output nearly vanishes
    report = check(recurrence, trees=1, over=over, kernels=here.kernels,
                   kernel_shape=here.shape, kernel_nodes=here.nodes)
    return [(str(f.subject), f.passed, f.worst) for f in report.findings]

taken = '''
recurrence taken(rows: key, k: key, v: value)
  S = S + k v^T
  out S^T rows
'''
print(json.dumps({
    "gdn": findings(boleir.load("gdn")),
    "none": kernels_here(boleir.parse(taken)).reason,
}))
"""


def test_interpreted_kernels_are_checked() -> None:
    child = subprocess.run(
        [sys.executable, "-c", _CHECK],
        cwd=ROOT,
        env={**os.environ, "TRITON_INTERPRET": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert child.returncode == 0, child.stderr[-3000:]
    found = json.loads(child.stdout.splitlines()[-1])
    subject, passed, worst = found["gdn"][-1]
    assert subject == "kernel interpreted against the float64 walk"
    assert passed
    assert 0 < worst < 2e-5
    assert "'rows' already means something in emitted kernels" in found["none"]


def test_without_a_gpu_there_is_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    if torch.cuda.is_available():
        pytest.skip("there is a GPU")
    monkeypatch.delenv("TRITON_INTERPRET", raising=False)
    here = kernels_here(boleir.load("gdn"))
    assert here.kernels == {}
    assert "no GPU" in here.reason
