"""Run in child processes under Triton's interpreter: verification and commit, one JSON report each.

The interpreter computes in float32 here (it has no usable bfloat16); what is tested is everything
but the precision plan: indexing, masks, trees, solvers, layouts.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch

import boleir
from boleir.check.inputs import Case, Shape
from boleir.errors import LaunchError
from boleir.runtime.pool import PoolLayer
from boleir.runtime.workspace import Workspace
from boleir.trees import shapes
from tests.codegen.several_outputs import TEXTS
from tests.paths import at_or_below
from tests.runtime.kernel_harness import Batch, Harness, bits

TREES = (
    (-1, 0, 0, 1, 1, 2, -1, 6, 3),
    (),
    (-1, 0, 1),
    (-1, 0, 1, 2, 3, 4),
    (-1,),
    (-1, -1, 1, 0, 2, 3, 3, 5, 0, 4, 7, 1),
)
"""Two roots and branches; empty; a padding row; a chain; a single node; several roots, mixed up."""
SLOTS = (4, 2, -1, 6, 0, 1)
CASES = (
    Case(),
    Case(),
    Case(),
    Case(keys="identical", log_decay=-0.03),
    Case(),
    Case(keys="cosine", log_decay=-5.0),
)
NODES, DEPTH = 20, 5
INVARIANT = ("k", "v", "a")
"""Inputs that carry a NaN in turn: a key, a value and a gate."""


def harness(recurrence: str, schedule: dict[str, Any] | None, shape: list[int]) -> Harness:
    """A kernel for trees of up to 20 nodes and depth 5."""
    given = boleir.parse(TEXTS[recurrence]) if recurrence in TEXTS else recurrence
    return Harness(given, Shape(*shape), max_nodes=NODES, max_depth=DEPTH, schedule=schedule)


def verify_and_commit(
    recurrence: str, schedules: list[dict[str, Any] | None], shape: list[int]
) -> list[dict[str, Any]]:
    """One round for each schedule: errors, and whether everything else kept its bits."""
    return [one_round(harness(recurrence, schedule, shape)) for schedule in schedules]


def one_round(made: Harness) -> dict[str, Any]:
    batch = made.batch(TREES, SLOTS, cases=CASES)
    out, factors = made.verify(batch)
    report: dict[str, Any] = {"output": made.output_error(batch, out)}
    batch.out.expect(out)
    report["verify changed"] = [name for name, kept in batch.intact().items() if not kept]
    report |= _commit(made, batch, factors)
    return report


def _commit(made: Harness, batch: Batch, factors: Any) -> dict[str, Any]:
    """Accept nodes, an empty request, a padding row, another target, a track node, nothing."""
    accepted = [8, 0, 2, 3, 7, 9]  # request 4 has one node, so 7 is out of range
    targets = [4, 2, 2, 5, 0, 1]
    track_nodes = [1, 0, 1, -1, 0, 7]
    track_slots = [3, -1, -1, -1, -1, -1]
    made.kernel.commit(
        factors,
        batch.slot_tensor(accepted),
        batch.pool,
        batch.slot_tensor(),
        target_slots=batch.slot_tensor(targets),
        track_nodes=batch.slot_tensor(track_nodes),
        track_slots=batch.slot_tensor(track_slots),
    )
    errors, windows = [], []
    for request, slot, node in ((0, 4, 8), (0, 3, 1), (3, 5, 3), (5, 1, 9)):
        drawn = batch.samples[request]
        assert drawn is not None
        errors.append(made.state_error(batch, slot, drawn, node))
        windows.append(made.window_is(batch, slot, drawn, node))
        batch.state.expect(batch.pool.state[slot])
        if batch.window is not None and batch.pool.window is not None:
            batch.window.expect(batch.pool.window[slot])
    changed = [name for name, kept in batch.intact().items() if not kept]
    return {"states": max(errors), "windows": all(windows), "commit changed": changed}


def library(names: list[str], schedules: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """`verify_and_commit` for several recurrences."""
    return [
        {"recurrence": name, **report}
        for name in names
        for report in verify_and_commit(name, schedules, [1, 2, 32, 16])
    ]


def far_decays(shape: list[int]) -> dict[str, float]:
    """Log decays from 0 to -100 mixed along a chain of 40."""
    made = Harness("gated_delta_rule", Shape(*shape), max_nodes=40, max_depth=39)
    batch = made.batch([shapes.chain(40)], [1], cases=[Case(log_decay="mixed")])
    return {"output": made.output_error(batch, made.verify(batch)[0])}


def too_shallow(shape: list[int]) -> dict[str, float]:
    """Identical keys on a chain of six: five sweeps solve it, four do not."""
    exact, cut = (
        Harness("delta_rule", Shape(*shape), max_nodes=NODES, max_depth=depth) for depth in (5, 4)
    )
    batch = exact.batch([TREES[3]], [1], cases=[Case(keys="identical", strength=1.0)])
    errors = {"exact": exact.output_error(batch, exact.verify(batch)[0])}
    # The bound is what makes a kernel right: a batch that lies about it gets wrong outputs.
    lying = replace(batch, tree=replace(batch.tree, max_depth=4))
    return errors | {"cut": exact.output_error(batch, cut.verify(lying)[0])}


def many_nodes(recurrence: str, schedules: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Requests of up to 75 nodes, two ancestor words, committed beyond the first."""
    trees = (
        shapes.random(75, seed=5, max_depth=9),
        (-1,),
        shapes.random(66, seed=6, roots=4, max_depth=9),
    )
    reports = []
    for schedule in schedules:
        made = Harness(
            recurrence, Shape(1, 1, 32, 16), max_nodes=80, max_depth=9, schedule=schedule
        )
        batch = made.batch(trees, (2, 0, 1), cases=[Case(keys="cosine", log_decay=-0.03)] * 3)
        out, factors = made.verify(batch)
        ends = [74, 0, 65]
        made.kernel.commit(factors, batch.slot_tensor(ends), batch.pool, batch.slot_tensor())
        found = zip(batch.samples, batch.slots, ends, strict=True)
        states = [made.state_error(batch, s, x, n) for x, s, n in found if x is not None]
        reports.append({"output": made.output_error(batch, out), "states": max(states)})
    return reports


