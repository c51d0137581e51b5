"""Outputs that hold more than one query: pairs that write nothing read for them. And right-acting
outputs, whose reads are scaled, summed and spelled out in many ways."""

from __future__ import annotations

import pytest

import boleir as bole
from boleir.check.proof import prove
from boleir.derive import refusals
from boleir.derive.closed_form import Class, ClosedForm
from boleir.derive.derive import derive
from boleir.derive.structure import is_zero
from tests.boleir.affine_recurrences import wide_recurrence
from tests.boleir.derive_support import used_inputs

INPUTS = "q: key, k: key, p: key, g: key, v: value, w: value, h: value, a: head, b: head"


def closed(body: str) -> ClosedForm:
    """Derived from statements over `INPUTS`."""
    lines = "\n".join(f"  {line}" for line in body.splitlines())
    return derive(bole.parse(f"recurrence r({used_inputs(body, INPUTS)})\n{lines}\n"))


DELTA = "T = exp(a) * S\nu = v - T^T k\nU = T + k u^T"

WATCHED = {
    "two gains": ("S = S + k v^T\nout v * (S^T q) + S^T k", 1),
    "two gains, neither of them one": ("S = S + k v^T\nout v * (S^T q) + w * (S^T k)", 2),
    "three gains": ("S = S + k v^T\nout v * (S^T q) + w * (S^T k) + S^T p", 2),
    "a common gain outside": ("S = S + k v^T\nout h * (w * (S^T q) + S^T k)", 1),
    "a head decays after a gate of channels": (
        "T = S * exp(h)\nU = T + k (b * (v - S^T p))^T\nout U^T q\nS = exp(a) * U", 1
    ),
    "one of two unknowns along one vector": (
        "T = exp(a) * S\nu = w * (v - T^T k)\nU = T + k u^T\nS = U + k (v - T^T p)^T\nout U^T q", 1
    ),
    "a gain around a decay of channels": (
        "T = S * exp(h)\nu = w * (v - T^T k)\nS = T + k u^T\nout v * (T^T q) + v * u", 1
    ),
    "reads before and after the update": (f"{DELTA}\nS = U\nout S^T q + w * (T^T p)", 1),
}  # fmt: skip


@pytest.mark.parametrize("name", WATCHED)
def test_outputs_with_several_gains(name: str) -> None:
    body, count = WATCHED[name]
    form = closed(body)
    writing = [not is_zero(pair.write) for pair in form.normal.pairs]
    assert writing == sorted(writing, reverse=True), "those that write come first"
    assert writing.count(False) == count
    assert Class.WATCHED in form.classes
    assert (Class.SOLVE in form.classes) == any(writing)
    assert prove(form, trees=8).passed, "and every wrong rule is seen"


def test_one_gain_needs_no_pair_of_its_own() -> None:
    for body in (
        "S = S + k v^T\nout v * (S^T q) + (v * w)",
        f"{DELTA}\nS = U\nout w * (U^T q) + w * (U^T p)",
        f"{DELTA}\nS = U\nout U^T q - 2 * (T^T q)",
        f"{DELTA}\nout U^T q\nS = U * exp(h)",
    ):
        assert Class.WATCHED not in closed(body).classes


@pytest.mark.parametrize("seed", [2184, 4275, 4943, 20572])
def test_random_ones_that_were_refused_are_proved(seed: int) -> None:
    assert prove(derive(wide_recurrence(seed)), trees=3, seed=seed, with_mutants=False).passed


def test_the_explanation_leaves_out_what_is_zero() -> None:
    text = closed(WATCHED["one of two unknowns along one vector"][0]).explain()
    assert "S_i = exp(a_i) S_p + k_i u1_i^T + k_i u2_i^T\n" in text
    assert "G[(i,3),(j,1)]" in text
    assert "(j,3)" not in text
    assert "+ sum_{j ≺ i} C[i,(j,2)] u2_j - u3_i" in " ".join(text.split())
    both = closed(WATCHED["two gains, neither of them one"][0]).explain()
    assert "\n  G = 0\n" in both
    assert "o_i = -u1_i - u2_i" in both


RIGHT = "T = exp(a) * S\nu = k - T v\nU = T + u w^T"

