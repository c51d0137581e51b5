"""The store: whole files or none, and nothing in it that can fail a user."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from boleir.codegen.artifact import dump
from boleir.codegen.schedule import Schedule
from boleir.errors import CacheError
from boleir.runtime import cache_root as cache_root_module
from boleir.runtime.tuning import store as store_module
from boleir.runtime.tuning.choice import best
from boleir.runtime.tuning.entry import Entry, InvalidEntry
from boleir.runtime.tuning.environment import Environment, normalised
from boleir.runtime.tuning.exchange import (
    InvalidBundle,
    add,
    prune,
    read_bundle,
    write_bundle,
)
from boleir.runtime.tuning.files import UNFINISHED, write_whole
from boleir.runtime.tuning.lookup import tuned_schedule
from boleir.runtime.tuning.settings import BadSetting, Settings
from boleir.runtime.tuning.store import Store, TuningStoreWarning
from tests.runtime.tuning_support import GATED, HERE, SM_90, entry, key, outcome, shapes

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(autouse=True)
def forget_warnings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_module, "_warned", set())


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "tuning")


def test_what_was_saved_is_loaded(store: Store) -> None:
    assert store.load(HERE, key()) is None
    assert store.save(entry())
    found = store.load(HERE, key())
    assert found == entry()
    assert found is not None
    assert found.chosen == Schedule(b_v=32)


def test_a_file_is_readable_and_names_everything(store: Store) -> None:
    store.save(entry())
    path = store.place(HERE, key())
    assert path.parent.name == "h200_sm_90_triton-3.6.0_ptxas-12.9.86_v1"
    assert path.name.startswith("gated_delta_rule_h16-32_d128-128_n16-8_b1_")
    content = json.loads(path.read_text(encoding="utf-8"))["content"]
    assert content["key"]["text"] == str(GATED)
    assert content["key"]["value_heads"] == 32
    assert content["environment"]["triton"] == "3.6.0"
    assert content["policy"]["tie"] == 0.02
    assert content["chosen"]["b_v"] == 32
    assert [item["us"] for item in content["outcomes"]] == [7.0, 5.0, None]
    assert content["outcomes"][2]["failure"] == "no luck"
    assert path.stat().st_mode & 0o777 == 0o644


def test_a_key_differs_in_every_field() -> None:
    files = {
        key().file,
        *(
            replace(key(), **{name: value}).file
            for name, value in {
                "recurrence": "x", "text": "x", "key_heads": 8, "value_heads": 64, "d_k": 64,
                "d_v": 64, "dtype": "float16", "state_dtype": "bfloat16", "out_dtype": "float32",
                "nodes": 32, "depth": 4, "batch": 4, "parents": (-1, 0),
            }.items()
        ),
    }  # fmt: skip
    assert len(files) == 14


@pytest.mark.parametrize(
    ("name", "plain"),
    [
        ("NVIDIA H200", "h200"),
        ("NVIDIA GeForce RTX 5090", "geforce-rtx-5090"),
        ("NVIDIA A100-SXM4-80GB", "a100-sxm4-80gb"),
        ("NVIDIA(R) Tesla(TM) T4", "tesla-t4"),
        ("AMD Instinct MI300X", "instinct-mi300x"),
        ("../../etc", "..-..-etc"),
    ],
)
def test_gpu_names_become_folder_names(name: str, plain: str) -> None:
    assert normalised(name) == plain
    folder = Environment(normalised(name), "sm_90", "3.6.0+git/x", "12.9").folder
    assert "/" not in folder
    assert folder not in (".", "..")


def corrupted(good: bytes) -> dict[str, bytes]:
    """Everything that may be found in place of an entry."""
    whole = json.loads(good)

    def changed(change: Callable[[dict], object], *, seal: bool) -> bytes:
        copy = json.loads(good)
        change(copy["content"])
        if seal:
            copy["checksum"] = hashlib.sha256(dump(copy["content"])).hexdigest()
        return dump(copy)

    return {
        "empty": b"",
        "truncated": good[: len(good) // 2],
        "one byte short": good[:-3],
        "not UTF-8": b"\xff\xfe" + good,
        "zeros": bytes(len(good)),
        "no JSON": b"{content",
        "a number": b"7",
        "a list": b"[1, 2]",
        "deep": b"[" * 100_000,
        "another object": b'{"a": 1}',
        "wrong checksum": dump({**whole, "checksum": "0" * 64}),
        "checksum of another type": dump({**whole, "checksum": 7}),
        "changed time": changed(lambda c: c["outcomes"][0].update(us=0.5), seal=False),
        "time is text": changed(lambda c: c["outcomes"][0].update(us="fast"), seal=True),
        "negative time": changed(lambda c: c["outcomes"][0].update(us=-1.0), seal=True),
        "time and failure": changed(lambda c: c["outcomes"][0].update(failure="x"), seal=True),
        "unknown field": changed(lambda c: c["outcomes"][0].update(colour=1), seal=True),
        "unknown schedule field": changed(
            lambda c: c["outcomes"][0]["schedule"].update(colour=1), seal=True
        ),
        "schedule of another type": changed(
            lambda c: c["outcomes"][0]["schedule"].update(warps="4"), seal=True
        ),
        "warps is true": changed(
            lambda c: c["outcomes"][0]["schedule"].update(warps=True), seal=True
        ),
        "heads is text": changed(lambda c: c["key"].update(key_heads="16"), seal=True),
        "impossible heads": changed(lambda c: c["key"].update(key_heads=5), seal=True),
        "no outcomes": changed(lambda c: c.update(outcomes=None), seal=True),
        "outcomes is a number": changed(lambda c: c.update(outcomes=[3]), seal=True),
        "chosen is not the best": changed(
            lambda c: c.update(chosen=Schedule(b_v=128).to_json()), seal=True
        ),
        "key is missing": changed(lambda c: c.pop("key"), seal=True),
        "key is a list": changed(lambda c: c.update(key=[]), seal=True),
        "parents are text": changed(lambda c: c["key"].update(parents="ab"), seal=True),
    }


@pytest.mark.parametrize("name", corrupted(entry().to_bytes()))
def test_whatever_is_wrong_is_a_miss_and_one_warning(store: Store, name: str) -> None:
    data = corrupted(entry().to_bytes())[name]
    with pytest.raises(InvalidEntry):
        Entry.from_bytes(data)
    path = store.place(HERE, key())
    write_whole(path, data)
    with pytest.warns(TuningStoreWarning) as seen:
        assert [store.load(HERE, key()) for _ in range(2)] == [None, None]
    assert len(seen) == 1
    assert str(path) in str(seen[0].message)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert store.save(entry())  # and it is mended by the next one that is written
        assert store.load(HERE, key()) == entry()


def test_fields_that_a_schedule_did_not_have_yet_stand_for_their_defaults() -> None:
    older = json.loads(entry().to_bytes())
    for schedule in (
        older["content"]["chosen"],
        *(x["schedule"] for x in older["content"]["outcomes"]),
    ):
        del schedule["factor_heads"]
    older["checksum"] = hashlib.sha256(dump(older["content"])).hexdigest()
    assert Entry.from_bytes(dump(older)) == entry()


def test_an_entry_under_a_wrong_name_is_a_miss(store: Store) -> None:
    store.save(entry())
    other = store.place(HERE, key(batch=16))
    shutil.copy(store.place(HERE, key()), other)
    with pytest.warns(TuningStoreWarning, match="something else"):
        assert store.load(HERE, key(batch=16)) is None


def test_a_folder_in_place_of_an_entry_is_a_miss(store: Store) -> None:
    store.place(HERE, key()).mkdir(parents=True)
    with pytest.warns(TuningStoreWarning, match="cannot be read"):
        assert store.load(HERE, key()) is None
    with pytest.warns(TuningStoreWarning, match="cannot be written"):
        assert not store.replace(entry())


def test_eight_processes_write_one_key(store: Store, tmp_path: Path) -> None:
    program = (
        "import sys\nfrom pathlib import Path\n"
        "from boleir.runtime.tuning.store import Store\n"
        "from tests.runtime.tuning_support import entry, outcome\n"
        "store, number = Store(Path(sys.argv[1])), int(sys.argv[2])\n"
        "for turn in range(40):\n"
        "    us = 10.0 + number + turn / 100\n"
        "    assert store.replace(entry(outcome(us), outcome(us / 2, b_v=32)))\n"
        "    found = store.load(entry().environment, entry().key)\n"
        "    assert found is not None and len(found.outcomes) == 2\n"
        "    assert found.outcomes[0].us == 2 * found.outcomes[1].us\n"
    )
    started = [
        subprocess.Popen(
            [sys.executable, "-W", "error", "-c", program, str(store.root), str(number)],
            cwd=ROOT,
            stderr=subprocess.PIPE,
        )
        for number in range(8)
    ]
    for process in started:
        _, text = process.communicate(timeout=120)
        assert process.returncode == 0, text.decode()
    assert store.load(HERE, key()) is not None
    assert store.unfinished() == []
    assert len(store.files()) == 1


def test_a_writer_killed_in_the_middle_leaves_the_old_entry(store: Store) -> None:
    store.save(entry())
    program = (
        "import os, sys, time\nfrom pathlib import Path\n"
        "from boleir.runtime.tuning import files\n"
        "from boleir.runtime.tuning.store import Store\n"
        "from tests.runtime.tuning_support import entry, outcome\n"
        "def stop(number):\n    print('writing', flush=True)\n    time.sleep(60)\n"
        "files.os.fsync = stop\n"
        "Store(Path(sys.argv[1])).replace(entry(outcome(1.0)))\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", program, str(store.root)], cwd=ROOT, stdout=subprocess.PIPE
    )
    assert process.stdout is not None
    assert process.stdout.readline() == b"writing\n"
    process.send_signal(signal.SIGKILL)
    process.wait(timeout=120)
    assert store.load(HERE, key()) == entry()
    assert len(store.unfinished()) == 1
    assert len(store.files()) == 1
    left = store.unfinished()
    assert prune(store) == left
    assert store.unfinished() == []
    assert store.load(HERE, key()) == entry()


def test_a_write_that_fails_leaves_nothing(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    store.save(entry())
    monkeypatch.setattr("boleir.runtime.tuning.files.os.replace", full)
    with pytest.warns(TuningStoreWarning, match="No space left"):
        assert not store.save(entry(outcome(1.0)))
    assert store.unfinished() == []
    assert store.load(HERE, key()) == entry()


def test_two_versions_lie_side_by_side(store: Store) -> None:
    newer = replace(HERE, triton="3.7.1")
    store.save(entry(outcome(9.0, b_v=16)))
    store.save(entry(outcome(3.0, b_v=128), where=newer))
    old, new = store.load(HERE, key()), store.load(newer, key())
    assert old is not None and old.chosen == Schedule(b_v=16)
    assert new is not None and new.chosen == Schedule(b_v=128)
    assert store.load(replace(HERE, ptxas="13.0"), key()) is None
    assert store.load(replace(HERE, gpu="h100"), key()) is None
    assert len(list(store.entries())) == 2


def test_a_moved_store_is_the_same_store(store: Store, tmp_path: Path) -> None:
    store.save(entry())
    moved = Store(tmp_path / "elsewhere")
    shutil.move(store.root, moved.root)
    assert moved.load(HERE, key()) == entry()
    assert store.load(HERE, key()) is None


def test_saving_keeps_what_others_added(store: Store) -> None:
    store.save(entry(outcome(7.0)))
    store.save(entry(outcome(5.0, b_v=32)))
    found = store.load(HERE, key())
    assert found is not None
    assert [o.us for o in found.outcomes] == [7.0, 5.0]
    other_policy = replace(entry(outcome(1.0, b_v=16)), policy=replace(entry().policy, replays=3))
    store.save(other_policy)
    assert store.load(HERE, key()) == other_policy


def in_fresh_process(program: str, environ: dict[str, str]) -> str:
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=ROOT,
        env={**os.environ, **environ},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


SAVE_AND_LOAD = (
    "from boleir.runtime.tuning.store import Store\n"
    "from tests.runtime.tuning_support import HERE, entry, key\n"
    "store = Store.writable()\n"
    "print('saved', store.save(entry()), store.load(HERE, key()) == entry())\n"
)


@pytest.mark.parametrize("place", ["/proc/nowhere", "/dev/null/cache"])
def test_an_unwritable_cache_is_replaced_by_a_temporary_one(place: str) -> None:
    text = in_fresh_process(SAVE_AND_LOAD, {"BOLEIR_CACHE": place})
    assert "saved True True" in text
    assert text.count("cannot be written") == 1


def test_a_missing_home_is_replaced_by_a_temporary_cache(tmp_path: Path) -> None:
    gone = {"HOME": "/proc/nobody", "XDG_CACHE_HOME": "", "BOLEIR_CACHE": ""}
    text = in_fresh_process(SAVE_AND_LOAD, gone)
    assert "saved True True" in text
    assert text.count("cannot be written") == 1


def test_no_home_at_all_is_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def homeless(path: Path) -> Path:
        raise RuntimeError("Could not determine home directory.")

    for name in ("BOLEIR_CACHE", "XDG_CACHE_HOME", "HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(Path, "expanduser", homeless)
    cache_root_module.cache_root.cache_clear()
    try:
        with pytest.warns(UserWarning, match="no home"):
            assert cache_root_module.cache_root().is_dir()
    finally:
        cache_root_module.cache_root.cache_clear()


@pytest.mark.skipif(os.geteuid() == 0, reason="root writes anywhere")
def test_a_read_only_store_is_read(store: Store) -> None:
    store.save(entry())
    folder = store.place(HERE, key()).parent
    folder.chmod(0o555)
    try:
        assert store.load(HERE, key()) == entry()
        with pytest.warns(TuningStoreWarning, match="cannot be written"):
            assert not store.save(entry(outcome(1.0)))
    finally:
        folder.chmod(0o755)


def test_ties_go_to_the_simpler_schedule() -> None:
    fast = outcome(10.0, fusion="split", solver="inverse", b_v=16, warps=1)
    simple = outcome(10.19)
    assert best((fast, simple), 0.02) == simple
    assert best((simple, fast), 0.02) == simple
    assert best((fast, outcome(10.21)), 0.02) == fast
    assert best((outcome(None),), 0.02) is None
    equal = [outcome(5.0, b_v=32), outcome(5.0, b_v=16)]
    assert best(equal, 0.02) == best(equal[::-1], 0.02)


# ---- look-up ---------------------------------------------------------------------------------


def ask(store: Store, nodes: int = 16, depth: int = 5, batch: int = 1, mode: str = "load"):
    return tuned_schedule(
        GATED, shapes(nodes, depth), SM_90, batch,
        settings=Settings(mode), store=store, environment=replace(HERE, gpu="unknown"),
    )  # fmt: skip


def test_a_bucket_serves_its_shapes_and_no_others(store: Store) -> None:
    where = replace(HERE, gpu="unknown")
    chosen = {"b_v": 32, "node_block": 16, "warps": 2}
    store.save(entry(outcome(5.0, **chosen), of=key(16, 8, 4), where=where))
    assert ask(store, 16, 8, 4) == Schedule(**chosen)
    assert ask(store, 12, 5, 2) == Schedule(**chosen)
    assert ask(store, 17, 8, 4) is None
    assert ask(store, 16, 9, 4) is None
    assert ask(store, 16, 8, 5) is None
    assert ask(store, 16, 8, 1) is None
    assert ask(store, 16, 8, 65) is None
    assert ask(store, 16, 8, 4, mode="off") is None


def test_a_schedule_that_does_not_fit_is_not_taken(store: Store) -> None:
    where = replace(HERE, gpu="unknown")
    store.save(entry(outcome(5.0, node_block=64), of=key(16, 8, 1), where=where))
    assert ask(store, 16, 8, 1) is None


def test_an_entry_without_a_working_candidate_gives_the_default(store: Store) -> None:
    where = replace(HERE, gpu="unknown")
    store.save(entry(outcome(None), where=where))
    assert ask(store) is None


def test_load_never_compiles_or_times(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    def forbidden(*_: object, **__: object) -> None:
        raise AssertionError("load mode must do nothing of the kind")

    monkeypatch.setattr("boleir.runtime.tuning.autotune.tune", forbidden)
    monkeypatch.setattr("boleir.runtime.tuning.autotune.tune_key", forbidden)
    monkeypatch.setattr("boleir.codegen.offline.CompilePool.compile", forbidden)
    monkeypatch.setattr("boleir.codegen.worker_process.WorkerProcess.__init__", forbidden)
    assert ask(store) is None
    assert not store.root.exists()
    with pytest.raises(AssertionError, match="nothing of the kind"):
        ask(store, mode="tune")


def test_load_mode_needs_no_tuner(store: Store) -> None:
    program = (
        "import sys\nimport boleir.runtime.tuning.lookup\n"
        "print([m for m in sys.modules if m.rsplit('.', 1)[-1] in "
        "('autotune', 'search', 'timer', 'offline', 'cost_model', 'triton')])"
    )
    assert in_fresh_process(program, {}).strip() == "[]"


def test_looking_up_is_quick(store: Store) -> None:
    where = replace(HERE, gpu="unknown")
    many = [outcome(5.0 + i, b_v=b, warps=w, registers=r) for i, (b, w, r) in enumerate(
        (b, w, r) for b in (16, 32, 64, 128) for w in (1, 2, 4, 8) for r in (0, 96, 128)
    )]  # fmt: skip
    store.save(entry(*many, where=where))
    ask(store)
    started = time.process_time()
    for _ in range(5):
        ask(store)
    assert (time.process_time() - started) / 5 < 0.1


def test_settings_come_from_the_environment() -> None:
    assert Settings.from_environment({}) == Settings("load", "quick")
    given = {"BOLEIR_TUNING": " Tune ", "BOLEIR_TUNING_EFFORT": "full"}
    assert Settings.from_environment(given) == Settings("tune", "full")
    with pytest.raises(BadSetting, match="BOLEIR_TUNING='on'"):
        Settings.from_environment({"BOLEIR_TUNING": "on"})


class Stop(Exception):
    """Ends a compilation once its schedule is known."""


def compiled_schedule(monkeypatch: pytest.MonkeyPatch, **options: Any) -> Schedule:
    """The schedule that `boleir.compile` would compile for an H200."""
    import boleir

    def stop(lowered: Any, target: object) -> None:
        raise Stop(lowered.schedule)

    monkeypatch.setattr("boleir.runtime.api.compiled", stop)
    monkeypatch.setattr("boleir.runtime.tuning.lookup._environment", lambda target: HERE)
    sizes = {"key_heads": 16, "value_heads": 32, "d_k": 128, "d_v": 128}
    with pytest.raises(Stop) as stopped:
        boleir.compile(GATED, target="sm_90", max_nodes=16, max_depth=5, **sizes, **options)
    found = stopped.value.args[0]
    assert isinstance(found, Schedule)
    return found


def test_compile_takes_the_tuned_schedule_unless_it_is_given_one(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Store, "default", classmethod(lambda cls: store))
    tuned = Schedule(b_v=16, node_block=16, warps=8)
    given = Schedule(b_v=32, node_block=16)
    untuned = compiled_schedule(monkeypatch, batch=16)
    store.save(entry(outcome(5.0, **tuned.to_json()), of=key(batch=16)))
    assert untuned != tuned
    assert compiled_schedule(monkeypatch, batch=16) == tuned
    assert compiled_schedule(monkeypatch, batch=16, schedule=given) == given
    monkeypatch.setenv("BOLEIR_TUNING", "off")
    assert compiled_schedule(monkeypatch, batch=16) == untuned


# ---- carrying and tidying --------------------------------------------------------------------


def test_a_bundle_carries_a_store(store: Store, tmp_path: Path) -> None:
    store.save(entry())
    store.save(entry(of=key(batch=16)))
    path = tmp_path / "all.json"
    assert write_bundle((e for _, e in store.entries()), path) == 2
    other = Store(tmp_path / "other")
    assert add(other, read_bundle(path)).new == 2
    assert other.load(HERE, key()) == entry()
    again = add(other, read_bundle(path))
    assert (again.new, again.extended, again.kept) == (0, 0, 2)


def test_merging_adds_and_own_measurements_stay(store: Store) -> None:
    store.save(entry(outcome(7.0), outcome(6.0, b_v=32)))
    added = add(store, [entry(outcome(1.0), outcome(5.0, b_v=16))])
    assert (added.new, added.extended, added.kept) == (0, 1, 0)
    found = store.load(HERE, key())
    assert found is not None
    assert {(o.schedule.b_v, o.us) for o in found.outcomes} == {(64, 7.0), (32, 6.0), (16, 5.0)}


@pytest.mark.parametrize(
    "data", [b"", b"\xff", b"[]", b'{"format": 9, "entries": []}', b'{"format": 1, "entries": [1]}',
             b'{"format": 1}']
)  # fmt: skip
def test_a_bad_bundle_is_refused_by_name(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "bundle.json"
    path.write_bytes(data)
    with pytest.raises(InvalidBundle, match=r"bundle\.json"):
        read_bundle(path)
    with pytest.raises(InvalidBundle, match="does not exist"):
        read_bundle(tmp_path / "absent.json")


def test_a_bundle_cannot_be_put_into_an_unwritable_store(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.warns(TuningStoreWarning), pytest.raises(CacheError, match="cannot be written"):
        add(Store(tmp_path / "file" / "store"), [entry()])


def test_pruning_removes_what_is_damaged_and_what_is_not_kept(store: Store) -> None:
    store.save(entry())
    store.save(entry(where=replace(HERE, gpu="a100")))
    bad = store.place(HERE, key(batch=4))
    bad.write_bytes(b"{}")
    left = bad.parent / f".x{UNFINISHED}"
    left.write_bytes(b"")
    with pytest.warns(TuningStoreWarning):
        found = prune(store, dry=True)
    assert sorted(found) == sorted([bad, left])
    assert bad.exists()
    assert prune(store) == found
    assert not bad.exists()
    assert len(store.files()) == 2
    assert [path.name for path in prune(store, "h200")] == [replace(HERE, gpu="a100").folder]
    assert store.load(HERE, key()) == entry()
    assert len(store.files()) == 1
