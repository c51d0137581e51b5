"""The host's share of a layer is measured, and is small."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks import host_time


def test_host_time_of_a_layer(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Bounds are several times what an idle machine takes: they catch a check that is made in every
    call, not a busy machine."""
    monkeypatch.delenv("TRITON_INTERPRET", raising=False)
    target = tmp_path / "host.json"
    options = ["--small", "--layers", "8", "--rounds", "40", "--out", str(target)]
    assert host_time.main(options) == 0
    found = json.loads(target.read_text())
    assert [row["launches"] for row in found["rows"]] == [1, 1, 2, 3]
    for row in found["rows"]:
        times = row["us_per_layer"]
        assert times["same tensors"] < 20
        assert times["new tensors"] < 30
        assert times["commit"] < 20
    assert "| three launches |" in capsys.readouterr().out


def test_boleirs_own_share_without_the_driver_is_below_ten_microseconds() -> None:
    """The committed result leaves out the driver's own time: a layer as a whole took 11 to 30 µs of
    the host where it was measured with one, which misses the target of 10."""
    found = json.loads(host_time.RESULT.read_text())
    assert "stand-in" in found["what"]
    for row in found["rows"]:
        assert all(us <= 10 for us in row["us_per_layer"].values())