def static_tree(shape: list[int]) -> dict[str, Any]:
    """A kernel for one tree of two blocks: its outputs, and what it says about another tree."""
    parents = shapes.random(20, seed=3, roots=2, max_depth=5)
    blocks = {"precision": "ieee", "b_v": 16, "b_k": 32, "node_block": 16}
    made = Harness(
        "gdn",
        Shape(*shape),
        max_nodes=0,
        max_depth=0,
        tree=boleir.parents(*parents),
        schedule=blocks,
    )
    batch = made.batch([parents, (), parents], [3, 1, 0])
    out, _ = made.verify(batch)
    again = made.kernel.tree_batch(requests=2)
    assert again.trees()[1].parents == parents
    error = made.output_error(batch, out)
    try:
        made.verify(made.batch([parents, (-1, -1, -1)], [3, 1]))
    except LaunchError as refused:
        return {"output": error, "refused": str(refused)}
    return {"output": error, "refused": ""}


def half_states(shape: list[int]) -> dict[str, float]:
    """States in float16, everything else in float32."""
    made = Harness("gdn", Shape(*shape), max_nodes=NODES, max_depth=DEPTH, state_dtype="float16")
    batch = made.batch(TREES, SLOTS, cases=CASES)
    out, factors = made.verify(batch)
    ends = batch.slot_tensor([8, -1, -1, 5, 0, 11])
    made.kernel.commit(factors, ends, batch.pool, batch.slot_tensor())
    drawn = batch.samples[5]
    assert drawn is not None
    return {
        "output": made.output_error(batch, out),
        "states": made.state_error(batch, 1, drawn, 11),
    }


def nothing_accepted(recurrence: str, shape: list[int]) -> dict[str, Any]:
    """Accepted nodes that are none: no bit of the pool may change."""
    made = harness(recurrence, None, shape)
    batch = made.batch(TREES, SLOTS, cases=CASES)
    out, factors = made.verify(batch)
    batch.out.expect(out)
    for accepted in ([-1] * 6, [9, 0, 1, 6, 1, 12], [-7, 1 << 30, -(1 << 31), 64, 99, 20]):
        made.kernel.commit(factors, batch.slot_tensor(accepted), batch.pool, batch.slot_tensor())
    return {"changed": [name for name, kept in batch.intact().items() if not kept]}


def invariance(recurrence: str, schedules: list[dict[str, Any] | None], shape: list[int]) -> Any:
    """NaN in one node reaches its descendants only; batch mates and slots change no bit."""
    return [_invariance(harness(recurrence, schedule, shape)) for schedule in schedules]


