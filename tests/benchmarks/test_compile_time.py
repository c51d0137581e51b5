"""Import, compilation and loading stay below what serving can bear."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks import compile_time


def test_a_variant_is_compiled_and_loaded(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Bounds are several times what an idle machine takes."""
    monkeypatch.delenv("TRITON_INTERPRET", raising=False)
    monkeypatch.setattr(compile_time, "RECURRENCES", ("linear_attention",))
    options = ["--rows", "1x8x3", "--every", "0", "--out", str(tmp_path / "found.json")]
    assert compile_time.main(options) == 0
    found = json.loads((tmp_path / "found.json").read_text())
    assert found["import_seconds"] < 1.0
    (variant,) = found["variants"]
    assert set(variant["kernel_seconds"]) >= {"commit"}
    assert variant["seconds"] < 30
    assert variant["load_ms"] < 250
    assert "import boleir" in capsys.readouterr().out


def test_the_committed_result_keeps_the_targets_it_can_show() -> None:
    found = json.loads(compile_time.RESULT.read_text())
    assert found["import_seconds"] <= 0.3
    for variant in found["variants"]:
        assert variant["load_ms"] <= 50
        assert max(variant["kernel_seconds"].values()) <= 6
    for tuning in found["tuning"]:
        assert tuning["estimated_compile_seconds"] + tuning["ranking_seconds"] <= 60
