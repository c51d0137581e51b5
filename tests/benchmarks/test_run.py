"""The command line on a CPU, and the floor it reports."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

from benchmarks import floor, registry, run
from benchmarks.serving_shapes import LAYERS, ROW_SETS, LayerShape, Row, layer_shape

TINY = LayerShape("qwen3.5-9b", key_heads=1, value_heads=2, d_k=16, d_v=16)


@pytest.fixture
def tiny_layer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(LAYERS, "qwen3.5-9b", TINY)


@pytest.mark.usefixtures("tiny_layer")
def test_writes_json_and_prints_tables(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    common = ["--device", "cpu", "--layers", "2", "--rounds", "2", "--subjects", "torch"]
    code = run.main([*common, "--rows", "2x5x2", "1x3", "--out", str(tmp_path), "--name", "t"])
    assert code == 0
    report = json.loads((tmp_path / "t.json").read_text())
    assert [(case["row"], case["mode"]) for case in report["cases"]] == [
        ("2x5x2", "core"),
        ("2x5x2", "full"),
        ("1x3x2", "core"),
        ("1x3x2", "full"),
    ]
    assert report["environment"]["command"].startswith("python -m benchmarks.run")
    assert set(report["cases"][1]["subjects"]["torch"]["stages"]) >= {"conv", "verify", "commit"}
    printed = capsys.readouterr().out
    assert "| 2x5x2 | torch |" in printed


@pytest.mark.usefixtures("tiny_layer")
def test_missing_peers_are_named_with_the_way_to_get_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ["--device", "cpu", "--layers", "1", "--rounds", "1", "--rows", "1x3", "--mode"]
    options += ["core", "--subjects", "sglang", "fla-recurrent", "--out", str(tmp_path)]
    assert run.main([*options, "--peers", str(tmp_path / "none")]) == 1
    complaint = capsys.readouterr().err
    assert complaint.count("python -m benchmarks.fetch_peers") == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--rows", "1x2x9"], "depth < nodes"),
        (["--subjects", "nobody"], "unknown subject 'nobody'"),
        (["--subjects", "no.such.module:make"], "No module named"),
    ],
)
def test_bad_arguments_are_refused_in_one_line(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run.main([*arguments, "--device", "cpu"]) == 2
    complaint = capsys.readouterr().err
    assert message in complaint
    assert complaint.count("\n") == 1


@pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has a GPU")
def test_no_gpu_is_said_in_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert run.main([]) == 2
    assert capsys.readouterr().err == "benchmarks.run: no GPU found\n"


def test_the_recorded_command_holds_no_folders() -> None:
    arguments = ["--rows", "1x4", "--out", "/a/b", "--peers=/c", "--name", "x"]
    assert run.command_line(arguments) == "python -m benchmarks.run --rows 1x4 --name x"


def test_row_sets_expand_once() -> None:
    rows = run.rows_from(["trees", "16x64x8", "1x4"])
    assert rows == [*ROW_SETS["trees"], Row(1, 4, 3)]


def test_default_subjects_follow_the_row() -> None:
    assert "sglang-decode" in registry.default_names(Row(1, 1, 0), full=False)
    assert "fla-recurrent" in registry.default_names(Row(1, 4, 3), full=False)
    assert registry.default_names(Row(1, 16, 5), full=True)[-2:] == ["sglang", "torch"]


def test_floor_counts_the_state_once_and_commit_twice() -> None:
    shape, row = LAYERS["qwen3.5-9b"], Row(16, 64, 8)
    needed = floor.stage_bytes(shape, row, "gdn")
    state = 16 * 32 * 128 * 128 * 4
    assert needed["verify"] - state == 1024 * 2 * (8192 + 64 + 4096)
    assert 2 * state < needed["commit"] < 2.1 * state
    # At 4.3 TB/s: about 13.7 µs of traffic and 16 µs of commit.
    times = floor.floor_microseconds(shape, row, "gdn", 4.3e12)
    assert times["verify"] == pytest.approx(13.7, rel=0.05)
    assert times["commit"] == pytest.approx(15.8, rel=0.05)


def test_key_channel_rows_use_equal_heads() -> None:
    assert layer_shape("qwen3.5-9b", "kda").key_heads == 32
    assert layer_shape("qwen3.5-9b", "gdn") is LAYERS["qwen3.5-9b"]
