"""The derivation: one normal form for many spellings, and the right one for every axis."""

from __future__ import annotations

import time

import pytest

import boleir as bole
from boleir.derive.closed_form import Class
from boleir.derive.derive import derive
from boleir.derive.notation import plain
from boleir.derive.structure import coupling_is_gram, reads_update
from boleir.ir import Number
from tests.boleir.derive_support import content, form_of, spelled

GATED_DELTA = """
S' = exp(g) * S
S = S' + k (b * (v - S'^T k))^T
out S^T q
"""

SPELLINGS = {
    "named": """
        S' = exp(g) * S
        u = b * (v - S'^T k)
        S = S' + k u^T
        out S^T q""",
    "column beta": """
        S' = exp(g) * S
        S = S' + (b * k) (v - S'^T k)^T
        out S^T q""",
    "expanded": """
        S = exp(g) * S + (b * k) v^T - exp(g) * (b * k) (S^T k)^T
        out S^T q""",
    "transposed": """
        S' = S * exp(g)
        S = S' - (b * (S'^T k - v) k^T)^T
        out S^T q""",
    "other order": """
        S' = exp(g) * S
        read = b * (S'^T k)
        S = k (v * b)^T - k read^T + S'
        out S^T q""",
    "two halves": """
        half = exp(g) * S / 2
        S' = half + half
        S = S' + 2 * k (b / 2 * (v - S'^T k))^T
        out S^T q""",
    "output spelled out": """
        S' = exp(g) * S
        u = b * (v - S'^T k)
        S = S' + k u^T
        out S'^T q + (q^T k) * u""",
    "cancelling terms": """
        S' = exp(g) * S
        S = S' + k (b * (v - S'^T k) + v)^T - k v^T
        out S^T q""",
}


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_spellings_of_one_recurrence_meet(spelling: str) -> None:
    assert content(form_of(SPELLINGS[spelling])) == content(form_of(GATED_DELTA))


def test_a_different_recurrence_does_not_meet() -> None:
    read_before = GATED_DELTA.replace("v - S'^T k", "v - S^T k")
    assert content(form_of(read_before)) != content(form_of(GATED_DELTA))


def test_gated_delta_rule_is_row_beta_read_after_the_decay() -> None:
    assert spelled(form_of(GATED_DELTA)) == {
        "decay": "exp(g)",
        "pairs": [("k", "b * k", True, "b * v")],
        "writes": [],
        "query": ("q", True),
    }


def test_names_of_the_author_return() -> None:
    form = derive(bole.load("gdn")).normal
    assert form.decay.hint == "gamma"
    assert [form.pairs[0].write.hint, form.readout.query.vector.hint] == ["k", "q"]
    assert plain(form.pairs[0].erase.vector) == "beta * k"


def test_decay_and_readings() -> None:
    comba = form_of("u = b * (v - S^T k)\nS = exp(g) * S + k u^T\nout S^T q")
    assert not comba.pairs[0].erase.after_decay
    mixed = form_of(
        "S' = exp(g) * S\nS = S' + k (v - b * (S^T k) - S'^T q)^T\nout S^T q",
    )
    assert not mixed.pairs[0].erase.after_decay  # one vector, the decay an explicit factor
    assert plain(mixed.pairs[0].erase.vector) == "b * k + exp(g) * q"


def test_two_decays_with_a_read_between() -> None:
    form = form_of(
        "S' = exp(g) * S\nS'' = sigmoid(b) * (S' + k (v - S'^T k)^T)\nS = S''\nout S^T q"
    )
    assert plain(form.decay) == "exp(g) * sigmoid(b)"
    assert plain(form.log_decay) == "g - softplus(-b)"
    # The second decay falls on the write, so it moves into the unknown: then e has the whole decay.
    assert spelled(form)["pairs"] == [("k", "k", True, "sigmoid(b) * v")]


MICRO_STEPS = """
S' = exp(g) * S
S'' = S' + k (b * (v - S'^T k))^T
S = S'' + j (c * (w - S''^T j))^T
out S^T q
"""
MICRO_INPUTS = "q: key, k: key, j: key, v: value, w: value, g: head, b: head, c: head"


