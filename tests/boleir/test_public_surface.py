"""`import boleir` is fast and lazy, and people and type checkers see the same names."""

from __future__ import annotations

import ast
import importlib
import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

import boleir

TIMED = """
import time
start = time.process_time()
import boleir
{}
print(time.process_time() - start)
"""
HEAVY = ("lark", "sympy", "networkx", "numpy", "torch", "triton")


def in_a_child(code: str) -> str:
    """Standard output of a fresh interpreter."""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120
    )
    return done.stdout.strip()


def loaded_after(code: str) -> set[str]:
    """The heavy modules that `code` imports."""
    listing = f"print(json.dumps([name for name in {HEAVY!r} if name in sys.modules]))"
    return set(json.loads(in_a_child(f"import sys, json\n{code}\n{listing}")))


def test_import_is_lazy() -> None:
    assert loaded_after("import boleir") == set()
    assert loaded_after("import boleir; dir(boleir); boleir.SpecError; boleir.Recurrence") == set()


def test_each_door_imports_what_it_needs() -> None:
    assert loaded_after("import boleir; boleir.load('gdn')") == {"lark"}
    function = "f = lambda S, q, k, v: (S + k @ v.T, S.T @ q)"
    trace = f"import boleir\n{function}\nboleir.recurrence(name='f')(f)"
    assert loaded_after(trace) == set()
    assert loaded_after("import boleir; str(boleir.beam(width=2, depth=3))") == set()
    printing = "import boleir, boleir.ir as ir; str(ir.number(1))"
    assert loaded_after(printing) == set()


def test_import_is_fast() -> None:
    assert min(float(in_a_child(TIMED.format(""))) for _ in range(3)) < 0.3


def test_the_parser_is_ready_quickly() -> None:
    assert min(float(in_a_child(TIMED.format("boleir.load('gdn')"))) for _ in range(3)) < 0.5
    start = time.process_time()
    for _ in range(10):
        boleir.parse("recurrence r(k: key, v: value)\n  S = S + k v^T\n  out S^T k\n")
    assert time.process_time() - start < 0.3


def declared_for_type_checkers() -> dict[str, str]:
    """Names that the TYPE_CHECKING block of the package imports, with their homes."""
    tree = ast.parse(Path(str(boleir.__file__)).read_text(encoding="utf-8"))
    block = next(node for node in tree.body if isinstance(node, ast.If))
    return {
        alias.asname or alias.name: str(node.module)
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }


def test_people_and_type_checkers_see_the_same() -> None:
    assert set(declared_for_type_checkers()) == set(boleir.__all__)
    assert list(boleir.__all__) == sorted(boleir.__all__)
    assert set(boleir.__all__) <= set(dir(boleir))


@pytest.mark.parametrize(
    "name", [n for n in boleir.__all__ if n not in ("compile", "StatePool", "TreeBatch")]
)
def test_every_name_is_what_its_home_says(name: str) -> None:
    value = getattr(boleir, name)
    if name != "derive":
        home = importlib.import_module(declared_for_type_checkers()[name])
        assert value is getattr(home, name)
    assert value is getattr(boleir, name)


def test_names_of_the_runtime_resolve() -> None:
    pytest.importorskip("torch")
    for name in ("compile", "StatePool", "TreeBatch"):
        assert callable(getattr(boleir, name))


def test_derive_is_the_function_however_it_is_reached() -> None:
    gdn = boleir.load("gdn")
    form = boleir.derive(gdn)
    from boleir.derive import normal_form

    assert normal_form is not None
    assert type(boleir.derive(gdn)) is type(form)


def test_unknown_names_are_attribute_errors() -> None:
    with pytest.raises(AttributeError, match="no attribute 'gdn'"):
        _ = boleir.gdn  # type: ignore[attr-defined]