SCALED = {
    "the new state": f"{RIGHT}\nS = U\nout (b * U)^T q",
    "the new state by channels": f"{RIGHT}\nS = U\nout (U * h)^T q",
    "one state twice": f"{RIGHT}\nS = U\nout (2 * T)^T (g * q) + T^T q",
    "a decay before the others": f"{RIGHT}\nS = exp(b) * U\nout T^T q",
    "a decay of keys before the others": (
        "T = diag(exp(g)) * S\nu = k - T v\nS = exp(b) * (T + u w^T)\nout T^T q"
    ),
    "a decay of values before the others": (
        "T = S * exp(h)\nu = k - T v\nS = exp(b) * (T + u w^T)\nout T^T q"
    ),
    "both states": f"{RIGHT.replace('exp(a) * ', '')}\nS = U\nout T^T q + 2 * (U^T q)",
    "an unknown": f"{RIGHT}\nS = U\nout T^T q + (q^T u) * w",
    "an unknown term by term": f"{RIGHT}\nS = U\nout T^T q + (q^T k - q^T (T v)) * w",
    "an unknown by a read of values": f"{RIGHT}\nS = U\nout T^T q + (q^T k - v^T (T^T q)) * w",
    "an unknown in parts": f"{RIGHT}\nS = U\nout T^T q + (0.5 * (q^T u) + 0.5 * (q^T u)) * w",
}


@pytest.mark.parametrize("name", SCALED)
def test_right_acting_outputs_are_read_however_they_are_written(name: str) -> None:
    assert prove(closed(SCALED[name]), trees=8, with_mutants=False).passed


def test_right_acting_outputs_with_two_queries_are_refused() -> None:
    for out in ("T^T q + (q^T u + p^T u) * w", "U^T q + T^T p"):
        with pytest.raises(refusals.ReadoutNotSupported):
            closed(f"{RIGHT}\nS = U\nout {out}")


ONCE_BOTH = {
    "read alone": "T = diag(exp(g)) * S * exp(h)\nu = v - T^T k\nS = exp(a) * S + k u^T\nout S^T q",
    "read by the output": (
        "T = diag(exp(g)) * S * exp(h)\nS = diag(exp(g)) * S + k v^T\nout T^T q"
    ),
    "taken back": "T = diag(exp(g)) * S * exp(h)\nS = T * exp(-h) + k v^T\nout S^T q",
    "read from the right": (
        "T = diag(exp(g)) * S * exp(h)\nu = k - T v\nS = exp(a) * S + u v^T\nout S^T q"
    ),
}
"""An intermediate state decays over keys and values at once, the new one does not."""


@pytest.mark.parametrize("name", ONCE_BOTH)
def test_only_the_new_state_must_decay_on_one_side(name: str) -> None:
    assert prove(closed(ONCE_BOTH[name]), trees=8, with_mutants=False).passed


def test_reads_that_cancel_are_no_reads() -> None:
    x = "x = S^T k\ny = v - x"
    assert prove(
        closed(f"{x}\nS = S + k (sigmoid(y + x) * v)^T\nout S^T q"), trees=4, with_mutants=False
    ).passed
    free = "n = l2norm((k v^T)^T p + S^T q - S^T q)\nS = exp(a) * S + k n^T\nout S^T q"
    assert prove(closed(free), trees=4, with_mutants=False).passed


def test_several_outputs_share_one_system() -> None:
    body = f"{DELTA}\nS = U\nout S^T q\nout w * (T^T p) + S^T q\nout v * (w * (T^T p)) + S^T k"
    form = closed(f"{body}\nout h * (T^T p) + T^T k")
    assert len(form.more) == 3
    for number, one in enumerate((form, *form.more)):
        assert one.normal.pairs == form.normal.pairs
        assert (one.G, one.R, one.commit) == (form.G, form.R, form.commit)
        proof = prove(one, trees=8)
        assert proof.passed, (number, proof)
    assert len(form.normal.pairs) == 4
    again = closed(f"{DELTA}\nS = U\nout w * (T^T p) + S^T q\nout w * (T^T p) + T^T q")
    assert len(again.normal.pairs) == 2, "both outputs see the pair that writes nothing"
    text = form.explain()
    assert " ".join(text.split("Theorem, output 2")[1].split()).startswith(
        "o_i = P_i S_pre^T q_i + sum_{j ≼ i} C[i,(j,1)] u1_j - u2_i C["
    )
