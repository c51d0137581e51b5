"""The algebra behind canonical forms: ring laws, exact division, canonical expressions, logs."""

from __future__ import annotations

import random
from fractions import Fraction

import pytest

from boleir.derive import algebra, canonical
from boleir.derive.algebra import (
    ONE,
    ZERO,
    Poly,
    atom,
    constant,
    content,
    divide,
    rank,
    split_scalar,
)
from boleir.derive.canonical import Canon, emit
from boleir.derive.notation import plain
from boleir.derive.recent import Recent
from boleir.ir import Add, Call, Div, Dot, Expr, Input, Kind, Mul, Neg, Number, Sub, number
from tests.boleir.derive_support import form_of

A, B = Input(Kind.HEAD, "a"), Input(Kind.HEAD, "b")
K, P = Input(Kind.KEY, "k"), Input(Kind.KEY, "p")
a, b, k, p = atom(A), atom(B), atom(K), atom(P)


def random_poly(rng: random.Random) -> Poly:
    result = ZERO
    for _ in range(rng.randint(1, 4)):
        part = constant(Fraction(rng.choice([-3, -1, 1, 2]), rng.choice([1, 2])))
        for _ in range(rng.randint(0, 3)):
            part = part * rng.choice([a, b, k, p, atom(A, -1)])
        result = result + part
    return result


@pytest.mark.parametrize("seed", range(20))
def test_ring_laws(seed: int) -> None:
    rng = random.Random(seed)
    x, y, z = (random_poly(rng) for _ in range(3))
    assert x * (y + z) == x * y + x * z
    assert x * y == y * x
    assert (x * y) * z == x * (y * z)
    assert x - x == ZERO
    assert hash(x + y) == hash(y + x)


def test_terms_that_share_much_are_ranked_by_spellings_of_bounded_length() -> None:
    first: Expr = A
    second: Expr = B
    for _ in range(60):  # spelled out, each would have 2 ** 60 leaves
        first = Call(Kind.HEAD, "exp", Mul(Kind.HEAD, first, first))
        second = Call(Kind.HEAD, "exp", Mul(Kind.HEAD, second, second))
    assert len(rank(first)[2]) < 10_000
    assert rank(first) != rank(second)


@pytest.mark.parametrize("seed", range(20))
def test_division_undoes_multiplication(seed: int) -> None:
    rng = random.Random(100 + seed)
    x, y = random_poly(rng), random_poly(rng)
    if x and y:
        quotient = divide(x * y, y)
        # 1/a in the factor may look like a new inverse; otherwise the quotient is exact.
        assert quotient is None or quotient == x
        if not any(power < 0 for m in [*x.terms, *y.terms] for _, power in m):
            assert quotient == x


def test_division_with_remainder_is_none() -> None:
    assert divide(a * a + ONE, a + b) is None
    assert divide(a, b) is None  # no new inverse


def test_content_is_canonical_under_scaling() -> None:
    x = constant(2) * a * k - constant(4) * b * k
    _, primitive = content(x)
    assert content(x * constant(Fraction(-3, 7)) * atom(B, -1))[1] == primitive


def test_direction_ignores_scalar_factors_of_any_shape() -> None:
    vector = k + constant(2) * p
    for scalar in (constant(-3), a * b, a + b, (a + b) * (a - b), atom(A, -2)):
        found, direction = split_scalar(scalar * vector)
        assert found * direction == scalar * vector
        assert direction == vector


def value(expr: Expr, point: dict[str, Fraction]) -> Fraction:
    """Value of a scalar expression over inputs."""
    match expr:
        case Input():
            return point[expr.name]
        case Number():
            return expr.value
        case Neg():
            return -value(expr.arg, point)
        case Add():
            return value(expr.left, point) + value(expr.right, point)
        case Sub():
            return value(expr.left, point) - value(expr.right, point)
        case Mul():
            return value(expr.left, point) * value(expr.right, point)
        case Div():
            return value(expr.left, point) / value(expr.right, point)
    raise AssertionError(expr)


def random_expr(rng: random.Random, depth: int) -> Expr:
    if depth == 0:
        return rng.choice([A, B, number(rng.choice([1, 2, 3])), number("0.5")])
    left, right = random_expr(rng, depth - 1), random_expr(rng, depth - 1)
    kind = rng.choice([Add, Sub, Mul, Div])
    if kind is Div:
        right = rng.choice([A, B, Add(Kind.HEAD, A, B)])
    return Neg(Kind.HEAD, left) if rng.random() < 0.2 else kind(Kind.HEAD, left, right)


