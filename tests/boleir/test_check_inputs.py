"""Adversarial inputs reach what they promise, for recurrences with different gates."""

from __future__ import annotations

import numpy as np
import pytest

import boleir as bole
from boleir.check.driving import decay_driver, erase_driver
from boleir.check.inputs import (
    KEYS,
    TREES,
    Case,
    Sample,
    Shape,
    addressing,
    cases,
    permuted,
    round_bf16,
    sample,
    tree,
)
from boleir.derive.closed_form import ClosedForm
from boleir.derive.derive import derive
from boleir.ir import Expr
from boleir.oracle.values import Array, Values
from boleir.trees import Tree


def value(drawn: Sample, expr: Expr) -> Array:
    dims = (drawn.shape.d_k, drawn.shape.d_v)
    return Values(drawn.inputs, drawn.parents, dims, weights=drawn.weights, windows=drawn.windows)(
        expr
    )


def form(name: str) -> ClosedForm:
    return derive(bole.load(name))


def test_names_are_unique_and_cover_everything() -> None:
    everything = cases()
    assert len({case.name for case in everything}) == len(everything)
    assert {case.tree for case in everything} == set(TREES)
    assert {case.keys for case in everything} == set(KEYS)
    assert {case.strength for case in everything} == {None, 0.0, 1.0, 2.0}
    assert {case.log_decay for case in everything} == {
        None, 0.0, -0.03, -5.0, -20.0, -100.0, "mixed",
    }  # fmt: skip


def test_cases_that_make_no_difference_are_left_out() -> None:
    assert {case.strength for case in cases(form("gla"))} == {None}
    assert {case.log_decay for case in cases(form("delta_rule"))} == {None}
    assert len(cases(form("linear_attention"))) < len(cases()) / 4


@pytest.mark.parametrize("name", TREES)
@pytest.mark.parametrize("nodes", [0, 1, 2, 5, 17, 64])
def test_trees_are_valid(name: str, nodes: int) -> None:
    parents = tree(name, nodes, np.random.default_rng(0))
    assert len(Tree(parents).parents) == nodes


def test_permuting_keeps_the_shape() -> None:
    parents = tree("balanced", 21, np.random.default_rng(1))
    other = permuted(parents, np.random.default_rng(2))
    assert other != parents
    assert sorted(Tree(other).depth) == sorted(Tree(parents).depth)


@pytest.mark.parametrize("name", ["gdn", "kda", "simple_gla", "gated_oja", "mamba2", "retention"])
@pytest.mark.parametrize("target", [0.0, -0.03, -5.0, -20.0, -100.0])
def test_log_decay_hits_its_target(name: str, target: float) -> None:
    closed = form(name)
    drawn = sample(closed, Case("random", "random", None, target))
    reached = value(drawn, closed.P.log_decay)
    # Where an input per key head drives value heads with own parameters, the first of a group.
    assert np.allclose(reached[:, ::2], target, rtol=1e-6, atol=1e-6)


def test_mixed_decays_differ_between_nodes() -> None:
    closed = form("gdn")
    reached = value(sample(closed, Case(log_decay="mixed")), closed.P.log_decay)[:, 0, 0]
    assert len(np.unique(np.round(reached, 3))) >= 3


def test_assumed_positive_decays_come_out_positive() -> None:
    recurrence = bole.parse(
        "recurrence r(q: key, k: key, v: value, g: head)\n  S = g * S + k v^T\n  out S^T q\n"
    )
    closed = derive(recurrence)
    assert (value(sample(closed, Case()), closed.P.decay) > 0).all()


@pytest.mark.parametrize(("name", "target", "reached"), [
    ("gdn", 0.0, 0.0), ("gdn", 1.0, 1.0), ("gdn", 2.0, 1.0), ("gated_delta_product", 2.0, 2.0),
])  # fmt: skip
def test_strength_hits_its_target_or_its_limit(name: str, target: float, reached: float) -> None:
    closed = form(name)
    drawn = sample(closed, Case(strength=target))
    for driver in erase_driver(closed):
        assert np.allclose(value(drawn, driver.quantity), reached, atol=1e-9)


