"""`check` passes what is right, sees what is wrong, and says so."""

from __future__ import annotations

import json
import time
from dataclasses import replace

import numpy as np
import pytest

import boleir as bole
from boleir.check.check import (
    KERNEL_FLOOR,
    KERNEL_LIMIT,
    SINGLE_SLACK,
    KernelRun,
    check,
    node_errors,
    trust,
)
from boleir.check.inputs import Case, Sample, Shape, cases, round_bf16, sample
from boleir.check.mutants import MUTANTS, mutants
from boleir.check.proof import prove, trials
from boleir.derive.closed_form import ClosedForm
from boleir.derive.derive import derive
from boleir.errors import CheckError
from boleir.oracle.closed import closed_form
from boleir.oracle.sequential import sequential
from boleir.oracle.sizes import output_sizes
from boleir.oracle.values import Singles
from tests.boleir.affine_recurrences import random_recurrence

FEW = (Case(), Case("chain", "identical", 1.0, -0.03), Case("star", "zero", 0.0, "mixed"))


@pytest.mark.parametrize("name", bole.names())
def test_shipped_recurrences_are_proved(name: str) -> None:
    report = check(bole.load(name), trees=8, over=FEW)
    assert report.passed, str(report)


def test_gdn_passes_everything_in_time() -> None:
    start = time.process_time()
    report = check(bole.load("gdn")).require()
    assert time.process_time() - start < 30  # about 3 s; the bound allows for slow machines
    assert report.findings[0].ran == 25
    assert [finding.ran for finding in report.findings[2:]] == [len(cases())] * 2
    worst = max(finding.worst or 0.0 for finding in report.findings)
    assert 0.0 < worst < 1e-12


@pytest.mark.parametrize("seed", range(40))
def test_random_recurrences_are_proved(seed: int) -> None:
    recurrence = random_recurrence(seed)
    proof = prove(derive(recurrence), trees=5, seed=seed)
    assert proof.passed, f"{proof}\n{recurrence}"


def test_kernels_are_trusted_as_far_as_float32_goes() -> None:
    """Where q^T k nearly vanishes the recurrence itself is far off in float32; that is no fault of
    a kernel, and excuses nothing larger."""
    form = bole.derive(bole.load("gated_oja"))
    case = Case("balanced", "cosine", strength=2.0, log_decay=-20.0)

    def single(sample: Sample, factor: float = 1.0) -> KernelRun:
        found = sequential(form.recurrence, **sample.arguments, field=Singles())
        return KernelRun(found.output * factor, found.states[sample.accepted])

    shape = Shape(1, 2, 32, 24)
    for kernel, passed in ((single, True), (lambda x: single(x, 1.001), False)):
        report = check(
            form.recurrence, trees=1, over=[case], kernels={"single": kernel},
            kernel_shape=shape, kernel_nodes=9,
        )  # fmt: skip
        assert report.findings[-1].passed is passed
        assert report.findings[-1].worst > 0


NEARLY_VANISHING = Case("roots", "identical", strength=1.0, log_decay=-100.0)
"""With seed 0, q^T k of node 1 is a small part of its terms, and nothing else is read."""


def test_what_nearly_vanishes_is_judged_by_its_terms() -> None:
    """The error of one walk in float32 may be a lucky one there: sums in other orders are as good
    and several times as far off."""
    form = bole.derive(bole.load("gdn"))
    drawn = sample(form, NEARLY_VANISHING, Shape(1, 2, 32, 24), nodes=9, rounding=round_bf16)
    exact = sequential(form.recurrence, **drawn.arguments).output
    orders = [reordered(drawn, np.random.default_rng(seed).permutation(32)) for seed in range(12)]
    outputs = [sequential(form.recurrence, **x.arguments, field=Singles()).output for x in orders]
    found = [float(np.max(node_errors(output, exact))) for output in outputs]
    assert max(found) > max(KERNEL_LIMIT, SINGLE_SLACK * min(found)), "these orders show nothing"
    counted = trust(form, orders[int(np.argmin(found))], exact, KERNEL_LIMIT)
    for output in outputs:
        assert np.max(node_errors(output, exact) * counted) <= KERNEL_LIMIT
        assert np.max(node_errors(1.01 * output, exact) * counted) > 10 * KERNEL_LIMIT


def reordered(given: Sample, order: np.ndarray) -> Sample:
    """The same problem with the entries of its keys in another order; heads are one there."""

    def taken(arrays: dict[str, np.ndarray], axis: int) -> dict[str, np.ndarray]:
        return {n: np.take(x, order, axis) if n in "qk" else x for n, x in arrays.items()}

    return replace(
        given,
        inputs=taken(given.inputs, -1),
        weights=taken(given.weights, 0),
        windows=taken(given.windows, 0),
        state=np.take(given.state, order, 1),
    )


