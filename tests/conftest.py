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


LONG = (
    "test_blocked.py::test_branches_do_not_touch_each_other[mamba2]",
    "test_deferred.py::test_rounds_give_what_ordinary_commits_give[gated_delta_rule-schedules2",
    "test_deferred.py::test_rounds_give_what_ordinary_commits_give[kda",
    "test_deferred.py::test_rounds_give_what_ordinary_commits_give[gated_delta_product",
    "test_emit_interpreted.py::test_changes_of_the_loop_are_noticed",
    "test_fuzz.py::test_trials_notice_wrong_kernels[scale]",
    "test_key_decay.py::test_decays_mixed_over_channels_cost_no_digits[rwkv6",
    "test_key_decay.py::test_rounds_follow_sequential_decoding[rwkv7]",
    "test_key_decay.py::test_trees_fill_a_word[rwkv7]",
    "test_key_decay.py::test_weak_and_strong_decays[rwkv6]",
    "test_key_decay.py::test_what_is_not_finite_reaches_descendants_only[gla",
    "test_key_decay.py::test_what_is_not_finite_reaches_descendants_only[rwkv7",
    "test_kernel_interpreted.py::test_every_schedule_agrees_with_the_walk[gdn]",
    "test_kernel_interpreted.py::test_outputs_depend_on_nothing_but_ancestors[gdn]",
    "test_kernel_interpreted.py::test_rounds_follow_sequential_decoding[split",
    "test_nonfinite.py::test_other_branches_keep_every_bit[gdn]",
    "test_staged.py::test_changes_of_the_text_are_noticed[value_delta]",
    "test_staged.py::test_more_nodes_than_a_word_holds",
    "test_staged.py::test_static_trees",
    "test_walked.py::test_static_trees",
    "test_walked.py::test_trees_of_several_blocks_and_words",
    "test_walked.py::test_what_is_not_finite_reaches_descendants_only[micro_steps]",
    "test_walked.py::test_what_is_not_finite_reaches_descendants_only[value_strength]",
)
"""Interpreted tests that take half a minute and more, and have a shorter sister: for `--long`."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--update-golden`: write the expected texts anew instead of comparing with them. `--long`:
    run `LONG` as well."""
    parser.addoption("--update-golden", action="store_true", help="rewrite the golden files")
    parser.addoption("--long", action="store_true", help="run the longest tests, too")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out the longest tests unless they are asked for. Skip tests marked `gpu` where torch
    has no GPU; torch is imported only if there are any."""
    if not config.getoption("--long"):
        left = [item for item in items if any(name in item.nodeid for name in LONG)]
        config.hook.pytest_deselected(items=left)
        items[:] = [item for item in items if item not in left]
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
