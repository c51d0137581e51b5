"""Getting and importing the public kernels; what they compute, in Triton's interpreter."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from benchmarks import fetch_peers, peers

ROOT = Path(__file__).parents[2]
FOLDER = peers.peers_folder(os.environ.get("BOLEIR_PEERS") or ROOT / fetch_peers.DEFAULT_FOLDER)
needs_peers = pytest.mark.skipif(
    not (FOLDER / "sglang").is_dir(), reason=f"no peers: {fetch_peers.HOW_TO}"
)


def wheel(path: Path, *names: str) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        for name in names:
            archive.writestr(name, f"# {name}\n")
    return path


def test_only_the_wanted_files_are_unpacked(tmp_path: Path) -> None:
    source = wheel(tmp_path / "a.whl", "p/__init__.py", "p/a.py", "p/b/c.py", "p/b/d.so", "q/a.py")
    target = tmp_path / "out"
    assert fetch_peers.unpack(source, ["p/*.py", "p/b/*.py"], target) == [
        "p/__init__.py",
        "p/a.py",
        "p/b/c.py",
    ]
    assert not (target / "q").exists()
    assert not (target / "p/b/d.so").exists()


def test_a_wheel_without_a_wanted_file_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"holds nothing like p/b\.py"):
        fetch_peers.unpack(wheel(tmp_path / "a.whl", "p/a.py"), ["p/b.py"], tmp_path / "out")


def test_folder_from_argument_then_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BOLEIR_PEERS", "/from/environment")
    assert peers.peers_folder("/from/argument") == Path("/from/argument")
    assert peers.peers_folder() == Path("/from/environment")
    monkeypatch.delenv("BOLEIR_PEERS")
    assert peers.peers_folder().name == ".peers"


def test_absent_peers_are_named(tmp_path: Path) -> None:
    for load, name in ((peers.load_sglang, "sglang"), (peers.load_fla, "fla")):
        with pytest.raises(peers.PeersMissingError, match=f"no {name} in .*fetch_peers"):
            load(tmp_path)


def child(code: str, **environment: str) -> str:
    """Run `code` in a fresh interpreter: stand-in modules must not leak into this one."""
    result = subprocess.run(
        [sys.executable, "-c", code, str(FOLDER)],
        cwd=ROOT,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    return result.stdout


@needs_peers
def test_every_kernel_imports() -> None:
    code = """
import sys
from dataclasses import fields
from pathlib import Path
from benchmarks import peers
for kernels in (peers.load_sglang(Path(sys.argv[1])), peers.load_fla(Path(sys.argv[1]))):
    for field in fields(kernels):
        assert callable(getattr(kernels, field.name))
        print(getattr(kernels, field.name).__module__)
"""
    modules = child(code).split()
    assert len(modules) == 8
    assert all(name.startswith(("sglang.kernels.ops.", "fla.ops.")) for name in modules)


@needs_peers
def test_peers_compute_what_the_oracle_does() -> None:
    """Float32 and tiny shapes; the interpreter cannot run their convolution and scatter."""
    code = """
import sys
from pathlib import Path
import torch
from benchmarks import peers
from benchmarks.fla_subject import FlaChain
from benchmarks.measure import capture, check
from benchmarks.protocol import HostClock
from benchmarks.serving_shapes import LayerShape, Row
from benchmarks.sglang_subject import SGLangReplay, SGLangSerial
from benchmarks.workload import make_workload

folder = Path(sys.argv[1])
sglang, fla = peers.load_sglang(folder), peers.load_fla(folder)

class Verifier(SGLangSerial):
    def __init__(self, work, kernels):
        super().__init__(work, kernels, full=False)
        self.stages = ("verify",)

grouped = LayerShape("grouped", key_heads=2, value_heads=4, d_k=32, d_v=32)
equal = LayerShape("equal", key_heads=2, value_heads=2, d_k=32, d_v=32)
for shape, row, kind, make in (
    (grouped, Row(2, 6, 3), "gdn", lambda work: Verifier(work, sglang)),
    (grouped, Row(2, 4, 3), "gdn", lambda work: Verifier(work, sglang)),
    (equal, Row(2, 6, 3), "kda", lambda work: Verifier(work, sglang)),
    (grouped, Row(2, 4, 3), "gdn", lambda work: SGLangReplay(work, sglang)),
    (grouped, Row(2, 4, 3), "gdn", lambda work: FlaChain(work, fla, "recurrent")),
):
    work = make_workload(shape, row, layers=2, kind=kind, dtype=torch.float32)
    subject, clock = make(work), HostClock()
    errors = check(capture(subject, work, clock), work, clock)
    assert errors["verify_max"] < 5e-6 and not errors["state_changed"], (subject.name, errors)
    print("right", subject.name, row, kind)
"""
    printed = child(code, TRITON_INTERPRET="1", CUDA_VISIBLE_DEVICES="")
    assert printed.count("right") == 5
