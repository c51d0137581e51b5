"""What texts mean: products, precedence, rebinding, layout; and how fast hostile ones end."""

from __future__ import annotations

import random
import string
import threading
import time
from fractions import Fraction
from functools import cache
from pathlib import Path

import pytest

import boleir
from boleir.errors import SpecError
from boleir.ir import (
    Add,
    Call,
    Conv,
    Dim,
    Div,
    Dot,
    Expr,
    Input,
    Kind,
    Mul,
    Neg,
    Number,
    Outer,
    Per,
    Previous,
    Read,
    ReadKey,
    Recurrence,
    Sub,
    number,
    walk,
)
from boleir.language.errors import BadEncoding, BadSyntax, NestingTooDeep, TextTooLong, UnknownName
from boleir.language.parser import parse, parse_module, parse_tree
from boleir.language.text import MAX_BRACKETS, MAX_CHARACTERS, read_text
from boleir.language.tree_spec import BoundedTree, StaticTree

HEAD, KEY, VALUE, STATE = Kind.HEAD, Kind.KEY, Kind.VALUE, Kind.STATE
Q, K, V = Input(KEY, "q"), Input(KEY, "k"), Input(VALUE, "v")
A, W = Input(HEAD, "a"), Input(VALUE, "w")
S = Previous(STATE)

HEADER = "recurrence r(q: key, k: key, v: value, a: head, w: value)\n"
USES_ALL = "  S = S + a * k (v + w)^T\n  out S^T q\n"


def state(text: str) -> Expr:
    """The new state when `text` is assigned to S."""
    rest = "  out S^T (a * (q + k)) + v + w\n"
    return parse(f"{HEADER}  S = {text}\n{rest}").update


def output(text: str) -> Expr:
    """The output when `text` is the output of an otherwise plain recurrence."""
    return parse(f"{HEADER}{USES_ALL.replace('out S^T q', f'out {text} + 0 * S^T q')}").output


def scalar(text: str) -> Expr:
    """The expression for a head scalar."""
    update = state(f"S * ({text})")
    assert isinstance(update, Mul)
    return update.right


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("k v^T", Outer(STATE, K, V)),
        ("k @ v^T", Outer(STATE, K, V)),
        ("outer(k, v)", Outer(STATE, K, V)),
        ("(v k^T)^T", Outer(STATE, K, V)),
        ("k v^\u22a4", Outer(STATE, K, V)),
        ("k v\u1d40", Outer(STATE, K, V)),
        ("k (S^T k)^T", Outer(STATE, K, Read(VALUE, S, K))),
        ("k (k^T S)", Outer(STATE, K, Read(VALUE, S, K))),
        ("S v v^T", Outer(STATE, ReadKey(KEY, S, V), V)),
        ("diag(k) S", Mul(STATE, K, S)),
        ("diag(k) * S", Mul(STATE, K, S)),
        ("k * S", Mul(STATE, K, S)),
        ("S * k", Mul(STATE, S, K)),
        ("S diag(v)", Mul(STATE, V, S)),
        ("S * diag(v)", Mul(STATE, V, S)),
        ("S * v", Mul(STATE, S, V)),
        ("a S", Mul(STATE, A, S)),
        ("S / a", Div(STATE, S, A)),
        ("S / k", Mul(STATE, S, Call(KEY, "reciprocal", K))),
        ("S^T^T", S),
    ],
)
def test_products(text: str, expected: Expr) -> None:
    assert state(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("k^T q", Dot(HEAD, K, Q)),
        ("dot(k, q)", Dot(HEAD, K, Q)),
        ("v^T w", Dot(HEAD, V, W)),
        ("k^T S v", Dot(HEAD, Read(VALUE, S, K), V)),
        ("-a * a", Mul(HEAD, Neg(HEAD, A), A)),
        ("-k^T q", Neg(HEAD, Dot(HEAD, K, Q))),
        ("a - a - a", Sub(HEAD, Sub(HEAD, A, A), A)),
        ("a / a * a", Mul(HEAD, Div(HEAD, A, A), A)),
        ("a + a * a", Add(HEAD, A, Mul(HEAD, A, A))),
        ("a * k^T q", Mul(HEAD, A, Dot(HEAD, K, Q))),
        ("a * -a", Mul(HEAD, A, Neg(HEAD, A))),
        ("2 a", Mul(HEAD, number(2), A)),
        ("a^T", A),
        ("sum(k)", Call(HEAD, "sum", K)),
        ("exp (a)", Call(HEAD, "exp", A)),
        ("sqrt(d_k) / d_v", Div(HEAD, Call(HEAD, "sqrt", Dim(HEAD, "d_k")), Dim(HEAD, "d_v"))),
        ("a (a + 1)", Mul(HEAD, A, Add(HEAD, A, number(1)))),
    ],
)
def test_scalars(text: str, expected: Expr) -> None:
    assert scalar(text) == expected


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1/3", Fraction(1, 3)),
        ("-1", Fraction(-1)),
        ("2 * 0.5 - 3", Fraction(-2)),
        ("1e-6", Fraction(1, 10**6)),
        (".5", Fraction(1, 2)),
        ("2.", Fraction(2)),
        ("1.5E2", Fraction(150)),
        ("-(1 + 1)", Fraction(-2)),
    ],
)
def test_constants_fold_exactly(text: str, value: Fraction) -> None:
    assert scalar(text) == Number(HEAD, value)


