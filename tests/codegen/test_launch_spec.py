"""Launch specifications and grid expressions."""

from __future__ import annotations

import json

import pytest

from boleir.codegen.launch_spec import (
    GridError,
    LaunchSpec,
    compile_grid,
    evaluate_grid,
    grid_names,
)
from boleir.errors import CompileError
from tests.codegen.sample import ADD, launch


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1", 1),
        ("batch", 3),
        ("4*32", 128),
        ("batch * 32 + nodes", 160),
        ("cdiv(nodes, 48)", 2),
        ("nodes // 10 % 4", 2),
        ("(batch - 1) * max(nodes, 100)", 200),
        ("min(batch, nodes)", 3),
    ],
)
def test_expressions(text: str, value: int) -> None:
    assert evaluate_grid((text, "1", "1"), {"batch": 3, "nodes": 64}) == (value, 1, 1)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "batch batch",
        "batch / 2",
        "batch ** 2",
        "1.5",
        "True",
        "'x'",
        "-1",
        "batch.real",
        "batch[0]",
        "__import__('os')",
        "abs(batch)",
        "cdiv(batch)",
        "cdiv(a=1, b=2)",
        "(lambda: 1)()",
        "x if y else z",
        "[i for i in j]",
        "1+" * 99 + "1" * 9,
        "(" * 90 + "1" + ")" * 90 + "+" * 10,
        "a\nb",
    ],
)
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(GridError):
        grid_names((text, "1", "1"))


def test_names_are_collected_and_checked() -> None:
    assert grid_names(("b * a", "cdiv(c, 2)", "a")) == ("a", "b", "c")
    with pytest.raises(GridError, match=r"'nodes'.*\n.*known: batch"):
        compile_grid(("nodes", "1", "1"), ("batch",))


@pytest.mark.parametrize("name", ["not a name", "cdiv", "1"])
def test_names_that_would_change_the_meaning_are_refused(name: str) -> None:
    with pytest.raises(GridError):
        compile_grid(("1", "1", "1"), (name,))


def test_a_launch_survives_json() -> None:
    spec = launch(ADD)
    assert spec.arguments == ("x_ptr", "y_ptr", "out_ptr", "count", "stride", "factor")
    assert spec.types == ("*fp32", "*fp32", "*fp32", "i32", "i64", "fp32")
    assert LaunchSpec.from_json(json.loads(json.dumps(spec.to_json()))) == spec


@pytest.mark.parametrize(
    "change",
    [{"types": ["i32"]}, {"grid": ["open('x')", "1", "1"]}, {"types": ["tensor"] * 6}],
)
def test_nonsense_is_refused_on_the_way_back(change: dict[str, object]) -> None:
    with pytest.raises(CompileError):
        LaunchSpec.from_json(launch(ADD).to_json() | change)
