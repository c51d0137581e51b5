"""Where boleir keeps what it can make again."""

from __future__ import annotations

from pathlib import Path

import pytest

from boleir.runtime import cache_root as module


@pytest.fixture(autouse=True)
def forget(monkeypatch: pytest.MonkeyPatch) -> None:
    module.cache_root.cache_clear()
    monkeypatch.delenv(module.VARIABLE, raising=False)


def test_the_variable_wins(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv(module.VARIABLE, str(tmp_path / "mine"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "other"))
    assert module.cache_root() == tmp_path / "mine"
    assert (tmp_path / "mine").is_dir()


def test_else_the_users_cache_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert module.preferred_cache_root() == tmp_path / "boleir"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert module.preferred_cache_root() == tmp_path / ".cache" / "boleir"


def test_unwritable_means_temporary_and_one_warning(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv(module.VARIABLE, str(tmp_path / "file" / "cache"))
    with pytest.warns(UserWarning, match="cannot be written") as seen:
        first, second = [module.cache_root() for _ in range(2)]
    assert len(seen) == 1
    assert first == second
    assert first.is_dir()
