"""What an entry comes from: only a tuning makes a further one unnecessary."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from boleir.codegen.defaults import default_schedule
from boleir.codegen.planner import make_plan
from boleir.codegen.schedule import Schedule
from boleir.derive.derive import derive
from boleir.runtime.tuning import autotune, lookup
from boleir.runtime.tuning.entry import NO_TUNING, Entry
from boleir.runtime.tuning.exchange import add
from boleir.runtime.tuning.lookup import tuned_schedule
from boleir.runtime.tuning.settings import Settings
from boleir.runtime.tuning.shipped import collections
from boleir.runtime.tuning.store import Store
from tests.runtime.tuning_support import GATED, HERE, SM_90, entry, key, outcome, shapes

TIMED = replace(entry(outcome(9.0, b_v=16)), origin=f"{NO_TUNING}: a default schedule")
TUNED = entry(outcome(3.0, b_v=32, node_block=16))


def test_shipped_default_schedules_say_that_they_are_no_tuning() -> None:
    form = derive(GATED).normal
    for shipped in collections():
        of = shipped.key
        plan = make_plan(form, of.d_k, of.d_v, of.key_heads, of.value_heads)
        default = default_schedule(plan, of.shapes, of.batch)
        alone = [item.schedule for item in shipped.outcomes] == [default]
        assert not (alone and shipped.tuned)
        assert shipped.tuned or shipped.origin.startswith(NO_TUNING)


def asked(monkeypatch: pytest.MonkeyPatch, store: Store, mode: str) -> tuple[Any, list[Any]]:
    """What a look-up of a shipped key gives, and the keys that were tuned for it."""
    tuned: list[Any] = []

    def tune_key(recurrence: Any, of: Any, target: Any, *, effort: str) -> Entry:
        tuned.append(of)
        return TUNED

    monkeypatch.setattr(autotune, "tune_key", tune_key)
    found = tuned_schedule(
        GATED, shapes(16, 5), SM_90, 1, settings=Settings(mode), store=store, environment=HERE
    )
    return found, tuned


def test_mode_tune_measures_what_no_tuning_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Store(tmp_path)
    shipped = next(shipped for shipped in collections() if shipped.key == key())
    assert asked(monkeypatch, store, "tune") == (shipped.chosen, [])
    untuned = replace(TIMED, outcomes=(outcome(9.0, b_v=16, node_block=16),))
    monkeypatch.setattr(lookup, "shipped_entry", lambda environment, of: untuned)
    assert asked(monkeypatch, store, "tune") == (TUNED.chosen, [key()])
    found, tuned = asked(monkeypatch, store, "load")
    assert found is not None and tuned == []
    store.save(TIMED)  # shipped entries that were imported are no tuning either
    assert asked(monkeypatch, store, "tune") == (TUNED.chosen, [key()])
    store.replace(TUNED)
    assert asked(monkeypatch, store, "tune") == (TUNED.chosen, [])


def test_a_tuning_makes_an_entry_a_tuned_one(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.save(TIMED)
    store.save(TUNED)
    found = store.load(HERE, key())
    assert found is not None
    assert found.tuned and found.origin == TUNED.origin
    assert {item.schedule.b_v for item in found.outcomes} == {16, 32}
    store.save(TIMED)  # and it stays one
    again = store.load(HERE, key())
    assert again is not None and again.tuned


def test_importing_keeps_what_is_tuned(tmp_path: Path) -> None:
    for first, second in ((TIMED, TUNED), (TUNED, TIMED)):
        store = Store(tmp_path / first.origin[:4])
        add(store, [first])
        add(store, [second])
        found = store.load(HERE, key())
        assert found is not None and found.tuned


def test_tuning_a_timed_entry_changes_its_origin(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tests.runtime.tuning_support import FakeTimer, fake_bench, smooth

    on, _ = fake_bench(tmp_path, FakeTimer(smooth))
    on.store.save(TIMED)
    asked_for = []

    class Stub:
        def __init__(self, entry: Entry, *_: Any) -> None:
            asked_for.append(entry)

        def run(self) -> Entry:
            return asked_for[-1]

    monkeypatch.setattr(autotune, "Search", Stub)
    (found,) = autotune.tune(GATED, [key()], SM_90, on, effort="quick")
    assert found.tuned and found.origin.startswith("boleir")
    assert found.outcomes[0].schedule == Schedule(b_v=16)
