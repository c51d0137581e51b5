"""A store that others write, own, or have sent: processes, no right to write, hostile files."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
import sys
import time
import warnings
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from boleir.cli.main import main
from boleir.codegen.artifact import dump
from boleir.runtime import cache_root as cache_root_module
from boleir.runtime.tuning import store as store_module
from boleir.runtime.tuning.entry import Entry, InvalidEntry
from boleir.runtime.tuning.exchange import InvalidBundle, add, read_bundle
from boleir.runtime.tuning.files import held
from boleir.runtime.tuning.store import Store, TuningStoreWarning
from tests.runtime.tuning_support import HERE, entry, key, outcome

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv("BOLEIR_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(store_module, "_warned", set())
    cache_root_module.cache_root.cache_clear()
    yield tmp_path / "cache"
    cache_root_module.cache_root.cache_clear()


# ---- hostile files ---------------------------------------------------------------------------


def sealed(**changes: dict[str, Any]) -> bytes:
    """An entry with changed fields, and the checksum that fits them."""
    content = json.loads(entry().to_bytes())["content"]
    for part, values in changes.items():
        (content["outcomes"][0] if part == "outcome" else content[part]).update(values)
    return dump({"content": content, "checksum": hashlib.sha256(dump(content)).hexdigest()})


@pytest.mark.parametrize(
    "changes",
    [
        {"key": {"recurrence": "/elsewhere/x"}},
        {"key": {"recurrence": "../x"}},
        {"key": {"recurrence": "a\0b"}},
        {"key": {"recurrence": "x" * 300}},
        {"key": {"recurrence": ""}},
        {"key": {"parents": "12"}},
        {"key": {"parents": [-1, True]}},
        {"key": {"batch": 0}},
        {"key": {"batch": -4}},
        {"environment": {"gpu": "../../etc"}},
        {"environment": {"triton": "x" * 400}},
        {"environment": {"ptxas": "\x1b[2J"}},
        {"policy": {"tie": -1.0}},
        {"policy": {"tie": 10**400}},
        {"outcome": {"us": 10**400}},
        {"outcome": {"error": 10**400}},
    ],
    ids=lambda changes: str(changes)[:40],
)
def test_an_entry_names_no_path_and_holds_no_nonsense(
    tmp_path: Path, changes: dict[str, dict[str, Any]]
) -> None:
    data = sealed(**changes)
    with pytest.raises(InvalidEntry):
        Entry.from_bytes(data)
    bundle = tmp_path / "bundle.json"
    bundle.write_bytes(dump({"format": 1, "entries": [json.loads(data)]}))
    with pytest.raises(InvalidBundle, match=r"bundle\.json"):
        read_bundle(bundle)


def test_infinite_parents_are_no_parents() -> None:
    with pytest.raises(InvalidEntry):
        Entry.from_bytes(sealed(key={"parents": [float("inf")]}))


@pytest.mark.parametrize("name", ["/elsewhere/evil", "../../evil", "a\0b", "x" * 300, "\N{BAT}"])
def test_no_name_leads_out_of_the_store(tmp_path: Path, name: str) -> None:
    store = Store(tmp_path / "deep" / "tuning")
    place = store.place(HERE, replace(key(), recurrence=name))
    assert place.resolve().parent == (store.root / HERE.folder).resolve()
    assert len(os.fsencode(place.name)) < 200
    assert store.save(entry(of=replace(key(), recurrence=name)))
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == [place]


def test_names_of_the_language_are_names() -> None:
    for name in ("gdn", "gdn'", "Ωmega_2"):
        of = replace(key(), recurrence=name)
        assert Entry.from_bytes(entry(of=of).to_bytes()).key == of


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes with names")
def test_a_pipe_in_place_of_an_entry_is_not_waited_for(
    own_cache: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store = Store(own_cache / "tuning")
    store.save(entry())
    os.mkfifo(store.place(HERE, key()).parent / "zz.json")
    signal.alarm(20)
    try:
        with pytest.warns(TuningStoreWarning, match="no regular file"):
            assert main(["cache", "list"]) == 0
    finally:
        signal.alarm(0)
    assert "gated_delta_rule" in capsys.readouterr().out


# ---- no right to write -----------------------------------------------------------------------


def refuse_to_write(monkeypatch: pytest.MonkeyPatch, below: Path) -> None:
    """Let `below` be read-only, for root too."""
    real = os.open

    def refused(path: Any, flags: int, *more: Any, **options: Any) -> int:
        inside = str(path).startswith(str(below))
        if inside and flags & (os.O_WRONLY | os.O_RDWR):
            raise OSError(30, "Read-only file system")
        return real(path, flags, *more, **options)

    monkeypatch.setattr(os, "open", refused)


def test_a_read_only_cache_is_read_and_written_before(
    own_cache: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    Store(own_cache / "tuning").save(entry())
    refuse_to_write(monkeypatch, own_cache)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert Store.default().load(HERE, key()) == entry()
        assert main(["cache", "list"]) == 0
    assert "b_v=32" in capsys.readouterr().out
    with pytest.warns(UserWarning, match="Read-only file system.*for now"):
        written = Store.writable()
    assert written.root != own_cache / "tuning"
    assert written.load(HERE, key()) == entry()  # a tuning goes on from what is known
    assert written.save(entry(outcome(1.0, b_v=16)))
    assert written.save(entry(of=key(batch=4)))
    for store in (written, Store.default()):
        found = store.load(HERE, key())
        assert found is not None and len(found.outcomes) == 4
        assert store.load(HERE, key(batch=4)) is not None
    assert Store(own_cache / "tuning").load(HERE, key()) == entry()


def test_looking_creates_nothing(own_cache: Path) -> None:
    assert Store.default().load(HERE, key()) is None
    assert not own_cache.exists()


# ---- many processes --------------------------------------------------------------------------

SAVER = (
    "import sys\nfrom pathlib import Path\n"
    "from boleir.runtime.tuning.exchange import add\n"
    "from boleir.runtime.tuning.store import Store\n"
    "from tests.runtime.tuning_support import entry, outcome\n"
    "store, number = Store(Path(sys.argv[1])), int(sys.argv[2])\n"
    "print('ready', flush=True)\nsys.stdin.readline()\n"
    "for turn in range(10):\n"
    "    own = entry(outcome(10.0 + number, registers=32 + 8 * number, b_k=turn + 1))\n"
    "    if number % 2:\n        assert store.save(own)\n"
    "    else:\n        add(store, [own])\n"
)


def started(*argv: str) -> subprocess.Popen[bytes]:
    """A process that has said that it is ready."""
    process = subprocess.Popen(
        [sys.executable, "-c", *argv], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert process.stdout is not None
    assert process.stdout.readline() == b"ready\n"
    return process


def test_what_several_processes_save_at_once_is_all_kept(tmp_path: Path) -> None:
    store = Store(tmp_path / "tuning")
    processes = [started(SAVER, str(store.root), str(number)) for number in range(4)]
    for process in processes:
        assert process.stdin is not None
        process.stdin.write(b"go\n")
        process.stdin.flush()
    for process in processes:
        process.communicate(timeout=120)
        assert process.returncode == 0
    found = store.load(HERE, key())
    assert found is not None
    assert len(found.outcomes) == 4 * 10
    assert store.unfinished() == []
    assert len(list(store.place(HERE, key()).parent.iterdir())) == 1


HOLDER = (
    "import sys, time\nfrom pathlib import Path\n"
    "from boleir.runtime.tuning.files import held\n"
    "with held(Path(sys.argv[1])) as alone:\n"
    "    assert alone\n    print('ready', flush=True)\n    time.sleep(60)\n"
)


def test_whoever_holds_the_store_and_dies_blocks_nobody(tmp_path: Path) -> None:
    store = Store(tmp_path / "tuning")
    folder = store.place(HERE, key()).parent
    process = started(HOLDER, str(folder))
    try:
        with held(folder, patience=0.1) as alone:
            assert not alone  # still alive: others wait, but not for ever
    finally:
        process.kill()
        process.communicate(timeout=10)
    began = time.monotonic()
    assert store.save(entry())
    assert add(store, [entry(of=key(batch=4))]).new == 1
    assert time.monotonic() - began < 5


def test_where_there_are_no_locks_it_is_written_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("boleir.runtime.tuning.files.fcntl", None)
    store = Store(tmp_path / "tuning")
    assert store.save(entry())
    assert store.load(HERE, key()) == entry()