def test_strength_and_decay_use_different_inputs() -> None:
    for name in bole.names():
        closed = form(name)
        decay = decay_driver(closed)
        used = [driver.by.name for driver in erase_driver(closed)]
        assert decay is None or decay.by.name not in used
        assert len(set(used)) == len(used)


@pytest.mark.parametrize("name", ["gdn", "delta_rule", "gated_oja"])
def test_relations_of_keys(name: str) -> None:
    closed = form(name)
    write = closed.commit.pairs[0]

    def cosines(keys: str) -> Array:
        drawn = sample(closed, Case(keys=keys), Shape(2, 4, 64, 48))
        vectors = value(drawn, write)[:, 0]
        norms = np.linalg.norm(vectors, axis=-1, keepdims=True)
        units = vectors / np.where(norms > 0, norms, 1)
        return units @ units.T

    assert cosines("identical").min() > 1 - 1e-9
    off_diagonal = cosines("cosine")[~np.eye(17, dtype=bool)]
    assert 0.8 < np.median(off_diagonal) < 0.99
    assert abs(np.median(cosines("random")[~np.eye(17, dtype=bool)])) < 0.4


def test_zero_keys() -> None:
    closed = form("delta_rule")
    drawn = sample(closed, Case(keys="zero"))
    assert not value(drawn, closed.commit.pairs[0])[1::2].any()
    assert value(drawn, closed.commit.pairs[0])[::2].any()


def test_inputs_stay_finite_and_bf16_rounding_is_exact() -> None:
    closed = form("gdn")
    for case in cases():
        drawn = sample(closed, case, nodes=5)
        assert all(np.isfinite(x).all() for x in drawn.inputs.values()), case.name
    assert round_bf16(np.array([1.0, 1 + 2**-8, 1 + 3 * 2**-8, -3.14159])).tolist() == [
        1.0, 1.0, 1 + 2**-6, -3.140625,
    ]  # fmt: skip


def test_same_arguments_same_arrays() -> None:
    closed = form("gdn")
    one, two = (sample(closed, Case(), seed=3) for _ in range(2))
    other = sample(closed, Case(), seed=4)
    assert all(np.array_equal(one.inputs[n], two.inputs[n]) for n in one.inputs)
    assert not np.array_equal(one.inputs["q"], other.inputs["q"])


def test_shapes_and_an_own_tree() -> None:
    closed = form("gdn")
    drawn = sample(closed, Case(), Shape(1, 3, 8, 5), parents=(-1, 0, 0))
    assert drawn.parents == (-1, 0, 0)
    shapes = {name: x.shape for name, x in drawn.inputs.items()}
    assert shapes["q"] == (3, 1, 8)
    assert shapes["v"] == (3, 3, 5)
    assert shapes["b"] == (3, 3)
    assert shapes["A_log"] == (3,)
    assert drawn.weights["k"].shape == (8, 4)
    assert drawn.windows["v"].shape == (15, 3)
    assert [x.name for x in addressing(closed)] == ["k"]


def test_value_heads_of_a_key_head_agree_about_its_parameters() -> None:
    drawn = sample(form("kda"), Case(), Shape(2, 6, 12, 7))
    bias = drawn.inputs["dt_bias"].reshape(2, 3, 12)
    assert (bias == bias[:, :1]).all()
    assert (bias[0] != bias[1]).all()
    assert len(set(drawn.inputs["A_log"].ravel())) == 6


def test_unknown_names_are_refused() -> None:
    with pytest.raises(ValueError, match="unknown tree"):
        tree("bush", 3, np.random.default_rng(0))
    with pytest.raises(ValueError, match="unknown relation"):
        sample(form("gla"), Case(keys="orthogonal"))