def _invariance(made: Harness) -> dict[str, bool]:
    whole = made.batch(TREES, SLOTS, cases=CASES)
    out = made.verify(whole)[0].clone()
    tree, rows = TREES[5], slice(whole.cu[5], whole.cu[6])
    report = {}
    bad = 3
    for name in INVARIANT:
        batch = made.batch(TREES, SLOTS, samples=whole.samples)
        batch.inputs[name][batch.cu[5] + bad] = float("nan")
        seen = made.verify(batch)[0][rows]
        hit = at_or_below(tree, bad)
        report[f"{name} hits descendants"] = bool(seen[hit].isnan().all())
        clean = [not x for x in hit]
        report[f"{name} spares others"] = torch.equal(seen[clean], out[rows][clean])
    alone = made.batch([TREES[5]], [3], samples=[whole.samples[5]], pool_slots=4)
    report["alone"] = torch.equal(made.verify(alone)[0], out[rows])
    return report


def rounds(
    recurrence: str, schedule: dict[str, Any] | None, shape: list[int], count: int
) -> dict[str, Any]:
    """Verify and commit `count` rounds in two layers at once, against the walk of what was
    accepted; rejected branches hold NaN in every other round."""
    from tests.runtime.kernel_rounds import play

    return play(harness(recurrence, schedule, shape), count)


def surroundings(shape: list[int]) -> dict[str, Any]:
    """Inputs as engines have them: packed projections, a leading axis, no workspace."""
    made = harness("gdn", None, shape)
    batch = made.batch(TREES, SLOTS, cases=CASES)
    plain = made.verify(batch)[0].clone()
    face = made.kernel.interface
    items = [x for x in face.inputs if x.kind != "head"]
    widths = [x.channels for x in items]
    rows = [batch.inputs[x.name].reshape(-1, x.channels) for x in items]
    split = torch.cat(rows, dim=1).split(widths, dim=1)
    views = {x.name: view for x, view in zip(items, split, strict=True)}
    shaped = {x.name: views[x.name].unflatten(1, x.shape)[None] for x in items}
    call = (batch.pool, batch.slot_tensor())
    led, _ = made.kernel.verify(batch.tree, {**batch.inputs, **shaped}, *call)
    flat, _ = made.kernel.verify(batch.tree, {**batch.inputs, **views}, *call)
    return {
        "leading shape": list(led.shape),
        "leading": torch.equal(led[0], plain),
        "flat": torch.equal(flat, plain),
    }


POOL = ("states", "windows", "recorded tokens", "pending counts")
"""What a layer of a pool keeps."""


def compiled_region(shape: list[int], recurrence: str = "gdn") -> dict[str, Any]:
    """Two layers and a commit inside torch.compile: one graph, the same bits as outside."""
    made = harness(recurrence, None, shape)
    kernel, room = made.kernel, 40
    layers = [made.batch(TREES, SLOTS, cases=CASES, seed=seed) for seed in (0, 50)]
    accepted, slots = layers[0].slot_tensor([8, 0, 2, 3, 7, 9]), layers[0].slot_tensor()
    tree = layers[0].tree

    def step(
        pools: list[PoolLayer], inputs: list[dict[str, torch.Tensor]], space: Workspace
    ) -> list[torch.Tensor]:
        outs, factors = [], []
        for layer, (pool, given) in enumerate(zip(pools, inputs, strict=True)):
            out, kept = kernel.verify(tree, given, pool, slots, workspace=space, layer=layer)
            outs += [one * 2 for one in (out if isinstance(out, tuple) else (out,))]
            factors.append(kept)
        kernel.commit(factors, accepted, pools, slots)
        return outs

    seen = []
    for function in (step, torch.compile(step, backend="aot_eager", fullgraph=True)):
        pools = [
            PoolLayer(x.pool.state.clone(), None if x.window is None else x.pool.tensors[1].clone())
            for x in layers
        ]
        outs = function(pools, [x.inputs for x in layers], kernel.workspace(6, room, 2))
        named = {f"output {layer}": out for layer, out in enumerate(outs)}
        for layer, pool in enumerate(pools):
            named |= {f"{what} {layer}": t for what, t in zip(POOL, pool.tensors, strict=True)}
        seen.append(named)
    eager, compiled = seen
    return {
        "equal": {name: torch.equal(bits(x), bits(compiled[name])) for name, x in eager.items()}
    }
