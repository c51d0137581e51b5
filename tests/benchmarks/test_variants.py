"""Schedules side by side: how items are read, and what becomes of those that fail."""

from __future__ import annotations

import argparse
from pathlib import Path

import pytest

from benchmarks import variants
from benchmarks.serving_shapes import Row


def test_items_are_read() -> None:
    item = variants.item_from("gdn@16x64x8:b_k=32,stages=4,prefetch=True,fusion=split")
    assert (item.recurrence, item.row) == ("gdn", Row(16, 64, 8))
    assert item.fields == {"b_k": 32, "stages": 4, "prefetch": True, "fusion": "split"}
    assert variants.item_from("kda@1x16x5").fields == {}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("gdn", "expected NAME@REQUESTSxNODESxDEPTH"),
        ("gdn@16x64", "expected NAME@REQUESTSxNODESxDEPTH"),
        ("@1x16x5", "expected NAME@REQUESTSxNODESxDEPTH"),
        ("gdn@1x16x5:tiles=3", "a schedule has no field 'tiles'"),
        ("gdn@1x16x5:b_v=wide", "b_v cannot be 'wide'"),
        ("gdn@1x16x5:prefetch=1", "prefetch cannot be '1'"),
    ],
)
def test_wrong_items_are_named(text: str, message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert variants.main([text]) == 2
    assert message in capsys.readouterr().err


def test_a_child_that_fails_costs_its_item_alone(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    answers = {
        "gdn@1x2x1": {"errors": {"verify": 1e-6, "commit": 1e-7}, "wrong": False,
                      "us": {"verify": 3.0, "commit": 1.0, "whole": 4.0}},
        "gdn@1x3x1": {"errors": {"verify": 1.0, "commit": 1e-7}, "wrong": True},
    }  # fmt: skip
    failed = {"failed": "not done after 1 s"}

    def child(item: variants.Item, options: argparse.Namespace, step: str) -> dict[str, object]:
        return {} if step == "compile" else answers.get(item.text, failed)

    monkeypatch.setattr(variants, "in_child", child)
    monkeypatch.setattr(variants.torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(variants, "environment", lambda clock: {})
    monkeypatch.setattr(variants, "make_clock", lambda device: None)
    arguments = [*answers, "gdn@1x4x1", "--out", str(tmp_path)]
    assert variants.main(arguments) == 1
    told = capsys.readouterr().out.splitlines()
    assert told[0].startswith("gdn@1x2x1: verify 3.00")
    assert "WRONG" in told[1]
    assert "not done" in told[2]
    assert (tmp_path / "variants.json").exists()
