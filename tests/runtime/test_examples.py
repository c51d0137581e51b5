"""The examples run where there is no GPU and say what they promise."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent


def run(name: str, *arguments: str) -> str:
    """Standard output of an example."""
    child = subprocess.run(
        [sys.executable, str(ROOT / "examples" / name), *arguments],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert child.returncode == 0, child.stderr[-3000:]
    return child.stdout


def test_compile_and_inspect(tmp_path: Path) -> None:
    shown = run("01_compile_and_inspect.py", str(tmp_path))
    assert shown.count("registers") >= 9
    assert (tmp_path / "gdn" / "manifest.json").exists()
    assert "Lemma 3" in shown


def test_verify_and_commit() -> None:
    shown = run("02_verify_and_commit.py")
    errors = [float(x) for x in re.findall(r"by (\d\S*e[-+]\d+)", shown)]
    assert len(errors) == 4
    assert max(errors) < 1e-2


def test_recurrence_in_python() -> None:
    shown = run("03_recurrence_in_python.py")
    assert "all checks passed" in shown
    assert "G[3,0] = decay_1 decay_3 strength_3 k_3·k_0" in shown


def test_every_example_is_tested() -> None:
    names = {path.name for path in (ROOT / "examples").glob("*.py")}
    assert names == set(re.findall(r'"(\d\d_\w+\.py)"', Path(__file__).read_text()))
    assert all(re.match(r'^"""\w', (ROOT / "examples" / x).read_text()) for x in names)


@pytest.mark.parametrize("name", ["02_verify_and_commit.py", "03_recurrence_in_python.py"])
def test_examples_choose_the_gpu_by_themselves(name: str) -> None:
    assert 'setdefault("TRITON_INTERPRET", "1")' in (ROOT / "examples" / name).read_text()
