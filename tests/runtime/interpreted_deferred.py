"""Run in child processes under Triton's interpreter: deferred commits beside ordinary ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from boleir.check.inputs import Case, Shape
from boleir.errors import LaunchError
from boleir.runtime.pool import StatePool
from boleir.trees import shapes
from tests.runtime.kernel_harness import Batch, Harness, bits, poison
from tests.runtime.kernel_rounds import spoil

LAYERS, SLOTS, NODES, DEPTH = 2, 4, 10, 4


def pair(recurrence: str, schedule: dict[str, Any], shape: list[int], **options: Any) -> Any:
    """The same kernel with an ordinary and with a deferred commit."""
    return [
        Harness(
            recurrence, Shape(*shape), max_nodes=NODES, max_depth=DEPTH,
            schedule={**schedule, "commit": commit}, **options,
        )
        for commit in ("replay", "deferred")
    ]  # fmt: skip


class Sides:
    """Two kernels, their pools and workspaces, and the same calls for both."""

    def __init__(self, made: list[Harness], seed: int) -> None:
        self.made, self.rng = made, np.random.default_rng(seed)
        self.pools = [one.kernel.pool(SLOTS, LAYERS) for one in made]
        self.spaces = [one.kernel.workspace(SLOTS, SLOTS * NODES, LAYERS) for one in made]
        for layer in range(LAYERS):
            state = torch.as_tensor(self.rng.normal(size=self.pools[0].layer(0).state.shape))
            for pool in self.pools:
                pool.layer(layer).state.copy_(state)
        self.kept: dict[int, Any] = {}
        self.report = {"output": True, "state": True, "window": True}

    def batch(self, layer: int, trees: Any, slots: list[int], seed: int) -> Batch:
        """Inputs of one layer; parameters and weights stay those of its first round."""
        case = Case(log_decay=-0.3)
        drawn = self.made[0].samples(trees, [case] * len(trees), seed)
        found = self.made[0].batch(trees, slots, samples=drawn, pool_slots=SLOTS)
        face = self.made[0].kernel.interface
        fixed = [item.name for item in face.parameters] + ["conv_weight"] * bool(face.conv_channels)
        known = self.kept.setdefault(layer, {name: found.inputs[name] for name in fixed})
        found.inputs.update(known)
        return found

    def round(self, turn: int) -> None:
        """A batch of some slots in some order, verified once or twice, and committed."""
        rng = self.rng
        slots = [*rng.permutation(SLOTS)[: int(rng.integers(1, SLOTS))].tolist(), -1]
        sizes = [int(rng.integers(1, NODES)) for _ in slots]
        trees = [shapes.random(n, seed=int(rng.integers(1 << 30)), max_depth=DEPTH) for n in sizes]
        accepted = [int(rng.integers(-1, n + (turn % 3 == 0))) for n in sizes]
        layers = [self.batch(layer, trees, slots, 1000 * turn + layer) for layer in range(LAYERS)]
        outs = []
        for made, pool, space in zip(self.made, self.pools, self.spaces, strict=True):
            factors: list[Any] = []
            for layer, batch in enumerate(layers):
                if turn % 2:
                    known = [a if a < n else -1 for a, n in zip(accepted, sizes, strict=True)]
                    spoil(batch.inputs, made, batch.cu, trees, known)
                poison(space.layer(layer).tensors)
                for _ in range(1 + (turn % 4 == 3)):
                    out, kept = made.kernel.verify(
                        layers[0].tree, batch.inputs, pool.layer(layer), batch.slot_tensor(),
                        workspace=space, layer=layer,
                    )  # fmt: skip
                outs.append(out)
                factors.append(kept)
            ends = layers[0].slot_tensor(accepted)
            made.kernel.commit(factors, ends, pool, layers[0].slot_tensor())
        for batch in layers:  # what was recorded no longer depends on inputs
            for item in self.made[0].kernel.interface.inputs:
                batch.inputs[item.name].fill_(float("nan"))
        for ours, theirs in zip(outs[:LAYERS], outs[LAYERS:], strict=True):
            self.report["output"] &= torch.equal(bits(ours), bits(theirs))

    def compare(self, slots: list[int]) -> None:
        """States and windows of some slots, which must be up to date."""
        for layer in range(LAYERS):
            ours, theirs = (pool.layer(layer) for pool in self.pools)
            at = torch.tensor(slots)
            self.report["state"] &= torch.equal(bits(ours.state[at]), bits(theirs.state[at]))
            if ours.window is not None and theirs.window is not None:
                self.report["window"] &= torch.equal(bits(ours.window), bits(theirs.window))


def rounds(
    recurrence: str, schedules: list[dict[str, Any]], shape: list[int], count: int
) -> list[dict[str, bool]]:
    """Batches that change from round to round, NaN in rejected nodes, flushes now and then."""
    reports = []
    for schedule in schedules:
        sides = Sides(pair(recurrence, schedule, shape), seed=len(reports))
        kernel, pool = sides.made[1].kernel, sides.pools[1]
        for turn in range(count):
            sides.round(turn)
            if turn % 3 == 1:
                some = sides.rng.permutation(SLOTS)[:2].tolist()
                kernel.flush(pool, torch.tensor([*some, -1], dtype=torch.int32))
                sides.compare(some)
        kernel.flush(pool)
        sides.compare(list(range(SLOTS)))
        kernel.flush(pool)
        sides.compare(list(range(SLOTS)))
        reports.append(sides.report)
    return reports


def half_states(schedule: dict[str, Any], shape: list[int]) -> dict[str, bool]:
    """States in float16: the walk goes on from what would have been stored."""
    sides = Sides(pair("gdn", schedule, shape, state_dtype="float16"), seed=3)
    for turn in range(4):
        sides.round(turn)
    sides.made[1].kernel.flush(sides.pools[1])
    sides.compare(list(range(SLOTS)))
    return sides.report


def now(schedule: dict[str, Any], shape: list[int]) -> dict[str, bool]:
    """An ordinary commit by a kernel that could defer it, to another slot and with a track node."""
    sides = Sides(pair("gdn", schedule, shape), seed=4)
    trees, slots = [(-1, 0, 1, 1), (-1, 0, 0)], [1, 3]
    batch = sides.batch(0, trees, slots, 7)
    for made, pool, space in zip(sides.made, sides.pools, sides.spaces, strict=True):
        found = []
        for layer in range(LAYERS):
            found.append(
                made.kernel.verify(
                    batch.tree, batch.inputs, pool.layer(layer), batch.slot_tensor(),
                    workspace=space, layer=layer,
                )[1]
            )  # fmt: skip
        made.kernel.commit(
            found, batch.slot_tensor([3, 2]), pool, batch.slot_tensor(),
            target_slots=batch.slot_tensor([1, 2]), track_nodes=batch.slot_tensor([0, -1]),
            track_slots=batch.slot_tensor([0, -1]), now=True,
        )  # fmt: skip
    sides.compare([0, 1, 2])
    return sides.report


def misuse(schedule: dict[str, Any], shape: list[int]) -> list[str]:
    """What is said about calls that would lose an update, or read a state before it."""
    eager, deferred = pair("gdn", schedule, shape)
    said: list[str] = []

    def refused(call: Any) -> None:
        try:
            call()
        except LaunchError as error:
            said.append(str(error))
        else:
            said.append("")

    kernel, trees = deferred.kernel, [(-1, 0, 1)]
    batch = deferred.batch(trees, [1], pool_slots=SLOTS)
    pool, other = kernel.pool(SLOTS, 1), kernel.pool(SLOTS, 1)
    slots, ends = batch.slot_tensor(), batch.slot_tensor([2])
    space = kernel.workspace(1, 3)
    call = (batch.tree, batch.inputs)
    kept = kernel.verify(*call, pool.layer(0), slots, workspace=space)[1]
    refused(lambda: kernel.commit(kept, ends, pool, slots, target_slots=slots))
    refused(lambda: kernel.commit(kept, ends, pool, slots, track_slots=slots, track_nodes=ends))
    refused(lambda: kernel.commit(kept, ends, other, slots))
    kernel.commit(kept, ends, pool, slots)
    refused(lambda: pool.read(1))
    refused(lambda: eager.kernel.verify(*call, pool.layer(0), slots))
    deep = Harness(
        "gdn", Shape(*shape), max_nodes=NODES, max_depth=DEPTH + 1,
        schedule={**schedule, "commit": "deferred"},
    )  # fmt: skip
    refused(lambda: deep.kernel.verify(*call, pool.layer(0), slots))
    pool.read(0)
    kernel.flush(pool)
    pool.read(1)
    eager.kernel.verify(*call, pool.layer(0), slots)
    return said


def adopted(schedule: dict[str, Any], shape: list[int]) -> dict[str, bool]:
    """A slot that begins anew forgets what waited for it; a pool over memory of the caller's."""
    _, made = pair("gdn", schedule, shape)
    kernel, face = made.kernel, made.kernel.interface
    state = torch.zeros(SLOTS, face.value_heads, face.d_v, face.d_k)
    window = torch.zeros(SLOTS, face.conv_channels, face.conv_width - 1)
    pool = StatePool.adopt([state], [window])
    batch = made.batch([(-1, 0, 1), (-1,)], [1, 2], pool_slots=SLOTS)
    slots = batch.slot_tensor()
    kept = kernel.verify(batch.tree, batch.inputs, pool.layer(0), slots)[1]
    kernel.commit(kept, batch.slot_tensor([2, 0]), pool, slots)
    pool.clear(1)
    kernel.flush(pool)
    return {"cleared": not bool(state[1].any()), "kept": bool(state[2].any())}
