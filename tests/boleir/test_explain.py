"""The written-out derivation: right formulas in the symbols of the recurrence, text and LaTeX."""

from __future__ import annotations

import random
import re
import time
from fractions import Fraction

import networkx
import numpy as np
import pytest

import boleir as bole
from boleir.derive import work
from boleir.derive.algebra import Poly
from boleir.derive.canonical import emit
from boleir.derive.closed_form import ClosedForm
from boleir.derive.derive import derive
from boleir.derive.entries import Entries
from boleir.derive.notation import TEXT
from boleir.derive.work import TooComplicated
from boleir.ir import (
    Add,
    Call,
    Div,
    Dot,
    Expr,
    Input,
    Kind,
    Mul,
    Neg,
    Number,
    Outer,
    Previous,
    Read,
    Recurrence,
    Sub,
    walk,
)

TREE = (-1, 0, 0, 1, 1, 2)
A, K, V = Input(Kind.HEAD, "a"), Input(Kind.KEY, "k"), Input(Kind.VALUE, "v")


def form(name: str) -> ClosedForm:
    return derive(bole.load(name))


def section(text: str, title: str) -> str:
    return text.split(f"\n{title}\n")[1].split("\n\n")[0]


def test_gdn_in_its_own_symbols() -> None:
    text = form("gdn").explain()
    assert "gamma = exp(-exp(A_log) softplus(a + dt_bias))" in section(text, "Symbols")
    assert "q = l2norm(silu(causal_conv(q, width=4))) / sqrt(d_k)" in text
    assert "u_i = beta_i v_i - beta_i gamma_i S_p^T k_i" in section(text, "One token")
    assert "S_i = P_i S_pre + sum_{j ≼ i} Γ_ij k_j u_j^T" in text
    assert "G[i,j] = beta_i Γ_ij k_i·k_j   for j ≺ i, else 0" in text
    assert "R_i = beta_i v_i - P_i beta_i S_pre^T k_i" in text
    assert "G^(d+1) = 0, hence (I + G)^-1 = sum_{m=0}^{d} (-G)^m" in text
    assert "o_i = P_i S_pre^T q_i + sum_{j ≼ i} C[i,j] u_j" in text
    assert "C[i,j] = Γ_ij q_i·k_j   for j ≼ i, else 0" in text
    assert "S_new = P_l S_pre + sum_{j ≼ l} Γ_lj k_j u_j^T" in text
    assert str(form("gdn")) == text


def test_gdn_entry_by_entry() -> None:
    text = form("gdn").explain(tree=TREE)
    assert "G[3,1] = beta_3 gamma_3 k_3·k_1" in section(text, "G")
    assert "G[3,0] = beta_3 gamma_1 gamma_3 k_3·k_0" in section(text, "G")
    assert "[3,2]" not in text, "2 is no ancestor of 3"
    inverse = section(text, "(I + G)^-1")
    assert "[3,0] = beta_3 gamma_1 gamma_3 (beta_1 (k_1·k_0) (k_3·k_1) - k_3·k_0)" in inverse
    assert "C[3,1] = gamma_3 q_3·k_1" in section(text, "C")
    drawing = section(text, "Tree")
    assert "|-- 1" in drawing
    assert "6 nodes, depth d = 2, nilpotency index 3" in drawing


EXPECTED = {
    "comba": ["u_i = beta_i v_i - beta_i S_p^T p_i", "G[i,j] = beta_i Γ_pj p_i·k_j"],
    "kda": ["G[i,j] = beta_i k_i·(Γ_ij ∘ k_j)", "diag(P_i) S_pre"],
    "gla": ["no solve: G = 0", "nothing is unknown"],
    "dplr": ["R_i = S_pre^T (P_p ∘ a_i) + sum_{j ≺ i} (a_i·(Γ_pj ∘ k_j)) v_j"],
    "gated_delta_product": ["G^(2(d+1)) = 0", "G[(i,2),(i,1)] ="],
    "gated_oja": ["G[i,j] = beta_i v_i·(Γ_ij ∘ v_j)", "C[i,j] = q_i·u_j", "S_pre diag(P_i)"],
    "rwkv6": ["N[i,j] = r_i·(Γ_pj ∘ k_j)   for j ≺ i, else 0", "N[i,i] ="],
    "retention": ["P_i"],
}


@pytest.mark.parametrize("name", EXPECTED)
def test_classes_show_in_the_formulas(name: str) -> None:
    text = form(name).explain()
    for expected in EXPECTED[name]:
        assert expected in text, f"{expected!r} not in\n{text}"


@pytest.mark.parametrize("name", bole.names())
@pytest.mark.parametrize("fmt", ["text", "latex"])
def test_everything_can_be_explained(name: str, fmt: str) -> None:
    text = form(name).explain(fmt, tree=TREE)
    assert "--" not in text.replace("|--", "").replace("`--", "")
    if fmt == "text":
        assert max(map(len, text.splitlines())) <= 100
    else:
        assert text.count("{") == text.count("}")
        assert text.count(r"\left(") == text.count(r"\right)")
        assert text.count(r"\begin") == text.count(r"\end")
        assert text.isascii()


def test_unnamed_recurrences_explain_themselves_too() -> None:
    recurrence = bole.parse(
        "recurrence r(q: key, k: key, v: value, g: head, b: head)\n"
        "  S = exp(g) * S + k (b * (v - S^T k))^T\n  out S^T q\n"
    )
    text = derive(recurrence).explain(tree=[-1, 0, 1])
    assert "G[2,0] = exp(g_1) b_2 k_2·k_0" in text  # read before the decay: one gate less


