"""Compiled folders: what is in them, and what is refused."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from boleir.codegen import artifact_folder
from boleir.codegen.artifact_folder import (
    FORMAT,
    MANIFEST,
    ArtifactError,
    check_replaceable,
    read,
    write,
)
from boleir.errors import CacheError
from tests.codegen.sample import ADD, SOURCE, artifact, launch


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write(artifact("sm_80", "sm_90"), tmp_path / "out")


def test_a_folder_reads_back_equal(folder: Path) -> None:
    assert read(folder) == artifact("sm_80", "sm_90")


def test_layout(folder: Path) -> None:
    found = {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}
    assert found == {
        MANIFEST,
        "kernels.py",
        *(
            f"kernels/{kernel}.{target}.{kind}"
            for kernel in ("add", "product")
            for target in ("sm_80", "sm_90")
            for kind in ("cubin", "json")
        ),
    }


def test_sources_that_differ_get_a_file_each() -> None:
    made = artifact("sm_90", "gfx942", sources={"gfx942": "# other"})
    assert made.source("sm_90") == SOURCE
    assert made.source("gfx942") == "# other"
    assert made.variant("gfx942").source == "kernels.gfx942.py"
    assert made.variant("gfx942").binaries["add"] == "kernels/add.gfx942.hsaco"
    shared = artifact("sm_80", "sm_90", "gfx942", sources={"sm_90": "# other"})
    assert shared.variant("gfx942").source == "kernels.sm_80.py"
    assert made.toolchain == {"triton": "3.9.0", "ptxas sm_90": "13.0"}


def test_equal_content_gives_equal_bytes(folder: Path, tmp_path: Path) -> None:
    again = write(artifact("sm_80", "sm_90"), tmp_path / "again")
    for path in folder.rglob("*"):
        if path.is_file():
            assert path.read_bytes() == (again / path.relative_to(folder)).read_bytes()


def test_launches_and_binaries_by_name(folder: Path) -> None:
    found = read(folder)
    assert found.variant("sm_90").launch("add") == launch(ADD)
    assert found.binary("sm_90", "add") == b"add sm_90"
    with pytest.raises(CacheError, match=r"not compiled for sm_120[\s\S]*sm_80, sm_90"):
        found.variant("sm_120")


def _cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-4])


def _flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


@pytest.mark.parametrize("damage", [_cut, _flip, Path.unlink])
@pytest.mark.parametrize("name", ["kernels.py", "kernels/add.sm_90.cubin", MANIFEST])
def test_damage_names_the_file(folder: Path, name: str, damage) -> None:
    damage(folder / name)
    with pytest.raises(ArtifactError) as caught:
        read(folder)
    assert caught.value.file == folder / name
    assert len(str(caught.value).splitlines()) <= 2


def test_one_target_needs_only_its_own_files(folder: Path) -> None:
    (folder / "kernels/add.sm_80.cubin").unlink()
    assert set(read(folder, "sm_90").files) == {
        "kernels.py",
        "kernels/add.sm_90.cubin",
        "kernels/product.sm_90.cubin",
    }
    with pytest.raises(ArtifactError, match=r"add\.sm_80\.cubin: missing"):
        read(folder, "sm_80")


@pytest.mark.parametrize(
    "content", [b"", b"[]", b"{}", b'{"format": "1"}', b"\xff\xfe", b"[" * 100_000, b"null"]
)
def test_manifests_that_are_none(folder: Path, content: bytes) -> None:
    (folder / MANIFEST).write_bytes(content)
    with pytest.raises(ArtifactError, match=r"manifest\.json"):
        read(folder)


def _rewrite(folder: Path, change: dict[str, object]) -> None:
    """Change the manifest and make its checksum fit again."""
    content = json.loads((folder / MANIFEST).read_bytes()) | change
    del content["checksum"]
    dump = artifact_folder.dump
    content["checksum"] = artifact_folder._digest(dump(content))
    (folder / MANIFEST).write_bytes(dump(content))


def test_another_format_is_named(folder: Path) -> None:
    _rewrite(folder, {"format": FORMAT + 1})
    with pytest.raises(ArtifactError, match=f"format {FORMAT + 1}, this version reads format"):
        read(folder)


@pytest.mark.parametrize(
    "change", [{"variants": 3}, {"variants": [{}]}, {"variants": [{"target": "sm_90"}]}]
)
def test_manifests_of_wrong_shape(folder: Path, change: dict[str, object]) -> None:
    _rewrite(folder, change)
    with pytest.raises(ArtifactError, match="not understood"):
        read(folder)


@pytest.mark.parametrize("name", ["../secret", "/etc/passwd", "kernels/../../secret"])
def test_files_outside_the_folder_are_refused(folder: Path, name: str) -> None:
    files = json.loads((folder / MANIFEST).read_bytes())["files"]
    _rewrite(folder, {"files": files | {name: "0" * 64}})
    with pytest.raises(ArtifactError, match="outside the folder"):
        read(folder)


def test_an_earlier_folder_is_replaced_whole(folder: Path) -> None:
    write(artifact("sm_120"), folder)
    assert [variant.target for variant in read(folder).variants] == ["sm_120"]
    assert not (folder / "kernels/add.sm_90.cubin").exists()
    assert [path.name for path in folder.parent.iterdir()] == ["out"]


def test_foreign_content_is_never_replaced(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("years of work")
    with pytest.raises(ArtifactError, match="holds other files"):
        write(artifact("sm_90"), tmp_path)
    assert (tmp_path / "thesis.tex").read_text() == "years of work"
    with pytest.raises(ArtifactError, match="is not a folder"):
        write(artifact("sm_90"), tmp_path / "thesis.tex")


def test_manifests_of_other_programs_are_foreign_content(tmp_path: Path) -> None:
    (tmp_path / "manifest.json").write_text('{"name": "an extension of a browser"}')
    with pytest.raises(ArtifactError, match="holds other files"):
        write(artifact("sm_90"), tmp_path)


def test_a_damaged_folder_is_replaced(folder: Path) -> None:
    manifest = folder / "manifest.json"
    manifest.write_bytes(manifest.read_bytes()[:100])
    assert read(write(artifact("sm_90"), folder)).name == "sample"


def test_a_place_that_cannot_be_written_is_named_before_compiling(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ArtifactError, match=r"cannot be written: .*file is no folder"):
        check_replaceable(tmp_path / "file" / "below" / "out")
    (tmp_path / "locked").mkdir(mode=0o500)
    if not os.access(tmp_path / "locked", os.W_OK):  # everything is open to the superuser
        with pytest.raises(ArtifactError, match="locked is no folder to write to"):
            check_replaceable(tmp_path / "locked" / "out")
    check_replaceable(tmp_path / "not" / "yet")


def test_an_empty_folder_may_be_used(tmp_path: Path) -> None:
    assert read(write(artifact("sm_90"), tmp_path)).name == "sample"


def test_a_failed_write_leaves_the_earlier_folder(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(ArtifactError, match="No space left"):
        write(artifact("sm_120"), folder)
    monkeypatch.undo()
    assert read(folder) == artifact("sm_80", "sm_90")
    assert [path.name for path in folder.parent.iterdir()] == ["out"]


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(ArtifactError, match="not a compiled folder"):
        read(tmp_path / "nowhere")
