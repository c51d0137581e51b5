"""Properties of emitted text: it stands on its own, reads well, and depends on nothing but its
request."""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import boleir
from boleir.codegen.emit.text import ATOM, LOGIC, SUM, TERM, UNARY, bracket, level, product
from boleir.codegen.emit.writer import WIDTH, Writer, folded
from boleir.codegen.pipeline import lower
from boleir.codegen.plan import NoKernel
from boleir.codegen.request import Shapes
from boleir.codegen.schedule import Schedule
from boleir.errors import ScheduleError
from tests.codegen.recurrences import TEXTS, recurrence

ROOT = Path(__file__).resolve().parents[2]
SHAPES = {
    "block": (1, 2, 32, 24, 12, 5),
    "loop": (1, 2, 32, 24, 200, 5),
}
SCHEDULES: dict[str, dict[str, Any] | None] = {
    "default": None,
    "inline": {"gates": "inline", "orientation": "nodes", "commit": "factors"},
    "levels": {"solver": "levels", "b_k": 16},
    "split": {"fusion": "split", "solver": "inverse"},
    "joined": {"fusion": "joined", "solver": "inverse"},
}
SMALL = {"b_v": 16, "b_k": 32, "node_block": 16}


def texts() -> Iterator[tuple[str, str]]:
    """Emitted modules of many variants."""
    for name in ("gdn", "gated_delta_rule", "iplr", "mamba2", "gated_delta_product", *TEXTS):
        given = recurrence(name)
        for shape, sizes in SHAPES.items():
            for label, fields in SCHEDULES.items():
                schedule = None if fields is None else Schedule(**{**SMALL, **fields})
                try:
                    made = lower(given, Shapes(*sizes), schedule=schedule)
                except ScheduleError:
                    continue
                yield f"{name} {shape} {label}", made.text


@pytest.fixture(scope="module")
def modules() -> dict[str, str]:
    return dict(texts())


def test_modules_are_python_without_paths(modules: dict[str, str]) -> None:
    assert len(modules) > 40
    for label, text in modules.items():
        ast.parse(text)
        assert str(ROOT) not in text and tempfile.gettempdir() not in text, label
        assert "$" not in text, label


def test_no_line_says_nothing(modules: dict[str, str]) -> None:
    """No `x = x`, no names of the form h10_, no doubled brackets round a whole value."""
    for label, text in modules.items():
        for line in text.splitlines():
            found = re.match(r" *(\w+) = (\w+)$", line)
            assert not found or found[1] != found[2], (label, line)
            assert not re.search(r"\b[a-z]\d+_\b", line), (label, line)
            assert "((((" not in line, (label, line)


def test_a_program_keeps_its_tile_whatever_inputs_are_called(modules: dict[str, str]) -> None:
    """An input `value` has a tile, too; the number of the program's own may be needed after it."""
    assert any("value_tile = " in text for text in modules.values())
    for label, text in modules.items():
        for kernel in text.split("@triton.jit")[1:]:
            assert len(re.findall(r"^ +value_tile = ", kernel, re.MULTILINE)) <= 1, label


def test_lines_are_short_where_they_can_be(modules: dict[str, str]) -> None:
    for label, text in modules.items():
        body = text.split('"""\n', 2)[2]
        long = [line for line in body.splitlines() if len(line) > 120]
        assert not long, (label, long[0])


def test_row_scalars_say_where_they_come_from() -> None:
    text = lower(boleir.load("gdn"), Shapes(2, 4, 32, 32, 16, 4)).text
    source = boleir.load("gdn").source
    assert source is not None
    lines = source.text.splitlines()
    for what, expected in (
        ("beta", "beta = sigmoid(b)"),
        ("u", "u = beta *"),
        ("decay", "gamma ="),
    ):
        number = re.search(rf"# {what}: gdn\.bole:(\d+)", text)
        assert number is not None, what
        assert lines[int(number[1]) - 1].strip().startswith(expected)


def test_the_header_explains_every_buffer(modules: dict[str, str]) -> None:
    for label, text in modules.items():
        header, body = text.split('"""\n', 1)
        for name in ("state", "rows", "folded", "unknowns", "mixed", "passing", "out"):
            if re.search(rf"^def \w+\([^)]*\b{name}\b[^)]*\):", body, re.MULTILINE):
                assert re.search(rf"^    {name}  +", header, re.MULTILINE), (label, name)


