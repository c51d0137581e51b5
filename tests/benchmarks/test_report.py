"""Tables and figures come from result files: right numbers, and nothing where there is none."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks import footprint, plots, report
from benchmarks.reading import RESULTS, read_reports, read_results
from benchmarks.serving_shapes import (
    BATCH_ROWS,
    DEPTH_ROWS,
    GROWTH_ROWS,
    LAYERS,
    TREE_ROWS,
    Row,
)


def stub(rows: tuple[Row, ...], mode: str = "core", kind: str = "gdn", **us: float) -> Any:
    """A report in which every subject takes so many microseconds on every row."""

    def subject(value: float) -> dict[str, Any]:
        stages = {name: {"median": value} for name in ("verify", "commit", "conv")}
        return {"stages": stages, "sum": 3 * value, "wrong": [], "errors": {}}

    cases = [
        {
            "layer": "qwen3.5-9b",
            "row": str(row),
            "mode": mode,
            "kind": kind,
            "floor_us": {"verify": 2.0, "commit": 1.0, "conv": 1.0},
            "subjects": {name.replace("_", "-"): subject(value) for name, value in us.items()},
        }
        for row in rows
    ]
    return {"environment": {"device": "GPU"}, "copy_bandwidth": 2e12, "cases": cases}


def line(text: str, *words: str) -> str:
    (found,) = [x for x in text.splitlines() if all(word in x for word in words)]
    return found


def test_targets_are_decided_by_what_was_measured() -> None:
    trees = stub(TREE_ROWS, boleir=5.0, sglang=100.0)
    text = report.targets([trees])
    assert "| 20.0x | yes |" in line(text, "core vs SGLang serial", "1x64x8", ">= 10x")
    assert "| 20.0x | no |" in line(text, "| core vs SGLang serial", "16x64x8")
    assert "| 2.50x | no |" in line(text, "byte floor", "16x64x8")
    assert "not measured" in line(text, "chain", "1x4x3")
    chains = stub((Row(1, 4, 3),), boleir=5.0, sglang=9.0, sglang_replay=4.0)
    assert "| 1.25x | no |" in line(report.targets([chains]), "chain", "1x4x3")
    decode = stub((Row(1, 1, 0),), sglang_decode=6.0)
    both = [decode, stub((Row(1, 16, 7),), boleir=6.0)]
    assert "| 1.00x | yes |" in line(report.targets(both), "decoded token", "1x16x7")
    kda = stub((Row(1, 64, 8),), kind="kda", boleir=10.0, sglang=90.0)
    assert "| 9.0x | yes |" in line(report.targets([kda]), "KDA", "1x64x8")


def test_recurrences_without_a_solve_are_judged_at_the_same_shape() -> None:
    def case(name: str, heads: list[int], us: float, *, solve: bool) -> dict[str, Any]:
        own = {"recurrence": name, "row": "16x64x8", "heads": heads, "solve": solve}
        return {**own, "us": {"verify": us}}

    cases = [case("gated_delta_rule", [16, 32], 40.0, solve=True)]
    cases += [case("gla", [32, 32], 20.0, solve=False), case("gla", [16, 32], 32.0, solve=False)]
    cases += [case("kda", [16, 32], 20.0, solve=True), case("mamba2", [16, 32], 25.0, solve=False)]
    text = report.targets([{"cases": cases}])
    assert "| 1.25x | no |" in line(text, "gla vs the gated delta rule", ">= 1.3x")
    assert "| 1.6x | yes |" in line(text, "mamba2 vs the gated delta rule")
    assert "kda vs the gated" not in text


def test_cliffs_are_found_and_their_absence_too() -> None:
    text = report.targets([stub((Row(1, 64, 7), Row(1, 65, 7), Row(16, 64, 8)), boleir=5.0)])
    assert "| 1x | yes |" in line(text, "one node more", "1x64 to 1x65")
    assert "not measured" in line(text, "one node more", "16x64 to 16x65")
    slow = stub((Row(1, 65, 7), Row(32, 64, 8)), boleir=11.0)
    both = [stub((Row(1, 64, 7), Row(16, 64, 8)), boleir=5.0), slow]
    assert "| 2.2x | no |" in line(report.targets(both), "1x64 to 1x65")
    assert "| 2.2x | no |" in line(report.targets(both), "twice the requests", "16x64 to 32x64")


def test_launches_host_time_and_waiting_are_judged() -> None:
    def variant(row: str, *kernels: str) -> dict[str, Any]:
        times = dict.fromkeys((*kernels, "commit", "topology"), 1.0)
        own = {"recurrence": "gdn", "row": row, "kernel_seconds": times, "seconds": 3.5}
        return {**own, "load_ms": 1.0, "first_load_ms": 60.0}

    compiled = {
        "import_seconds": 0.2,
        "variants": [
            variant("1x16x5", "verify"),
            variant("16x64x8", "prepare", "factors", "values"),
        ],
        "tuning": [{"key": "a key", "estimated_compile_seconds": 20.0, "ranking_seconds": 2.0}],
    }
    trees = stub((Row(1, 16, 5),), boleir=5.0)
    trees["cases"][0]["subjects"]["boleir"]["host"] = 12.0
    text = report.targets([trees, compiled])
    assert "| <= 1 | 1 | yes |" in line(text, "launches per layer, gdn", "1x16x5")
    assert "| <= 2 | 3 | no |" in line(text, "launches per layer, gdn", "16x64x8")
    assert "| 12 us | no |" in line(text, "host time of a layer", "1x16x5")
    assert "not measured" in line(text, "host time of a layer", "16x64x8")
    assert "| 0.2 s | yes |" in line(text, "import boleir")
    assert "| 3.5 s | no |" in line(text, "compile one variant", "1x16x5")
    assert "| 60 ms | no |" in line(text, "load a variant", "16x64x8")
    assert line(text, "autotune").endswith("22 s of compiling, estimated; timing not measured |  |")
    tuned = {"tunings": {"gdn@1x16x5": {"seconds": 61.0}}}
    assert "| 61 s | no |" in line(report.targets([tuned]), "autotune one shape", "gdn@1x16x5")


def test_bytes_per_node_are_judged_for_both_commits() -> None:
    text = report.targets([footprint.report("x")])
    assert "| yes |" in line(text, "bytes per node, commit replay", ">= 160x")
    assert "| yes |" in line(text, "bytes per node, commit factors", ">= 99x")


def test_the_documents_tell_of_every_cliff_and_launch_too_many() -> None:
    """What the committed results miss must not be silent in the text beside them."""
    text = report.targets(read_results(RESULTS.glob("*.json")))
    told = " ".join((RESULTS.parents[1] / "README.md").read_text().split())
    told += " ".join((RESULTS.parent / "README.md").read_text().split())
    missed = [x for x in text.splitlines() if "one node more" in x and x.endswith("| no |")]
    for cliff in missed:
        few, more = (part.split("x")[1].strip() for part in cliff.split("|")[2].split(" to "))
        assert f"{few} to {more} nodes" in told, cliff
    if any("launches" in x and x.endswith("| 3 | no |") for x in text.splitlines()):
        assert "three launches per layer and round" in told


def test_wrong_results_reach_no_target() -> None:
    trees = stub(TREE_ROWS, boleir=1.0, sglang=100.0)
    for case in trees["cases"]:
        case["subjects"]["boleir"]["wrong"] = ["verify_max"]
    assert "yes" not in report.targets([trees])


def test_the_papers_numbers_stand_beside_ours() -> None:
    reports = [stub(TREE_ROWS, boleir=5.0, sglang=100.0), footprint.report("x")]
    reports.append(stub(TREE_ROWS, mode="full", boleir=5.0, sglang=60.0))
    text = report.paper_tables(reports)
    assert line(text, "3.4x / 5.0x").endswith("| 20.0x |")
    assert line(text, "convolution and commit").endswith("| 12.0x / 12.0x |")
    assert "84x" in line(text, "bytes written")
    assert "1.3%" in line(text, "commit, share")  # 24 x 5 µs of 18 GB at 2 TB/s
    assert report.paper_tables([]).count("not measured") == 7


def test_footprint_counts_buffers_of_the_kernels() -> None:
    shape, row = LAYERS["qwen3.5-9b"], Row(16, 64, 8)
    face = footprint.interface(shape, row)
    per_node = footprint.node_bytes(face)
    assert per_node["kept"] == 2 * (6144 + 64)  # k, v after the convolution, a and b
    assert per_node["out"] == 2 * 32 * 128
    for commit, each in (("factors", 4), ("factors16", 2)):
        stored = footprint.node_bytes(footprint.interface(shape, row, commit=commit))["kept"]
        assert stored == 2 * (2048 + 64) + each * 32 * 128  # unknowns instead of values
    found = footprint.case(shape, row)
    assert found["snapshot_bytes_per_node"] == 32 * 128 * 128 * 4
    assert found["snapshot_bytes_per_node"] / found["bytes_per_node"]["replay"] >= 160
    assert found["snapshot_bytes_per_node"] / found["bytes_per_node"]["factors"] >= 99
    state = 16 * 32 * 128 * 128 * 4
    assert found["written"]["boleir"]["commit"] == state + 16 * 8192 * 3 * 2


def test_the_committed_footprint_is_todays() -> None:
    committed = json.loads(footprint.RESULT.read_text())
    assert committed["cases"] == json.loads(json.dumps(footprint.report("")["cases"]))


def test_charts_hold_the_numbers_of_the_reports() -> None:
    rows = tuple(dict.fromkeys((*TREE_ROWS, *GROWTH_ROWS, *DEPTH_ROWS, *BATCH_ROWS)))
    found = {c.name: c for c in plots.charts([stub(rows, boleir=5.0, sglang=100.0)])}
    assert set(found) == {
        "speed-up", "roofline", "growth-nodes", "growth-depth", "growth-batch",
    }  # fmt: skip
    assert all(y == 20.0 for _, y in found["speed-up"].series[0].points)
    nodes = {s.name: s for s in found["growth-nodes"].series}
    assert [x for x, _ in nodes["boleir, batch 16"].points][:3] == [1.0, 2.0, 4.0]
    assert found["growth-nodes"].series[0].points[-1][0] == 256.0
    assert len(found["growth-batch"].series[0].points) == len(BATCH_ROWS)
    assert plots.charts([]) == []


def test_committed_results_can_be_drawn(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    reports = read_reports(RESULTS.glob("*.json"))
    assert {"speed-up", "roofline", "bytes-per-node"} <= {c.name for c in plots.charts(reports)}
    drawn = plots.main(["--out", str(tmp_path)])
    if importlib.util.find_spec("matplotlib"):
        assert drawn == 0
        assert (tmp_path / "roofline.svg").stat().st_size > 10_000
    else:
        assert drawn == 1
        assert "pip install 'boleir[bench]'" in capsys.readouterr().err
    assert report.main([]) == 0
    assert "core vs serial verifier" in capsys.readouterr().out