@pytest.mark.parametrize("name", ["gdn", "gated_delta_product", "gated_oja"])
def test_wrong_rules_stay_far_outside_of_what_is_excused(name: str) -> None:
    """Each mistake in outputs is seen, a thousand times over, by some case after the judgement."""
    form = derive(bole.load(name))
    worst = {name: 0.0 for name, _ in mutants(form) if name != "commit without gates"}
    for case in (NEARLY_VANISHING, Case("chain", "identical", 1.0, 0.0), *cases(form)[::9]):
        drawn = sample(form, case, Shape(1, 2, 32, 24), nodes=9, rounding=round_bf16)
        exact = sequential(form.recurrence, **drawn.arguments)
        counted = trust(form, drawn, exact.output, KERNEL_LIMIT)
        for mistake, broken in mutants(form):
            if mistake in worst:
                output = closed_form(broken, **drawn.arguments).output
                errors = node_errors(output, exact.output, KERNEL_FLOOR) * counted
                worst[mistake] = max(worst[mistake], float(errors.max()))
    assert min(worst.values()) > 1000 * KERNEL_LIMIT, worst


@pytest.mark.parametrize("name", bole.names())
def test_no_output_is_larger_than_its_terms(name: str) -> None:
    form = derive(bole.load(name))
    drawn = sample(form, Case("chain"), Shape(), nodes=5)
    exact = sequential(form.recurrence, **drawn.arguments)
    summed = output_sizes(form.recurrence, **drawn.arguments, states=exact.states)
    assert np.all(summed >= np.abs(exact.output) * (1 - 1e-12))
    assert np.median(summed / np.abs(exact.output)) < 100


def test_the_terms_of_a_difference_are_added() -> None:
    rule = bole.parse(
        "recurrence r(q: key, k: key, v: value)\n"
        "  S = S - k v^T / (1 - 3)\n  out -(S^T q) - exp(v)\n"
    )
    values = {"q": [[[1.0, -1.0]]], "k": [[[2.0, 2.0]]], "v": [[[-3.0]]]}
    summed = output_sizes(
        rule, {n: np.array(x) for n, x in values.items()}, [-1], -np.ones((1, 2, 1)), {}
    )
    assert np.allclose(summed, 2 * (1 + 6 / 2) + np.exp(-3))


CARRIERS = ("gdn", "comba", "kda", "dplr", "gated_delta_product", "gated_oja", "rwkv6")


@pytest.mark.parametrize("carrier", CARRIERS)
def test_every_mutant_is_seen_by_the_proof(carrier: str) -> None:
    form = derive(bole.load(carrier))
    points = list(trials(form, 14))
    for name, broken in mutants(form):
        assert any(point.disagreement(broken) for point in points), name
    assert not any(point.disagreement(form) for point in points)


def test_each_mistake_concerns_some_recurrence() -> None:
    concerned = {name for carrier in CARRIERS for name, _ in mutants(derive(bole.load(carrier)))}
    gained = bole.parse(
        "recurrence r(q: key, k: key, v: value, b: value)\n"
        "  S = S + k (b * (v - S^T k))^T\n  out S^T q\n"
    )
    concerned |= {name for name, _ in mutants(derive(gained))}
    assert concerned == {mutant.name for mutant in MUTANTS}


@pytest.mark.parametrize("name", [mutant.name for mutant in MUTANTS])
def test_a_wrong_rule_fails_the_check(name: str) -> None:
    for carrier in ("gdn", "dplr", "gated_delta_product"):
        broken = dict(mutants(derive(bole.load(carrier)))).get(name)
        if broken is not None:
            report = check(bole.load(carrier), form=broken, trees=14, over=cases()[:2])
            assert not report.passed
            assert not report.findings[0].passed, "the exact comparison must fail"
            with pytest.raises(CheckError, match=carrier):
                report.require()
            return
    assert name == "missing gain"


@pytest.mark.parametrize(
    "name", ["one gate too many", "series one too short", "siblings for ancestors"]
)
def test_wrong_rules_fail_in_float64_too(name: str) -> None:
    broken = dict(mutants(derive(bole.load("gdn"))))[name]
    finding = check(bole.load("gdn"), form=broken, trees=1, over=cases()[:30]).findings[-2]
    assert not finding.passed
    assert finding.worst is not None and finding.worst > 1e-3


def exact_kernel(form: ClosedForm) -> object:
    def run(sample: Sample) -> KernelRun:
        solution = closed_form(form, **sample.arguments)
        return KernelRun(
            solution.output.astype(np.float32), solution.commit(sample.accepted).astype(np.float32)
        )

    return run


