"""Run in child processes under Triton's interpreter: decays per key channel against the walk."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import torch

import boleir
from boleir.check.inputs import Case, Shape
from boleir.trees import shapes
from tests.codegen.key_decays import TEXTS, UNSOLVED, WALKED
from tests.codegen.mutated_text import errors_of
from tests.paths import at_or_below
from tests.runtime.interpreted_kernels import SLOTS, TREES, one_round
from tests.runtime.kernel_harness import Batch, Harness, bits

DECAYS = (0.0, -0.03, -5.0, -20.0, -100.0)


def recurrence(name: str) -> Any:
    """A recurrence of the library, or one of the texts of the tests."""
    texts = TEXTS | WALKED | UNSOLVED
    if name in texts:
        return boleir.parse(texts[name])
    if name == "kda_bounded":
        return boleir.load_module("kda").recurrence(name)
    return boleir.load(name)


def harness(
    name: str, shape: list[int], schedule: dict[str, Any], nodes: int = 20, depth: int = 5
) -> Harness:
    """A kernel for one recurrence."""
    return Harness(
        recurrence(name), Shape(*shape), max_nodes=nodes, max_depth=depth, schedule=schedule
    )


def rounds_of_one(cases: list[list[Any]]) -> list[dict[str, Any]]:
    """One ragged round, verified and committed, for each [name, shape, schedule]."""
    return [one_round(harness(*case)) for case in cases]


def mixed_channels(name: str, schedule: dict[str, Any], gate: str) -> dict[str, float]:
    """Log decays from 0 to -100, drawn for every node and channel, on a chain and a tree; `gate` is
    the input that holds them."""
    made = harness(name, [1, 2, 32, 24], schedule, 40, 39)
    trees = [shapes.chain(40), shapes.random(40, seed=1, roots=3, max_depth=9)]
    drawn = made.samples(trees, [Case(keys="identical"), Case(keys="cosine")], 0)
    rng = np.random.default_rng(3)
    changed = []
    for request in drawn:
        assert request is not None
        values = rng.choice(DECAYS, size=request.inputs[gate].shape)
        changed.append(replace(request, inputs={**request.inputs, gate: values}))
    batch = made.batch(trees, [3, 1], samples=changed)
    return {"output": made.output_error(batch, made.verify(batch)[0])}


def given_decays(
    name: str, schedule: dict[str, Any], gate: str, values: list[float]
) -> dict[str, float]:
    """Log decays drawn from `values` for every node and channel, on a chain and a tree."""
    made = harness(name, [1, 2, 32, 24], schedule, 40, 39)
    trees = [shapes.chain(40), shapes.random(40, seed=1, roots=3, max_depth=9)]
    drawn = made.samples(trees, [Case(), Case(keys="cosine")], 0)
    rng = np.random.default_rng(4)
    changed = []
    for request in drawn:
        assert request is not None
        chosen = rng.choice(values, size=request.inputs[gate].shape)
        changed.append(replace(request, inputs={**request.inputs, gate: made.round(chosen, gate)}))
    batch = made.batch(trees, [3, 1], samples=changed)
    return {"output": made.output_error(batch, made.verify(batch)[0])}


def strong_sibling(name: str, schedule: dict[str, Any], gate: str) -> bool:
    """A branch whose decays leave the bounds of sums, beside one whose decays do not: it walks, and
    the other one keeps all its bits."""
    made = harness(name, [1, 1, 32, 20], schedule)
    tree = (-1, 0, 1, 0, 3, 4, 5)
    drawn = made.samples([tree], [Case()], 7)[0]
    assert drawn is not None
    outs = []
    for decay in (-0.5, -60.0, -1e6):
        values = np.full_like(drawn.inputs[gate], -0.5)
        values[3:] = decay
        request = replace(drawn, inputs={**drawn.inputs, gate: values})
        batch = made.batch([tree], [2], samples=[request])
        out = made.verify(batch)[0]
        if not made.output_error(batch, out) <= 2e-5:
            return False
        outs.append(bits(out[:3].clone()))
    return all(torch.equal(outs[0], x) for x in outs)


def rounded(cases: list[list[Any]]) -> list[dict[str, Any]]:
    """`rounds_of_one` with products in bfloat16 pieces as a GPU takes them."""
    from tests.runtime.rounding_interpreter import install

    install()
    return rounds_of_one(cases)


def uniform_decays(name: str, schedule: dict[str, Any]) -> dict[str, float]:
    """Identical keys under each decay in turn, and under all of them mixed over the nodes."""
    made = harness(name, [1, 1, 32, 24], schedule, 24, 9)
    report = {}
    for decay in (*DECAYS, "mixed"):
        tree = shapes.random(24, seed=2, roots=2, max_depth=9)
        batch = made.batch([tree], [1], cases=[Case(keys="identical", log_decay=decay)])
        report[str(decay)] = made.output_error(batch, made.verify(batch)[0])
    return report


def all_bits_of_a_word(name: str, schedule: dict[str, Any]) -> dict[str, float]:
    """A chain of 64, a star, a random forest: the last node is the sign bit of a word."""
    made = harness(name, [1, 1, 32, 16], schedule, 64, 63)
    trees = [shapes.chain(64), shapes.star(64), shapes.random(64, seed=5, roots=5)]
    batch = made.batch(trees, [2, 0, 1], cases=[Case(log_decay=-0.03)] * 3)
    out, factors = made.verify(batch)
    made.kernel.commit(factors, batch.slot_tensor([63] * 3), batch.pool, batch.slot_tensor())
    states = [
        made.state_error(batch, slot, drawn, 63)
        for slot, drawn in zip([2, 0, 1], batch.samples, strict=True)
        if drawn is not None
    ]
    return {"output": made.output_error(batch, out), "states": max(states)}


def many_blocks(cases: list[list[Any]]) -> list[dict[str, float]]:
    """A round of several node blocks for each [name, shape, schedule, nodes]."""
    return [_many_blocks(*case) for case in cases]


def _many_blocks(
    name: str, shape: list[int], schedule: dict[str, Any] | None, nodes: int
) -> dict[str, float]:
    """Ragged requests, one a padding row: outputs, and states committed beyond the first block."""
    made = harness(name, shape, schedule, nodes, 11)
    few = nodes - 9
    trees = [
        shapes.random(nodes, seed=5, max_depth=11), (-1,), shapes.random(few, seed=6, max_depth=9),
        shapes.random(few, seed=7, roots=4, max_depth=11), (),
    ]  # fmt: skip
    cases = [Case(keys="identical"), Case(), Case(), Case(keys="cosine", log_decay=-20.0), Case()]
    batch = made.batch(trees, [2, 0, -1, 3, 1], cases=cases)
    out, factors = made.verify(batch)
    report = {"output": made.output_error(batch, out)}
    ends = [nodes - 1, 0, 3, few - 1, 0]
    made.kernel.commit(factors, batch.slot_tensor(ends), batch.pool, batch.slot_tensor())
    for request in (0, 1, 3):
        drawn = batch.samples[request]
        assert drawn is not None
        slot, node = batch.slots[request], ends[request]
        report[f"state {request}"] = made.state_error(batch, slot, drawn, node)
    return report


def static_tree(name: str, schedule: dict[str, Any]) -> float:
    """A tree that is a constant of the kernel, and a chain that is one."""
    worst = 0.0
    for parents in (shapes.random(13, seed=4, roots=2, max_depth=4), shapes.chain(9)):
        made = Harness(
            recurrence(name), Shape(1, 2, 32, 16), max_nodes=0, max_depth=0,
            tree=boleir.parents(*parents), schedule=schedule,
        )  # fmt: skip
        batch = made.batch([parents, (), parents], [3, 1, 0])
        worst = max(worst, made.output_error(batch, made.verify(batch)[0]))
    return worst


def static_blocks(name: str, schedule: dict[str, Any]) -> float:
    """A tree of several blocks that is a constant of the kernel."""
    parents = shapes.random(39, seed=4, roots=2, max_depth=6)
    made = Harness(
        recurrence(name), Shape(1, 1, 32, 16), max_nodes=0, max_depth=0,
        tree=boleir.parents(*parents), schedule=schedule,
    )  # fmt: skip
    batch = made.batch([parents, (), parents], [3, 1, 0])
    return made.output_error(batch, made.verify(batch)[0])


def spoiled(
    name: str, schedule: dict[str, Any], tree: tuple[int, ...] = TREES[5]
) -> dict[str, bool]:
    """What is not finite in one node's inputs reaches its descendants, and changes no other bit.

    One channel of a key vector, all of a value vector: value tiles see their own channels. An
    infinite scalar may be the argument of a function that is finite there.
    """
    made = harness(name, [1, 1, 32, 20], schedule, max(20, len(tree)), 5)
    trees, tree, bad = [TREES[3], tuple(tree)], tuple(tree), 3
    whole = made.batch(trees, [4, 1])
    out = made.verify(whole)[0].clone()
    rows = slice(whole.cu[1], whole.cu[2])
    below = at_or_below(tree, bad)
    report = {}
    for item in made.kernel.interface.inputs:
        for value in ("nan", "inf") if item.kind != "head" else ("nan",):
            batch = made.batch(trees, [4, 1], samples=whole.samples)
            row = batch.inputs[item.name][rows.start + bad].view(-1)
            (row[-1:] if item.kind == "key" else row).fill_(float(value))
            report[f"{item.name} {value}"] = _spares(made, batch, rows, below, out)
    alone = made.batch([tree], [3], samples=[whole.samples[1]], pool_slots=4)
    report["alone"] = torch.equal(bits(made.verify(alone)[0]), bits(out[rows]))
    return report


def rounded_spoiled(name: str, schedule: dict[str, Any]) -> dict[str, bool]:
    """`spoiled` with products in bfloat16 pieces as a GPU takes them."""
    from tests.runtime.rounding_interpreter import install

    install()
    return spoiled(name, schedule)


def _spares(made: Harness, batch: Batch, rows: slice, below: list[bool], out: Any) -> bool:
    hit = torch.tensor(below)
    seen = made.verify(batch)[0]
    same = torch.equal(bits(seen[rows][~hit]), bits(out[rows][~hit]))
    others = torch.equal(bits(seen[: rows.start]), bits(out[: rows.start]))
    return same and others and bool(seen[rows][hit].isnan().all())


def launches(name: str, schedule: dict[str, Any]) -> dict[str, Any]:
    """Three launches with the same counters, of two requests, of one, of two again."""
    made = harness(name, [1, 2, 16, 20], schedule)
    space = made.kernel.workspace(3, 60)
    errors = []
    for trees in (TREES[3:5], TREES[3:4], TREES[4:6]):
        batch = made.batch(list(trees), [4, 1][: len(trees)])
        errors.append(made.output_error(batch, made.verify(batch, workspace=space)[0]))
    counters = next(x for x in space.layer(0).tensors if x.dtype == torch.int32)
    return {"output": max(errors), "counters": counters.tolist()}


def siblings(name: str, schedule: dict[str, Any]) -> bool:
    """A chain alone, and with branches that go deeper beside it: the same bits."""
    made = harness(name, [1, 1, 32, 20], schedule)
    chain, more = (-1, 0, 1), (-1, 0, 1, 0, 3, 4, 5)
    drawn = made.samples([more], [Case()], 7)[0]
    assert drawn is not None
    tokens = {item.name for item in made.kernel.interface.inputs}
    fewer = {n: x[:3] if n in tokens else x for n, x in drawn.inputs.items()}
    less = replace(drawn, parents=chain, inputs=fewer)
    outs = []
    for tree, request in ((chain, less), (more, drawn)):
        batch = made.batch([tree], [2], samples=[request])
        outs.append(made.verify(batch)[0][:3].clone())
    return torch.equal(bits(outs[0]), bits(outs[1]))


def rounds(name: str, schedule: dict[str, Any], count: int) -> dict[str, Any]:
    """Rounds of verify and commit against sequential decoding."""
    from tests.runtime.kernel_rounds import play

    return play(harness(name, [1, 2, 32, 16], schedule), count)


def mutants(
    name: str,
    schedule: dict[str, Any],
    mutations: dict[str, tuple[str, str]],
    trees: list[list[int]] | None = None,
    log_decay: float | str = -0.3,
) -> dict[str, float]:
    """Output errors after changes of the emitted text."""
    given = TREES if trees is None else trees

    def error() -> float:
        made = harness(name, [1, 2, 64, 16], schedule, max(20, *map(len, given)))
        case = Case(keys="cosine", log_decay=log_decay)
        batch = made.batch(given, SLOTS[: len(given)], cases=[case] * len(given))
        return made.output_error(batch, made.verify(batch)[0])

    return errors_of(mutations, error)