@pytest.mark.parametrize(
    ("paper", "plain"),
    [
        ("(I - a * k k^T) S", "S - (a * k) (S^T k)^T"),
        ("(diag(q) + k q^T) S", "diag(q) * S + k (S^T q)^T"),
        ("S (I - v v^T)", "S - (S v) v^T"),
        ("(I - k k^T)^T S", "S - k (S^T k)^T"),
        ("(S^T (I - k q^T))^T", "S - q (S^T k)^T"),
        ("a * I S", "a * S"),
        ("-(I - k k^T) S", "-(S - k (S^T k)^T)"),
        ("(-(I - k k^T)) S", "-1 * S + k (S^T k)^T"),
        ("diag(q) (I - k k^T) S", "diag(q) * S - (q * k) (S^T k)^T"),
        ("(I + k k^T) diag(q) S", "q * S + k (S^T (q * k))^T"),
    ],
)
def test_operators_expand(paper: str, plain: str) -> None:
    assert state(paper) == state(plain)


def test_operator_times_operator_keeps_the_cross_term() -> None:
    update = state("(I - k k^T) (I - q q^T) S")
    cross = Outer(STATE, Mul(KEY, Dot(HEAD, K, Q), K), Read(VALUE, S, Q))
    assert isinstance(update, Add)
    assert update.right == cross


def test_operator_times_vector() -> None:
    assert output("S^T ((I - k k^T) q)") == output("S^T (q - (k^T q) * k)")


def test_signature_kinds_and_order() -> None:
    text = "recurrence r(k: key, v: value; u: key, c: value, d: head):\n"
    recurrence = parse(text + "  S = d * S + (u * k) (c * v)^T\n  out S^T k\n")
    assert [item.name for item in recurrence.tokens] == ["k", "v"]
    assert [(item.name, item.kind) for item in recurrence.parameters] == [
        ("u", KEY),
        ("c", VALUE),
        ("d", HEAD),
    ]
    assert all(item.per is Per.HEAD for item in recurrence.parameters)


def test_functions_map_over_lists() -> None:
    one = parse(HEADER + "  q, k, v = silu(causal_conv(q, k, v, width=4))\n" + USES_ALL)
    by_hand = "".join(f"  {x} = silu(causal_conv({x}, width=4))\n" for x in "qkv")
    assert one == parse(HEADER + by_hand + USES_ALL)
    assert Conv(KEY, K, 4) in set(walk(one.update))


def test_plain_lists_assign_in_parallel() -> None:
    swapped = parse(HEADER + "  q, k = k, q\n" + USES_ALL)
    assert swapped.output == Read(VALUE, swapped.update, K)


def test_state_may_be_assigned_in_sequence() -> None:
    steps = parse(HEADER + "  S = a * S\n  S = S + k (v + w)^T\n  out S^T q\n")
    named = parse(HEADER + "  S' = a * S\n  S = S' + k (v + w)^T\n  out S^T q\n")
    assert steps == named