def test_kernels_are_checked_through_the_hook() -> None:
    form = derive(bole.load("gdn"))
    shape = Shape(1, 3, 16, 8)
    seen: list[Sample] = []

    def recording(sample: Sample) -> KernelRun:
        seen.append(sample)
        return exact_kernel(form)(sample)  # type: ignore[operator]

    report = check(
        form.recurrence,
        trees=2,
        over=FEW,
        kernels={"float32 stand-in": recording},
        kernel_shape=shape,
        kernel_nodes=9,
    )
    assert report.passed, str(report)
    assert len(seen) == len(FEW)
    assert seen[0].inputs["q"].shape == (9, 1, 16)
    assert "float32 stand-in" in str(report)
    as_bf16 = seen[0].inputs["q"].astype(np.float32).view(np.uint32)
    assert not (as_bf16 & 0xFFFF).any(), "token inputs are bfloat16 numbers"


@pytest.mark.parametrize("fault", ["output", "state", "nan"])
def test_a_wrong_kernel_fails(fault: str) -> None:
    form = derive(bole.load("gdn"))

    def wrong(sample: Sample) -> KernelRun:
        run = exact_kernel(form)(sample)  # type: ignore[operator]
        if fault == "output":
            run.output[-1] *= 1.001  # one node among many
        elif fault == "nan":
            run.output[0, 0, 0] = np.nan
        else:
            run = replace(run, state=run.state * 1.001)
        return run

    report = check(form.recurrence, trees=1, over=FEW, kernels={"wrong": wrong})
    assert not report.passed
    assert "FAIL kernel wrong" in str(report)


@pytest.mark.parametrize("wrong", [None, 0, 1])
def test_every_output_of_a_kernel_is_compared(wrong: int | None) -> None:
    form = derive(bole.parse(TWO_OUTPUTS))

    def kernel(sample: Sample) -> KernelRun:
        outputs = []
        for number, one in enumerate((form, *form.more)):
            walk = sequential(one.recurrence, **sample.arguments)
            outputs.append(walk.output * (1.001 if number == wrong else 1.0))
        return KernelRun(outputs[0], walk.states[sample.accepted], tuple(outputs[1:]))

    report = check(form.recurrence, trees=1, over=FEW, kernels={"one": kernel})
    assert report.passed is (wrong is None)
    if wrong is not None:
        assert f"output {wrong + 1} of node" in report.findings[-1].where


TWO_OUTPUTS = """
recurrence surprised(q: key, k: key, v: value, b: head)
  k = l2norm(k)
  surprise = v - S^T k
  S = S + k (sigmoid(b) * surprise)^T
  out S^T q
  out surprise
"""


def test_report_as_json_and_text() -> None:
    report = check(bole.load("retention"), trees=2, over=FEW)
    stored = json.loads(json.dumps(report.to_json()))
    assert stored["recurrence"] == "retention"
    assert stored["passed"] is True
    assert {finding["ran"] for finding in stored["findings"]} >= {2, len(FEW)}
    assert any("no compiled kernels" in note for note in stored["notes"])
    assert str(report).startswith("retention: all checks passed")


def test_progress_is_reported() -> None:
    said: list[str] = []
    check(bole.load("gla"), trees=2, over=FEW, progress=said.append)
    assert any("exact arithmetic" in text for text in said)
    assert any("float64" in text for text in said)


def test_node_errors_see_one_wrong_node_and_tolerate_underflow() -> None:
    reference = np.ones((4, 2, 3))
    output = reference.copy()
    output[2] *= 1.5
    assert node_errors(output, reference) == pytest.approx([0, 0, 0.5, 0])
    tiny = reference.copy()
    tiny[1] = 1e-320
    lost = tiny.copy()
    lost[1] = 0.0
    assert node_errors(lost, tiny).max() < 1e-9
    assert node_errors(np.zeros((2, 1, 1)), np.zeros((2, 1, 1))).max() == 0
    assert np.isinf(node_errors(np.full((1, 1, 1), np.nan), np.ones((1, 1, 1))))[0]


def test_oracles_agree_at_a_serving_shape() -> None:
    """The walk is the oracle of GPU tests, so it must be quick at their sizes."""
    from boleir.check.inputs import round_bf16, sample

    form = derive(bole.load("gdn"))
    case = Case("random", "cosine", 1.0, -0.03)
    drawn = sample(form, case, Shape(16, 32, 128, 128), nodes=64, rounding=round_bf16)
    start = time.process_time()
    walk = sequential(form.recurrence, **drawn.arguments, keep=(drawn.accepted,))
    assert time.process_time() - start < 20  # below 1 s on a quick machine
    solution = closed_form(form, **drawn.arguments)
    assert node_errors(solution.output, walk.output).max() < 1e-12