@pytest.mark.parametrize("seed", range(60))
def test_canonical_expressions_keep_their_value(seed: int) -> None:
    rng = random.Random(seed)
    expr = random_expr(rng, 4)
    canonical = emit(Canon().poly(expr))
    for _ in range(3):
        point = {n: Fraction(rng.randint(1, 9), rng.randint(1, 5)) for n in "ab"}
        assert value(canonical, point) == value(expr, point)
    assert emit(Canon().poly(canonical)) == canonical, "canonical of canonical is itself"


def test_dots_expand_and_commute() -> None:
    canon = Canon()
    left = Dot(Kind.HEAD, Mul(Kind.KEY, A, K), Add(Kind.KEY, P, K))
    right = Add(
        Kind.HEAD,
        Mul(Kind.HEAD, A, Dot(Kind.HEAD, P, K)),
        Mul(Kind.HEAD, Dot(Kind.HEAD, K, K), A),
    )
    assert canon.poly(left) == canon.poly(right)
    triple = Dot(Kind.HEAD, K, Mul(Kind.KEY, A, Mul(Kind.KEY, P, K)))
    assert canon.poly(triple) == canon.poly(
        Mul(Kind.HEAD, A, Dot(Kind.HEAD, Mul(Kind.KEY, K, K), P))
    )


def test_functions_take_canonical_arguments() -> None:
    canon = Canon()
    one = Call(Kind.HEAD, "exp", Add(Kind.HEAD, A, B))
    other = Call(Kind.HEAD, "exp", Add(Kind.HEAD, B, A))
    assert canon.poly(one) == canon.poly(other)
    root = Call(Kind.HEAD, "rsqrt", A)
    assert canon.poly(root) == canon.poly(Div(Kind.HEAD, number(1), Call(Kind.HEAD, "sqrt", A)))


def test_expansion_is_bounded() -> None:
    names = [Input(Kind.HEAD, f"x{n}") for n in range(12)]
    total: Expr = names[0]
    for name in names[1:]:
        total = Add(Kind.HEAD, total, name)
    product: Expr = total
    for _ in range(6):
        product = Mul(Kind.HEAD, product, total)
    assert len(Canon().poly(product).terms) <= 400


LOGS = {
    "exp(g)": "g",
    "exp(-exp(b) * softplus(g))": "-exp(b) * softplus(g)",
    "sigmoid(g)": "-softplus(-g)",
    "(1 - sigmoid(g))": "-softplus(g)",
    "exp(g) * sigmoid(b)": "g - softplus(-b)",
    "exp(g) / 2": "log(0.5) + g",
    "sqrt(exp(g))": "g / 2",
    "b": "log(b)",
    "(1 + b)": "log(1 + b)",
    "exp(g) / b": "g - log(b)",
}


@pytest.mark.parametrize("decay", LOGS)
def test_log_decay(decay: str) -> None:
    used = [name for name in "gb" if name in decay.replace("sigmoid", "").replace("sqrt", "")]
    inputs = ", ".join(["q: key", "k: key", "v: value", *(f"{n}: head" for n in used)])
    form = form_of(f"S = {decay} * S + k v^T\nout S^T q", inputs)
    assert plain(form.log_decay).replace("0.5 * g", "g / 2") == LOGS[decay]


def test_a_constant_decay_is_split_off_where_it_shows() -> None:
    form = form_of("S' = 0.9 * S\nS = S' + k (v - S'^T k)^T\nout S^T q", "q: key, k: key, v: value")
    assert form.pairs[0].erase.after_decay
    before = form_of("S = 0.9 * S + k (v - S^T k)^T\nout S^T q", "q: key, k: key, v: value")
    assert not before.pairs[0].erase.after_decay


def test_what_is_known_of_exponentials_is_kept_while_it_is_used_and_bounded() -> None:
    table: Recent[int, int] = Recent(10)
    for n in range(1000):
        table.put(-1, 0)
        table.put(n, n)
        assert table.get(-1) == 0, "used all the time"
        assert table.get(n) == n
        assert len(table) <= 20
    assert table.get(980) is None


def test_exponentials_meet_their_inverses_after_many_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    few: Recent[int, Expr] = Recent(8)
    monkeypatch.setattr(algebra, "OPPOSITES", few)
    monkeypatch.setattr(canonical, "OPPOSITES", few)
    plus, minus = Call(Kind.HEAD, "exp", A), Call(Kind.HEAD, "exp", Neg(Kind.HEAD, A))
    for n in range(50):
        other = Input(Kind.HEAD, f"x{n}")
        Canon().poly(Call(Kind.HEAD, "exp", other))
        assert Canon().poly(Mul(Kind.HEAD, plus, minus)) == ONE
    assert len(few) <= 16
