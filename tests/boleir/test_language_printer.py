"""Canonical text parses back to an equal IR, and printing it again changes nothing."""

from __future__ import annotations

import re
from fractions import Fraction

import pytest

from boleir.functions import NAMES
from boleir.ir import Add, Call, Input, Kind, Mul, Outer, Previous, Read, Recurrence, number
from boleir.language.parser import parse, parse_module
from boleir.language.printer import print_expression, print_number, print_recurrence
from boleir.library import load_module, names
from tests.boleir.random_recurrences import NUMBERS, Generator

Q, K, V = Input(Kind.KEY, "q"), Input(Kind.KEY, "k"), Input(Kind.VALUE, "v")
A = Input(Kind.HEAD, "a")
S = Previous(Kind.STATE)


@pytest.mark.parametrize("block", range(20))
def test_random_recurrences_survive_printing(block: int) -> None:
    for seed in range(block * 50, block * 50 + 50):
        recurrence = Generator(seed).recurrence()
        text = print_recurrence(recurrence)
        again = parse(text)
        assert again == recurrence, text
        assert print_recurrence(again) == text


def test_the_generator_reaches_the_hard_cases() -> None:
    texts = [print_recurrence(Generator(seed).recurrence()) for seed in range(300)]
    joined = "\n".join(texts)
    hard = ("S' =", "S'' =", "t3 =", "diag(", "^T (", "causal_conv(", "1/3", "e-31", "  S = S'")
    for piece in hard:
        assert piece in joined, piece
    assert any(text.rstrip().splitlines()[-1].startswith("  S =") for text in texts)


@pytest.mark.parametrize("name", names())
def test_shipped_recurrences_survive_printing(name: str) -> None:
    module = load_module(name)
    again = parse_module(str(module))
    assert again.recurrences == module.recurrences
    assert str(again) == str(module)


def test_gdn_prints_as_it_is_written() -> None:
    assert str(load_module("gdn")).splitlines() == [
        "recurrence gdn(q: key, k: key, v: value, a: head, b: head; A_log: head, dt_bias: head)",
        "  q = silu(causal_conv(q, width=4))",
        "  q = l2norm(q) / sqrt(d_k)",
        "  k = silu(causal_conv(k, width=4))",
        "  k = l2norm(k)",
        "  v = silu(causal_conv(v, width=4))",
        "  gamma = exp(-exp(A_log) * softplus(a + dt_bias))",
        "  beta = sigmoid(b)",
        "  S' = gamma * S",
        "  u = beta * (v - S'^T k)",
        "  S = S' + k u^T",
        "  out S^T q",
    ]


def test_names_of_lines_never_collide() -> None:
    for seed in range(200):
        recurrence = Generator(seed).recurrence()
        bound = re.findall(r"^  ([^ ]+) =", print_recurrence(recurrence), flags=re.M)
        inputs = {item.name for item in recurrence.inputs}
        local = [name for name in bound if name not in inputs and name != "S"]
        assert len(local) == len(set(local))
        assert not set(bound) & (NAMES | {"d_k", "d_v", "I", "out", "lambda"})


def test_output_that_reads_both_states_keeps_the_old_one() -> None:
    update = Add(Kind.STATE, S, Outer(Kind.STATE, K, V), hint="S")
    old, new = Read(Kind.VALUE, S, Q), Read(Kind.VALUE, update, Q)
    recurrence = Recurrence("r", (Q, K, V), update, Add(Kind.VALUE, old, new))
    assert print_recurrence(recurrence).splitlines()[1:] == [
        "  S' = S + k v^T",
        "  out S^T q + S'^T q",
        "  S = S'",
    ]


def test_an_input_is_bound_again_only_when_its_old_value_is_done() -> None:
    scaled = Mul(Kind.KEY, A, K, hint="k")
    both = Outer(Kind.STATE, Add(Kind.KEY, scaled, K), V)
    recurrence = Recurrence("r", (Q, K, V, A), Add(Kind.STATE, S, both), Read(Kind.VALUE, S, Q))
    assert print_recurrence(recurrence).splitlines()[1:] == [
        "  k1 = a * k",
        "  out S^T q",
        "  S = S + (k1 + k) v^T",
    ]


def test_state_that_never_changes_prints() -> None:
    recurrence = Recurrence("r", (Q,), S, Read(Kind.VALUE, S, Q))
    assert parse(print_recurrence(recurrence)) == recurrence


@pytest.mark.parametrize("value", NUMBERS)
def test_numbers_are_exact(value: Fraction) -> None:
    sign, text = (-1, print_number(value)[1:]) if value < 0 else (1, print_number(value))
    top, _, bottom = text.partition("/")
    assert sign * Fraction(top) / Fraction(bottom or 1) == value


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("0.5", "0.5"),
        ("1e-6", "1e-6"),
        ("20", "20"),
        ("1e12", "1e12"),
        ("0.001", "0.001"),
        ("0", "0"),
    ],
)
def test_numbers_print_short(value: str, text: str) -> None:
    assert print_number(Fraction(value)) == text


def test_expressions_print_with_hints_or_in_full() -> None:
    gate = Call(Kind.HEAD, "exp", A, hint="gamma")
    decayed = Mul(Kind.STATE, gate, S)
    assert print_expression(decayed) == "gamma * S"
    assert print_expression(decayed, use_hints=False) == "exp(a) * S"
    assert print_expression(decayed, {A: "g"}, use_hints=False) == "exp(g) * S"
    assert str(decayed) == "gamma * S"
    assert repr(decayed) == "<Mul state: gamma * S>"


def test_exponential_sharing_prints_in_bounded_time() -> None:
    total = number(2)
    expr = Mul(Kind.HEAD, total, A)
    for _ in range(150):
        expr = Add(Kind.HEAD, expr, expr)
    assert len(print_expression(expr, use_hints=False)) < 100_000