def test_out_reads_the_state_of_its_place() -> None:
    before = parse(HEADER + "  out S^T q\n  S = S + a * k (v + w)^T\n")
    after = parse(HEADER + USES_ALL)
    assert before.output == Read(VALUE, S, Q)
    assert after.output == Read(VALUE, after.update, Q)


def test_layout_does_not_matter() -> None:
    plain = parse(HEADER + USES_ALL)
    spread = (
        "\ufeff# comment (with an open bracket\r\n\r\nrecurrence r(\r\n\tq: key,  # the query\r\n"
        "  k: key, v: value,\r\n  a: head,\r\n  w: value,\r\n)\r\n\r\n\r\n"
        "\tS = S + (a # open\r\n   *\r\n k (v + w)^T)   # done\r\n# nothing\r\n\tout S^T q"
    )
    assert parse(spread) == plain
    assert parse((HEADER + USES_ALL).replace("\n", "\r")) == plain
    assert parse((HEADER + USES_ALL).replace(" ", "\u00a0")) == plain


def test_names_in_any_script() -> None:
    text = "recurrence r(q: key, schlüssel: key, v: value, γ: head)\n"
    recurrence = parse(text + "  S = exp(γ) * S + schlüssel v^T\n  out S^T q\n")
    assert [item.name for item in recurrence.inputs] == ["q", "schlüssel", "v", "γ"]
    decomposed = text.replace("ü", "u\u0308")
    with pytest.raises(SpecError, match=r"U\+0308|unexpected character"):
        parse(decomposed + "  S = S\n")


def test_spans_point_at_the_text() -> None:
    text = HEADER + "  g = exp(a)\n  S = g * S + k (v + w)^T\n  out S^T q\n"
    recurrence = parse(text, "my.bole")
    span = recurrence.update.children[0].children[0].span
    assert span is not None
    assert str(span) == "my.bole:2:7"
    assert span.excerpt() == "      g = exp(a)\n          ^^^^^^"
    assert recurrence.source is not None
    assert recurrence.source.text == text


def test_hints_are_the_names_of_the_source() -> None:
    recurrence = parse(HEADER + "  u = a * (v + w)\n  x = k\n  S = S + x u^T\n  out S^T q\n")
    outer = recurrence.update.children[1]
    assert [child.hint for child in outer.children] == [None, "u"]  # a leaf keeps its own name


def test_modules_hold_recurrences_and_trees() -> None:
    text = HEADER + USES_ALL + "\ntree t = chain(3)\n\n" + HEADER.replace(" r(", " s(") + USES_ALL
    module = parse_module(text + "tree any = dynamic(nodes=64, depth=8)", "m")
    assert [item.name for item in module.recurrences] == ["r", "s"]
    assert module.trees == (StaticTree("t", (-1, 0, 1)), BoundedTree("any", 64, 8))
    assert module.tree("t").max_depth == 2
    assert module.recurrence("s").name == "s"
    assert parse_module(str(module)).recurrences == module.recurrences
    assert parse_module(str(module)).trees == module.trees
    with pytest.raises(UnknownName, match="no tree 'ani'"):
        module.tree("ani")
    with pytest.raises(BadSyntax, match="expected one recurrence, found 2"):
        parse(text)


def test_trees_by_themselves() -> None:
    assert parse_tree("tree e = beam(width=2, depth=2)") == StaticTree("e", (-1, 0, 0, 1, 2))
    assert parse_tree("parents(-1, 0, 0, 1, -1)") == StaticTree("", (-1, 0, 0, 1, -1))
    assert parse_tree("chain(nodes=2)").max_nodes == 2


def test_empty_texts_declare_nothing() -> None:
    for text in ("", "\n\n", "# only this", "\ufeff"):
        assert parse_module(text).recurrences == ()
    with pytest.raises(BadSyntax, match="found 0"):
        parse("")


def test_bytes_that_are_no_text(tmp_path: Path) -> None:
    file = tmp_path / "x.bole"
    file.write_bytes(b"# fine\nrecurrence \xff(q: key)")
    with pytest.raises(BadEncoding, match="byte 0xff is not UTF-8") as caught:
        read_text(file)
    assert caught.value.span is not None
    assert (caught.value.span.line, caught.value.span.column) == (2, 12)
    file.write_bytes("recurrence".encode("utf-16"))
    with pytest.raises(BadEncoding, match="UTF-16"):
        read_text(file)
    file.write_bytes(b"x" * (10 * MAX_CHARACTERS))
    with pytest.raises(TextTooLong):
        read_text(file)
    file.write_bytes(b"\xef\xbb\xbf# mark")
    assert parse_module(read_text(file)).recurrences == ()


