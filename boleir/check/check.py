"""`check`: the proof, the float64 comparison and the kernels, in this order, as one report."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np

from boleir.check.inputs import Case, Sample, Shape, cases, round_bf16, sample
from boleir.check.proof import prove
from boleir.check.report import Finding, Report
from boleir.derive.closed_form import ClosedForm
from boleir.derive.derive import derive
from boleir.ir import Recurrence
from boleir.oracle.closed import closed_form
from boleir.oracle.sequential import sequential
from boleir.oracle.sizes import output_sizes
from boleir.oracle.values import Array, Singles

FLOAT64_LIMIT = 1e-9
"""Per-node error that float64 may show between walk and closed form, over all adversarial cases."""
KERNEL_LIMIT = 2e-5
"""Per-node error of a kernel with the default precision plan."""
KERNEL_FLOOR = 1e-30
"""Inputs are of order 1: what has decayed to less than this is close to where float32 ends."""
SCALE_FLOOR = 1e-30
"""Nodes whose output is this much smaller than the largest are measured against that instead:
below it, float64 itself has lost the digits to underflow."""


SINGLE_SLACK = 2.0
"""A kernel may be this many times as far off as the recurrence walked in float32."""
CANCELLED = 16.0
"""An output smaller than its summed terms by more than this is measured against them: the terms of
random vectors of 128 entries are about 8 times as large as their sum."""


@dataclass(frozen=True, slots=True)
class KernelRun:
    """What a kernel gave for a sample."""

    output: Array
    """[T, HV, d_v]."""
    state: Array | None = None
    """State after committing `Sample.accepted`, [HV, d_k, d_v], or None if it was not run."""
    more: tuple[Array, ...] = ()
    """The further outputs of the recurrence, each like `output`."""

    @property
    def outputs(self) -> tuple[Array, ...]:
        """Every output, in order."""
        return (self.output, *self.more)


Kernel: TypeAlias = Callable[[Sample], KernelRun]
"""Runs a compiled kernel on one request. Given from outside: this layer knows no GPU."""


def check(
    recurrence: Recurrence,
    *,
    form: ClosedForm | None = None,
    trees: int = 25,
    seed: int = 0,
    shape: Shape | None = None,
    nodes: int = 17,
    over: Sequence[Case] | None = None,
    kernels: Mapping[str, Kernel] | None = None,
    kernel_shape: Shape | None = None,
    kernel_nodes: int = 64,
    kernel_limit: float = KERNEL_LIMIT,
    progress: Callable[[str], None] | None = None,
) -> Report:
    """Whether the closed form is the recurrence, and whether the kernels compute it.

    `trees` random trees in exact arithmetic, where also every mutant must be told apart; then
    float64 over the adversarial cases `over` (default: all) at `shape` and `nodes`; then each of
    `kernels` over the same cases at `kernel_shape` with bf16 token inputs, against the float64
    walk. `form` replaces the derived closed form (to check a hand-made one)."""
    form = derive(recurrence) if form is None else form
    over = cases(form) if over is None else over
    findings: list[Finding] = []
    for one in (form, *form.more):
        own = _proof_findings(one, trees, seed, progress)
        own += _float_findings(one, over, shape or Shape(), nodes, seed, progress)
        where = f"output {len(findings) // len(own) + 1}: " if form.more else ""
        findings += [replace(finding, subject=where + finding.subject) for finding in own]
    notes = [f"assumes {text}" for text in form.assumptions]
    for name, kernel in (kernels or {}).items():
        findings.append(
            _kernel_finding(
                form,
                name,
                kernel,
                over,
                kernel_shape or shape or Shape(),
                kernel_nodes,
                seed,
                kernel_limit,
                progress,
            )
        )
    if kernels is None:
        notes.append("no compiled kernels were given, so none were run")
    return Report(recurrence.name, tuple(findings), tuple(notes))


def node_errors(output: Array, reference: Array, least: float = 0.0) -> Array:
    """Per node (first axis): norm of the difference over the norm of the reference.

    Where both are zero the error is 0; see `SCALE_FLOOR` for nodes that underflow. `least` is a
    norm below which nobody looks. NaN counts as infinite.
    """
    count = len(reference)
    difference = np.asarray(output, dtype=np.float64) - reference
    with np.errstate(over="ignore"):
        size = np.linalg.norm(reference.reshape(count, -1), axis=1)
        error = np.linalg.norm(difference.reshape(count, -1), axis=1)
    floor = max(least, SCALE_FLOOR * np.max(size, initial=0.0))
    scale = np.maximum(np.maximum(size, floor), np.finfo(np.float64).tiny)
    return np.nan_to_num(error / scale, nan=np.inf)


def _proof_findings(
    form: ClosedForm, trees: int, seed: int, progress: Callable[[str], None] | None
) -> list[Finding]:
    proof = prove(form, trees=trees, seed=seed, progress=progress)
    findings = [
        Finding(
            "closed form equals the sequential walk in exact rational arithmetic, random trees",
            proof.trials,
            proof.failure is None,
            where=proof.failure or "",
        )
    ]
    if proof.mutants:
        missed = [name for name, seen in proof.mutants.items() if not seen]
        findings.append(
            Finding(
                "wrong rules are told apart from the closed form",
                len(proof.mutants),
                not missed,
                where=", ".join(missed),
                details={"mutants": list(proof.mutants)},
            )
        )
    return findings


@dataclass(slots=True)
class _Worst:
    """The largest error so far and where it was."""

    error: float = 0.0
    where: str = ""

    def take(self, errors: Array, case: Case, what: str) -> None:
        if len(errors) and float(np.max(errors)) > self.error:
            node = int(np.argmax(errors))
            self.error = float(errors[node])
            self.where = f"{case.name}, {what} of node {node}"


def _float_findings(
    form: ClosedForm,
    over: Sequence[Case],
    shape: Shape,
    nodes: int,
    seed: int,
    progress: Callable[[str], None] | None,
) -> list[Finding]:
    outputs, commits = _Worst(), _Worst()
    for count, case in enumerate(over):
        if progress is not None and count % 20 == 0:
            progress(f"float64: case {count + 1} of {len(over)}, {case.name}")
        drawn = sample(form, case, shape, nodes=nodes, seed=seed)
        walk = sequential(form.recurrence, **drawn.arguments)
        solution = closed_form(form, **drawn.arguments)
        outputs.take(node_errors(solution.output, walk.output), case, "output")
        states = np.stack([walk.states[n] for n in range(len(drawn.parents))])
        committed = np.stack([solution.commit(n) for n in range(len(drawn.parents))])
        commits.take(node_errors(committed, states), case, "commit")
    return [
        Finding(
            f"{what} in float64, adversarial inputs",
            len(over),
            worst.error <= FLOAT64_LIMIT,
            worst.error,
            FLOAT64_LIMIT,
            worst.where,
        )
        for what, worst in (("outputs", outputs), ("commits", commits))
    ]


def trust(form: ClosedForm, drawn: Sample, exact: Array, limit: float) -> Array:
    """What errors of nodes count for: less than one where the recurrence itself, walked in float32,
    is beyond the limit, and where an output is the small rest of much larger terms, as where q^T k
    nearly vanishes and nothing else is read: there one walk may have been lucky."""
    single = sequential(form.recurrence, **drawn.arguments, keep=(), field=Singles())
    own = SINGLE_SLACK * node_errors(single.output, exact, KERNEL_FLOOR)
    states = sequential(form.recurrence, **drawn.arguments).states
    summed = output_sizes(form.recurrence, **drawn.arguments, states=states)
    rest = node_errors(exact + summed, exact, KERNEL_FLOOR)
    return limit / np.maximum(limit, np.maximum(own, limit * rest / CANCELLED))


def _kernel_finding(
    form: ClosedForm,
    name: str,
    kernel: Kernel,
    over: Sequence[Case],
    shape: Shape,
    nodes: int,
    seed: int,
    limit: float,
    progress: Callable[[str], None] | None,
) -> Finding:
    worst = _Worst()
    for count, case in enumerate(over):
        if progress is not None and count % 20 == 0:
            progress(f"{name}: case {count + 1} of {len(over)}, {case.name}")
        drawn = sample(form, case, shape, nodes=nodes, seed=seed, rounding=round_bf16)
        run = kernel(drawn)
        forms = (form, *form.more)
        for number, (one, output) in enumerate(zip(forms, run.outputs, strict=True), 1):
            walk = sequential(one.recurrence, **drawn.arguments, keep=(drawn.accepted,))
            errors = node_errors(output, walk.output, KERNEL_FLOOR)
            if errors.max(initial=0.0) > limit:
                errors = errors * trust(one, drawn, walk.output, limit)
            worst.take(errors, case, f"output {number}" if form.more else "output")
        if run.state is not None and drawn.accepted >= 0:
            reference = walk.states[drawn.accepted]
            error = node_errors(run.state[None], reference[None], KERNEL_FLOOR)
            worst.take(error, case, "commit")
    return Finding(
        f"kernel {name} against the float64 walk",
        len(over),
        worst.error <= limit,
        worst.error,
        limit,
        worst.where,
    )
