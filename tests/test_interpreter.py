"""A call in a child that fails harms its own test alone."""

from __future__ import annotations

import ctypes
import os
import sys
import time
from collections.abc import Iterator

import pytest

from tests.interpreter import ChildFailed, Interpreter

HERE = "tests.test_interpreter"


@pytest.fixture(scope="module")
def interpreter() -> Iterator[Interpreter]:
    made = Interpreter()
    yield made
    made.close()


def add(left: int, right: int) -> int:
    print("not part of the result")
    return left + right


def wild_access() -> None:
    print("about to read address 8", flush=True)
    ctypes.string_at(8)


def hang() -> None:
    time.sleep(600)


def spoil() -> None:
    os.environ["SPOILED"] = "1"
    sys.modules["json"] = None  # type: ignore[assignment]
    sys.path.clear()
    raise ValueError("spoiled")


def surroundings() -> list[str | None]:
    import triton

    from boleir.runtime.topology import topology

    interprets = type(topology).__name__
    return [os.environ.get("SPOILED"), os.environ.get("GIVEN"), interprets, triton.__name__]


def test_results_come_back(interpreter: Interpreter) -> None:
    assert interpreter.call(f"{HERE}:add", {"left": 2, "right": 3}, 120) == 5


def test_kernels_are_interpreted(interpreter: Interpreter, monkeypatch: pytest.MonkeyPatch) -> None:
    interpreter.call(f"{HERE}:add", {"left": 2, "right": 3}, 120)
    monkeypatch.setenv("GIVEN", "later than the start")
    spoiled, given, kernel, _ = interpreter.call(f"{HERE}:surroundings", {}, 120)
    assert (spoiled, given) == (None, "later than the start")
    assert kernel == "InterpretedFunction"


def test_a_crash_ends_its_own_call(interpreter: Interpreter) -> None:
    with pytest.raises(ChildFailed, match=r"ended with -11:\n.*about to read address 8"):
        interpreter.call(f"{HERE}:wild_access", {}, 120)
    assert interpreter.call(f"{HERE}:add", {"left": 1, "right": 1}, 120) == 2


def test_what_a_call_changes_ends_with_it(interpreter: Interpreter) -> None:
    with pytest.raises(ChildFailed, match="ValueError: spoiled"):
        interpreter.call(f"{HERE}:spoil", {}, 120)
    assert interpreter.call(f"{HERE}:surroundings", {}, 120)[0] is None


def test_a_hang_is_ended(interpreter: Interpreter) -> None:
    with pytest.raises(ChildFailed, match="took more than 1 s"):
        interpreter.call(f"{HERE}:hang", {}, 1)
    assert interpreter.call(f"{HERE}:add", {"left": 1, "right": 1}, 120) == 2
