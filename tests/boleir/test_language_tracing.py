"""Python functions give the IR that the same text gives; mistakes point at their lines."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import boleir as bole
from boleir.errors import SpecError
from boleir.ir import Kind, Recurrence
from boleir.language import errors
from boleir.language.python_errors import in_python
from boleir.library import load


def gate(a: bole.Head, A_log: bole.Head, dt_bias: bole.Head) -> Any:
    """A helper function, as users write them."""
    return bole.exp(-bole.exp(A_log) * bole.softplus(a + dt_bias))


def delta_step(S: bole.State, k: bole.Key, v: bole.Value, beta: Any) -> Any:
    """Another one, with a state in it."""
    u = beta * (v - S.T @ k)
    return S + k @ u.T


def normalised(q: Any, k: Any) -> tuple[Any, Any]:
    """One that returns two values."""
    return bole.l2norm(q) / bole.sqrt(bole.d_k), bole.l2norm(k)


@bole.recurrence
def gdn(S, q, k, v, a, b, *, A_log, dt_bias):
    """Gated DeltaNet without an annotation."""
    q, k, v = bole.silu(bole.causal_conv(q, k, v, width=4))
    q, k = normalised(q, k)
    gamma = gate(a, A_log, dt_bias)
    return (S := delta_step(gamma * S, k, v, bole.sigmoid(b))), S.T @ q


@bole.recurrence
def mamba2(
    S: bole.State,
    C: bole.Key,
    B: bole.Key,
    x: bole.Value,
    dt: bole.Head,
    *,
    A_log: bole.Head,
    dt_bias: bole.Head,
    D: bole.Head,
):
    delta = bole.softplus(dt + dt_bias)
    S = bole.exp(-bole.exp(A_log) * delta) * S + delta * (B @ x.T)
    return S, S.T @ C + D * x


@bole.recurrence
def rwkv6(S, r: bole.Key, k, v, w: bole.Key, *, u: bole.Key):
    write = k @ v.T
    out = (S + (u * k) @ v.T).T @ r
    return bole.diag(bole.exp(w)) @ S + write, out


@bole.recurrence
def rwkv7(S, r: bole.Key, w: bole.Key, k, v, a: bole.Key, *, k_k: bole.Key, k_a: bole.Key):
    kappa = bole.l2norm(k * k_k)
    a = bole.sigmoid(a)
    k = k * (1 + (a - 1) * k_a)
    decay = bole.exp(-bole.exp(-0.5) * bole.sigmoid(w))
    S = (bole.diag(decay) - (kappa * a) @ kappa.T) @ S + k @ v.T
    return S, S.T @ r


@bole.recurrence
def gated_oja(S, q, k, v, g: bole.Value, b):
    q, k = normalised(q, k)
    S = S * bole.diag(bole.exp(g))
    u = bole.sigmoid(b) * (k - S @ v)
    S = S + bole.outer(u, v)
    return S, S.T @ q


@bole.recurrence
def iplr(S, q, k, v, a: "bole.Key", b: "key"):  # noqa: F821, UP037
    q = q / bole.sqrt(bole.d_k)
    S = (bole.I + b @ a.T) @ S + k @ v.T
    return S, S.T @ q


@pytest.mark.parametrize(
    "traced", [gdn, mamba2, rwkv6, rwkv7, gated_oja, iplr], ids=lambda x: x.name
)
def test_both_front_ends_agree(traced: Recurrence) -> None:
    assert traced == load(traced.name)


def test_a_traced_recurrence_prints_and_parses() -> None:
    assert bole.parse(str(gdn)) == gdn
    assert "  gamma = exp(-exp(A_log) * softplus(a + dt_bias))" in str(gdn).splitlines()
    assert "  u = sigmoid(b) * (v - S'^T k)" in str(gdn).splitlines()


def test_names_of_python_become_hints() -> None:
    @bole.recurrence(name="named")
    def _(S, q, k, v):
        scaled, doubled = bole.square(q), 2 * k
        first, second = bole.exp(k, v)
        S = S + (first + doubled) @ second.T
        return S, S.T @ scaled

    assert str(_).splitlines() == [
        "recurrence named(q: key, k: key, v: value)",
        "  first = exp(k)",
        "  doubled = 2 * k",
        "  second = exp(v)",
        "  S = S + (first + doubled) second^T",
        "  out S^T square(q)",
    ]


def test_python_steers_the_trace() -> None:
    def make(steps: int) -> Recurrence:
        @bole.recurrence(name="steps")
        def _(S, q, k, v, *, decay=Fraction(1, 2), width=4, twice=True):
            if twice:
                k = bole.causal_conv(k, width=width)
            for _ in range(steps):
                S = decay * S + k @ v.T
            return S, S.T @ q

        return _

    assert make(2).parameters == ()
    assert make(1) == bole.parse(
        "recurrence steps(q: key, k: key, v: value)\n"
        "  k = causal_conv(k, width=4)\n  S = 0.5 * S + k v^T\n  out S^T q"
    )
    assert make(1) != make(2)


def test_operators_of_python() -> None:
    @bole.recurrence(name="r")
    def traced(S, q, k, v, a):
        x = abs(a) + a**2 - a**-1 / a**0.5 * a**-0.5
        x = +x + 1 - x * -2 / 3 + 2 / a - (1 - a) * np.float64(0.5)
        S = x * S / a + np.float64(2) * k @ (v / 2).T
        return S, v.T @ v * (S.T @ q) + bole.dot(k, q) * v

    text = bole.parse(
        "recurrence r(q: key, k: key, v: value, a: head)\n"
        "  x = abs(a) + square(a) - reciprocal(a) / sqrt(a) * rsqrt(a)\n"
        "  y = x + 1 - x * -2 / 3 + 2 / a - (1 - a) * 0.5\n"
        "  S = y * S / a + (2 * k) (v / 2)^T\n"
        "  out (v^T v) * S^T q + (k^T q) * v"
    )
    assert traced == text


def test_the_sum_of_python_adds_terms_of_any_kind() -> None:
    @bole.recurrence(name="r")
    def traced(S, q, k, v):
        S = sum([S, k @ v.T, q @ v.T])
        return S, S.T @ q

    text = "recurrence r(q: key, k: key, v: value)\n  S = S + k v^T + q v^T\n  out S^T q"
    assert traced == bole.parse(text)


def test_floats_are_the_decimals_that_were_typed() -> None:
    @bole.recurrence(name="r")
    def traced(S, q, k, v):
        S = 0.1 * S + 1e-6 * k @ v.T
        return S, S.T @ q

    assert "0.1 * S" in str(traced)
    assert "1e-6 * k" in str(traced)


def test_parameters_and_kinds() -> None:
    assert [(x.name, x.kind) for x in mamba2.tokens] == [
        ("C", Kind.KEY),
        ("B", Kind.KEY),
        ("x", Kind.VALUE),
        ("dt", Kind.HEAD),
    ]
    assert [x.name for x in mamba2.parameters] == ["A_log", "dt_bias", "D"]
    assert rwkv6.parameters[0].kind is Kind.KEY


def test_spans_point_into_this_file() -> None:
    assert gdn.source is not None
    assert gdn.source.name.endswith("test_language_tracing.py")
    span = gdn.output.span
    assert span is not None
    assert span.source.line(span.line)[span.column - 1 : span.end_column - 1] == "S.T @ q"
    inside_helper = gdn.update.children[1].span
    assert inside_helper is not None
    assert "k @ u.T" in inside_helper.excerpt()
    for item in (*gdn.inputs, *mamba2.inputs):
        assert item.span is not None
        line = item.span.source.line(item.span.line)
        assert line[item.span.column - 1 : item.span.end_column - 1] == item.name


def no_output(S, q, k, v):
    return S + k @ v.T


def three_results(S, q, k, v):
    return S + k @ v.T, S.T @ q, bole.l2norm(q)


def number_result(S, q, k, v):
    return S + k @ v.T, 0


def row_result(S, q, k, v):
    return S + k @ v.T, (S @ v).T


def swapped_results(S, q, k, v):
    return S.T @ q, S + k @ v.T


def unused(S, q, k, v, a):
    return S + k @ v.T, S.T @ q


def unknown_kind(S, q, k, v, weird):
    return S + k @ v.T, S.T @ q


def wrong_annotation(S, q: int, k, v):
    return S + k @ v.T, S.T @ q


def second_state(S, q, k, v, Z: bole.State):
    return S + k @ v.T, S.T @ q


def annotated_state(S: bole.Key, q, k, v):
    return S, S.T @ q


def star_arguments(S, q, *rest):
    return S, S.T @ q


def token_default(S, q, k, v=1):
    return S, S.T @ q


def no_parameters():
    return None


def reserved(S, q, k, v, *, I):  # noqa: E741
    return S, S.T @ q


def branch(S, q, k, v, a):
    S = S if a else 2 * S
    return S, S.T @ q


def comparison(S, q, k, v, a):
    if a > 0:
        S = 2 * S
    return S, S.T @ q


def loop(S, q, k, v):
    for x in k:
        S = S + x
    return S, S.T @ q


def length(S, q, k, v):
    return S / len(k), S.T @ q


def of_math(S, q, k, v, a):
    return math.exp(a) * S + k @ v.T, S.T @ q


def of_numpy(S, q, k, v, a):
    return np.exp(a) * S + k @ v.T, S.T @ q


def of_numpy_arrays(S, q, k, v):
    return np.dot(k, q) * S + k @ v.T, S.T @ q


def item(S, q, k, v):
    return S + k[0] * S, S.T @ q


def method(S, q, k, v):
    return S + k.norm() * S, S.T @ q


def transposed_method(S, q, k, v):
    return S + k @ v.t(), S.T @ q


def power(S, q, k, v, a):
    return a**3 * S + k @ v.T, S.T @ q


def modulo(S, q, k, v, a):
    return a % 2 * S + k @ v.T, S.T @ q


def text_operand(S, q, k, v):
    return S * "2" + k @ v.T, S.T @ q


def infinite(S, q, k, v):
    return S * math.inf + k @ v.T, S.T @ q


def matrix_mistake(S, q, k, v):
    return S + k @ v, S.T @ q


def sum_mistake(S, q, k, v):
    helper = k + v
    return S + helper @ v.T, S.T @ q


def late_convolution(S, q, k, v):
    k = bole.causal_conv(
        bole.silu(k),
        width=4,
    )
    return S + k @ v.T, S.T @ q


def endless(S, q, k, v):
    while True:
        S = S + k @ v.T


MISTAKES: list[tuple[Callable[..., Any], type[SpecError], str, str]] = [
    (
        no_output,
        errors.BadSignature,
        "must return the new state and the output, not Traced",
        "no_output",
    ),
    (three_results, errors.MissingOutput, "a value vector, not a key vector", "bole.l2norm(q)"),
    (number_result, errors.BadSignature, "not a traced value and int", "number_result"),
    (row_result, errors.MissingOutput, "a value vector, not a key vector transposed", "S @ v"),
    (swapped_results, errors.MissingUpdate, "must be a state, not a value vector", "S.T @ q"),
    (unused, errors.UnusedInput, "input 'a' takes no part", "a"),
    (unknown_kind, errors.BadSignature, "input 'weird' has no kind", "weird"),
    (wrong_annotation, errors.BadSignature, "annotation 'int' of 'q' is no kind", "q"),
    (second_state, errors.BadSignature, "only the first parameter is one", "Z"),
    (annotated_state, errors.BadSignature, "'S' is annotated otherwise", "S"),
    (star_arguments, errors.BadSignature, "'*rest' names no input", "star_arguments"),
    (token_default, errors.BadSignature, "token input 'v' has a default", "v"),
    (no_parameters, errors.BadSignature, "first parameter must be the state", "no_parameters"),
    (reserved, errors.ReservedName, "'I' has a fixed meaning", "I"),
    (branch, errors.ControlFlow, "has no truth", "S if a else 2 * S|a"),
    (comparison, errors.ControlFlow, "cannot be compared", "a > 0"),
    (loop, errors.ControlFlow, "cannot be unpacked or looped over", "for x in k:|k"),
    (length, errors.ControlFlow, "has no length", "len(k)"),
    (of_math, errors.UnsupportedOperation, "is no number", "math.exp(a)"),
    (of_numpy, errors.UnsupportedOperation, "numpy.exp cannot work on", "np.exp(a)"),
    (of_numpy_arrays, errors.UnsupportedOperation, "numpy.dot cannot work on", "np.dot(k, q)"),
    (item, errors.UnsupportedOperation, "no such operation", "k[0]"),
    (method, errors.NormOfState, "recurrences have no 'norm'", "k.norm"),
    (transposed_method, errors.UnsupportedOperation, "no attribute 't'", "v.t"),
    (power, errors.UnsupportedOperation, "only the powers 2, -1", "a**3"),
    (modulo, errors.UnsupportedOperation, "no such operation", "a % 2"),
    (text_operand, errors.UnsupportedOperation, "a str cannot take part", 'S * "2"'),
    (infinite, errors.BadConstant, "inf is no constant", "S * math.inf"),
    (matrix_mistake, errors.NoSuchProduct, "no product of a key vector and a value", "k @ v"),
    (sum_mistake, errors.KindMismatch, "between a key vector and a value vector", "k + v"),
    (late_convolution, errors.NotATokenInput, "as it was declared", "bole.causal_conv("),
    (endless, errors.NestingTooDeep, "more than 200 operations build on", "S + k @ v.T"),
]


@pytest.mark.parametrize(
    ("function", "kind", "message", "marked"), MISTAKES, ids=[row[0].__name__ for row in MISTAKES]
)
def test_mistakes(
    function: Callable[..., Any], kind: type[SpecError], message: str, marked: str
) -> None:
    with pytest.raises(kind) as caught:
        bole.recurrence(function)
    assert message in caught.value.message
    span = caught.value.span
    assert span is not None
    assert span.source.name.endswith("test_language_tracing.py")
    found = span.source.line(span.line)[span.column - 1 : span.end_column - 1]
    assert found.startswith(tuple(marked.split("|")))  # Python versions differ a little
    first = function.__code__.co_firstlineno
    assert first <= span.line <= first + 8


def test_one_message_in_full() -> None:
    with pytest.raises(SpecError) as caught:
        bole.recurrence(comparison)
    location, line, caret, mend = str(caught.value).splitlines()
    assert location.endswith(": traced values cannot be compared")
    assert line == "        if a > 0:"
    assert caret == "           ^^^^^"
    assert mend.startswith("  mend: a recurrence does the same for every token")


def test_functions_without_source_still_trace_and_still_explain() -> None:
    scope: dict[str, Any] = {"bole": bole}
    exec("def f(S, q, k, v):\n    return S + k @ v.T, S.T @ q\n", scope)
    assert bole.recurrence(scope["f"]) == bole.parse(
        "recurrence f(q: key, k: key, v: value)\n  out S^T q\n  S = S + k v^T"
    )
    exec("def g(S, q, k, v):\n    return S + k @ v, S.T @ q\n", scope)
    with pytest.raises(errors.NoSuchProduct) as caught:
        bole.recurrence(scope["g"])
    assert "^" not in str(caught.value).replace("^T", ""), "no caret under a line that is not known"


def test_what_is_no_function() -> None:
    with pytest.raises(errors.BadSignature, match="from a function, not from a int"):
        bole.recurrence(3)  # type: ignore[call-overload]
    with pytest.raises(errors.BadSignature, match="'<lambda>' cannot name"):
        bole.recurrence(lambda S, q, k, v: (S + k @ v.T, S.T @ q))
    with pytest.raises(errors.BadSignature, match="'3' cannot name"):
        bole.recurrence(name=3)(lambda S, q, k, v: (S + k @ v.T, S.T @ q))  # type: ignore[call-overload]
    assert bole.recurrence(name="f")(lambda S, q, k, v: (S + k @ v.T, S.T @ q)).name == "f"


def test_torch_functions_are_refused() -> None:
    torch = pytest.importorskip("torch")

    def of_torch(S, q, k, v, a):
        return torch.exp(a) * S + k @ v.T, S.T @ q

    with pytest.raises(errors.UnsupportedOperation, match=r"torch\.exp cannot work") as caught:
        bole.recurrence(of_torch)
    assert caught.value.mend == "boleir.exp"

    def inside_torch(S, q, k, v):
        k = torch.nn.functional.normalize(k)
        return S + k @ v.T, S.T @ q

    with pytest.raises(errors.NormOfState, match="recurrences have no 'normalize'") as caught:
        bole.recurrence(inside_torch)
    span = caught.value.span
    assert span is not None, "the user's line, not one of torch"
    assert "torch.nn.functional.normalize(k)" in span.source.line(span.line)


def test_errors_of_the_user_pass_through() -> None:
    def broken(S, q, k, v):
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        bole.recurrence(broken)


def test_traced_values_are_readable() -> None:
    seen = []

    @bole.recurrence(name="r")
    def _(S, q, k, v):
        seen.extend([repr(S), repr(k @ k.T), repr(S.T @ q), hasattr(k, "__array__")])
        return S + k @ v.T, S.T @ q

    assert seen == [
        "<a state: S>",
        "<a d_k x d_k matrix>",
        "<a value vector: S^T q>",
        False,
    ]


def test_outputs_may_be_rows_and_several() -> None:
    @bole.recurrence
    def two(S, q, k, v):
        S = S + k @ v.T
        return S, q.T @ S, S.T @ k

    assert [str(output) for output in two.outputs] == ["S^T q", "S^T k"]
    assert bole.parse(str(two)) == two
    alone = two.with_output(1)
    assert [item.name for item in alone.inputs] == ["k", "v"]
    assert (alone.update, alone.output, alone.more) == (two.update, two.more[0], ())
    with pytest.raises(IndexError):
        two.with_output(2)


def test_an_unknown_name_is_a_mistake_like_others() -> None:
    def misspelled(S, q, k, v):
        return S + kk @ v.T, S.T @ q  # noqa: F821

    def bare(S, q, k, v, a):
        return exp(a) * S + k @ v.T, S.T @ q  # noqa: F821

    def early(S, q, k, v):
        S = S + u @ v.T  # noqa: F821
        u = k  # noqa: F841
        return S, S.T @ q

    for function, shown, mend in (
        (misspelled, "kk", "did you mean 'k'?"),
        (bare, "exp", "boleir.exp"),
        (early, "u", None),
    ):
        with pytest.raises(errors.UnknownName) as caught:
            bole.recurrence(function)
        assert isinstance(caught.value, NameError)
        span = caught.value.span
        assert span is not None
        assert span.source.name.endswith("test_language_tracing.py")
        assert span.source.line(span.line)[span.column - 1 : span.end_column - 1] == shown
        assert caught.value.mend == mend or mend is None


def test_a_function_that_does_not_run_when_called_is_refused(
    recwarn: pytest.WarningsRecorder,
) -> None:
    async def later(S, q, k, v):
        return S + k @ v.T, S.T @ q

    def one_by_one(S, q, k, v):
        yield S + k @ v.T
        yield S.T @ q

    async def both(S, q, k, v):
        yield S

    cases: list[tuple[Any, str]] = [(later, "asynchronous"), (one_by_one, "yields"), (both, "asyn")]
    for function, what in cases:
        with pytest.raises(errors.BadSignature, match=what) as caught:
            bole.recurrence(function)
        assert caught.value.span is not None
        assert function.__name__ in caught.value.span.source.line(caught.value.span.line)
    assert not recwarn.list


def test_stars_are_shown_as_written() -> None:
    def one(S, q, k, v, *more):
        return S + k @ v.T, S.T @ q

    def two(S, q, k, v, **more):
        return S + k @ v.T, S.T @ q

    for function, shown in ((one, "'*more' names"), (two, "'**more' names")):
        with pytest.raises(errors.BadSignature, match=re.escape(shown)):
            bole.recurrence(function)


@pytest.mark.parametrize(
    ("text", "python"),
    [
        ("S = S + k v^T", "S = S + k @ v.T"),
        ("out S^T q", "return S, S.T @ q"),
        ("write the matrix product without '*'", "write the matrix product with '@'"),
        (
            "square matrices act on the state: (I - beta * k k^T) S, or S (I - v v^T)",
            "square matrices act on the state: (I - beta * k @ k.T) @ S, or S @ (I - v @ v.T)",
        ),
        (
            "transposed, these exist: state^T key; products are k v^T (outer), S v (read along)",
            "transposed, these exist: state.T @ key; products are k @ v.T (outer), "
            "S @ v (read along)",
        ),
        ("a state may be divided by a head scalar", "a state may be divided by a head scalar"),
        ("use it or remove it", "use it or remove it"),
    ],
)
def test_mends_speak_python(text: str, python: str) -> None:
    assert in_python(text) == in_python(python) == python


def test_a_mend_for_a_function_is_python() -> None:
    def wrong(S, q, k, v):
        return S + k, S.T @ q

    with pytest.raises(errors.KindMismatch, match=re.escape("k @ v.T")):
        bole.recurrence(wrong)
    with pytest.raises(errors.KindMismatch, match=re.escape("k v^T")):
        bole.parse("recurrence r(q: key, k: key, v: value)\n  S = S + k\n  out S^T q\n")