@cache
def hostile_texts() -> dict[str, str]:
    """Texts that try to exhaust the stack, the memory or the patience of a parser."""
    rng = random.Random(0)
    body = HEADER + "  S = {}\n"
    return {
        "printable garbage": "".join(rng.choices(string.printable, k=1_000_000)),
        "short garbage": "".join(rng.choices(string.ascii_letters + "()+*^T \n", k=31_000)),
        "any characters": "".join(chr(rng.randrange(32, 0x2FFF)) for _ in range(31_000)),
        "open brackets": body.format("(" * 100_000),
        "nested brackets": body.format("(" * 15_000 + "S" + ")" * 15_000),
        "deep allowed brackets": body.format("(" * MAX_BRACKETS + "k" + ")" * MAX_BRACKETS),
        "long sum": body.format(" + ".join(["S"] * 7_000)),
        "long product": body.format("a " * 15_000),
        "minus signs": body.format("-" * 31_000 + "S"),
        "transposes": body.format("k" + "^T" * 15_000),
        "calls": body.format("exp(" * 150 + "a" + ")" * 150),
        "rebinding": HEADER + "q=q\n" * 7_500,
        "many names": HEADER + "".join(f"x{i}=a\n" for i in range(3_500)) + "y = zzz\n",
        "wide call": HEADER + "x=exp(" + "a," * 15_000 + "a)\n",
        "constants": body.format("1*" * 15_000 + "1"),
        "large constants": body.format("9e300*" * 5_000 + "1"),
        "huge exponent": body.format("1e99999999999"),
        "trees": "".join(f"tree t{i} = chain(1000)\n" for i in range(1_100)) + "x",
        "long tree": "tree t = parents(" + "-1," * 10_000 + ")",
        "operators": body.format("(I - k k^T) " * 100 + "S"),
        "comment": "#" * 31_000 + "\nx",
        "newlines": "\n" * 31_000 + "x",
    }


@pytest.mark.parametrize("name", hostile_texts())
def test_hostile_texts_end_quickly_and_cleanly(name: str) -> None:
    text = hostile_texts()[name]
    parse_module("")  # the tables are built once per process
    start = time.process_time()  # other processes must not fail the test
    with pytest.raises(SpecError) as caught:
        parse_module(text)
    assert time.process_time() - start < 5.0  # 0.8 s at most on an idle machine
    assert len(str(caught.value)) < 1_000


def test_a_sum_of_ten_thousand_terms_is_refused() -> None:
    for terms in (201, 7_000, 10_000):
        with pytest.raises((NestingTooDeep, TextTooLong)) as caught:
            parse_module(HEADER + "  S = " + " + ".join(["S"] * terms))
        assert "each term of a long sum is one" in str(caught.value) or terms > 201


def test_threads_do_not_disturb_each_other() -> None:
    texts = [
        f"recurrence r{i}(k: key, v: value)\n  S = {i} * S + k v^T\n  out S^T k\n" for i in range(8)
    ]
    found: dict[int, list[Recurrence]] = {i: [] for i in range(8)}

    def read(i: int) -> None:
        found[i] = [parse(texts[i]) for _ in range(20)]

    threads = [threading.Thread(target=read, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for i, recurrences in found.items():
        assert all(item == parse(texts[i]) for item in recurrences)
        assert len(recurrences) == 20


def test_a_failed_parse_leaves_nothing_behind() -> None:
    with pytest.raises(SpecError):
        parse_module(HEADER + USES_ALL + "nonsense")
    assert len(parse_module(HEADER + USES_ALL).recurrences) == 1


def test_names_are_plain_strings_when_parsing_is_over() -> None:
    found = boleir.load("gdn")
    nodes = list(walk(found.update, found.output))
    names = [found.name, *(item.name for item in found.inputs)]
    names += [text for x in nodes for text in (x.hint, getattr(x, "name", None)) if text]
    assert all(type(name) is str for name in names)
