"""Helper processes that answer, crash or hang."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from boleir.codegen.worker_process import WorkerProcess, import_path

MODULE = "tests.codegen.misbehaving_worker"


@pytest.fixture
def worker() -> Iterator[WorkerProcess]:
    made = WorkerProcess(MODULE, lambda _: os.environ)
    yield made
    made.close()


def test_answers_in_order(worker: WorkerProcess) -> None:
    assert [worker.ask({"do": "echo", "value": n}, 120)["value"] for n in range(3)] == [0, 1, 2]


def test_large_answers_arrive_whole(worker: WorkerProcess) -> None:
    text = "x" * 3_000_000
    assert worker.ask({"do": "echo", "value": text}, 120)["value"] == text


def test_prints_do_not_mix_with_answers(worker: WorkerProcess) -> None:
    assert worker.ask({"do": "print", "value": 1}, 120) == {"value": 1}
    assert worker.ask({"do": "echo", "value": 2}, 120) == {"value": 2}


def test_a_crash_is_told_with_its_signal_and_reason(worker: WorkerProcess) -> None:
    with pytest.raises(EOFError):
        worker.ask({"do": "abort"}, 120)
    assert worker.last_words() == "SIGABRT: LLVM ERROR: out of ideas"
    with pytest.raises(EOFError):
        worker.ask({"do": "echo", "value": 1}, 120)


def test_an_answer_that_is_no_object_is_none(worker: WorkerProcess) -> None:
    with pytest.raises(EOFError):
        worker.ask({"do": "list", "value": 1}, 120)
    assert worker.last_words() == "its answer was '[1]'"


def test_an_exit_is_told_with_its_status(worker: WorkerProcess) -> None:
    with pytest.raises(EOFError):
        worker.ask({"do": "exit"}, 120)
    assert worker.last_words() == "exit status 7"


def test_a_hang_ends_with_the_time_limit_and_takes_children_along(worker: WorkerProcess) -> None:
    child = worker.ask({"do": "spawn"}, 120)["value"]
    with pytest.raises(TimeoutError):
        worker.ask({"do": "hang"}, 0.3)
    worker.close()
    for _ in range(1000):
        if not Path(f"/proc/{child}").exists() or _is_zombie(child):
            return
        time.sleep(0.02)
    pytest.fail("the child of the worker is still alive")


def _is_zombie(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "Z"
    except FileNotFoundError:
        return True


def test_closing_twice_is_harmless_and_removes_the_folder() -> None:
    made = WorkerProcess(MODULE, lambda _: os.environ)
    folder = Path(made.ask({"do": "folder"}, 120)["value"])
    assert folder.is_dir()
    made.close()
    made.close()
    assert not folder.exists()


def test_import_path_is_absolute() -> None:
    assert all(os.path.isabs(entry) for entry in import_path().split(os.pathsep))