def value_of(expr: Expr, point: dict[str, np.ndarray]) -> Fraction | np.ndarray:
    """Value of an entry over the symbols `name token`."""

    match expr:
        case Number():
            return expr.value
        case Input():
            return point[expr.name]
        case Dot():
            left, right = (value_of(child, point) for child in expr.children)
            return (left * right).sum()  # type: ignore[union-attr]
        case Neg():
            return -value_of(expr.arg, point)
        case Call():
            return point[expr.fn + expr.arg.name]  # type: ignore[attr-defined]
    left, right = (value_of(child, point) for child in expr.children)
    match expr:
        case Add():
            return left + right
        case Sub():
            return left - right
        case Mul():
            return left * right
        case Div():
            return left / right  # type: ignore[operator]
    raise AssertionError(expr)


@pytest.mark.parametrize("name", ["gdn", "gated_delta_product"])
@pytest.mark.parametrize("seed", range(3))
def test_symbolic_inverse_is_the_inverse(name: str, seed: int) -> None:
    """(I + G) X = I with the symbols of a random tree replaced by random numbers."""

    rng = random.Random(seed)
    parents = (-1, *(rng.randrange(-1, n) for n in range(1, 6)))
    entries = Entries(form(name), TEXT, parents)
    tables = entries.system(), entries.inverse()
    places = [(i, a) for i in range(6) for a in range(entries.pairs)]
    point: dict[str, np.ndarray] = {}

    def number_of(poly: Poly) -> Fraction:
        expr = emit(poly)
        for node in walk(expr):
            if isinstance(node, Call):
                name = node.fn + node.arg.name  # type: ignore[attr-defined]
                point.setdefault(name, Fraction(rng.randint(1, 5)))  # type: ignore[arg-type]
            if isinstance(node, Input) and node.name not in point:
                size = 3 if node.kind is not Kind.HEAD else 1
                drawn = np.array(
                    [Fraction(rng.randint(1, 5), 2) for _ in range(size)], dtype=object
                )
                point[node.name] = drawn if node.kind is not Kind.HEAD else drawn[0]
        return Fraction(value_of(expr, point))  # type: ignore[arg-type]

    identity = np.array([[Fraction(r == c) for c in places] for r in places])
    matrices = []
    for table in tables:
        matrix = identity.copy()
        for (row, column), poly in table.items():
            matrix[places.index(row), places.index(column)] = number_of(poly)
        matrices.append(matrix)
    assert (matrices[0] @ matrices[1] == identity).all()


def test_long_paths_do_not_explode() -> None:
    """2^(n-1) terms for n steps: beyond a bound the series is written as a recursion."""
    chain = list(range(-1, 39))
    inverse = section(form("gdn").explain(tree=chain), "(I + G)^-1")
    assert "(I+G)^-1[1,0] = -beta_1 gamma_1 k_1·k_0" in inverse
    assert "[38,0] = - G[38,0] - G[38,1] (I+G)^-1[1,0] - G[38,2]" in " ".join(inverse.split())


def test_tree_as_object_and_bad_trees() -> None:
    from boleir.errors import TreeError
    from boleir.trees import Tree

    assert form("gdn").explain(tree=Tree.from_networkx(networkx.path_graph(3, networkx.DiGraph)))
    with pytest.raises(TreeError):
        form("gdn").explain(tree=[0, 1])


def test_unknown_format() -> None:
    with pytest.raises(ValueError, match="'text' or 'latex'"):
        form("gdn").explain("html")


def test_latex_of_gdn() -> None:
    latex = form("gdn").explain("latex")
    assert r"G_{ij} = \Gamma_{ij}\,\beta_{i}\,k_{i}^\top k_{j}" in latex
    assert r"(I + G)^{-1} = \sum_{m=0}^{d} (-G)^m" in latex
    assert r"\frac{\operatorname{l2norm}" in latex
    assert not re.search(r"[^\\]\bgamma", latex), "Greek names are commands"


def test_right_acting_output_follows_a_gate_over_keys() -> None:
    recurrence = bole.parse(
        "recurrence r(q: key, k: key, v: value, g: key, b: head)\n"
        "  S' = exp(g) * S\n  S = S' + (b * (k - S' v)) v^T\n  out S^T q\n"
    )
    text = derive(recurrence).explain()
    assert "C[i,j] = q_i·(Γ_ij ∘ u_j)" in text


def test_explanations_that_nobody_could_read_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """A chain of 256 nodes has entries of exponential length; so has a term that is shared."""
    monkeypatch.setattr(work, "WORK", work.WORK // 10)
    start = time.process_time()
    with pytest.raises(TooComplicated, match="the explanation expands") as caught:
        form("gated_delta_product").explain(tree=range(-1, 255))
    assert caught.value.mend == "a smaller tree"
    gate: Expr = A
    for _ in range(40):
        gate = Call(Kind.HEAD, "exp", Mul(Kind.HEAD, gate, gate))
    state = Previous(Kind.STATE)
    update = Add(Kind.STATE, Mul(Kind.STATE, gate, state), Outer(Kind.STATE, K, V))
    output = Read(Kind.VALUE, update, K)
    made = derive(Recurrence("shared", (K, V, A), update, output))
    with pytest.raises(TooComplicated, match="the explanation expands") as caught:
        made.explain("latex")
    assert "name the terms" in str(caught.value.mend)
    assert time.process_time() - start < 10


def test_classes_and_trees_are_words_in_latex() -> None:
    text = form("linear_attention").explain("latex", TREE)
    assert "\nno solve: $G = 0$\\par" in text
    assert "\n6 nodes, depth d = 2\\par" in text
