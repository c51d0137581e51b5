"""`bolec autotune` and `bolec cache`."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from boleir.cli.autotune_command import numbers
from boleir.cli.main import main
from boleir.codegen.schedule import Schedule
from boleir.runtime import cache_root as cache_root_module
from boleir.runtime.tuning import autotune as autotune_module
from boleir.runtime.tuning import store as store_module
from boleir.runtime.tuning.store import Store
from boleir.runtime.tuning.timer import Measured
from tests.runtime.tuning_support import HERE, FakeTimer, entry, fake_bench, key, outcome, smooth


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    monkeypatch.setenv("BOLEIR_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(store_module, "_warned", set())
    cache_root_module.cache_root.cache_clear()
    yield Store(tmp_path / "cache" / "tuning")
    cache_root_module.cache_root.cache_clear()


def answer(capsys: pytest.CaptureFixture[str], *argv: str, status: int = 0) -> Any:
    """What a command prints with --json."""
    assert main([*argv, "--json"]) == status
    return json.loads(capsys.readouterr().out)


# ---- autotune --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "found"), [("16", (16,)), ("16,32", (16, 32)), ("1..32", (1, 2, 4, 8, 16, 32))]
)
def test_lists_of_numbers(text: str, found: tuple[int, ...]) -> None:
    assert numbers(text) == found


@pytest.mark.parametrize("text", ["", "a", "1,", "1..", "3..3", "-1"])
def test_bad_lists_are_refused(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError):
        numbers(text)


def test_a_dry_run_needs_no_gpu(capsys: pytest.CaptureFixture[str]) -> None:
    argv = ["autotune", "gated_delta_rule", "--dry-run", "--nodes", "16", "--depth", "5"]
    found = answer(capsys, *argv, "--batch", "1", "--show", "4", "--target", "sm_120")
    assert len(found) == 1
    assert found[0]["target"] == "sm_120"
    assert found[0]["key"]["depth"] == 8
    assert found[0]["schedules"] > 1000
    kinds, first = found[0]["kinds"], found[0]["first"]
    times = [item["us"] for item in kinds]
    assert times == sorted(times)
    assert sum(item["schedules"] for item in kinds) == found[0]["schedules"]
    assert len(first) == 4
    assert first[0]["schedule"] == found[0]["default"]["schedule"]
    assert times[0] in {item["us"] for item in first}  # behind what is offered
    assert main([*argv, "--batch", "1", "--show", "2", "--target", "sm_90"]) == 0
    text = capsys.readouterr().out
    assert "nodes 16x8 batch 1, sm_90:" in text
    assert "the best of each kind (predicted)" in text
    assert "tried first" in text


def test_without_a_gpu_it_says_what_can_be_done(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert main(["autotune", "gdn"]) == 1
    assert "--dry-run shows what the model predicts" in capsys.readouterr().err


@pytest.mark.parametrize("batch", ["65", "0"])
def test_outside_the_range_it_is_refused(capsys: pytest.CaptureFixture[str], batch: str) -> None:
    assert main(["autotune", "gdn", "--dry-run", "--batch", batch]) == 1
    assert f"batch {batch} is not in 1..64" in capsys.readouterr().err


def use(monkeypatch: pytest.MonkeyPatch, root: Path, timer: FakeTimer) -> list[Any]:
    """Let the command tune on a bench without compiler and GPU."""
    on, compiler = fake_bench(root, timer)
    monkeypatch.setattr(autotune_module, "bench", lambda *_: on)
    return [on, compiler]


ARGV = ("autotune", "gated_delta_rule", "--nodes", "16", "--depth", "5", "--batch", "1")


def test_tuning_reports_and_keeps(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, own_cache: Store
) -> None:
    timer = FakeTimer(smooth)
    _, compiler = use(monkeypatch, own_cache.root, timer)
    found = answer(capsys, *ARGV, "--effort", "quick", "--quiet")
    (one,) = found["entries"]
    assert one["measured"] == len(timer.asked)
    times = [smooth(schedule).us or 0.0 for schedule in timer.asked]
    chosen = smooth(Schedule.from_json(one["chosen"])).us or 0.0
    assert chosen <= 1.02 * min(times)  # a tie, at most
    assert chosen < times[0]  # the default's
    assert one["failed"] == []
    assert -1 <= one["rank_correlation"] <= 1
    assert found["environment"]["gpu"] == "h200"
    assert (timer.closed, compiler.closed) == (1, 1)
    assert own_cache.load(HERE, key()) is not None
    before = len(timer.asked)
    assert main([*ARGV, "--effort", "quick"]) == 0
    shown = capsys.readouterr()
    assert "gated_delta_rule 16:32 128x128 bf16 nodes 16x8 batch 1" in shown.out
    assert "[" in shown.err and "best" in shown.err
    assert all(s not in timer.asked[:before] for s in timer.asked[before:])


def test_status_1_where_nothing_works(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    use(monkeypatch, tmp_path / "s", FakeTimer(lambda s: Measured(failure="wrong output")))
    found = answer(capsys, *ARGV, "--effort", "quick", "--quiet", status=1)
    assert found["entries"][0]["failed"][0]["reason"] == "wrong output"
    assert main([*ARGV, "--effort", "quick", "--quiet"]) == 1
    assert "nothing works" in capsys.readouterr().out


def test_processes_are_ended_after_ctrl_c(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def interrupted(schedule: object) -> Measured:
        raise KeyboardInterrupt

    timer = FakeTimer(interrupted)
    _, compiler = use(monkeypatch, tmp_path / "s", timer)
    assert main([*ARGV, "--effort", "quick", "--quiet"]) == 130
    assert (timer.closed, compiler.closed) == (1, 1)


# ---- cache -----------------------------------------------------------------------------------


def test_path(capsys: pytest.CaptureFixture[str], own_cache: Store) -> None:
    assert main(["cache", "path"]) == 0
    assert capsys.readouterr().out.strip() == str(own_cache.root)
    assert answer(capsys, "cache", "path") == {"path": str(own_cache.root), "exists": False}


def test_list_and_show(capsys: pytest.CaptureFixture[str], own_cache: Store) -> None:
    assert main(["cache", "list"]) == 0
    assert "no tuned schedules" in capsys.readouterr().out
    own_cache.save(entry())
    assert main(["cache", "list"]) == 0
    text = capsys.readouterr().out
    assert "h200" in text
    assert "b_v=32" in text
    (one,) = answer(capsys, "cache", "list")
    assert (one["us"], one["candidates"]) == (5.0, 3)
    assert len(answer(capsys, "cache", "list", "--shipped")) > 1
    assert main(["cache", "show", "gated"]) == 0
    text = capsys.readouterr().out
    assert "failed: warps=8: no luck" in text
    assert "*  5.00" in text
    assert answer(capsys, "cache", "show")[0]["outcomes"][0]["us"] == 7.0
    assert main(["cache", "show", "nothing"]) == 1
    assert "no entry has 'nothing'" in capsys.readouterr().err


def test_export_import_merge(
    capsys: pytest.CaptureFixture[str], own_cache: Store, tmp_path: Path
) -> None:
    own_cache.save(entry())
    bundle = tmp_path / "all.json"
    assert answer(capsys, "cache", "export", str(bundle))["exported"] == 1
    own_cache.replace(entry(outcome(1.0, b_v=16)))
    assert answer(capsys, "cache", "import", str(bundle)) == {"new": 0, "extended": 1, "kept": 0}
    other = Store(tmp_path / "other")
    other.save(entry(of=key(batch=16)))
    assert answer(capsys, "cache", "merge", str(other.root))["new"] == 1
    found = own_cache.load(HERE, key())
    assert found is not None
    assert len(found.outcomes) == 4
    assert main(["cache", "merge", str(tmp_path / "absent")]) == 1
    assert "is no folder" in capsys.readouterr().err
    assert main(["cache", "import", str(tmp_path / "absent")]) == 1
    assert "does not exist" in capsys.readouterr().err


@pytest.mark.parametrize("action", ["export", "import", "merge"])
def test_what_needs_an_argument_says_so(capsys: pytest.CaptureFixture[str], action: str) -> None:
    assert main(["cache", action]) == 1
    assert f"cache {action} needs the" in capsys.readouterr().err


def test_prune(capsys: pytest.CaptureFixture[str], own_cache: Store) -> None:
    own_cache.save(entry())
    own_cache.save(entry(where=replace(HERE, gpu="a100")))
    argv = ("cache", "prune", "--keep", "h200")
    planned = answer(capsys, *argv, "--dry-run")
    assert len(planned["removed"]) == 1
    assert len(own_cache.files()) == 2
    assert answer(capsys, *argv)["removed"] == planned["removed"]
    assert own_cache.load(HERE, key()) == entry()
    assert len(own_cache.files()) == 1


@pytest.mark.parametrize("keep", ["H200", "h2OO", "b300"])
def test_pruning_never_removes_everything_by_a_slip(
    capsys: pytest.CaptureFixture[str], own_cache: Store, keep: str
) -> None:
    own_cache.save(entry())
    own_cache.save(entry(where=replace(HERE, gpu="a100")))
    assert main(["cache", "prune", "--keep", keep]) == 1
    text = capsys.readouterr().err
    assert keep in text and HERE.folder in text
    assert len(own_cache.files()) == 2


@pytest.mark.parametrize(
    ("argv", "why"),
    [
        (("prune", "h200"), "--keep h200"),
        (("list", "h200"), "takes no argument 'h200'"),
        (("path", "extra"), "takes no argument 'extra'"),
        (("list", "--keep", "h200"), "has no --keep"),
        (("merge", "x", "--dry-run"), "has no --dry-run"),
        (("import", "x", "--shipped"), "has no --shipped"),
    ],
)
def test_words_that_mean_nothing_are_refused(
    capsys: pytest.CaptureFixture[str], own_cache: Store, argv: tuple[str, ...], why: str
) -> None:
    own_cache.save(entry(where=replace(HERE, gpu="a100")))
    assert main(["cache", *argv]) == 1
    assert why in capsys.readouterr().err
    assert len(own_cache.files()) == 1


def test_flags_may_stand_anywhere(
    capsys: pytest.CaptureFixture[str], own_cache: Store, tmp_path: Path
) -> None:
    own_cache.save(entry())
    found = answer(capsys, "cache", "show", "gated")
    for argv in (
        ["--json", "cache", "show", "gated"],
        ["cache", "--json", "show", "gated"],
        ["cache", "show", "--json", "gated"],
        ["cache", "show", "--shipped", "--json", "gated_delta_rule_h16-32_d128-128_n16-8_b1_"],
    ):
        assert main(argv) == 0
        assert json.loads(capsys.readouterr().out)[0] == found[0]
    assert main(["cache", "export", "--json", str(tmp_path / "all.json")]) == 0
    assert main(["cache", "import", "--json", str(tmp_path / "all.json")]) == 0
    capsys.readouterr()
    with pytest.raises(SystemExit):
        main(["cache", "show", "--", "gated", "--json"])


def test_exporting_replaces_nothing_unasked(
    capsys: pytest.CaptureFixture[str], own_cache: Store, tmp_path: Path
) -> None:
    own_cache.save(entry())
    there = tmp_path / "notes.json"
    there.write_text("mine")
    assert main(["cache", "export", str(there)]) == 1
    assert "--force replaces it" in capsys.readouterr().err
    assert there.read_text() == "mine"
    assert answer(capsys, "cache", "export", "--force", str(there))["exported"] == 1
    assert main(["cache", "export", "--force", "/dev/null"]) == 1
    assert not Path("/dev/null").is_file()


def test_merging_a_folder_without_tunings_says_where_they_lie(
    capsys: pytest.CaptureFixture[str], own_cache: Store, tmp_path: Path
) -> None:
    Store(tmp_path / "other" / "tuning").save(entry())
    assert main(["cache", "merge", str(tmp_path / "other")]) == 1
    text = capsys.readouterr().err
    assert "holds no tuned schedules" in text
    assert str(tmp_path / "other" / "tuning") in text
    assert main(["cache", "merge", str(tmp_path)]) == 1
    assert answer(capsys, "cache", "merge", str(tmp_path / "other" / "tuning"))["new"] == 1


def test_a_list_tells_tunings_from_other_times(capsys: pytest.CaptureFixture[str]) -> None:
    shipped = answer(capsys, "cache", "list", "--shipped")
    assert shipped
    assert all(item["origin"].startswith("boleir ") for item in shipped)
