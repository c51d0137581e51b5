"""Stages that are removed to be timed: the text has them, and what is left is a module."""

from __future__ import annotations

import ast

import pytest

import boleir
from benchmarks.stages import REMOVALS, removed
from boleir.codegen.pipeline import lower
from boleir.codegen.request import Shapes


@pytest.mark.parametrize("batch", [1, 16])
def test_each_removal_leaves_a_module(batch: int) -> None:
    shapes = Shapes(16, 32, 128, 128, 64, 8)
    text = lower(boleir.load("gated_delta_rule"), shapes, batch=batch).text
    products = [text.count("tl.dot(")]
    for count in range(1, len(REMOVALS) + 1):
        left = removed(text, count)
        ast.parse(left)
        products.append(left.count("tl.dot("))
    assert products == sorted(products, reverse=True)
    assert "tl.dot(" not in left.split("def one_tile")[1].split("def commit")[0]


def test_a_kernel_without_the_stage_is_told() -> None:
    text = lower(boleir.load("linear_attention"), Shapes(16, 32, 128, 128, 64, 8)).text
    with pytest.raises(ValueError, match="nothing to remove for 'correction of the inverse'"):
        removed(text, 1)
