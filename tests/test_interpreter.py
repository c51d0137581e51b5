"""A call in a child that fails harms its own test alone."""

from __future__ import annotations

import ctypes
import os
import sys
import time
from collections.abc import Iterator
from typing import Any

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


def one_round(name: str, schedule: dict[str, Any]) -> dict[str, list[int]]:
    """The bits of outputs, states and windows of a small round."""
    from boleir.check.inputs import Case, Shape
    from tests.runtime.kernel_harness import Harness, bits

    made = Harness(name, Shape(1, 2, 20, 16), max_nodes=7, max_depth=3, schedule=schedule)
    trees = [(-1, 0, 0, 2, 3, 1, 0), (), (-1,)]
    batch = made.batch(trees, [2, 0, -1], cases=[Case(keys="cosine", log_decay=-0.3)] * 3)
    out, factors = made.verify(batch)
    made.kernel.commit(factors, batch.slot_tensor([4, -1, 0]), batch.pool, batch.slot_tensor())
    return {str(at): bits(x).flatten().tolist() for at, x in enumerate([out, *batch.pool.tensors])}


def reflected(values: list[float]) -> list[list[float]]:
    """1 - x, 1 / x and x < 1 for tiles of one number each."""
    import numpy as np
    import triton.language as tl
    from triton.runtime.interpreter import TensorHandle

    found = []
    for value in values:
        numbers = TensorHandle(np.full(4, value, dtype=np.float32), tl.float32)
        tile = tl.tensor(numbers, tl.block_type(tl.float32, [4]))
        found.append([float(x.handle.data[0]) for x in (1.0 - tile, 1.0 / tile, tile < 1.0)])
    return found


def test_operands_that_are_equal_at_first_keep_their_places(interpreter: Interpreter) -> None:
    found = interpreter.call(f"{HERE}:reflected", {"values": [1.0, 4.0]}, 120)
    assert found == [[0.0, 1.0, 0.0], [-3.0, 0.25, 0.0]]


@pytest.mark.parametrize(
    ("name", "schedule"),
    [
        ("gdn", {"fusion": "split", "solver": "inverse", "b_v": 16, "b_k": 32}),
        ("kda", {"fusion": "walked", "solver": "horner", "b_v": 16, "b_k": 16}),
    ],
)
def test_the_lighter_interpreter_changes_no_bit(
    name: str, schedule: dict[str, Any], interpreter: Interpreter
) -> None:
    asked = {"name": name, "schedule": {**schedule, "node_block": 16, "precision": "ieee"}}
    plain, lighter = (
        interpreter.call(f"{HERE}:one_round", asked, 120, lighter=which) for which in (False, True)
    )
    assert plain == lighter
    assert len(set(plain["0"])) > 100


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
