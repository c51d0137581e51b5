"""All recurrences alike: what has a kernel is checked and timed, what has none is told."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks import recurrences
from benchmarks.serving_shapes import LAYERS, Row
from boleir.codegen.plan import NoKernel
from boleir.library import resolve

ROOT = Path(__file__).resolve().parent.parent.parent


def test_recurrences_are_checked_and_timed(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tests.benchmarks.interpreted_recurrences", str(tmp_path)]
    child = subprocess.run(
        [*command, "--recurrence", "linear_attention"],
        cwd=ROOT,
        env={**os.environ, "TRITON_INTERPRET": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert child.returncode == 0, child.stderr[-2000:]
    report = json.loads((tmp_path / "recurrences.json").read_text())
    (timed,) = report["cases"]
    assert set(timed["us"]) == {"verify", "commit", "whole"}
    assert timed["errors"]["verify"] < 2e-5
    assert (timed["solve"], timed["launches"]) == (False, 1)
    assert "benchmarks.recurrences" in report["environment"]["command"]
    assert "/" not in report["environment"]["command"]
    assert "| linear_attention | 1x5x2 |" in child.stdout


def test_wrong_kernels_and_failures_are_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*arguments: object) -> None:
        raise RuntimeError("an illegal memory access")

    monkeypatch.setattr(recurrences, "compile_for", broken)
    shape = LAYERS["qwen3.5-9b"]
    found = recurrences.measure("gdn", shape, Row(1, 8, 2), recurrences.Policy(), 1e12, "bfloat16")
    assert found["failed"] == "RuntimeError: an illegal memory access"

    def refused(*arguments: object) -> None:
        raise NoKernel("none for this")

    monkeypatch.setattr(recurrences, "compile_for", refused)
    found = recurrences.measure("gdn", shape, Row(1, 8, 2), recurrences.Policy(), 1e12, "bfloat16")
    assert found["no_kernel"] == "none for this"
    assert "no kernel" in recurrences.markdown({"cases": [found]})


def test_decays_per_key_channel_have_a_key_head_for_each_value_head() -> None:
    shape = LAYERS["qwen3.5-9b"]
    assert recurrences.key_heads_for(resolve("kda"), shape) == (32, 16)
    assert recurrences.key_heads_for(resolve("gdn"), shape) == (16,)
