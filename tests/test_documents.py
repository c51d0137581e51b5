"""Every code block of the tutorial runs and prints what it shows; the reference's examples parse.

`pytest tests/test_documents.py --update-golden` writes the outputs anew.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

import boleir as bole
from boleir.language.parser import parse_module
from tests.documents import Block, blocks, with_outputs

ROOT = Path(__file__).resolve().parent.parent
TUTORIAL, LANGUAGE = ROOT / "docs/tutorial.md", ROOT / "docs/language.md"
SEPARATOR = "\n=== end of block ===\n"


def child(arguments: list[str], folder: Path) -> str:
    """What a process prints; kernels are interpreted, and it must end well."""
    path = os.pathsep.join([str(folder), str(ROOT)])
    environment = {
        **os.environ,
        "PYTHONPATH": path,
        "PYTHONUTF8": "1",
        "TRITON_INTERPRET": "1",
        "CUDA_VISIBLE_DEVICES": "",
        "COLUMNS": "100",
        "XDG_CACHE_HOME": str(folder / "cache"),
    }
    done = subprocess.run(
        [sys.executable, "-m", "tests.lighter_interpreter", *arguments],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, f"{arguments}: {done.stdout}{done.stderr}"
    return done.stdout


def outputs_of(document: Path, folder: Path) -> dict[int, str]:
    """Printed output of every block that shows one, by its place in the document."""
    found = blocks(document.read_text(encoding="utf-8"))
    for block in found:
        if block.file:
            (folder / block.file).write_text(block.code, encoding="utf-8")
    steps = [block for block in found if block.language == "python" and not block.file]
    script = "".join(f"{block.code}print({SEPARATOR!r}, end='', flush=True)\n" for block in steps)
    (folder / "tutorial.py").write_text(script, encoding="utf-8")
    parts = child(["tutorial.py"], folder).split(SEPARATOR) if steps else []
    printed = list(zip(steps, parts, strict=False))
    for block in found:
        if block.language == "sh":
            command, *arguments = shlex.split(block.code)
            assert command == "bolec"
            printed.append((block, child(["-m", "boleir", *arguments], folder)))
    return {block.start: text for block, text in printed if block.expected is not None}


def test_the_tutorial_prints_what_it_shows(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    outputs = outputs_of(TUTORIAL, tmp_path)
    if request.config.getoption("--update-golden"):
        with_outputs(TUTORIAL, outputs)
    shown = {b.start: b for b in blocks(TUTORIAL.read_text(encoding="utf-8")) if b.expected}
    assert [b.expected for b in shown.values()] == [outputs[start] for start in sorted(outputs)]


def _examples() -> list[Block]:
    return [b for b in blocks(LANGUAGE.read_text(encoding="utf-8")) if b.language == "bole"]


@pytest.mark.parametrize("number", range(len(_examples())))
def test_examples_of_the_language(number: int, request: pytest.FixtureRequest) -> None:
    block = _examples()[number]
    try:
        module = parse_module(block.code, "example.bole")
        for recurrence in module.recurrences:
            bole.derive(recurrence)
        printed = ""
    except bole.BoleirError as error:
        printed = f"{error}\n"
    if request.config.getoption("--update-golden") and block.expected is not None:
        with_outputs(LANGUAGE, {block.start: printed})
        return
    assert printed == (block.expected or "")


def test_the_reference_names_everything_there_is() -> None:
    from boleir.functions import FUNCTIONS
    from boleir.language import errors

    text = LANGUAGE.read_text(encoding="utf-8")
    named = set(re.findall(r"`(\w+)`", text))
    assert set(FUNCTIONS) <= named
    base = bole.SpecError
    classes = {
        name
        for name, item in vars(errors).items()
        if isinstance(item, type) and issubclass(item, base) and item is not base
    }
    from boleir.derive import refusals

    classes |= {cls.__name__ for cls in refusals.Refusal.__subclasses__()} | {"RankTooLarge"}
    assert classes <= named, sorted(classes - named)


def test_the_readme_points_at_both() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert "docs/tutorial.md" in readme
    assert "docs/language.md" in readme
