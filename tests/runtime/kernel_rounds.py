"""Rounds of verify and commit against sequential decoding of what was accepted, in float64."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import torch

from boleir.check.check import node_errors
from boleir.check.inputs import Case, Sample
from boleir.trees import shapes
from tests.paths import path_of
from tests.runtime.kernel_harness import Harness, poison

LAYERS = 2
SLOTS = (3, 1)
"""Where the two requests live."""


def play(made: Harness, count: int, *, nodes: int = 9, seed: int = 0) -> dict[str, Any]:
    """Worst error of outputs and states over `count` rounds of two requests in two layers.

    The reference decodes the accepted tokens one after the other in float64 and never sees a
    rejected one. In every other round rejected nodes hold NaN; sometimes nothing is accepted.
    """
    rng = np.random.default_rng(seed)
    face = made.kernel.interface
    pool = made.kernel.pool(5, LAYERS)
    space = made.kernel.workspace(len(SLOTS), 2 * nodes, LAYERS)
    known: dict[tuple[int, int], Sample] = {}
    worst = {"output": 0.0, "state": 0.0}
    for turn in range(count):
        trees = [
            shapes.random(nodes - 2 * b, seed=int(rng.integers(1 << 30)), max_depth=face.max_depth)
            for b in range(len(SLOTS))
        ]
        accepted = [int(rng.integers(-1, len(tree))) for tree in trees]
        found = []
        tree = made.kernel.tree_batch(
            [p for one in trees for p in one], np.cumsum([0, *map(len, trees)]).tolist()
        )
        for layer in range(LAYERS):
            drawn = made.samples(trees, [Case()] * len(SLOTS), seed + 100 * turn + layer)
            requests = [_continued(made, known, layer, b, x) for b, x in enumerate(drawn)]
            if not turn:
                _start(made, pool.layer(layer), requests)
            poison(space.layer(layer).tensors)
            batch = made.batch(trees, SLOTS, samples=list(requests), pool_slots=4)
            if turn % 2:
                spoil(batch.inputs, made, batch.cu, trees, accepted)
            slots = batch.slot_tensor()
            out, factors = made.kernel.verify(
                tree, batch.inputs, pool.layer(layer), slots, workspace=space, layer=layer
            )
            out = torch.cat(out, dim=1) if isinstance(out, tuple) else out
            found.append(factors)
            for b, request in enumerate(requests):
                rows = out[batch.cu[b] : batch.cu[b + 1]].double().cpu().numpy()
                error = _follow(made, known, layer, b, request, accepted[b], rows)
                worst["output"] = max(worst["output"], error)
        ends = torch.tensor(accepted, dtype=torch.int32, device=tree.device)
        made.kernel.commit(found, ends, pool, slots)
        if turn % 3 == 2 or turn == count - 1:
            made.kernel.flush(pool)  # where commits are deferred
        elif made.kernel.interface.recorded:
            continue
        for (layer, b), request in known.items():
            state = pool.layer(layer).state[SLOTS[b]].double().cpu().numpy().transpose(0, 2, 1)
            error = float(node_errors(state[None], request.state[None])[0])
            worst["state"] = max(worst["state"], error)
            worst["windows"] = max(
                worst.get("windows", 0.0), _window_error(made, pool.layer(layer), b, request)
            )
    return worst


def _continued(
    made: Harness, known: dict[tuple[int, int], Sample], layer: int, b: int, drawn: Sample | None
) -> Sample:
    """The round's inputs with parameters, state and windows of the decoding so far."""
    assert drawn is not None
    past = known.setdefault((layer, b), drawn)
    fixed = {item.name for item in made.kernel.interface.parameters}
    base = known[layer, 0]
    inputs = {n: base.inputs[n] if n in fixed else x for n, x in drawn.inputs.items()}
    return replace(
        drawn, inputs=inputs, weights=base.weights, windows=past.windows, state=past.state
    )


def _start(made: Harness, layer: Any, requests: list[Sample]) -> None:
    for slot, request in zip(SLOTS, requests, strict=True):
        state = torch.as_tensor(request.state.transpose(0, 2, 1).copy())
        layer.state[slot] = state.to(layer.state)
        if layer.window is not None:
            rows = [request.windows[n] for n in made.kernel.interface.convolved]
            layer.window[slot] = torch.as_tensor(np.concatenate(rows)).to(layer.window)


def spoil(
    inputs: dict[str, torch.Tensor],
    made: Harness,
    cu: list[int],
    trees: list[tuple[int, ...]],
    accepted: list[int],
) -> None:
    """NaN in every node off the accepted paths."""
    for b, tree in enumerate(trees):
        path = path_of(tree, accepted[b])[::-1]
        for node in range(len(tree)):
            if node not in path:
                for item in made.kernel.interface.inputs:
                    inputs[item.name][cu[b] + node] = float("nan")


def _follow(
    made: Harness,
    known: dict[tuple[int, int], Sample],
    layer: int,
    b: int,
    request: Sample,
    accepted: int,
    rows: Any,
) -> float:
    """Decode the accepted path; the error of its outputs."""
    path = path_of(request.parents, accepted)[::-1]
    if not path:
        known[layer, b] = request
        return 0.0
    tokens = {item.name for item in made.kernel.interface.inputs}
    chain = replace(
        request,
        parents=tuple(range(-1, len(path) - 1)),
        inputs={n: x[path] if n in tokens else x for n, x in request.inputs.items()},
    )
    walk = made.reference(chain)
    windows = {}
    for name, window in request.windows.items():
        taken = chain.inputs[name].reshape(len(path), -1).T
        windows[name] = np.concatenate([window, taken], axis=1)[:, len(path) :]
    last = walk.states[len(path) - 1]
    known[layer, b] = replace(request, state=last, windows=windows)
    return float(node_errors(rows[path], walk.output).max())


def _window_error(made: Harness, layer: Any, b: int, request: Sample) -> float:
    if layer.window is None:
        return 0.0
    rows = np.concatenate([request.windows[n] for n in made.kernel.interface.convolved])
    found = layer.window[SLOTS[b]].double().cpu().numpy()
    return float(np.abs(found - rows).max())
