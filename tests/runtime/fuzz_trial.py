"""Run in child processes under the rounding interpreter: one random case against the float64 walk.

A trial verifies a hostile round, changes everything that must not matter, commits, and lists what
was wrong in words. `fuzz_limits` says which error a node may have.
"""

from __future__ import annotations

import re
import traceback
from dataclasses import replace
from typing import Any

import numpy as np
import torch

import boleir
from boleir.check.inputs import Case, Sample, Shape
from boleir.codegen.schedule_limits import product_error
from boleir.oracle.sequential import Walk
from boleir.oracle.values import Singles
from boleir.runtime.workspace import Workspace
from tests.paths import path_of
from tests.runtime import fuzz_recurrences
from tests.runtime.fuzz_limits import HIGHEST, TAME, UNIT, allowed
from tests.runtime.kernel_harness import Batch, Harness, bits

LAUNCHES = (0, 1, 77, 2**31 - 1, -(2**31), -1)
"""What counters of launches, which wrap, may have come to."""
POOL = 9

_ready = False


def trials(cases: list[dict[str, Any]]) -> list[list[str]]:
    """What was wrong in each case."""
    return [trial(case) for case in cases]


def trial(case: dict[str, Any]) -> list[str]:
    """What was wrong; an exception counts."""
    global _ready
    if not _ready:
        from tests.runtime.rounding_interpreter import install

        install()
        _ready = True
    try:
        with np.errstate(all="ignore"):
            return Trial(case).run()
    except Exception as error:
        last = traceback.format_exc().splitlines()[-8:]
        return [f"exception {type(error).__name__}: {str(error)[:200]}", *last]


