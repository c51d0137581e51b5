"""The promises the project makes about itself: layers, import cost, documents, size, style."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from statistics import median

import pytest

ROOT = Path(__file__).resolve().parent.parent
LAYERS = {"boleir": 0, "boleir.codegen": 1, "boleir.runtime": 2}
FOLDERS = {"boleir": "boleir", "codegen": "boleir.codegen", "runtime": "boleir.runtime"}
ON_TOP = ("boleir/__init__.py", "boleir/__main__.py", "boleir/cli/", "boleir/check/")
"""Files of the first folder that may reach into the others, but only when they are used."""

HEAVY = ("lark", "networkx", "numpy", "sympy", "torch", "triton")


def sources(*folders: str) -> list[Path]:
    """Python files of the folders, links not followed."""
    return sorted(
        Path(folder) / name
        for top in folders
        for folder, below, names in os.walk(ROOT / top)
        if "__pycache__" not in folder
        for name in names
        if name.endswith(".py")
    )


def imports(tree: ast.AST, *, lazy: bool) -> Iterator[str]:
    """Modules a file imports; without `lazy`, only those its own import loads."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            yield node.module or ""
        elif lazy or not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            yield from imports(node, lazy=lazy)


def layer(module: str) -> int | None:
    """The layer of a module of this project."""
    for name in ("boleir.codegen", "boleir.runtime", "boleir"):
        if module == name or module.startswith(f"{name}."):
            return LAYERS[name]
    return None


@pytest.mark.parametrize("folder", FOLDERS)
def test_imports_point_one_way(folder: str) -> None:
    own = LAYERS[FOLDERS[folder]]
    for path in sources(folder):
        on_top = path.relative_to(ROOT).as_posix().startswith(ON_TOP)
        for module in imports(ast.parse(path.read_text()), lazy=not on_top):
            found = layer(module)
            assert found is None or found <= own, f"{path} imports {module}"


def test_the_mathematics_imports_neither_torch_nor_triton() -> None:
    for path in sources("boleir"):
        on_top = path.relative_to(ROOT).as_posix().startswith(ON_TOP)
        for module in imports(ast.parse(path.read_text()), lazy=not on_top):
            assert module.split(".")[0] not in ("torch", "triton"), f"{path} imports {module}"


@pytest.mark.parametrize("name", ["codegen", "runtime"])
def test_bare_names_are_refused(name: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", f"import {name}"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert f"import this package as boleir.{name}" in done.stderr


def test_importing_boleir_is_fast_and_lazy() -> None:
    program = (
        "import sys, time\nstarted = time.process_time()\nimport boleir\n"
        "spent = time.process_time() - started\n"
        f"print(spent, *sorted(set({HEAVY!r}) & set(sys.modules)))"
    )
    times = []
    for _ in range(3):
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
        spent, *loaded = done.stdout.split()
        assert loaded == [], done.stderr
        times.append(float(spent))
    assert min(times) < 0.3


def test_every_public_name_exists_or_says_so() -> None:
    import boleir

    assert "load" in dir(boleir)
    for name in boleir.__all__:
        assert getattr(boleir, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = boleir.nonsense


def test_ci_runs_the_test_command_of_the_readme() -> None:
    script = (ROOT / ".ci" / "run").read_text().strip().splitlines()
    assert os.access(ROOT / ".ci" / "run", os.X_OK)
    assert script[-1] in (ROOT / "README.md").read_text().splitlines()


def test_the_changelog_knows_this_version() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert f"## [{project['version']}]" in (ROOT / "CHANGELOG.md").read_text()


def test_files_stay_small() -> None:
    folders = ("boleir", "codegen", "runtime", "benchmarks", "examples", "tests")
    lengths = {path: len(path.read_text().splitlines()) for path in sources(*folders)}
    assert {path: length for path, length in lengths.items() if length > 600} == {}
    written = [length for path, length in lengths.items() if "golden" not in path.parts]
    assert median(written) <= 200


def test_nothing_is_left_undone() -> None:
    marks = re.compile(
        "|".join(("TO" + "DO", "FIX" + "ME", "X" + "XX", "NotImplemented" + "Error"))
    )
    for path in sources("boleir", "codegen", "runtime", "benchmarks", "examples"):
        assert marks.search(path.read_text()) is None, path


def _tool(name: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    if find_spec(name) is None:
        pytest.skip(f"{name} is not installed")
    return subprocess.run(
        [sys.executable, "-m", name, *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize(
    "arguments", [("ruff", "check"), ("ruff", "format", "--check"), ("mypy",)], ids=" ".join
)
def test_linters_and_types_are_clean(arguments: tuple[str, ...]) -> None:
    done = _tool(*arguments)
    assert done.returncode == 0, (done.stdout + done.stderr)[-4000:]
