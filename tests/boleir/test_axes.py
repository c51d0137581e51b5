"""Every axis of the family by a small recurrence: what the derivation has to find in it, and the
proof of the closed form it gives.

A row states side, kind of decay, number of erase/write pairs and of pure writes, and how many pairs
of a token act one after the other. Right-acting rows count in the roles of their own side."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import pytest

import boleir as bole
from boleir.check.proof import prove
from boleir.derive.closed_form import ClosedForm
from boleir.derive.derive import derive
from boleir.ir import Input, Number, Per, walk
from tests.boleir.derive_support import content, used_inputs

TOKEN = (
    "q: key, k: key, p: key, j: key, g: key, v: value, w: value, h: value, one: value, "
    "a: head, b: head, c: head"
)
LAYER = "A: head, D: head, u: key, s: value"


@dataclass(frozen=True, slots=True)
class Found:
    """What a derivation finds."""

    side: str
    decay: str
    pairs: int
    writes: int
    micro_steps: int


@dataclass(frozen=True, slots=True)
class Row:
    """Statements of a recurrence over `TOKEN` and `LAYER`, or a whole text, and what is in it."""

    text: str
    found: Found


def row(text: str, decay: str, pairs: int, writes: int, steps: int = -1, side: str = "left") -> Row:
    """A row whose micro-steps are one where there are pairs, unless said otherwise."""
    return Row(text, Found(side, decay, pairs, writes, min(pairs, 1) if steps < 0 else steps))


DELTA = "S = T + k (b * (v - T^T k))^T\nout S^T q"

AXES = {
    # decay
    "no decay, no pair": row("S = S + k v^T\nout S^T q", "none", 0, 1),
    "no decay, a pair": row("S = S + k (b * (v - S^T k))^T\nout S^T q", "none", 1, 0),
    "decay by a number": row("S = 0.5 * S + k v^T\nout S^T q", "constant", 0, 1),
    "decay per head": row(f"T = sigmoid(A) * S\n{DELTA}", "constant", 1, 0),
    "decay per token": row(f"T = exp(-exp(A) * softplus(a + D)) * S\n{DELTA}", "head", 1, 0),
    "decay per key channel": row(f"T = diag(exp(g)) * S\n{DELTA}", "key", 1, 0),
    "key gate of a layer": row("S = sigmoid(u) * S + k v^T\nout S^T q", "key", 0, 1),
    "key gate times scalar": row(f"T = exp(a) * (exp(g) * S)\n{DELTA}", "key", 1, 0),
    "key gate in halves": row(
        "T = exp(g) * S\nR = T + k (b * (v - T^T k))^T\nS = exp(u) * R\nout S^T q", "key", 1, 0
    ),
    "decay per value channel": row("S = S * diag(exp(h)) + k v^T\nout S^T q", "value", 0, 1),
    "value gate and a pair": row(f"T = S * diag(sigmoid(h))\n{DELTA}", "value", 1, 0),
    "value gate of a layer": row(f"T = S * exp(s)\n{DELTA}", "value", 1, 0),
    # erase and write
    "another erase vector": row("S = S + k (b * (v - S^T p))^T\nout S^T q", "none", 1, 0),
    "erase along a product": row(
        "T = exp(a) * S\nS = T + (b * k) (v - T^T (g * p))^T\nout S^T q", "head", 1, 0
    ),
    "write along a sum": row("S = S + (k - c * p) (v - S^T k)^T\nout S^T q", "none", 1, 0),
    "erases only": row("S = exp(a) * S - p (S^T (b * p))^T\nout S^T q", "head", 1, 0),
    "removal rate": row(
        "T = exp(g) * S\nS = T - p (T^T (c * p))^T + k v^T\nout S^T q", "key", 1, 1
    ),
    "negative eigenvalues": row(f"b = 2 * sigmoid(b)\nT = exp(a) * S\n{DELTA}", "head", 1, 0),
    "a matrix on the left": row(
        "S = (diag(exp(g)) + p (b * j)^T) S + k v^T\nout S^T q", "key", 1, 1
    ),
    "beta a key vector": row("S = S + (g * k) (v - S^T k)^T\nout S^T q", "none", 1, 0),
    "beta a value vector": row("S = S + k (h * (v - S^T k))^T\nout S^T q", "none", 1, 0),
    "beta a value vector, gated": row(
        "T = exp(a) * S\nS = T + k (sigmoid(h) * (v - T^T k))^T\nout S^T q", "head", 1, 0
    ),
    "beta and decay of values": row(
        "T = S * exp(w)\nS = T + k (h * (v - T^T k))^T\nout S^T q", "value", 1, 0
    ),
    "two gains on one read": row(
        "S = S + k (v - h * (S^T k) - w * (S^T p))^T\nout S^T q", "none", 2, 0, 1
    ),
    # read time
    "erase before the decay": row("S = exp(a) * S + k (v - S^T p)^T\nout S^T q", "head", 1, 0),
    "erase before a key gate": row("S = exp(g) * S + k (v - S^T p)^T\nout S^T q", "key", 1, 0),
    "output before the update": row("out S^T q\nS = exp(a) * S + k v^T", "head", 0, 1),
    "output before a pair": row(f"out S^T q\nT = exp(a) * S\n{DELTA[:-10]}", "head", 1, 0),
    "output after the decay alone": row(
        "T = exp(a) * S\nout T^T q\nS = T + k (v - T^T k)^T", "head", 1, 0
    ),
    "bonus": row("out (S + (u * k) v^T)^T q\nS = exp(g) * S + k v^T", "key", 0, 1),
    "bonus with a pair": row(
        "out S^T q + (q^T (u * k)) * v\nS = exp(g) * S + p (S^T j)^T + k v^T", "key", 1, 1
    ),
    "bonus along another vector": row(
        "out S^T q + (q^T p) * w\nS = exp(a) * S + k v^T", "head", 0, 1
    ),
    "skip and output gate": row(
        "S = exp(a) * S + k v^T\nout silu(w) * (S^T q + D * v)", "head", 0, 1
    ),
    # several pairs and writes
    "two pairs at once": row(
        "S = exp(a) * S + k (v - S^T k)^T + p (w - S^T j)^T\nout S^T q", "head", 2, 0, 1
    ),
    "three writes": row("S = exp(a) * S + k v^T + p w^T + j h^T\nout S^T q", "head", 0, 3),
    "a pair and two writes": row(
        "T = exp(g) * S\nS = T + k (b * (v - T^T k))^T + p w^T + j h^T\nout S^T q", "key", 1, 2
    ),
    "writes along one vector": row("S = S + k v^T + k w^T\nout S^T q", "none", 0, 1),
    # micro-steps
    "two steps": row(
        "T = exp(a) * S\nR = T + k (b * (v - T^T k))^T\nS = R + p (c * (w - R^T p))^T\nout S^T q",
        "head",
        2,
        0,
        2,
    ),
    "three steps": row(
        "T = exp(a) * S\nR = T + k (v - T^T k)^T\nQ = R + p (w - R^T p)^T\n"
        "S = Q + j (h - Q^T j)^T\nout S^T q",
        "head",
        3,
        0,
        3,
    ),
    "decays between steps": row(
        "R = S + k (v - S^T k)^T\nT = exp(g) * R\nS = T + p (w - T^T p)^T\nout S^T q",
        "key",
        2,
        0,
        2,
    ),
    "a step reads a pure write": row(
        "T = exp(a) * S + k v^T\nS = T + p (w - T^T p)^T\nout S^T q", "head", 1, 1
    ),
    "output between steps": row(
        "R = S + k (v - S^T k)^T\nout R^T q\nS = R + p (w - R^T p)^T", "none", 2, 0, 2
    ),
    # right acting
    "right": row("S = S + (b * (k - S v)) v^T\nout S^T q", "none", 1, 0, side="right"),
    "right, decay per token": row(
        "T = exp(a) * S\nS = T + (b * (k - T v)) w^T\nout S^T q", "head", 1, 0, side="right"
    ),
    "right, value gate": row(
        "T = S * exp(h)\nS = T + (b * (k - T v)) v^T\nout S^T q", "value", 1, 0, side="right"
    ),
    "right, key gate": row(
        "T = exp(g) * S\nS = T + (b * (k - T v)) v^T\nout S^T q", "key", 1, 0, side="right"
    ),
    "right, read before the decay": row(
        "S = S * exp(h) + (b * (k - S w)) v^T\nout S^T q", "value", 1, 0, side="right"
    ),
    "right, key vector for beta": row(
        "S = S + (p * (k - S v)) v^T\nout S^T q", "none", 1, 0, side="right"
    ),
    "right, with a pure write": row(
        "S = exp(a) * S + (k - S v) v^T + p w^T\nout S^T q", "head", 1, 1, side="right"
    ),
    "right, two steps": row(
        "R = S + (k - S v) v^T\nS = R + (p - R w) w^T\nout S^T q", "none", 2, 0, 2, side="right"
    ),
    "right, output before": row(
        "out S^T q\nS = exp(a) * S + (k - S v) v^T", "head", 1, 0, side="right"
    ),
    "right, a matrix": row(
        "S = S (diag(exp(h)) - v w^T) + k v^T\nout S^T q", "value", 1, 1, side="right"
    ),
    # readout: the value column of ones makes the normaliser, divided by outside
    "column of ones": row("S = exp(a) * S + k (v + one)^T\nout S^T q", "head", 0, 1),
    "column of ones apart": row("S = exp(a) * S + k v^T + k one^T\nout S^T q", "head", 0, 1),
    # operands of any name
    "names of the author": Row(
        "recurrence mine(query: key, schlüssel: key, x2: value, zeta: head;"
        "  Lambda: head, mix: value)\n"
        "  decayed = exp(-exp(Lambda) * zeta) * S\n"
        "  correction = mix * (x2 - decayed^T schlüssel)\n"
        "  S = decayed + schlüssel correction^T\n  out S^T query\n",
        Found("left", "head", 1, 0, 1),
    ),
    "convolved operands": Row(
        "recurrence mine(q: key, k: key, v: value, a: head)\n"
        "  k = l2norm(silu(causal_conv(k, width=3)))\n"
        "  S = sigmoid(a) * S + k (v - S^T k)^T\n  out S^T q\n",
        Found("left", "head", 1, 0, 1),
    ),
}


def parsed(text: str) -> bole.Recurrence:
    """The recurrence of a row, its signature cut down to what occurs."""
    if text.startswith("recurrence"):
        return bole.parse(text)
    token, layer = used_inputs(text, TOKEN), used_inputs(text, LAYER)
    signature = f"{token}; {layer}" if layer else token
    lines = "\n".join(f"  {line}" for line in text.splitlines())
    return bole.parse(f"recurrence axis({signature})\n{lines}\n")


def found(form: ClosedForm) -> Found:
    """What the normal form of `form` consists of."""
    normal = form.normal
    return Found(
        normal.side, _decay(form), len(normal.pairs), len(normal.writes), normal.micro_steps
    )


def _decay(form: ClosedForm) -> str:
    decay = form.normal.decay
    if isinstance(decay, Number):
        return "none" if decay.value == 1 else "constant"
    of_token = any(isinstance(x, Input) and x.per is Per.TOKEN for x in walk(decay))
    kind = decay.kind.name.lower()
    return kind if of_token or kind != "head" else "constant"


@pytest.mark.parametrize("axis", AXES)
def test_each_axis_is_found_and_proved(axis: str) -> None:
    form = derive(parsed(AXES[axis].text))
    assert found(form) == AXES[axis].found
    proof = prove(form, trees=4, seed=7, with_mutants=False)  # key heads serve two value heads each
    assert proof.failure is None


def test_different_rows_have_different_closed_forms() -> None:
    """A row that repeats another one would prove nothing new; only the two spellings of the column
    of ones have to meet."""
    forms = {axis: content(derive(parsed(entry.text)).normal) for axis, entry in AXES.items()}
    same = {(a, b) for a, b in combinations(forms, 2) if forms[a] == forms[b]}
    assert same == {("column of ones", "column of ones apart")}