def test_micro_steps_stay_a_chain() -> None:
    form = form_of(MICRO_STEPS, MICRO_INPUTS)
    assert form.micro_steps == 2
    assert form.pairs[0].coupling == ()
    assert coupling_is_gram(form, 1, 0)
    assert all(pair.erase.after_decay for pair in form.pairs)
    assert reads_update(form)


MICRO_BY_HAND = """
S' = exp(g) * S
u = b * (v - S'^T k)
x = c * (w - S'^T j - (k^T j) * u)
S = j x^T + S' + k u^T
out S^T q
"""


def test_micro_steps_written_by_hand_are_recognised() -> None:
    assert content(form_of(MICRO_BY_HAND, MICRO_INPUTS)) == content(
        form_of(MICRO_STEPS, MICRO_INPUTS)
    )


def test_simultaneous_writes_with_common_terms_are_not_taken_for_micro_steps() -> None:
    form = form_of(
        "S = S + k (v - S^T k)^T + p (v - S^T k - S^T p)^T\nout S^T q",
        "q: key, k: key, p: key, v: value",
    )
    assert form.micro_steps == 1


def test_multiples_of_one_unknown_share_it() -> None:
    form = form_of(
        "u = v - S^T k\nS = S + k u^T + p (b * u)^T\nout S^T q",
        "q: key, k: key, p: key, v: value, b: head",
    )
    assert spelled(form)["pairs"] == [("k + b * p", "k", False, "v")]


def test_a_multiple_that_was_read_back_first_is_merged_for_its_readers_too() -> None:
    form = form_of(
        """
        S' = exp(g) * S
        u = v - S'^T k
        T = S' + k (b * u)^T
        x = w - T^T p
        S = T + p x^T + q u^T
        out S^T q""",
        "q: key, k: key, p: key, v: value, w: value, g: head, b: head",
    )
    assert len(form.pairs) == 2
    assert plain(form.pairs[1].coupling[0]) == "b * k^T p"


def test_simultaneous_writes_are_pairs_without_coupling() -> None:
    form = form_of(
        "S = S + k (b * (v - S^T k))^T + j (c * (w - S^T j))^T\nout S^T q",
        MICRO_INPUTS.replace(" g: head,", ""),
    )
    assert len(form.pairs) == 2
    assert form.micro_steps == 1
    assert all(isinstance(m, Number) and m.value == 0 for m in form.pairs[1].coupling)


def test_a_gate_after_a_read_back_belongs_to_the_write() -> None:
    body = MICRO_STEPS.replace("S = S'' +", "S = exp(b) * S'' +")
    form = form_of(body, MICRO_INPUTS)
    first, second = form.pairs
    assert plain(form.decay) == "exp(b) * exp(g)"
    assert plain(first.write) == "exp(b) * k"
    assert (plain(first.erase.vector), first.erase.after_decay) == ("exp(g) * b * k", False)
    assert (plain(second.erase.vector), second.erase.after_decay) == ("exp(g) * c * j", False)
    assert plain(second.coupling[0]) == "c * j^T k"


def test_pure_writes_stand_apart_or_join_their_pair() -> None:
    dplr = form_of(
        "S = exp(g) * S + b (S^T a)^T + k v^T\nout S^T q",
        "q: key, k: key, a: key, b: key, v: value, g: key",
    )
    assert spelled(dplr)["pairs"] == [("b", "-a", False, "0")]
    assert spelled(dplr)["writes"] == [("k", "v")]
    joined = form_of("S = exp(g) * S + k (b * (v - S^T k))^T + k v^T\nout S^T q")
    assert joined.writes == ()
    assert plain(joined.pairs[0].target) == "(1 + b) * v"


def test_equal_written_values_share_one_write() -> None:
    form = form_of("S = S + k v^T + p v^T\nout S^T q", "q: key, k: key, p: key, v: value")
    assert spelled(form)["writes"] == [("k + p", "v")]


def test_common_scalar_sums_leave_the_direction() -> None:
    """(g + b) k + (g + b) p is a scalar times k + p: this needs a polynomial gcd."""
    inputs = "q: key, k: key, p: key, v: value, g: head, b: head"
    spread = form_of("S = S + (g * k + b * k + g * p + b * p) (v - S^T k)^T\nout S^T q", inputs)
    compact = form_of("S = S + (k + p) ((g + b) * (v - S^T k))^T\nout S^T q", inputs)
    assert content(spread) == content(compact)
    assert plain(spread.pairs[0].write) == "k + p"


