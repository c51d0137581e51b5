"""Fixtures that every folder of tests may use."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from boleir.codegen.offline import CompilePool
from tests.interpreter import ChildFailed, Interpreter

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
    "test_key_sums.py::test_a_branch_that_walks_changes_no_bit_of_others[logged",
    "test_key_sums.py::test_a_branch_that_walks_changes_no_bit_of_others[rwkv6",
    "test_key_sums.py::test_changes_of_the_text_are_noticed",
    "test_key_sums.py::test_decays_mixed_over_channels_cost_no_digits",
    "test_key_sums.py::test_decays_that_grow_or_leave_the_bounds_in_some_channels",
    "test_key_sums.py::test_kernels_compile_without_a_gpu[kda",
    "test_key_sums.py::test_recurrences_agree_with_the_walk[long",
    "test_key_sums.py::test_siblings_change_no_bit",
    "test_key_sums.py::test_the_default_spills_nothing",
    "test_key_sums.py::test_weak_and_strong_decays",
    "test_key_sums.py::test_what_is_not_finite_reaches_descendants_only",
    "test_head_groups.py::test_branches_and_heads_do_not_touch_each_other[inline]",
    "test_head_groups.py::test_groups_agree_with_the_walk[more]",
    "test_kernel_interpreted.py::test_every_schedule_agrees_with_the_walk[gdn]",
    "test_kernel_interpreted.py::test_outputs_depend_on_nothing_but_ancestors[gdn]",
    "test_kernel_interpreted.py::test_rounds_follow_sequential_decoding[split",
    "test_nonfinite.py::test_other_branches_keep_every_bit[gdn]",
    "test_several_outputs.py::test_a_compiled_region_gives_the_same_bits",
    "test_several_outputs.py::test_every_schedule",
    "test_several_outputs.py::test_outputs_depend_on_nothing_but_ancestors[two_queries]",
    "test_several_outputs.py::test_outputs_depend_on_nothing_but_ancestors[channel_decays]",
    "test_staged.py::test_changes_of_the_text_are_noticed[value_delta]",
    "test_staged.py::test_more_nodes_than_a_word_holds",
    "test_staged.py::test_static_trees",
    "test_walked.py::test_static_trees",
    "test_walked.py::test_trees_of_several_blocks_and_words",
    "test_walked.py::test_what_is_not_finite_reaches_descendants_only[micro_steps]",
    "test_walked.py::test_what_is_not_finite_reaches_descendants_only[value_strength]",
)
"""Interpreted tests that take half a minute and more, and have a shorter sister: for `--long`."""

LONGEST = (
    "codegen/test_staged.py",
    "codegen/test_key_decay.py",
    "codegen/test_walked.py",
    "codegen/test_pipeline.py",
    "runtime/test_examples.py",
    "runtime/test_kernel_interpreted.py",
    "runtime/test_doctor.py",
    "codegen/test_emit_interpreted.py",
    "tests/test_documents.py",
    "boleir/test_check.py",
    "runtime/test_deferred.py",
    "runtime/test_fuzz.py",
    "runtime/test_tuning_search.py",
    "benchmarks/test_host_time.py",
    "runtime/test_kernel_compiled.py",
)
"""Files that take the longest: first, so that no worker is left with one when all else is done."""


def pytest_configure(config: pytest.Config) -> None:
    """Workers take files in our order, not those with the most tests first."""
    if hasattr(config.option, "loadscopereorder"):
        config.option.loadscopereorder = False


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--update-golden`: write the expected texts anew instead of comparing with them. `--long`:
    run `LONG` as well."""
    parser.addoption("--update-golden", action="store_true", help="rewrite the golden files")
    parser.addoption("--long", action="store_true", help="run the longest tests, too")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out the longest tests unless they are asked for. Begin with the longest files. Skip
    tests marked `gpu` where torch has no GPU; torch is imported only if there are any."""
    if not config.getoption("--long"):
        left = [item for item in items if any(name in item.nodeid for name in LONG)]
        config.hook.pytest_deselected(items=left)
        out = set(left)
        items[:] = [item for item in items if item not in out]
    items.sort(key=lambda item: not item.path.as_posix().endswith(LONGEST))
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
def run_interpreted() -> Iterator[Callable[..., Any]]:
    """Call a function in a process of its own in which Triton interprets kernels on the CPU.

    `run_interpreted("tests.runtime.some_module:function", **arguments)`; arguments and result are
    passed as JSON. A failure there fails the test here with what the child printed.
    """
    interpreter = Interpreter()

    def call(module_function: str, /, *, timeout: float = 300, **arguments: Any) -> Any:
        try:
            return interpreter.call(module_function, arguments, timeout)
        except ChildFailed as failed:
            pytest.fail(str(failed))

    yield call
    interpreter.close()
