"""Wheel and source archive: one package, its data included, nothing under a bare name."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
SKIPPED = shutil.ignore_patterns(
    ".*", "*.egg-info", "__pycache__", "build", "dist", "compiled", "out", "results", "tests"
)
DATA = (".lark", ".bole", ".typed")


def build(kind: str, source: Path, into: Path) -> Path:
    """Run the build backend as pip would; the file it made."""
    into.mkdir(exist_ok=True)
    program = f"from setuptools.build_meta import build_{kind} as b; b({str(into)!r})"
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=source, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    (made,) = into.iterdir()
    return made


def expected() -> set[str]:
    """Every module and data file of the three folders, as it is to be installed."""
    found = {
        path.relative_to(ROOT).as_posix()
        for path in (ROOT / "boleir").rglob("*")
        if path.suffix in (".py", *DATA)
    }
    for layer in ("codegen", "runtime"):
        found |= {
            f"boleir/{path.relative_to(ROOT).as_posix()}"
            for pattern in ("*.py", "shipped/*.json")
            for path in (ROOT / layer).rglob(pattern)
        }
    return {name for name in found if "__pycache__" not in name}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("packaging")
    shutil.copytree(ROOT, folder / "source", symlinks=True, ignore=SKIPPED)
    return build("wheel", folder / "source", folder / "wheel")


def names(wheel: Path) -> set[str]:
    """Files of a wheel, its own metadata left out."""
    with zipfile.ZipFile(wheel) as archive:
        return {name for name in archive.namelist() if ".dist-info/" not in name}


def test_the_wheel_holds_the_three_folders_as_one_package(wheel: Path) -> None:
    assert names(wheel) == expected()


def test_the_wheel_runs_away_from_the_source(wheel: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path)
    program = (
        "import boleir, boleir.codegen.offline, boleir.runtime.doctor, boleir.library\n"
        "from boleir.runtime.probes import probe_source\n"
        "assert 'import triton' in probe_source()\n"
        "print(boleir.__file__, boleir.codegen.__file__, boleir.load('gdn').name)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    package, codegen, name = done.stdout.split()
    assert package == str(tmp_path / "boleir" / "__init__.py")
    assert codegen == str(tmp_path / "boleir" / "codegen" / "__init__.py")
    assert name == "gdn"


def test_the_entry_point_and_the_licence_are_in_the_wheel(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        found = {name.split("/", 1)[-1]: name for name in archive.namelist() if "dist-info" in name}
        entry = archive.read(found["entry_points.txt"]).decode()
        metadata = archive.read(found["METADATA"]).decode()
    assert "bolec = boleir.cli.main:main" in entry
    assert "licenses/LICENSE" in found
    assert "License-Expression: Apache-2.0" in metadata
    needs = [line.split(";")[0] for line in metadata.splitlines() if "Requires-Dist" in line]
    assert any("torch" in line for line in needs)
    assert not any("==" in line or "<" in line for line in needs)


def test_a_wheel_from_the_source_archive_is_the_same(wheel: Path, tmp_path: Path) -> None:
    shutil.copytree(ROOT, tmp_path / "source", symlinks=True, ignore=SKIPPED)
    archive = build("sdist", tmp_path / "source", tmp_path / "sdist")
    with tarfile.open(archive) as content:
        content.extractall(tmp_path / "unpacked", filter="data")
    (unpacked,) = (tmp_path / "unpacked").iterdir()
    assert names(build("wheel", unpacked, tmp_path / "wheel")) == names(wheel)
