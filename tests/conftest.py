"""Fixtures that every folder of tests may use."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from boleir.codegen.offline import CompilePool

ROOT = Path(__file__).resolve().parent.parent

_CHILD = """
import importlib, json, sys
module, function, arguments = sys.argv[1], sys.argv[2], json.loads(sys.argv[3])
result = getattr(importlib.import_module(module), function)(**arguments)
print("\\n" + json.dumps(result))
"""


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--update-golden`: write the expected texts anew instead of comparing with them."""
    parser.addoption("--update-golden", action="store_true", help="rewrite the golden files")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip tests marked `gpu` where torch has no GPU; torch is imported only if there are any."""
    marked = [item for item in items if item.get_closest_marker("gpu")]
    if not marked:
        return
    import torch

    if not torch.cuda.is_available():
        for item in marked:
            item.add_marker(pytest.mark.skip(reason="needs a GPU"))


@pytest.fixture(scope="session")
def pool() -> Iterator[CompilePool]:
    """Compiler processes for the whole session."""
    with CompilePool() as made:
        yield made


@pytest.fixture(scope="session")
def run_interpreted() -> Callable[..., Any]:
    """Call a function in a process of its own in which Triton interprets kernels on the CPU.

    `run_interpreted("tests.runtime.some_module:function", **arguments)`; arguments and result are
    passed as JSON. The interpreter is chosen when a kernel is defined and a wild access ends the
    process, hence the child. A failure there fails the test here with what the child printed.
    """

    def call(module_function: str, /, *, timeout: float = 300, **arguments: Any) -> Any:
        module, function = module_function.split(":")
        child = subprocess.run(
            [sys.executable, "-c", _CHILD, module, function, json.dumps(arguments)],
            cwd=ROOT,
            env={**os.environ, "TRITON_INTERPRET": "1"},
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )
        if child.returncode:
            pytest.fail(f"{module_function} ended with {child.returncode}:\n{child.stderr[-4000:]}")
        return json.loads(child.stdout.splitlines()[-1])

    return call
