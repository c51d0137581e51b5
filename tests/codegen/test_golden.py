"""Emitted modules, word for word, each in a folder with a file per kernel. After a change on
purpose: `pytest --update-golden`, and read the difference."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

import boleir
from boleir.codegen.pipeline import lower
from boleir.codegen.request import Shapes
from boleir.codegen.schedule import Schedule
from boleir.codegen.targets import target
from tests.codegen.staged_recurrences import TEXTS

GOLDEN = Path(__file__).parent / "golden"
QWEN = (16, 32, 128, 128)
CHAIN = tuple(range(-1, 7))

MODULES: dict[str, tuple[str, Shapes]] = {
    "gdn_fused_16": ("gdn", Shapes(*QWEN, 16, 5)),
    "gdn_preparing_16": ("gdn", Shapes(*QWEN, 16, 5)),
    "gdn_split_64": ("gdn", Shapes(*QWEN, 64, 8)),
    "gdn_deferred_64": ("gdn", Shapes(*QWEN, 64, 8)),
    "gdn_blocked_256": ("gdn", Shapes(4, 12, 96, 60, 256, 12)),
    "iplr_blocked_128": ("iplr", Shapes(4, 4, 64, 64, 128, 4)),
    "gated_delta_product_looped_128": ("gated_delta_product", Shapes(4, 8, 64, 64, 128, 4)),
    "gated_delta_rule_joined_64": ("gated_delta_rule", Shapes(*QWEN, 64, 8)),
    "gated_delta_rule_32": ("gated_delta_rule", Shapes(*QWEN, 32, 8)),
    "gated_delta_rule_chain_8": ("gated_delta_rule", Shapes(*QWEN, 8, 7, parents=CHAIN)),
    "comba_16": ("comba", Shapes(4, 8, 64, 64, 16, 4)),
    "iplr_16": ("iplr", Shapes(4, 4, 64, 64, 16, 4)),
    "gated_delta_product_16": ("gated_delta_product", Shapes(4, 8, 64, 64, 16, 4)),
    "linear_attention_16": ("linear_attention", Shapes(4, 4, 64, 64, 16, 4)),
    "kda_64": ("kda", Shapes(32, 32, 128, 128, 64, 8)),
    "kda_walked_96": ("kda", Shapes(4, 4, 64, 32, 96, 8)),
    "gla_16": ("gla", Shapes(4, 4, 64, 64, 16, 4)),
    "gla_64": ("gla", Shapes(*QWEN, 64, 8)),
    "rwkv7_16": ("rwkv7", Shapes(4, 4, 64, 64, 16, 4)),
    "mamba2_16": ("mamba2", Shapes(1, 8, 128, 64, 16, 4)),
    "gated_oja_64": ("gated_oja", Shapes(4, 8, 128, 96, 64, 8)),
    "value_delta_16": ("value_delta", Shapes(4, 4, 64, 64, 16, 4)),
}
"""A name that is not the library's is one of the recurrences for the staged schedule."""
JOINED = Schedule(fusion="joined", solver="inverse", gates="inline")
DEFERRED = Schedule(fusion="split", solver="inverse", commit="deferred")
PREPARING = Schedule(fusion="joined", solver="inverse", node_block=16, prepare="joined")
SCHEDULES = {
    "gated_delta_rule_joined_64": JOINED,
    "gdn_deferred_64": DEFERRED,
    "gdn_preparing_16": PREPARING,
}
"""Schedules that are no defaults."""


@pytest.mark.parametrize("name", MODULES)
def test_emitted_modules_are_as_expected(name: str, request: pytest.FixtureRequest) -> None:
    recurrence, shapes = MODULES[name]
    made = boleir.parse(TEXTS[recurrence]) if recurrence in TEXTS else boleir.load(recurrence)
    text = lower(made, shapes, schedule=SCHEDULES.get(name), target=target("sm_90")).text
    parts, folder = in_parts(text), GOLDEN / name
    if request.config.getoption("--update-golden"):
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        for part, lines in parts.items():
            (folder / f"{part}.py").write_text(lines)
    assert folder.is_dir(), "run pytest --update-golden"
    for part, lines in parts.items():
        path = folder / f"{part}.py"
        assert path.exists(), f"{name} has a new part {part}; --update-golden if that is meant"
        assert lines == path.read_text(), f"{name}/{part} differs; --update-golden if that is meant"
    assert {path.stem for path in folder.iterdir()} == set(parts)


def in_parts(text: str) -> dict[str, str]:
    """A module as it is kept: what stands before the kernels under `module`, then each of them by
    name."""
    head, *functions = re.split(r"(?m)^(?=@triton\.jit\n)", text)
    return {"module": head} | {re.findall(r"def (\w+)\(", x)[0]: x for x in functions}


def test_parts_make_up_the_module() -> None:
    text = lower(boleir.load("gated_oja"), MODULES["gated_oja_64"][1]).text
    parts = in_parts(text)
    assert "".join(parts.values()) == text
    assert [*parts] == [
        "module",
        "precise_exp",
        "prepare",
        "factors",
        "unknowns",
        "values",
        "commit",
    ]


def test_every_golden_folder_is_tested() -> None:
    assert {path.name for path in GOLDEN.iterdir()} == set(MODULES)