class Trial:
    """One case, compiled and drawn."""

    def __init__(self, case: dict[str, Any]) -> None:
        self.case = case
        self.rng = np.random.default_rng(case["seed"])
        self.faults: list[str] = []
        static = case["static"]
        options = {} if static is None else {"tree": boleir.parents(*static)}
        self.made = Harness(
            fuzz_recurrences.load(case["recurrence"]), Shape(*case["shape"]),
            max_nodes=case["nodes"], max_depth=case["depth"], schedule=case["schedule"],
            dtype=case["dtype"], state_dtype=case["state_dtype"], out_dtype=case["out_dtype"],
            **options,
        )  # fmt: skip
        self.requests = case["requests"]
        self.parents = [tuple(request["parents"]) for request in self.requests]
        self.slots = [request["slot"] for request in self.requests]
        self.precision = case["schedule"]["precision"]
        rounded = case["schedule"]["commit"] == "factors16"
        self.stored = "bf16" if rounded else self.precision
        """The precision of committed states."""

    def run(self) -> list[str]:
        """All checks."""
        made = self.made
        drawn = self._samples()
        batch = made.batch(self.parents, self.slots, samples=drawn, pool_slots=POOL)
        seen, factors = made.verify(batch)
        out = seen.clone()
        self._outputs(batch, out)
        batch.out.expect(seen)
        self.faults += [f"verify changed {x}" for x, kept in batch.intact().items() if not kept]
        self._scratch(batch, out)
        self._others(drawn, out, batch.cu)
        if self.case["spoil"]:
            self._spoil(drawn, out)
        _, factors = made.verify(batch)  # nothing later may have written to its workspace
        self._commit(batch, factors)
        return self.faults

    # -- inputs -------------------------------------------------------------------------------

    def _samples(self) -> list[Sample | None]:
        cases = [
            Case(keys=x["keys"], strength=x["strength"], log_decay=x["log_decay"])
            for x in self.requests
        ]
        drawn = self.made.samples(self.parents, cases, self.case["seed"] % 10**6)
        return [
            request and self._twisted(request, spec["twist"])
            for request, spec in zip(drawn, self.requests, strict=True)
        ]

    def _twisted(self, request: Sample, twist: str) -> Sample:
        """The request with hostile numbers in one node."""
        if twist == "none":
            return request
        node = int(self.rng.integers(len(request.parents)))
        inputs = dict(request.inputs)
        for item in self.made.kernel.interface.inputs:
            rows = inputs[item.name].copy()
            if twist == "zero":
                rows[node] = 0.0
            elif twist == "scalars" and item.kind == "head":
                rows[node] = self.rng.choice([-100.0, -30.0, 0.0, 30.0, 80.0], rows[node].shape)
            elif twist in ("tiny", "large", "subnormal") and item.kind != "head":
                rows[node] *= {"tiny": 1e-6, "large": 1e3, "subnormal": 1e-41}[twist]
            highest = torch.finfo(self.made.dtype(item.name)).max  # beyond it a number is infinite
            inputs[item.name] = self.made.round(np.clip(rows, -highest, highest), item.name)
        return replace(request, inputs=inputs)

    # -- outputs ------------------------------------------------------------------------------

    def _outputs(self, batch: Batch, out: torch.Tensor) -> None:
        for b, request in enumerate(batch.samples):
            rows = out[batch.cu[b] : batch.cu[b + 1]].double().numpy()
            if batch.slots[b] < 0:
                if len(rows) and not (rows == 0).all():
                    self.faults.append(f"request {b} is padding, its outputs are not zero")
            elif request is not None:
                self._compare(b, request, batch, rows)
        error = self.made.stored_error(batch)
        if not error <= 4:
            self.faults.append(f"convolved inputs are off by {error:.1f} roundings")

    def _compare(self, b: int, request: Sample, batch: Batch, rows: Any) -> None:
        walk, moved, rounded = self._walks(batch, b, self.precision)
        fit = self._comparable(request, [walk, *moved])
        dtype = self.case["out_dtype"]
        outputs, singles = [m.output for m in moved], [r.output for r in rounded]
        fair = self._fair(walk.output, outputs, singles, dtype, self.precision)
        error = np.linalg.norm(rows - walk.output, axis=-1)
        wrong = ~(error <= fair) & fit[:, None]
        if wrong.any():
            node, head = np.argwhere(wrong)[0]
            size = np.linalg.norm(walk.output[node, head])
            self.faults.append(
                f"output of request {b} node {node} head {head}: error {error[node, head]:.2e} of "
                f"{size:.2e}, allowed {fair[node, head]:.2e}; {int(wrong.sum())} such"
            )

    def _walks(self, batch: Batch, b: int, precision: str) -> tuple[Walk, list[Walk], list[Walk]]:
        """The walk of a request, walks of inputs that are slightly off, and the same in float32."""
        request, made = batch.samples[b], self.made
        assert request is not None
        mixed = None if batch.mixed is None else batch.mixed[batch.cu[b] : batch.cu[b + 1]]
        stored = None if mixed is None else made.stored(mixed)
        moved, rounded = [], []
        for _ in range(3):
            arguments = {k: self._moved(x, precision) for k, x in request.arguments.items()}
            arguments["parents"] = request.parents
            held = (
                None
                if stored is None
                else {e: self._moved(x, precision) for e, x in stored.items()}
            )
            moved.append(made.decode(arguments, held))
            rounded.append(made.decode(arguments, held, Singles()))
        return made.walk(batch, b), moved, rounded

    def _moved(self, values: Any, precision: str) -> Any:
        if isinstance(values, dict):
            return {name: self._moved(x, precision) for name, x in values.items()}
        values = np.asarray(values, dtype=np.float64)
        return values * (1 + UNIT[precision] * self.rng.normal(size=values.shape))

    def _fair(
        self, reference: Any, moved: list[Any], rounded: list[Any], dtype: str, precision: str
    ) -> Any:
        """What is allowed of this case's solver, too."""
        product = self.case["schedule"]["solver"] == "product"
        more = 8 * product_error(self.precision, self.case["depth"]) if product else 0.0
        return allowed(reference, moved, rounded, dtype, precision, more)

    def _comparable(self, request: Sample, walks: list[Walk]) -> Any:
        """Nodes whose outputs the formats can hold, in a request that is far from overflows."""
        states = [np.abs(state).max() for walk in walks for state in walk.states.values()]
        highest = HIGHEST[self.case["out_dtype"]]
        sizes = np.abs(walks[0].output).reshape(len(request.parents), -1).max(axis=1)
        return (sizes < highest) & bool(np.max(states) < TAME)

    # -- what must not matter -----------------------------------------------------------------

    def _scratch(self, batch: Batch, out: torch.Tensor) -> None:
        """Other garbage in the workspace."""
        space = self.made.kernel.workspace(batch.tree.num_requests, batch.tree.num_nodes)
        for tensor in space.layer(0).tensors:
            if not tensor.is_floating_point():
                self._earlier(batch, space, tensor)
                continue
            flat = tensor.reshape(-1).view(torch.uint8)
            flat.copy_(torch.from_numpy(self.rng.integers(0, 256, flat.numel(), dtype=np.uint8)))
        for _ in range(2 if self.made.kernel.interface.signals else 1):
            again, _ = self.made.verify(batch, workspace=space)
            if not torch.equal(bits(again), bits(out)):
                self.faults.append("what lies in the workspace changes outputs")

    def _earlier(self, batch: Batch, space: Workspace, counters: torch.Tensor) -> None:
        """Counters after any number of launches, each of which adds the same to them: one, or as
        many as there are programs that prepare or walk."""
        launches = int(self.rng.choice(LAUNCHES))
        if self.case["schedule"]["prepare"] != "joined":
            counters.fill_(launches)
            return
        self.made.verify(batch, workspace=space)
        counters.copy_((launches * counters.long() + 2**31) % 2**32 - 2**31)

    def _others(self, drawn: list[Sample | None], out: torch.Tensor, cu: list[int]) -> None:
        """Everything apart from one path drawn anew: the request's other nodes, with their parents
        where the tree is free, the batch mates, the slot."""
        chosen = [b for b, x in enumerate(drawn) if x is not None and self.slots[b] >= 0]
        if not chosen:
            return
        b = int(self.rng.choice(chosen))
        request = drawn[b]
        assert request is not None
        node = int(self.rng.integers(len(request.parents)))
        path = path_of(request.parents, node)
        other = self._redrawn(request, path)
        if not (self._is_tame(request) and self._is_tame(other)):
            return
        batch = self.made.batch([other.parents], [5], samples=[other], pool_slots=POOL)
        seen = self.made.verify(batch)[0]
        same = torch.equal(bits(seen[path]), bits(out[cu[b] : cu[b + 1]][path]))
        if not same:
            self.faults.append(f"what is not on the path of request {b} node {node} changes bits")

    def _is_tame(self, request: Sample) -> bool:
        """Whether no branch comes near an overflow: of float32, which would reach every node. A
        walk that has overflowed to NaN, which compares with nothing, is not tame."""
        states = self.made.reference(request).states
        return bool(np.max([np.abs(state).max() for state in states.values()]) < TAME)

    def _redrawn(self, request: Sample, path: list[int]) -> Sample:
        count = len(request.parents)
        free = [n for n in range(count) if n not in path]
        tokens = [item.name for item in self.made.kernel.interface.inputs]
        inputs = dict(request.inputs)
        for name in tokens:
            rows = inputs[name].copy()
            scale = self.rng.choice([1.0, 1e3])
            rows[free] = scale * self.rng.normal(size=rows[free].shape)
            inputs[name] = self.made.round(rows, name)
        parents = list(request.parents)
        if self.case["static"] is None:
            depth: list[int] = []
            for n in range(count):
                if n in free:
                    lower = [p for p in range(n) if depth[p] < self.case["depth"]]
                    parents[n] = int(self.rng.choice([-1, *lower]))
                depth.append(0 if parents[n] < 0 else depth[parents[n]] + 1)
                if depth[n] > self.case["depth"]:
                    return replace(request, inputs=inputs)
        return replace(request, inputs=inputs, parents=tuple(parents))

    def _spoil(self, drawn: list[Sample | None], out: torch.Tensor) -> None:
        """A number that is not finite reaches the descendants of its node and no other bit."""
        chosen = [b for b, x in enumerate(drawn) if x is not None and self.slots[b] >= 0]
        if not chosen:
            return
        b = int(self.rng.choice(chosen))
        parents = self.parents[b]
        node = int(self.rng.integers(len(parents)))
        items = self.made.kernel.interface.inputs
        item = items[int(self.rng.integers(len(items)))]
        value = str(self.rng.choice(["nan", "inf", "-inf"]))
        batch = self.made.batch(self.parents, self.slots, samples=drawn, pool_slots=POOL)
        row = batch.inputs[item.name][batch.cu[b] + node].view(-1)
        whole = item.kind == "head" or bool(self.rng.integers(2))
        (row if whole else row[-1:]).fill_(float(value))
        seen = self.made.verify(batch)[0]
        below = torch.zeros(batch.cu[-1], dtype=torch.bool)
        for n in range(len(parents)):
            below[batch.cu[b] + n] = node in path_of(parents, n)
        if not torch.equal(bits(seen[~below]), bits(out[~below])):
            self.faults.append(f"{value} in {item.name} of request {b} node {node} leaks")
        if whole and not bool(seen[below].isnan().all()):
            request = drawn[b]
            assert request is not None
            if value == "nan" or self._reaches(request, node, item.name, float(value)):
                self.faults.append(f"{value} in {item.name} of request {b} node {node} is lost")

    def _reaches(self, request: Sample, node: int, name: str, value: float) -> bool:
        """Whether an infinite input leaves the walk's outputs without a number anywhere below its
        node: functions may be finite there."""
        rows = request.inputs[name].copy()
        rows[node] = value
        spoiled = self.made.reference(replace(request, inputs={**request.inputs, name: rows}))
        below = [n for n in range(len(rows)) if node in path_of(request.parents, n)]
        return not bool(np.isfinite(spoiled.output[below]).all())

    # -- commit -------------------------------------------------------------------------------

    def _commit(self, batch: Batch, factors: Any) -> None:
        columns = ("accepted", "target", "track_node", "track")
        accepted, targets, nodes, tracks = (
            batch.slot_tensor([request[name] for request in self.requests]) for name in columns
        )
        self.made.kernel.commit(
            factors, accepted, batch.pool, batch.slot_tensor(), target_slots=targets,
            track_nodes=nodes, track_slots=tracks, now=True,
        )  # fmt: skip
        for b, spec in enumerate(self.requests):
            request = batch.samples[b]
            if request is None or spec["slot"] < 0 or spec["target"] < 0:
                continue
            if not 0 <= spec["accepted"] < len(request.parents):
                continue
            self._committed(batch, b, spec["target"], spec["accepted"])
            on_path = spec["track_node"] in path_of(request.parents, spec["accepted"])
            if spec["track"] >= 0 and on_path:
                self._committed(batch, b, spec["track"], spec["track_node"])
        self.faults += [f"commit changed {x}" for x, kept in batch.intact().items() if not kept]

    def _committed(self, batch: Batch, b: int, slot: int, node: int) -> None:
        """State and window of a slot that was written; from here on they are as they should be."""
        request = batch.samples[b]
        assert request is not None
        walk, moved, rounded = self._walks(batch, b, self.stored)
        expected = walk.states[node]
        found = batch.pool.state[slot].double().numpy().transpose(0, 2, 1)
        near = [[w.states[node].reshape(len(expected), -1) for w in x] for x in (moved, rounded)]
        reference, dtype = expected.reshape(len(expected), -1), self.case["state_dtype"]
        fair = self._fair(reference, *near, dtype, self.stored)
        error = np.linalg.norm(found.reshape(reference.shape) - reference, axis=-1)
        path = path_of(request.parents, node)
        highest = max(float(np.abs(w.states[n]).max()) for w in (walk, *moved) for n in path)
        if highest < min(TAME, HIGHEST[dtype]) and not (error <= fair).all():
            head = int(np.argmax(error - fair))
            self.faults.append(
                f"state of request {b} at node {node} head {head}: error {error[head]:.2e} of "
                f"{np.linalg.norm(expected[head]):.2e}, allowed {fair[head]:.2e}"
            )
        if not self.made.window_is(batch, slot, request, node):
            self.faults.append(f"window of request {b} at node {node}")
        batch.state.expect(batch.pool.state[slot])
        if batch.window is not None and batch.pool.window is not None:
            batch.window.expect(batch.pool.window[slot])


MUTATIONS = {
    "mask": (r"related = [^\n]*!= 0", "related = (node[:, None] <= node[None, :])"),
    "scale": (r"decay = tl\.exp2\([^\n]*", "decay = 1.001"),
    "guard": (r"poisoned = [^\n]*", "poisoned = node < 0"),
}
"""Changes of emitted text that a trial must notice."""


def mutant(case: dict[str, Any], mutation: str) -> list[str]:
    """What a trial says about a changed kernel."""
    from boleir.codegen import pipeline

    original, (pattern, text) = pipeline.module_text, MUTATIONS[mutation]

    def mutated(*arguments: Any) -> str:
        source, count = re.subn(pattern, text, original(*arguments))
        assert count
        return source

    pipeline.module_text = mutated  # type: ignore[assignment]
    try:
        return trial(case)
    finally:
        pipeline.module_text = original
