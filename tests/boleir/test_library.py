"""The shipped recurrences: all there, documented, and the formulas their papers print."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from boleir.errors import SpecError
from boleir.ir import Conv, walk
from boleir.language.errors import BadSyntax, UnknownRecurrence
from boleir.language.parser import parse
from boleir.library import load, load_module, names, path

EXPECTED = {
    "comba",
    "delta_rule",
    "dplr",
    "gated_delta_product",
    "gated_delta_rule",
    "gated_oja",
    "gdn",
    "gla",
    "iplr",
    "kda",
    "linear_attention",
    "mamba2",
    "retention",
    "rwkv6",
    "rwkv7",
    "simple_gla",
}


def test_all_are_there() -> None:
    assert set(names()) == EXPECTED
    assert list(names()) == sorted(names())


@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_each_is_documented_and_named_like_its_file(name: str) -> None:
    text = path(name).read_text(encoding="utf-8")
    assert load(name).name == name
    assert text.startswith("# ")
    for heading in ("# Origin: ", "# Convention: "):
        assert heading in text
    assert re.search(r"\((19|20)\d\d\)|flash-linear-attention", text)
    assert max(map(len, text.splitlines())) <= 125
    assert load(name).source is not None
    assert load(name).source.name == f"{name}.bole"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        (
            "gdn",
            """
            recurrence gdn(q: key, k: key, v: value, a: head, b: head; A_log: head, dt_bias: head)
              k = l2norm(silu(causal_conv(k, width=4)))
              S = exp(-exp(A_log) * softplus(a + dt_bias)) * S
              S = S + k (sigmoid(b) * (silu(causal_conv(v, width=4)) - S^T k))^T
              out S^T (l2norm(silu(causal_conv(q, width=4))) / sqrt(d_k))
            """,
        ),
        (
            "comba",
            """
            recurrence comba(q: key, k: key, p: key, v: value, a: head, b: head;
                             A_log: head, dt_bias: head)
              u = sigmoid(b) * (v - S^T p)
              S = exp(-exp(A_log) * softplus(a + dt_bias)) * S + l2norm(k) u^T
              out S^T (l2norm(q) / sqrt(d_k))
            """,
        ),
        (
            "dplr",
            """
            recurrence dplr(q: key, k: key, v: value, a: key, b: key, g: key)
              S = exp(g) * S + b (S^T a)^T + k v^T
              out S^T (q / sqrt(d_k))
            """,
        ),
        (
            "rwkv7",
            """
            recurrence rwkv7(r: key, w: key, k: key, v: value, a: key; k_k: key, k_a: key)
              kappa = l2norm(k * k_k)
              rate = sigmoid(a)
              S = (exp(-exp(-0.5) * sigmoid(w)) * S - (kappa * rate) (S^T kappa)^T
                   + (k * (1 + (rate - 1) * k_a)) v^T)
              out S^T r
            """,
        ),
    ],
)
def test_formulas(name: str, text: str) -> None:
    assert parse(text) == load(name)


def test_gdn_without_its_convolution_is_the_gated_delta_rule() -> None:
    convolved = [
        node for node in walk(load("gdn").update, load("gdn").output) if isinstance(node, Conv)
    ]
    assert sorted(str(node.arg) for node in convolved) == ["k", "q", "v"]
    assert {node.width for node in convolved} == {4}
    text = path("gdn").read_text(encoding="utf-8")
    bare = text.replace("  q, k, v = silu(causal_conv(q, k, v, width=4))\n", "")
    assert parse(bare.replace(" gdn(", " gated_delta_rule(")) == load("gated_delta_rule")


def test_kda_ships_its_bounded_gate_too() -> None:
    module = load_module("kda")
    assert [item.name for item in module.recurrences] == ["kda", "kda_bounded"]
    assert load("kda").name == "kda"


def test_loading_is_cached_and_shared() -> None:
    assert load("gdn") is load("gdn")


def test_unknown_names_get_a_mend() -> None:
    with pytest.raises(UnknownRecurrence, match="no shipped recurrence 'gnd'") as caught:
        load("gnd")
    assert caught.value.mend == "did you mean 'gdn'?"
    with pytest.raises(UnknownRecurrence) as caught:
        load("zzz")
    assert caught.value.mend is not None
    assert caught.value.mend.startswith("shipped are: comba, ")


def test_files_of_ones_own(tmp_path: Path) -> None:
    one = "recurrence r(k: key, v: value)\n  S = S + k v^T\n  out S^T k\n"
    file = tmp_path / "mine.bole"
    file.write_text(one, encoding="utf-8")
    assert load(file).name == load(str(file)).name == "r"
    file.write_text(one + one.replace(" r(", " mine("), encoding="utf-8")
    assert load(file).name == "mine"
    file.write_text(one + one.replace(" r(", " s("), encoding="utf-8")
    with pytest.raises(UnknownRecurrence, match=r"which recurrence\? declared are: r, s"):
        load(file)
    file.write_text("tree t = chain(3)\n", encoding="utf-8")
    with pytest.raises(UnknownRecurrence, match=r"mine\.bole declares no recurrence"):
        load(file)
    assert len(load_module(file).trees) == 1
    with pytest.raises(UnknownRecurrence, match="No such file"):
        load(tmp_path / "absent.bole")
    with pytest.raises(UnknownRecurrence, match="directory"):
        load(tmp_path)
    file.write_text("nonsense", encoding="utf-8")
    with pytest.raises(BadSyntax) as caught:
        load(file)
    assert str(caught.value).startswith(f"{file}:1:1: ")
    assert isinstance(caught.value, SpecError)
