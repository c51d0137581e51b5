"""The `bolec` command line: arguments, output, failures."""

from __future__ import annotations

import importlib
import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from boleir.cli import arguments, compile_command
from boleir.cli.main import COMMANDS, build_parser, command_module, join_parents, main
from boleir.cli.output import Progress, table
from boleir.codegen.artifact_folder import read
from boleir.errors import BoleirError, ScheduleError, SpecError, TreeError
from boleir.ir import Recurrence
from tests.codegen.sample import artifact

BOLE = "recurrence plain(q: key, k: key, v: value)\n  S = S + k v^T\n  out S^T q\n"


@pytest.fixture
def bole_file(tmp_path: Path) -> Path:
    path = tmp_path / "plain.bole"
    path.write_text(BOLE)
    return path


@pytest.fixture
def pipeline(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """A compiler that needs no time: it remembers what it was asked."""
    seen = SimpleNamespace(request=None, options=None)

    def build(request: Any, **options: Any) -> Any:
        seen.request, seen.options = request, options
        options["progress"]("compiling")
        options["show"]("schedule", "b_v = 64")
        return artifact(*request.targets)

    module = ModuleType("boleir.codegen.build")
    module.build = build  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "boleir.codegen.build", module)
    return seen


def fail(monkeypatch: pytest.MonkeyPatch, error: BaseException) -> None:
    """Let `bolec doctor` end in `error`."""

    def run(_: object) -> None:
        raise error

    monkeypatch.setattr(command_module("doctor"), "run", run)


