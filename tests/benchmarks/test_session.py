"""A session with parts that pass, fail, hang and talk too much."""

from __future__ import annotations

import json
import os
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from benchmarks import prewarm, session, variants
from benchmarks.recurrences import shapes_of
from benchmarks.serving_shapes import LAYERS, Row
from benchmarks.session import Part, all_parts, gpu_tests
from boleir.codegen.defaults import default_schedule
from boleir.codegen.planner import make_plan
from boleir.codegen.schedule_limits import validate
from boleir.codegen.targets import target
from boleir.derive.derive import derive
from boleir.library import resolve


def python(name: str, text: str, seconds: float = 20.0, **options: Any) -> Part:
    return Part(name, (sys.executable, "-c", text, "{work}"), seconds, **options)


REPORT = (
    "import json, sys, pathlib; p = pathlib.Path(sys.argv[1], 'results', 'rows.json');"
    "p.write_text(json.dumps({'cases': [1]})); print('measured')"
)
HANG = (
    "import subprocess, sys, time; print('begun', flush=True);"
    "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)']);"
    "print(child.pid, flush=True); time.sleep(60)"
)


def run(out: Path, parts: list[Part], *arguments: str) -> tuple[int, dict[str, Any]]:
    code = session.main(["--out", str(out), *arguments], parts)
    return code, json.loads((out / "summary.json").read_text())["parts"]


def gone(pid: int) -> bool:
    for _ in range(1000):
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return True
        if Path(f"/proc/{pid}/stat").read_text().split()[2] == "Z":
            return True
        time.sleep(0.05)
    return False


def test_every_part_runs_whatever_became_of_the_others(tmp_path: Path) -> None:
    parts = [
        python("good", REPORT),
        python("bad", "print('the reason'); raise SystemExit(3)"),
        python("hangs", HANG, 1.5, least=1.0),
        python("loud", f"print('x' * {2 * session.LOG_BYTES}); print('end')"),
    ]
    code, found = run(tmp_path, parts)
    assert code == 1
    assert {name: part["status"] for name, part in found.items()} == {
        "good": "passed",
        "bad": "failed",
        "hangs": "stopped",
        "loud": "passed",
    }
    assert found["bad"]["returncode"] == 3
    assert found["bad"]["tail"] == ["the reason"]
    assert found["hangs"]["tail"][0] == "begun"
    assert gone(int(found["hangs"]["tail"][1]))  # its children end with it
    assert found["loud"]["tail"][-1] == "end"
    assert json.loads((tmp_path / "results.json").read_text()) == {"rows": {"cases": [1]}}
    logs = (tmp_path / "logs.txt").read_text()
    assert "===== good\nmeasured" in logs
    assert len(logs) < 2 * session.LOG_BYTES
    assert len(list(tmp_path.iterdir())) <= 8


def test_a_second_call_goes_on_where_the_first_ended(tmp_path: Path) -> None:
    marks = tmp_path / "marks"
    mark = f"open({str(marks)!r}, 'a').write('%s ')"
    parts = [
        python("prepare", mark % "prepare", always=True),
        python("first", REPORT + ";" + mark % "first"),
        python("second", mark % "second", 60.0, least=50.0),
    ]
    out = tmp_path / "out"
    code, found = run(out, parts, "--budget", "30")
    assert code == 1
    assert [found[x]["status"] for x in ("first", "second")] == ["passed", "not begun"]
    code, found = run(tmp_path / "other", parts, "--resume", str(out))
    assert code == 0
    assert found["second"]["status"] == "passed"
    assert marks.read_text().split() == ["prepare", "first", "prepare", "second"]
    assert json.loads((tmp_path / "other" / "results.json").read_text())["rows"]
    run(out, parts, "--again", "first", "--budget", "30")
    assert marks.read_text().split()[-2:] == ["prepare", "first"]


def test_what_the_budget_cut_short_is_tried_again(tmp_path: Path) -> None:
    parts = [python("long", "import time; time.sleep(30)", 30.0, least=1.0)]
    _, found = run(tmp_path, parts, "--budget", str(session.RESERVE + 1.5))
    assert (found["long"]["status"], found["long"]["done"]) == ("cut", False)
    quick = [python("long", "pass")]
    code, found = run(tmp_path, quick)
    assert (code, found["long"]["status"]) == (0, "passed")


def test_reports_are_unpacked_among_the_results(tmp_path: Path) -> None:
    run(tmp_path / "out", [python("good", REPORT)])
    (written,) = session.unpack(tmp_path / "out", "gpu", tmp_path)
    assert written == tmp_path / "gpu-rows.json"
    assert json.loads(written.read_text()) == {"cases": [1]}


def test_the_real_parts_are_what_they_should_be(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every measurement's command line is one that its module takes."""
    from benchmarks import recurrences
    from benchmarks import run as runner
    from boleir.cli.main import build_parser

    names = [part.name for part in all_parts()]
    assert len(set(names)) == len(names)
    tests = {"tests-test_kernel_gpu", "tests-test_kernel_gpu-joined"}
    assert {*tests, "readme", "trees", "kda", "growth"} <= set(names)
    order = [names.index(x) for x in ("prewarm", "tests-test_kernel_gpu", "trees", "chains")]
    assert order == sorted(order)
    for part in all_parts():
        module, rest = part.command[2], part.command[3:]
        if module == "benchmarks.run":
            options = runner.parser().parse_args(rest)
            assert runner.rows_from(options.rows)
        elif module == "benchmarks.recurrences":
            recurrences.parser().parse_args(rest)
        elif module == "boleir":
            build_parser().parse_args(rest)
    for part in gpu_tests():
        assert (session.ROOT / part.command[-1]).is_file()
    assert session.main(["--list", "--only", "trees"]) == 0
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == [
        "prewarm",
        "trees",
    ]
    assert session.main(["--list", "--only", "tests", "readme"]) == 0
    listed = [line.split()[0] for line in capsys.readouterr().out.splitlines()]
    assert listed[-1] == "readme"
    assert "prewarm" not in listed


def test_the_kernels_of_all_measurements_are_compiled_ahead() -> None:
    found = prewarm.variants()
    assert len(set(found)) == len(found)
    assert prewarm.Variant("gdn", Row(16, 64, 8)) in found
    assert prewarm.Variant("rwkv7", Row(1, 64, 8)) in found
    assert prewarm.Variant("gated_delta_rule", Row(16, 256, 7)) in found


def test_one_variant_compiles_and_a_failure_is_told(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from boleir.errors import CompileError

    seen: list[prewarm.Variant] = []

    def compile_one(variant: prewarm.Variant, layer: str, target: str | None) -> None:
        seen.append(variant)
        if variant.recurrence == "kda":
            raise CompileError("no such thing")

    monkeypatch.setattr(prewarm, "compile_one", compile_one)
    assert prewarm.compile_share(0, 1, "qwen3.5-9b", "sm_90") == 4
    assert seen == prewarm.variants()
    assert "kda 1x16x5: no such thing" in capsys.readouterr().err


def test_contenders_are_schedules_that_exist() -> None:
    for text in session.CONTENDERS:
        item = variants.item_from(text)
        recurrence = resolve(item.recurrence)
        shapes = shapes_of(recurrence, LAYERS["qwen3.5-9b"], item.row, "bfloat16")
        heads = (shapes.key_heads, shapes.value_heads)
        plan = make_plan(derive(recurrence).normal, shapes.d_k, shapes.d_v, *heads)
        chosen = replace(default_schedule(plan, shapes, item.row.batch), **item.fields)
        validate(chosen, plan, shapes, target("sm_90"))
