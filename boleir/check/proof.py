"""The exact check: closed form and sequential walk in rational arithmetic on random trees.

Both are rational functions of the inputs once every transcendental function is a fresh symbol, so
agreement at random rational points of many trees proves the identity as well as random evaluation
can, with no rounding to hide behind. The same points must tell every mutant apart.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from boleir.check.inputs import TREES, Shape, convolved, tree
from boleir.check.mutants import mutants
from boleir.derive.closed_form import ClosedForm
from boleir.ir import Input, Kind, Per
from boleir.oracle.closed import closed_form
from boleir.oracle.sequential import Walk, sequential
from boleir.oracle.values import Array, Exact

SHAPE = Shape(key_heads=1, value_heads=2, d_k=3, d_v=2)
NODES = 6


@dataclass(frozen=True, slots=True)
class Trial:
    """One random point: exact inputs on one tree, and what the recurrence makes of them."""

    tree: str
    parents: tuple[int, ...]
    inputs: dict[str, Array]
    weights: dict[str, Array]
    windows: dict[str, Array]
    state: Array
    field: Exact
    walk: Walk

    def disagreement(self, form: ClosedForm) -> str | None:
        """Where `form` differs from the recurrence, or None when everything is equal."""
        solution = closed_form(
            form,
            self.inputs,
            self.parents,
            self.state,
            weights=self.weights,
            windows=self.windows,
            field=self.field,
        )
        for node in range(len(self.parents)):
            if not np.array_equal(solution.output[node], self.walk.output[node]):
                return f"output of node {node}, tree {list(self.parents)}"
            if not np.array_equal(solution.commit(node), self.walk.states[node]):
                return f"commit of node {node}, tree {list(self.parents)}"
        return None


@dataclass(frozen=True, slots=True)
class Proof:
    """What the exact check found."""

    trials: int
    failure: str | None
    """The first disagreement of the form itself."""
    mutants: dict[str, bool]
    """Mistake -> whether some trial told it apart."""

    @property
    def passed(self) -> bool:
        """The form agreed everywhere, and no mistake did."""
        return self.failure is None and all(self.mutants.values())


def prove(
    form: ClosedForm,
    *,
    trees: int = 25,
    seed: int = 0,
    with_mutants: bool = True,
    progress: Callable[[str], None] | None = None,
) -> Proof:
    """Compare `form` with its recurrence at `trees` random points, then try the mutants."""
    failure = None
    points: list[Trial] = []
    for count, trial in enumerate(trials(form, trees, seed)):
        if progress is not None and count % 10 == 0:
            progress(f"exact arithmetic: tree {count + 1} of {trees}")
        points.append(trial)
        found = trial.disagreement(form)
        if found is not None:
            failure = found
            break
    seen = {}
    if with_mutants and failure is None:
        for name, broken in mutants(form):
            if progress is not None:
                progress(f"mutant: {name}")
            seen[name] = any(trial.disagreement(broken) is not None for trial in points)
    return Proof(len(points), failure, seen)


def trials(form: ClosedForm, count: int, seed: int = 0) -> Iterator[Trial]:
    """`count` random points, the kinds of trees in turn. A point at which the recurrence divides by
    zero is replaced by another one."""
    made = 0
    attempt = 0
    while made < count:
        rng = np.random.default_rng([seed, attempt])
        attempt += 1
        try:
            yield _trial(form, TREES[made % len(TREES)], rng, seed + attempt)
        except ZeroDivisionError:
            if attempt > 20 * (count + 1):
                raise
            continue
        made += 1


def _trial(form: ClosedForm, kind: str, rng: np.random.Generator, seed: int) -> Trial:
    parents = tree(kind, int(rng.integers(3, NODES + 1)), rng)
    field = Exact(seed)
    inputs = {x.name: _whole(rng, _size(x, len(parents))) for x in form.recurrence.inputs}
    weights: dict[str, Array] = {}
    windows: dict[str, Array] = {}
    for item, width in convolved(form):
        channels = int(np.prod(_size(item, 1)))
        weights[item.name] = _whole(rng, (channels, width))
        windows[item.name] = _whole(rng, (channels, width - 1))
    state = _whole(rng, (SHAPE.value_heads, SHAPE.d_k, SHAPE.d_v))
    walk = sequential(
        form.recurrence, inputs, parents, state, weights=weights, windows=windows, field=field
    )
    return Trial(kind, parents, inputs, weights, windows, state, field, walk)


def _whole(rng: np.random.Generator, size: tuple[int, ...]) -> Array:
    """Small whole numbers, none of them 0."""
    values = rng.integers(1, 4, size)
    return values * rng.choice([-1, 1], size)


def _size(item: Input, nodes: int) -> tuple[int, ...]:
    vector = {
        Kind.HEAD: (SHAPE.value_heads,),
        Kind.KEY: (SHAPE.key_heads, SHAPE.d_k),
        Kind.VALUE: (SHAPE.value_heads, SHAPE.d_v),
    }[item.kind]
    return (SHAPE.value_heads, *vector[1:]) if item.per is Per.HEAD else (nodes, *vector)