def test_readout_before_the_update_with_bonus() -> None:
    inputs = "q: key, k: key, u: key, v: value, g: key"
    update = "S = exp(g) * S + k v^T"
    as_state = form_of(f"out (S + (u * k) v^T)^T q\n{update}", inputs)
    as_term = form_of(f"out S^T q + (q^T (u * k)) * v\n{update}", inputs)
    assert content(as_state) == content(as_term)
    assert not as_state.readout.query.after_decay
    assert not reads_update(as_state)
    assert as_state.readout.direct is None


def test_a_skip_connection_stays_direct() -> None:
    form = form_of(
        "S = exp(g) * S + k v^T\nout S^T q + D * v",
        "q: key, k: key, v: value, g: head; D: head",
    )
    assert form.readout.direct is not None
    assert plain(form.readout.direct) == "D * v"
    assert plain(form.readout.writes[0]) == "k^T q"


def test_output_gain() -> None:
    form = form_of(
        "S' = exp(g) * S\nS = S' + k (b * (v - S'^T k))^T\nout silu(z) * (S^T q) + v",
        "q: key, k: key, v: value, z: value, g: head, b: value",
    )
    assert form.readout.gain is not None
    assert plain(form.readout.gain) == "silu(z)"
    assert form.pairs[0].gain is not None
    assert plain(form.pairs[0].gain) == "b"


CLASSES = {
    "linear_attention": {Class.NO_SOLVE, Class.UNGATED},
    "mamba2": {Class.NO_SOLVE, Class.SCALAR_GATE},
    "gla": {Class.NO_SOLVE, Class.KEY_GATE},
    "gdn": {Class.SOLVE, Class.SCALAR_GATE},
    "kda": {Class.SOLVE, Class.KEY_GATE},
    "gated_delta_product": {Class.SOLVE, Class.SCALAR_GATE, Class.MICRO_STEPS},
    "gated_oja": {Class.SOLVE, Class.KEY_GATE, Class.RIGHT},
}


@pytest.mark.parametrize("name", CLASSES)
def test_classes(name: str) -> None:
    assert set(derive(bole.load(name)).classes) == CLASSES[name]


@pytest.mark.parametrize("name", bole.names())
def test_shipped_recurrences_derive_quickly(name: str) -> None:
    recurrence = bole.load(name)
    start = time.process_time()
    form = derive(recurrence)
    assert time.process_time() - start < 2.0
    assert str(form)


def test_a_name_stands_for_the_shipped_recurrence() -> None:
    assert str(bole.derive("delta_rule")) == str(derive(bole.load("delta_rule")))
    with pytest.raises(bole.SpecError, match="no shipped recurrence 'delta'"):
        derive("delta")
    with pytest.raises(bole.SpecError, match="a function is no recurrence"):
        derive(lambda S, q: (S, S.T @ q))  # type: ignore[arg-type]


def test_right_acting_describes_the_transposed_state() -> None:
    form = derive(bole.load("gated_oja"))
    assert form.normal.side == "right"
    (pair,) = form.normal.pairs
    assert (plain(pair.write), plain(pair.target)) == ("v", "beta * k")
    assert plain(form.normal.readout.pairs[0]) == "1"


def test_nilpotency_index() -> None:
    assert derive(bole.load("gdn")).nilpotency_index(5) == 6
    assert derive(bole.load("gated_delta_product")).nilpotency_index(5) == 12
    assert derive(bole.load("gla")).nilpotency_index(5) == 0


def test_assumptions_name_what_must_be_positive() -> None:
    recurrence = bole.parse(
        "recurrence r(q: key, k: key, v: value; g: head)\n  S = g * S + k v^T\n  out S^T q\n"
    )
    assert derive(recurrence).assumptions == ("g > 0: its logarithm enters the path decay",)
    assert derive(bole.load("gdn")).assumptions == ()


def test_the_package_is_the_function_too() -> None:
    import boleir.derive as package

    assert package(bole.load("gla")).name == "gla"
