"""Import, compilation and loading stay below what serving can bear."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks import compile_time
from benchmarks.compile_phases import PHASES


def test_a_variant_is_compiled_and_loaded(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Bounds are several times what an idle machine takes."""
    monkeypatch.delenv("TRITON_INTERPRET", raising=False)
    monkeypatch.setattr(compile_time, "RECURRENCES", ("linear_attention",))
    options = ["--rows", "1x8x3", "--every", "0", "--rounds", "1"]
    out = tmp_path / "found.json"
    assert compile_time.main([*options, "--out", str(out)]) == 0
    found = json.loads(out.read_text())
    assert found["command"] == "python -m benchmarks.compile_time " + " ".join(options)
    assert found["import_seconds"] < 1.0
    assert 0 < found["empty_kernel_seconds"] < 2
    assert 0 < found["start_seconds"] < 10
    (variant,) = found["variants"]
    assert set(variant["kernel_seconds"]) >= {"commit", "topology"}
    for name, seconds in variant["kernel_seconds"].items():
        assert list(variant["phases"][name]) == list(PHASES)
        assert sum(variant["phases"][name].values()) == pytest.approx(seconds, abs=0.05)
    assert variant["phases"]["commit"]["LLVM"] > 0
    assert variant["phases"]["commit"]["assembler"] > 0
    assert variant["seconds"] < 30
    assert variant["load_ms"] < 250
    assert "import boleir" in capsys.readouterr().out


def test_the_committed_result_keeps_the_targets_it_can_show() -> None:
    found = json.loads(compile_time.RESULT.read_text())
    assert found["import_seconds"] <= 0.3
    for variant in found["variants"]:
        assert variant["load_ms"] <= 50
        for kernel, seconds in variant["kernel_seconds"].items():
            assert seconds <= (6 if kernel == "verify" else 2)  # a joined kernel is two in one
    for tuning in found["tuning"]:
        assert tuning["estimated_compile_seconds"] + tuning["ranking_seconds"] <= 60
