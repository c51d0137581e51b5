"""Plans: what is loaded, what scales it, which products are exact, what is watched."""

from __future__ import annotations

import pytest

import boleir
from boleir.codegen.plan import NoKernel, Plan
from boleir.codegen.planner import make_plan
from boleir.derive.derive import derive
from boleir.ir import Input, Kind
from tests.codegen.recurrences import TEXTS


def plan_of(name: str, d_k: int = 64, d_v: int = 32) -> Plan:
    recurrence = boleir.parse(TEXTS[name]) if name in TEXTS else boleir.load(name)
    return make_plan(derive(recurrence).normal, d_k, d_v, 2, 4)


def test_gdn_keeps_vectors_as_they_lie_in_memory() -> None:
    plan = plan_of("gdn")
    (pair,) = plan.pairs
    assert plan.readouts[0].query.stored and pair.erase.stored and pair.write.stored
    assert plan.readouts[0].query.constant == 64**-0.5
    assert plan.readouts[0].query.scalars == ("norm_q",)
    assert pair.erase.scalars == ("beta", "norm_k")
    assert pair.write.scalars == ("norm_k",)
    assert pair.after_decay and plan.readouts[0].after_decay and plan.readouts[0].inclusive
    assert not plan.writes and plan.readouts[0].direct is None and plan.readouts[0].gain is None


def test_row_scalars_say_what_they_depend_on() -> None:
    plan = plan_of("gdn")
    found = {s.name: s.per_key_head for s in plan.scalars}
    assert found == {"beta": False, "norm_k": True, "norm_q": True, "guard_v": False}
    assert plan.scalar("guard_v").watches is Kind.VALUE
    assert plan.scalar("beta").watches is None


def test_convolved_inputs_are_packed_in_the_order_of_declaration() -> None:
    plan = plan_of("gdn")
    packed = [(m.source.name, m.offset, m.channels, m.width) for m in plan.mixed]
    assert packed == [("q", 0, 128, 4), ("k", 128, 128, 4), ("v", 256, 128, 4)]
    assert all(m.functions == ("silu",) for m in plan.mixed)
    stored = [(m.buffer, m.column) for m in plan.mixed]  # no schedule has said what passes
    assert stored == [("mixed", 0), ("mixed", 128), ("mixed", 256)]
    assert (plan.conv_width, plan.conv_channels) == (4, 384)
    assert [str(x.name) for x in plan.tokens] == ["a", "b", "q_mixed", "k_mixed", "v_mixed"]
    assert plan.is_mixed(plan.tokens[2]) == plan.mixed[0]
    assert plan.is_mixed(plan.tokens[0]) is None


def test_an_input_may_be_used_with_and_without_its_convolution() -> None:
    text = (
        "recurrence both(q: key, k: key, v: value)\n"
        "  w = causal_conv(v, width=3)\n  S = S + k w^T\n  out S^T q + v\n"
    )
    plan = make_plan(derive(boleir.parse(text)).normal, 16, 16, 1, 1)
    assert [str(x.name) for x in plan.tokens] == ["q", "k", "v", "v_mixed"]
    assert plan.conv_width == 3


def test_every_vector_is_watched_by_some_scalar() -> None:
    for name in ("gdn", "iplr", "mamba2", "gated_delta_product", *TEXTS):
        plan = plan_of(name)
        vectors = {x.key for x in plan.tokens if x.kind is not Kind.HEAD}
        seen = {
            node.key
            for scalar in plan.scalars
            for node in _inputs(scalar.expr)
            if node.kind is not Kind.HEAD
        }
        assert vectors <= seen, name


def _inputs(expr: object) -> list[Input]:
    from boleir.ir import Expr, walk

    assert isinstance(expr, Expr)
    return [node for node in walk(expr) if isinstance(node, Input)]


def test_micro_steps_are_coupled() -> None:
    plan = plan_of("gated_delta_product")
    first, second = plan.pairs
    assert first.coupling == ()
    assert len(second.coupling) == 1 and second.coupling[0] is not None


def test_simultaneous_pairs_are_not() -> None:
    text = (
        "recurrence both(q: key, k: key, p: key, v: value, w: value)\n"
        "  S = S + k (v - S^T k)^T + p (w - S^T p)^T\n  out S^T q\n"
    )
    plan = make_plan(derive(boleir.parse(text)).normal, 16, 16, 1, 1)
    assert [pair.coupling for pair in plan.pairs] == [(), (None,)]


def test_reading_before_the_update_gives_a_diagonal_of_its_own() -> None:
    plan = plan_of("read_before")
    assert not plan.readouts[0].inclusive and not plan.readouts[0].after_decay
    assert plan.readouts[0].own_pairs == (None,) and plan.readouts[0].own_writes == (None,)
    assert plan.readouts[0].direct is not None
    assert not plan.pairs[0].after_decay


def test_comba_reads_before_the_decay() -> None:
    plan = plan_of("comba")
    assert not plan.pairs[0].after_decay and plan.readouts[0].after_decay


def test_a_value_gate_is_kept_apart_from_the_inverse() -> None:
    plan = plan_of("value_gate")
    assert plan.pairs[0].gain is not None and plan.pairs[0].gain.kind is Kind.VALUE
    assert plan.readouts[0].gain is not None


def test_no_decay_no_solve() -> None:
    plan = plan_of("linear_attention")
    assert plan.log_decay is None and not plan.pairs and len(plan.writes) == 1
    assert plan_of("mamba2").log_decay is not None


def test_a_decay_per_key_channel_is_kept_as_a_factor() -> None:
    plan = plan_of("kda")
    assert plan.log_decay is None
    assert plan.key_decay is not None and plan.key_decay.kind is Kind.KEY


def test_updates_from_the_right_are_written_along_values() -> None:
    plan = plan_of("gated_oja")
    assert plan.right and plan.staged
    assert plan.value_decay is not None and plan.log_decay is None
    assert plan.unknown_log_decay is None  # the unknowns are key vectors, which do not decay apart
    (pair,) = plan.pairs
    assert pair.write.base.kind is pair.erase.base.kind is Kind.VALUE
    assert pair.target.kind is Kind.KEY


def test_convolutions_of_two_widths_are_refused() -> None:
    text = """\
recurrence two_widths(q: key, k: key, v: value)
  q = causal_conv(q, width=4)
  k = causal_conv(k, width=3)
  S = S + k v^T
  out S^T q
"""
    with pytest.raises(NoKernel, match="widths 3 and 4"):
        make_plan(derive(boleir.parse(text)).normal, 16, 16, 1, 1)


def test_scalars_are_unique_and_leave_inputs_their_names() -> None:
    for name in ("gdn", "iplr", "mamba2", "gated_delta_product", "hostile_names", "two_pairs"):
        plan = plan_of(name)
        names = [s.name for s in plan.scalars]
        assert len(names) == len(set(names)), name
        assert not set(names) & {x.name for x in plan.form.recurrence.inputs}, name
