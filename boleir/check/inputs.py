"""Adversarial inputs for any recurrence, by driving what the derivation found.

A case names a tree, how the vectors that address the state relate to each other, a write strength
and a log decay. Strength and decay are *derived* quantities: the scalar of the erase vectors and
the logarithm of the decay. `sample` finds, for each node and head, the value of one input that
brings the quantity to its target by bisection (the quantities are monotone in their gate inputs); a
target out of reach, like a sigmoid at 2, is approached as far as the recurrence allows."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from boleir.check.driving import decay_driver, drive, erase_driver
from boleir.derive.closed_form import ClosedForm
from boleir.ir import Conv, Expr, Input, Kind, Per, walk
from boleir.oracle.values import Array
from boleir.trees import shapes

TREES = ("random", "chain", "star", "caterpillar", "balanced", "roots", "permuted")
KEYS = ("random", "identical", "cosine", "zero")
STRENGTHS: tuple[float | None, ...] = (None, 0.0, 1.0, 2.0)
LOG_DECAYS: tuple[float | str | None, ...] = (None, 0.0, -0.03, -5.0, -20.0, -100.0, "mixed")
COSINE = 0.9


@dataclass(frozen=True, slots=True)
class Shape:
    """Heads and head sizes; small and unequal by default, so that mixed-up axes show."""

    key_heads: int = 2
    value_heads: int = 4
    d_k: int = 12
    d_v: int = 7


@dataclass(frozen=True, slots=True)
class Case:
    """One kind of input. None leaves a quantity to chance."""

    tree: str = "random"
    keys: str = "random"
    strength: float | None = None
    log_decay: float | str | None = None

    @property
    def name(self) -> str:
        """Short and unique: usable as a test id."""
        parts = [self.tree, self.keys]
        if self.strength is not None:
            parts.append(f"beta{self.strength:g}")
        if self.log_decay is not None:
            tail = f"{self.log_decay:g}" if isinstance(self.log_decay, float) else self.log_decay
            parts.append(f"g{tail}")
        return "-".join(parts)


def cases(form: ClosedForm | None = None) -> tuple[Case, ...]:
    """Every relation of keys with every strength and decay, the trees taken in turn; then every
    tree with the two relations that break unstable solvers.

    With a `form`, only those that differ for it: a strength or a decay that no input moves is left
    out.
    """
    driven = form is None or any(True for _ in erase_driver(form))
    strengths = STRENGTHS if driven else STRENGTHS[:1]
    decays = LOG_DECAYS if form is None or decay_driver(form) is not None else LOG_DECAYS[:1]
    trees = itertools.cycle(TREES)
    found = [
        Case(next(trees), keys, strength, decay)
        for keys, strength, decay in itertools.product(KEYS, strengths, decays)
    ]
    found += [
        Case(tree, keys, strengths[-2] if driven else None, -0.03 if len(decays) > 1 else None)
        for tree in TREES
        for keys in ("identical", "cosine")
    ]
    return tuple(dict.fromkeys(found))


@dataclass(frozen=True, slots=True)
class Sample:
    """Arrays of one request for one case; the arguments of the oracles under their own names."""

    case: Case
    shape: Shape
    inputs: dict[str, Array]
    """Token HEAD [T, HV], KEY [T, H, d_k], VALUE [T, HV, d_v]; parameters without T; float64."""
    weights: dict[str, Array]
    """Convolution taps by input name, [channels, width], the last tap is the token itself."""
    windows: dict[str, Array]
    """Committed inputs before the tree by input name, [channels, width - 1], most recent last."""
    parents: tuple[int, ...]
    state: Array
    """S_pre, [HV, d_k, d_v]."""
    accepted: int
    """A node for commits: the deepest of the tree, or -1 without nodes."""

    @property
    def arguments(self) -> dict[str, Any]:
        """What `sequential` and `closed_form` take besides the recurrence or the form."""
        return {
            "inputs": self.inputs,
            "parents": self.parents,
            "state": self.state,
            "weights": self.weights,
            "windows": self.windows,
        }


def round_bf16(values: Array) -> Array:
    """Nearest bfloat16 values (ties to even), as float64."""
    bits = np.ascontiguousarray(values, dtype=np.float32).view(np.uint32)
    rounded = (bits + 0x7FFF + ((bits >> 16) & 1)) & np.uint32(0xFFFF0000)
    return rounded.view(np.float32).astype(np.float64)


def tree(name: str, nodes: int, rng: np.random.Generator) -> tuple[int, ...]:
    """Parents of a tree of `nodes` nodes by the name of its kind."""
    seed = int(rng.integers(2**31))
    match name:
        case "chain":
            return shapes.chain(nodes)
        case "star":
            return shapes.star(nodes)
        case "caterpillar":
            return shapes.caterpillar(max(1, (nodes + 1) // 2), 1)[:nodes]
        case "balanced":
            return shapes.balanced(2, max(0, nodes.bit_length()))[:nodes]
        case "roots":
            return shapes.random(nodes, seed=seed, roots=min(nodes, 3))
        case "permuted":
            return permuted(shapes.balanced(3, 5)[:nodes], rng)
        case "random":
            return shapes.random(nodes, seed=seed)
    raise ValueError(f"unknown tree '{name}': use one of {', '.join(TREES)}")


def permuted(parents: Sequence[int], rng: np.random.Generator) -> tuple[int, ...]:
    """The same tree with its nodes numbered in another random order, parents still first."""
    weights = rng.random(len(parents))
    for node, parent in enumerate(parents):
        if parent >= 0:
            weights[node] = weights[parent] + weights[node]
    order = np.argsort(weights, kind="stable")
    place = {int(node): n for n, node in enumerate(order)}
    return tuple(-1 if parents[node] < 0 else place[parents[node]] for node in order.tolist())


def sample(
    form: ClosedForm,
    case: Case,
    shape: Shape | None = None,
    *,
    nodes: int = 17,
    seed: int = 0,
    rounding: Callable[[Array], Array] | None = None,
    parents: Sequence[int] | None = None,
) -> Sample:
    """Inputs for `case`. `rounding` (such as `round_bf16`) is applied to all token inputs and to
    the convolution, so that an oracle sees what a kernel sees; `parents` replaces the tree of the
    case."""
    shape = shape or Shape()
    rng = np.random.default_rng([seed, *case.name.encode()])
    given = tuple(int(p) for p in parents) if parents is not None else tree(case.tree, nodes, rng)
    made = _Maker(form, shape, given, rng)
    made.relate_keys(case.keys)
    made.drive_strength(case.strength)
    made.drive_decay(case.log_decay)
    result = made.sample(case)
    if rounding is None:
        return result
    tokens = {x.name for x in form.recurrence.tokens}
    return replace(
        result,
        inputs={n: rounding(x) if n in tokens else x for n, x in result.inputs.items()},
        weights={n: rounding(x) for n, x in result.weights.items()},
        windows={n: rounding(x) for n, x in result.windows.items()},
    )


@dataclass(slots=True)
class _Maker:
    """Builds a sample step by step."""

    form: ClosedForm
    shape: Shape
    parents: tuple[int, ...]
    rng: np.random.Generator
    inputs: dict[str, Array] = field(default_factory=dict)
    weights: dict[str, Array] = field(default_factory=dict)
    windows: dict[str, Array] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for item in self.form.recurrence.inputs:
            scale = 0.5 if item.per is Per.HEAD else 1.0
            drawn = scale * self.rng.normal(size=self._size(item))
            if item.per is Per.HEAD and item.kind is Kind.KEY:
                # of a key head, whose value heads have to agree about it
                group = self.shape.value_heads // self.shape.key_heads
                drawn = np.repeat(drawn[::group], group, axis=0)
            self.inputs[item.name] = drawn
        for item, width in convolved(self.form):
            channels = int(np.prod(self._size(item)[1:]))
            self.weights[item.name] = self.rng.normal(size=(channels, width)) / np.sqrt(width)
            self.windows[item.name] = self.rng.normal(size=(channels, width - 1))

    def _size(self, item: Input) -> tuple[int, ...]:
        shape = self.shape
        vector = {
            Kind.HEAD: (shape.value_heads,),
            Kind.KEY: (shape.key_heads, shape.d_k),
            Kind.VALUE: (shape.value_heads, shape.d_v),
        }[item.kind]
        if item.per is Per.HEAD:  # parameters come per value head, whatever their kind
            return (shape.value_heads, *vector[1:])
        return (len(self.parents), *vector)

    def relate_keys(self, how: str) -> None:
        """Make the vectors that address the state identical, near-collinear, or every other
        zero."""
        if how not in KEYS:
            raise ValueError(f"unknown relation '{how}': use one of {', '.join(KEYS)}")
        for item in addressing(self.form):
            values = self.inputs[item.name]
            base = self.rng.normal(size=values.shape[1:])
            if how == "zero":
                values[1::2] = 0.0
            elif how != "random":
                values[...] = self._related(base, values, how)
                window = self.windows.get(item.name)
                if window is not None:
                    past = np.moveaxis(window, -1, 0).reshape(-1, *values.shape[1:])
                    related = self._related(base, past, how)
                    window[...] = np.moveaxis(related.reshape(past.shape[0], -1), 0, -1)

    def _related(self, base: Array, noise: Array, how: str) -> Array:
        """Copies of `base`, or vectors of its length with pairwise cosine COSINE on average."""
        if how == "identical":
            return np.broadcast_to(base, noise.shape)
        length = np.linalg.norm(base, axis=-1, keepdims=True)
        own = noise / np.linalg.norm(noise, axis=-1, keepdims=True) * length
        return np.sqrt(COSINE) * base + np.sqrt(1 - COSINE) * own

    def drive_strength(self, target: float | None) -> None:
        """Bring the scalar of every erase vector to `target`."""
        if target is not None:
            for driver in erase_driver(self.form):
                drive(driver, self._values(), np.float64(target))

    def drive_decay(self, target: float | str | None) -> None:
        """Bring the log decay to `target`, or to a mixture of all of them over the nodes."""
        driver = decay_driver(self.form)
        if driver is None:
            return
        if target is None:
            if not self.form.assumptions:
                return
            goal: Array = -np.abs(self.rng.normal(size=(len(self.parents), 1, 1)))
        elif target == "mixed":
            numbers = [x for x in LOG_DECAYS if isinstance(x, float)]
            goal = self.rng.choice(numbers, size=(len(self.parents), 1, 1))
        else:
            goal = np.float64(target)
        drive(driver, self._values(), goal)

    def _values(self) -> dict[str, Any]:
        return {
            "inputs": self.inputs,
            "parents": self.parents,
            "dims": (self.shape.d_k, self.shape.d_v),
            "weights": self.weights,
            "windows": self.windows,
        }

    def sample(self, case: Case) -> Sample:
        shape = self.shape
        state = self.rng.normal(size=(shape.value_heads, shape.d_k, shape.d_v))
        depth: list[int] = []
        for parent in self.parents:
            depth.append(0 if parent < 0 else depth[parent] + 1)
        accepted = int(np.argmax(depth)) if depth else -1
        return Sample(
            case, shape, self.inputs, self.weights, self.windows, self.parents, state, accepted
        )


def convolved(form: ClosedForm) -> list[tuple[Input, int]]:
    """Inputs that pass a causal convolution, with its width."""
    recurrence = form.recurrence
    nodes = walk(recurrence.update, *recurrence.outputs)
    found = [(x.arg, x.width) for x in nodes if isinstance(x, Conv) and isinstance(x.arg, Input)]
    return sorted(found, key=lambda item: item[0].name)


def addressing(form: ClosedForm) -> list[Input]:
    """Token vectors that the writes and erases are made of (KEY; VALUE when right acting)."""
    kind = Kind.VALUE if form.normal.side == "right" else Kind.KEY
    vectors: list[Expr] = [pair.write for pair in form.normal.pairs]
    vectors += [pair.erase.vector for pair in form.normal.pairs]
    vectors += [write.key for write in form.normal.writes]
    return _inputs(vectors, lambda x: x.kind is kind and x.per is Per.TOKEN)


def _inputs(exprs: Sequence[Expr], wanted: Callable[[Input], bool]) -> list[Input]:
    found: Iterator[Input] = (x for x in walk(*exprs) if isinstance(x, Input) and wanted(x))
    return list(dict.fromkeys(found))