def test_the_text_depends_on_the_request_alone() -> None:
    """Two processes with different hashes, one of which has done other work before."""
    names = ["gdn", "mamba2", "value_gate"]
    program = (
        "import json, sys\n"
        "from boleir.codegen.pipeline import lower\n"
        "from boleir.codegen.request import Shapes\n"
        "from tests.codegen.recurrences import recurrence\n"
        "def emitted(names):\n"
        "    shapes = Shapes(1, 2, 32, 24, 200, 5)\n"
        "    return [lower(recurrence(name), shapes).text for name in names]\n"
        "names, before = json.loads(sys.argv[1]), json.loads(sys.argv[2])\n"
        "emitted(before)\n"
        "print(json.dumps(emitted(names)))\n"
    )
    found = []
    for seed, before in (("1", []), ("2", names[::-1])):
        done = subprocess.run(
            [sys.executable, "-c", program, json.dumps(names), json.dumps(before)],
            cwd=ROOT,
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        )
        found.append(json.loads(done.stdout))
    assert found[0] == found[1]


@pytest.mark.parametrize("name", ["state", "rows", "q_stride", "NODE_BLOCK"])
def test_inputs_named_like_buffers_are_refused(name: str) -> None:
    text = f"recurrence r(q: key, k: key, {name}: value)\n  S = S + k {name}^T\n  out S^T q\n"
    with pytest.raises(NoKernel, match=name):
        lower(boleir.parse(text), Shapes(1, 1, 16, 16, 4, 3))


@pytest.mark.parametrize("name", ["right", "size", "c_sums"])
def test_scalars_named_like_variables_get_another_name(name: str) -> None:
    """`size` tells of what is not finite: a scalar in its place would hide that."""
    text = (
        "recurrence r(q: key, k: key, v: value, a: head)\n"
        f"  {name} = sigmoid(a)\n  S = S + k ({name} * (v - S^T k))^T\n  out S^T q\n"
    )
    made = lower(boleir.parse(text), Shapes(1, 1, 16, 16, 4, 3))
    assert made.plan.scalars[0].name == f"{name}_row"


def test_levels_of_text() -> None:
    for text, expected in (
        ("x", ATOM),
        ("f(a + b)", ATOM),
        ("x[:, None]", ATOM),
        ("-x", UNARY),
        ("a * b", TERM),
        ("a / (b + c)", TERM),
        ("a * b + c", SUM),
        ("a + b < c", LOGIC),
        ("(a < b) & c", LOGIC),
    ):
        assert level(text) == expected, text
    assert bracket("a + b") == "(a + b)"
    assert bracket("a * b", SUM) == "a * b"
    assert product("a + b", "c * d", "-e") == "(a + b) * (c * d) * -e"


def test_writer_keeps_arguments_and_variables_apart() -> None:
    w = Writer(["beta"])
    w.let("node", f"tl.load({w.arg('node', '*i32')} + 1)")
    w.line(f"tl.store({w.arg('node', '*i32')}, node)")
    assert w.temp("1.0", "beta") == "beta_2"
    text = w.kernel("k", "Doc.", ("1", "1", "1"), warps=1).text
    assert "node_local = tl.load(node + 1)" in text
    assert "tl.store(node, node_local)" in text


def test_names_of_a_block_end_with_it() -> None:
    w = Writer()
    with w.block("if x:"):
        w.memo["a",] = w.temp("1", "a")
    assert w.memo == {}
    assert w.temp("2", "a") == "a"


def test_folded_lines_mean_the_same() -> None:
    terms = " + ".join(f"term_{number}[:, None] * f(a, b, c)" for number in range(12))
    for line in (f"    x = {terms}", f"    tl.store(p + ({terms}), g({terms}), mask=m)"):
        pieces = folded(line)
        assert max(map(len, pieces)) <= WIDTH
        whole = ast.dump(ast.parse(line.strip()))
        assert ast.dump(ast.parse("\n".join(pieces).strip())) == whole
