"""Run in child processes under Triton's interpreter: the staged schedule against the walk."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import torch

import boleir
from boleir.check.inputs import Case, Shape
from boleir.trees import shapes
from tests.codegen.mutated_text import errors_of
from tests.codegen.staged_recurrences import TEXTS
from tests.paths import at_or_below
from tests.runtime.interpreted_kernels import SLOTS, TREES, one_round
from tests.runtime.kernel_harness import Batch, Harness, bits
from tests.runtime.rounding_interpreter import install

DECAYS = (0.0, -0.03, -5.0, -20.0, -100.0)


def harness(
    name: str, shape: list[int], schedule: dict[str, Any], nodes: int = 20, depth: int = 5
) -> Harness:
    """A kernel for one recurrence of the library or of the tests."""
    recurrence = boleir.parse(TEXTS[name]) if name in TEXTS else boleir.load(name)
    return Harness(recurrence, Shape(*shape), max_nodes=nodes, max_depth=depth, schedule=schedule)


def rounds_of_one(cases: list[list[Any]]) -> list[dict[str, Any]]:
    """A ragged round with a padding row, verified and committed, for each [name, shape,
    schedule]; errors of outputs and states, and whether memory kept its bits."""
    return [_round(harness(*case)) for case in cases]


def _round(made: Harness) -> dict[str, Any]:
    trees, slots = [TREES[5], TREES[2], TREES[1], TREES[3]], [4, -1, 2, 0]
    cases = [Case(), Case(), Case(), Case(keys="identical", log_decay=-0.03)]
    batch = made.batch(trees, slots, cases=cases)
    out, factors = made.verify(batch)
    report: dict[str, Any] = {"output": made.output_error(batch, out)}
    batch.out.expect(out)
    ends = batch.slot_tensor([9, 0, 0, 5])
    made.kernel.commit(factors, ends, batch.pool, batch.slot_tensor())
    first, last = batch.samples[0], batch.samples[3]
    assert first is not None and last is not None
    errors = [made.state_error(batch, 4, first, 9), made.state_error(batch, 0, last, 5)]
    report["windows"] = made.window_is(batch, 4, first, 9) and made.window_is(batch, 0, last, 5)
    for slot in (4, 0):
        batch.state.expect(batch.pool.state[slot])
        if batch.window is not None and batch.pool.window is not None:
            batch.window.expect(batch.pool.window[slot])
    changed = [name for name, kept in batch.intact().items() if not kept]
    return report | {"states": max(errors), "changed": changed}


def targets_and_tracks(name: str, schedule: dict[str, Any]) -> dict[str, Any]:
    """A whole ragged batch with other target slots and a track node."""
    return one_round(harness(name, [1, 2, 32, 24], schedule))


def strong_decays(name: str, schedule: dict[str, Any], gate: str) -> dict[str, float]:
    """Identical vectors; log decays from 0 to -100, all equal, mixed over the nodes, and drawn for
    every node and channel, which `gate` holds."""
    made = harness(name, [1, 1, 32, 24], schedule, 40, 39)
    report = {}
    for decay in (*DECAYS, "mixed"):
        tree = shapes.random(24, seed=2, roots=2, max_depth=9)
        batch = made.batch([tree], [1], cases=[Case(keys="identical", log_decay=decay)], seed=6)
        report[str(decay)] = made.output_error(batch, made.verify(batch)[0])
    trees = [shapes.chain(40), shapes.random(20, seed=1, roots=3, max_depth=9)]
    rng = np.random.default_rng(3)
    changed = []
    for request in made.samples(trees, [Case(keys="identical"), Case(keys="cosine")], 0):
        assert request is not None
        drawn = rng.choice(DECAYS, size=request.inputs[gate].shape)
        changed.append(replace(request, inputs={**request.inputs, gate: drawn}))
    batch = made.batch(trees, [3, 1], samples=changed)
    report["by channel"] = made.output_error(batch, made.verify(batch)[0])
    return report


def for_each(function: str, names: list[str], **arguments: Any) -> list[Any]:
    """A function of this module for several recurrences, in one process."""
    return [globals()[function](name, **arguments) for name in names]


def many_nodes(names: list[str], schedule: dict[str, Any]) -> list[dict[str, float]]:
    """More nodes than a block and an ancestor word hold, node 63 among the ancestors."""
    trees = (
        shapes.random(75, seed=5, max_depth=9),
        (-1,),
        (*shapes.star(63), 0, *[63] * 3, 64, 65),
    )
    reports = []
    for name in names:
        made = harness(name, [1, 1, 32, 20], schedule, 80, 9)
        batch = made.batch(trees, (2, 0, 1), cases=[Case(keys="cosine", log_decay=-0.03)] * 3)
        out, factors = made.verify(batch)
        ends = [74, 0, 67]
        made.kernel.commit(factors, batch.slot_tensor(ends), batch.pool, batch.slot_tensor())
        found = zip(batch.samples, batch.slots, ends, strict=True)
        states = [made.state_error(batch, s, x, n) for x, s, n in found if x is not None]
        reports.append({"output": made.output_error(batch, out), "states": max(states)})
    return reports


def static_tree(name: str, schedule: dict[str, Any]) -> float:
    """A tree that is a constant of the kernel, of two blocks, and a chain that is one."""
    worst = 0.0
    recurrence = boleir.parse(TEXTS[name]) if name in TEXTS else boleir.load(name)
    for parents in (shapes.random(20, seed=4, roots=2, max_depth=4), shapes.chain(9)):
        tree = boleir.parents(*parents)
        made = Harness(
            recurrence, Shape(1, 2, 32, 16), max_nodes=0, max_depth=0, tree=tree, schedule=schedule
        )
        batch = made.batch([parents, (), parents], [3, 1, 0])
        worst = max(worst, made.output_error(batch, made.verify(batch)[0]))
    return worst


def spoiled(name: str, schedule: dict[str, Any]) -> dict[str, bool]:
    """What is not finite in one node's inputs reaches its descendants in all channels, and changes
    no other bit; batch mates and slots change none either."""
    made = harness(name, [1, 1, 32, 20], schedule)
    trees, tree, bad = [TREES[3], TREES[5]], TREES[5], 3
    whole = made.batch(trees, [4, 1])
    out = made.verify(whole)[0].clone()
    rows = slice(whole.cu[1], whole.cu[2])
    below = at_or_below(tree, bad)
    report = {}
    for item in made.kernel.interface.inputs:
        for value in ("nan", "inf") if item.kind != "head" else ("nan",):
            batch = made.batch(trees, [4, 1], samples=whole.samples)
            batch.inputs[item.name][rows.start + bad].view(-1)[-1:].fill_(float(value))
            report[f"{item.name} {value}"] = _spares(made, batch, rows, below, out)
    alone = made.batch([tree], [3], samples=[whole.samples[1]], pool_slots=4)
    report["alone"] = torch.equal(bits(made.verify(alone)[0]), bits(out[rows]))
    return report


def _spares(made: Harness, batch: Batch, rows: slice, below: list[bool], out: Any) -> bool:
    hit = torch.tensor(below)
    seen = made.verify(batch)[0]
    same = torch.equal(bits(seen[rows][~hit]), bits(out[rows][~hit]))
    others = torch.equal(bits(seen[: rows.start]), bits(out[: rows.start]))
    return same and others and bool(seen[rows][hit].isnan().all())


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


def overflowing(name: str, schedule: dict[str, Any], gate: str) -> bool:
    """A gate that grows beyond float32 at one node: no bit of what is no descendant changes."""
    made = harness(name, [1, 1, 32, 20], schedule)
    tree, bad = TREES[5], 3
    whole = made.batch([tree], [1])
    out = made.verify(whole)[0].clone()
    batch = made.batch([tree], [1], samples=whole.samples)
    batch.inputs[gate][bad] = 300.0
    seen = made.verify(batch)[0]
    clean = ~torch.tensor(at_or_below(tree, bad))
    changed = not torch.equal(seen, out)
    return changed and torch.equal(bits(seen[clean]), bits(out[clean]))


def rounds(name: str, schedule: dict[str, Any], count: int) -> dict[str, Any]:
    """Rounds of verify and commit, two layers at once, against sequential decoding; rejected
    branches hold NaN in every other round."""
    from tests.runtime.kernel_rounds import play

    return play(harness(name, [1, 2, 32, 16], schedule), count)


def nothing_accepted(name: str, schedule: dict[str, Any]) -> list[str]:
    """Accepted nodes that are none: what changed in memory."""
    made = harness(name, [1, 2, 32, 16], schedule)
    batch = made.batch(TREES, SLOTS)
    out, factors = made.verify(batch)
    batch.out.expect(out)
    for accepted in ([-1] * 6, [9, 0, 1, 6, 1, 12]):
        made.kernel.commit(factors, batch.slot_tensor(accepted), batch.pool, batch.slot_tensor())
    return [name for name, kept in batch.intact().items() if not kept]


def mutants(
    name: str, schedule: dict[str, Any], mutations: dict[str, tuple[str, str]]
) -> dict[str, float]:
    """Output errors after changes of the emitted text."""

    def error() -> float:
        made = harness(name, [1, 2, 32, 16], schedule, 20)
        trees, slots = [(-1, 0), shapes.random(20, seed=2, max_depth=5)], [1, 0]
        batch = made.batch(trees, slots, cases=[Case(keys="cosine", log_decay=-0.3)] * 2)
        return made.output_error(batch, made.verify(batch)[0])

    return errors_of(mutations, error)


def grown_apart(names: list[str]) -> dict[str, float]:
    """Errors with products in bfloat16 pieces, as on a GPU, where decays per value channel above
    one let some channels grow far above the others: an output is as good as these few are."""
    install()
    errors = {}
    for name in names:
        recurrence, shape = boleir.parse(TEXTS[name]), Shape(1, 2, 64, 96)
        schedule = {"fusion": "staged", "b_v": 32, "b_k": 32, "node_block": 64}
        made = Harness(
            recurrence, shape, max_nodes=33, max_depth=8, schedule=schedule, dtype="bfloat16",
            out_dtype="float32",
        )  # fmt: skip
        trees = [
            shapes.random(33, seed=1, max_depth=8),
            shapes.random(32, seed=2, roots=3, max_depth=8),
        ]
        case = Case(keys="identical", strength=1.0)
        batch = made.batch(trees, [5, 2], cases=[Case(), case], seed=1)
        errors[name] = made.output_error(batch, made.verify(batch)[0])
    return errors