@pytest.mark.parametrize("name", COMMANDS)
def test_help_has_examples_and_json(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main([name, "--help"])
    assert ended.value.code == 0
    text = capsys.readouterr().out
    assert f"bolec {name}" in text
    assert "examples:" in text
    assert "--json" in text
    assert max(map(len, text.splitlines())) <= 100


@pytest.mark.parametrize("name", COMMANDS)
def test_the_examples_parse(name: str) -> None:
    import shlex

    for example in command_module(name).EXAMPLES:
        words = shlex.split(example.split(" > ")[0], comments=True)
        if words[0] == "bolec":
            assert words[1] == name
            build_parser().parse_args(join_parents(words[1:]))


@pytest.mark.parametrize(
    "argv",
    [
        [],
        ["unknown"],
        ["compile"],
        ["compile", "gdn", "--heads", "3:4"],
        ["compile", "gdn", "--heads", "16"],
        ["compile", "gdn", "--dims", "0x64"],
        ["compile", "gdn", "--nodes", "-4"],
        ["compile", "gdn", "--depth", "x"],
        ["compile", "gdn", "--dtype", "int8"],
        ["check", "gdn", "--trees", "0"],
    ],
)
def test_wrong_usage_is_status_2(argv: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(argv)
    assert ended.value.code == 2
    assert "error:" in capsys.readouterr().err


def test_a_known_failure_is_one_line_and_status_1(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    fail(monkeypatch, BoleirError("the machine is on fire"))
    assert main(["doctor"]) == 1
    shown = capsys.readouterr()
    assert (shown.out, shown.err) == ("", "bolec doctor: the machine is on fire\n")


def test_a_failure_can_be_json(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    fail(monkeypatch, ScheduleError("too large", mend="less"))
    assert main(["doctor", "--json"]) == 1
    assert json.loads(capsys.readouterr().out) == {
        "error": {
            "type": "ScheduleError", "message": "too large", "mend": "less",
            "file": None, "line": None, "column": None,
        }
    }  # fmt: skip


def test_a_mistake_in_json_has_its_place(
    bole_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bole_file.write_text(BOLE.replace("S^T q", "S^T qq"))
    assert main(["explain", str(bole_file), "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["error"] == {
        "type": "UnknownName", "message": "unknown name 'qq'", "mend": "did you mean 'q'?",
        "file": str(bole_file), "line": 3, "column": 11,
    }  # fmt: skip


def test_an_unknown_failure_offers_the_traceback(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    fail(monkeypatch, ZeroDivisionError("oops"))
    assert main(["doctor"]) == 1
    text = capsys.readouterr().err
    assert "internal error: ZeroDivisionError: oops" in text
    assert "--debug" in text
    assert "Traceback" not in text
    assert main(["doctor", "--debug"]) == 1
    assert "Traceback" in capsys.readouterr().err


def test_interruption_is_status_130(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    fail(monkeypatch, KeyboardInterrupt())
    assert main(["doctor"]) == 130
    assert "interrupted" in capsys.readouterr().err


def test_ctrl_c_ends_a_real_run_and_its_compilers(tmp_path: Path) -> None:
    folder = tmp_path / "kernels"
    process = subprocess.Popen(
        [sys.executable, "-m", "boleir", "compile", "gdn", "--target", "sm_80", "--out", folder],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        # a shell's background jobs ignore the signal, and so would their children
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    assert process.stderr is not None
    while not process.stderr.readline().startswith("compiling"):
        assert process.poll() is None
    os.kill(process.pid, signal.SIGINT)
    _, errors = process.communicate(timeout=120)
    assert process.returncode == 130
    assert errors.splitlines()[-1] == "bolec: interrupted"
    assert "Traceback" not in errors
    assert not folder.exists()


def test_a_reader_that_leaves_is_no_traceback() -> None:
    command = f"{sys.executable} -m boleir --help | true; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("command", "status"),
    [
        ("exec >&-; {} explain gdn", 0),
        ("exec 2>&-; {} explain nothing", 1),
        ("PYTHONIOENCODING=ascii {} explain gdn | grep -q u2", 0),
        ("{} explain nothing --json | true; exit ${{PIPESTATUS[0]}}", 1),
    ],
)
def test_odd_streams_are_no_traceback(command: str, status: int) -> None:
    line = command.format(f"{sys.executable} -m boleir")
    done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, check=False)
    assert "Traceback" not in done.stderr
    assert "internal error" not in done.stderr
    assert done.returncode == status


def test_help_imports_nothing_heavy() -> None:
    program = (
        "import sys\nfrom boleir.cli.main import build_parser\nbuild_parser().format_help()\n"
        "heavy = {'torch', 'triton', 'sympy', 'lark', 'networkx', 'numpy'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout.strip() == "[]", done.stderr


def test_recurrences_by_name_file_and_object(
    bole_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(bole_file.parent)
    Path("own_rules.py").write_text(
        "import boleir\nplain = boleir.parse(open('plain.bole').read())\nnumber = 3\n"
        "def traced(S, q, k, v):\n    S = S + k @ v.T\n    return S, S.T @ q\n"
    )
    assert arguments.find_recurrence("gdn").name == "gdn"
    by_file = arguments.find_recurrence("plain.bole")
    assert isinstance(by_file, Recurrence)
    assert arguments.find_recurrence("plain.bole:plain") == by_file
    assert arguments.find_recurrence("own_rules:plain") == by_file
    assert arguments.find_recurrence("own_rules:traced").update == by_file.update


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("nothing", "nothing"),
        ("missing.bole", "missing.bole"),
        ("missing.bole:x", "missing.bole"),
        ("no_such_module_here:x", "no module named 'no_such_module_here'"),
        ("json:nothing", "json has no 'nothing'"),
        ("json:__name__", "is a str, not a recurrence"),
        ("json:", "'json:' names no recurrence"),
        ("my.bole:", "'my.bole:' names no recurrence"),
        (":f", "':f' names no recurrence"),
        ("..json:f", "without leading dots"),
    ],
)
def test_recurrences_that_are_none(text: str, message: str) -> None:
    with pytest.raises(SpecError, match=message):
        arguments.find_recurrence(text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("raise RuntimeError('two\\nlines')", ":1:1: .* be imported: RuntimeError: two lines\n"),
        ("import sys; sys.exit(3)", "cannot be imported: SystemExit: 3"),
        ("import json; json.nothing", "cannot be imported: AttributeError: module 'json'"),
        (
            "def f(:",
            ":1:7: .* be imported: SyntaxError: invalid syntax\n    def f(:\n          ^\n",
        ),
        ("S = (1,\n", ":1:5: .*: SyntaxError: '(' was never closed\n    S = (1,\n        ^"),
        ("import boleir\nboleir.load('nothing')", "no shipped recurrence 'nothing'"),
        ("value = 1\nprint(valve)\n", ":2:7: .* name 'valve' is .*'value'?"),
        (
            "def f(S, q):\n    raise KeyError('mine')",
            ":2:5: broken_rules:f fails: KeyError: 'mine'",
        ),
    ],
)
def test_a_failure_in_the_users_module_is_his_own(
    text: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.delitem(sys.modules, "broken_rules", raising=False)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    importlib.invalidate_caches()
    Path("broken_rules.py").write_text(text)
    with pytest.raises(SpecError) as caught:
        arguments.find_recurrence("broken_rules:f")
    pattern = re.escape(message).replace(re.escape(".*"), ".*")
    assert re.search(pattern, str(caught.value), re.DOTALL), str(caught.value)


def test_an_empty_tree_is_no_tree(capsys: pytest.CaptureFixture[str]) -> None:
    for command in ("explain", "compile"):
        assert main([command, "gdn", "--tree", ""]) == 1
        assert "'' is no tree" in capsys.readouterr().err


def test_trees() -> None:
    assert arguments.static_tree("-1,0,0,1").parents == (-1, 0, 0, 1)
    assert arguments.static_tree("chain(3)").parents == (-1, 0, 1)
    assert arguments.find_tree("dynamic(nodes=8, depth=3)").max_depth == 3
    for text in ("-1,0,-", "-1,5", "beam", "dynamic(nodes=8, depth=3)"):
        with pytest.raises(TreeError):
            arguments.static_tree(text)


def test_a_tree_that_begins_with_a_minus_is_no_option() -> None:
    assert join_parents(["explain", "gdn", "--tree", "-1,0"]) == ["explain", "gdn", "--tree=-1,0"]
    assert join_parents(["x", "--tree", "--json"]) == ["x", "--tree", "--json"]


def test_explain_prints_the_closed_form(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "gdn", "--tree", "-1,0,0,1"]) == 0
    text = capsys.readouterr().out
    assert "Lemma 2" in text
    assert "G[3,1]" in text
    assert "G[3,2]" not in text
    assert main(["explain", "gdn", "--latex"]) == 0
    assert "\\begin{align" in capsys.readouterr().out


def test_explain_json_holds_text_and_tree(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "gdn", "--json", "--tree", "chain(3)"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["recurrence"] == "gdn"
    assert "chain(3)" in shown["tree"]
    assert shown["text"].startswith("recurrence gdn(")
    assert "Theorem" in shown["explanation"]


def test_a_mistake_in_a_file_is_shown_with_its_place(
    bole_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bole_file.write_text(BOLE.replace("S^T q", "S^T w"))
    assert main(["explain", str(bole_file)]) == 1
    text = capsys.readouterr().err
    assert f"{bole_file}:3:" in text
    assert "^" in text


def test_compile_asks_for_what_was_said(
    pipeline: SimpleNamespace, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    argv = "compile gdn --heads 4:12 --dims 64x96 --nodes 20 --depth 19 --dtype float16"
    argv += " --state-dtype bfloat16 --target sm_80,gfx942 --set warps=8 --set pdl=false --jobs 1"
    assert main([*argv.split(), "--set", "solver=levels", "--out", str(tmp_path / "out")]) == 0
    request = pipeline.request
    assert request.recurrence.name == "gdn"
    assert request.targets == ("sm_80", "gfx942")
    sizes = request.shapes
    assert (sizes.key_heads, sizes.value_heads, sizes.d_k, sizes.d_v) == (4, 12, 64, 96)
    assert (sizes.max_nodes, sizes.max_depth, sizes.parents) == (20, 19, None)
    assert (sizes.dtype, sizes.state_dtype) == ("float16", "bfloat16")
    assert pipeline.options["choices"] == {"warps": 8, "pdl": False, "solver": "levels"}
    assert pipeline.options["workers"] == 1
    assert read(tmp_path / "out").name == "sample"
    shown = capsys.readouterr()
    assert "sm_80" in shown.out
    assert str(tmp_path / "out" / "kernels.py") in shown.out
    assert "compiling" in shown.err
    assert "b_v = 64" not in shown.out


def test_compile_with_a_static_tree(pipeline: SimpleNamespace, tmp_path: Path) -> None:
    out = str(tmp_path / "out")
    assert main(["compile", "gdn", "--tree", "-1,0,0,1", "--out", out, "--quiet"]) == 0
    sizes = pipeline.request.shapes
    assert (sizes.max_nodes, sizes.max_depth, sizes.parents) == (4, 2, (-1, 0, 0, 1))


def test_a_file_names_its_trees(
    pipeline: SimpleNamespace, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, out = tmp_path / "both.bole", str(tmp_path / "out")
    other = BOLE.replace(" plain(", " other(")
    file.write_text(f"{BOLE}\n{other}\ntree t = chain(3)\ntree any = dynamic(nodes=9, depth=2)\n")
    assert main(["explain", f"{file}:plain", "--tree", "t"]) == 0
    assert "3 nodes, depth d = 2" in capsys.readouterr().out
    for name, bounds in (("t", (3, 2, (-1, 0, 1))), ("any", (9, 2, None))):
        argv = ["compile", f"{file}:plain", "--tree", name, "--out", out, "--quiet"]
        assert main(argv) == 0
        sizes = pipeline.request.shapes
        assert (sizes.max_nodes, sizes.max_depth, sizes.parents) == bounds
    capsys.readouterr()
    for tree, message in (("tt", "no tree 'tt'\n  mend: did you mean 't'?"), ("any", "a bound on")):
        assert main(["explain", f"{file}:plain", "--tree", tree]) == 1
        assert message in capsys.readouterr().err
    assert main(["explain", str(file)]) == 1
    assert f"which recurrence? declared are: plain, other\n  mend: {file}:plain" in (
        capsys.readouterr().err
    )
    file.write_text("# nothing yet\n")
    assert main(["explain", str(file)]) == 1
    assert f"{file} declares no recurrence\n  mend: recurrence NAME(" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        ("--tree chain(4) --nodes 3", "--nodes and --depth come from the tree"),
        ("--tree dynamic(nodes=4,depth=2) --depth 2", "--nodes and --depth come from the tree"),
        ("--nodes 64 --depth 64", "max_depth must lie in 0..max_nodes-1 = 63, not 64"),
        ("--tree -1,0,5", "node 2: parent 5 of the tree is neither"),
    ],
)
def test_contradicting_bounds_are_refused(
    pipeline: SimpleNamespace, capsys: pytest.CaptureFixture[str], argv: str, message: str
) -> None:
    assert main(["compile", "gdn", *argv.split()]) == 1
    assert message in capsys.readouterr().err
    assert pipeline.request is None


def test_fewer_nodes_bring_less_depth(pipeline: SimpleNamespace, tmp_path: Path) -> None:
    for argv, bounds in (("--nodes 4", (4, 3)), ("--nodes 20", (20, 8)), ("", (64, 8))):
        assert main(["compile", "gdn", *argv.split(), "--out", str(tmp_path / "out")]) == 0
        sizes = pipeline.request.shapes
        assert (sizes.max_nodes, sizes.max_depth) == bounds


def test_trees_that_nobody_could_read_are_refused_at_once(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["explain", "gdn", "--tree", "chain(256)"]) == 1
    assert "the tree has 256 nodes; entry by entry, at most 64" in capsys.readouterr().err


def test_compile_prints_steps_and_json(
    pipeline: SimpleNamespace, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    argv = ["compile", "gdn", "--print-after", "schedule", "--out", str(tmp_path / "out")]
    assert main(argv) == 0
    assert "# after schedule\nb_v = 64" in capsys.readouterr().out
    assert main([*argv, "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["folder"] == str(tmp_path / "out")
    assert shown["variants"][0]["kernels"]["add"]["registers"] == 40


def test_compile_refuses_a_foreign_folder_before_compiling(
    pipeline: SimpleNamespace, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "thesis.tex").write_text("")
    assert main(["compile", "gdn", "--out", str(tmp_path)]) == 1
    assert "holds other files" in capsys.readouterr().err
    assert pipeline.request is None


@pytest.mark.parametrize("pair", ["warps", "warps=many", "unknown=1", "pdl=maybe"])
def test_wrong_choices(pair: str) -> None:
    with pytest.raises(ScheduleError, match=f"--set {pair}"):
        compile_command.choices([pair])


def test_unknown_steps_are_refused_with_the_known_ones(
    pipeline: SimpleNamespace, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["compile", "gdn", "--print-after", "magic"]) == 1
    assert "closed-form" in capsys.readouterr().err
    assert pipeline.request is None
    assert compile_command.steps(["all"]) >= {"plan", "schedule"}


def test_help_names_the_steps_and_the_sets_of_rows(capsys: pytest.CaptureFixture[str]) -> None:
    from benchmarks.serving_shapes import ROW_SETS
    from boleir.codegen.pipeline import STEPS

    for command, names in (("compile", STEPS), ("bench", tuple(ROW_SETS))):
        with pytest.raises(SystemExit):
            main([command, "--help"])
        shown = capsys.readouterr().out
        assert [name for name in names if name not in shown.replace("\n", " ")] == []


def test_check_says_what_it_ran(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "gated_delta_rule", "--trees", "2", "--json"]) == 0
    shown = capsys.readouterr()
    report = json.loads(shown.out)
    assert report["passed"] is True
    assert report["findings"][0]["ran"] == 2
    told = [f["subject"] for f in report["findings"]] + report["notes"]
    assert any(text.startswith(("kernel ", "no kernels were run: ")) for text in told)
    assert "float64" in shown.err


def test_a_failed_check_is_status_1(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from boleir.check import check as module
    from boleir.check.report import Finding, Report

    failed = Report("gdn", (Finding("outputs", 3, False, 0.5, 1e-9, "node 2"),))
    monkeypatch.setattr(module, "check", lambda *_, **__: failed)
    assert main(["check", "gdn"]) == 1
    assert "FAIL outputs" in capsys.readouterr().out


def test_tables_align() -> None:
    assert table(("name", "n"), [("a", 1), ("long", None), ("b", 12345)]) == (
        "name       n\na          1\nlong       -\nb     12,345"
    )
    assert table(("name", "n"), []) == "name  n"


def test_progress_is_plain_off_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    with Progress() as progress:
        progress.count(1, 2, "half")
    with Progress(quiet=True) as progress:
        progress("nothing")
    assert capsys.readouterr().err == "[1/2] half\n"


def test_progress_rewrites_a_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    with Progress() as progress:
        progress("a long line")
        progress("short")
    assert capsys.readouterr().err == "\ra long line\rshort      \r     \r"


def test_bench_hands_its_options_over(monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    seen: list[str] = []

    def runner(options: list[str]) -> int:
        seen.extend(options)
        return 3

    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(command_module("bench"), "find_runner", lambda _: runner)
    argv = ["bench", "--rows", "1x16", "16x64x8", "--peers", "p", "--json", "--", "--rounds", "5"]
    assert main(argv) == 3
    expected = ["--rows", "1x16", "16x64x8", "--peers", "p", "--json", "--rounds", "5"]
    assert seen == expected


def test_bench_of_recurrences_prints_json(monkeypatch: pytest.MonkeyPatch) -> None:
    args = build_parser().parse_args(["bench", "--recurrence", "gdn", "--json"])
    assert command_module("bench").runner_arguments(args) == ["--recurrence", "gdn", "--json"]
    from benchmarks import recurrences

    assert recurrences.parser().parse_args(["--recurrence", "gdn", "--json"]).json


def test_bench_without_a_gpu_fails_in_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    import torch

    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert main(["bench"]) == 1
    assert capsys.readouterr().err.startswith("bolec bench: no GPU found")


def test_bench_outside_a_checkout_says_what_to_do(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    import boleir

    (tmp_path / "boleir").mkdir()
    monkeypatch.setattr(boleir, "__file__", str(tmp_path / "boleir" / "__init__.py"))
    assert main(["bench"]) == 1
    assert "checkout" in capsys.readouterr().err
