"""Programs of the prepare kernel: who computes what, and for which nodes."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

import boleir
from boleir.codegen.emit.row_scalars import scalar_groups
from boleir.codegen.emit.shares import Share
from boleir.codegen.emit.writer import Writer
from boleir.codegen.pipeline import lower
from boleir.codegen.planner import make_plan
from boleir.codegen.request import Shapes
from boleir.codegen.schedule import Schedule
from boleir.derive.derive import derive
from boleir.library import resolve
from tests.codegen.recurrences import TEXTS

NUMPY = SimpleNamespace(arange=np.arange, minimum=np.minimum)
"""What the lines of a share need of `triton.language`."""


def visited(share: Share, count: int) -> list[tuple[int, int]]:
    """Unit and node of all that the programs of a share visit in a request of `count` nodes, from
    the lines it emits."""
    w = Writer()
    share.decode(w)
    body = "\n".join(line[4:] for line in w.lines)
    found: list[tuple[int, int]] = []
    for task in range(share.first, share.end):
        names = {"tl": NUMPY, "task": task, "count": count, "first": 0}
        exec(body, names)
        units = np.broadcast_to(names["unit"], names["node"].shape)
        pairs = zip(units.tolist(), names["node"].tolist(), strict=True)
        found.extend((unit, node) for unit, node in pairs if node < count)
    return found


@pytest.mark.parametrize("first", [0, 7])
@pytest.mark.parametrize(("nodes", "each"), [(1, 16), (16, 16), (40, 16), (70, 32), (256, 16)])
def test_every_node_of_every_unit_has_one_program(nodes: int, each: int, first: int) -> None:
    share = Share(first, 3, nodes, each)
    for count in {1, nodes // 2 + 1, nodes}:
        assert sorted(visited(share, count)) == [(u, n) for u in range(3) for n in range(count)]


@pytest.mark.parametrize(("units", "programs"), [(16, 2), (11, 2), (3, 1)])
def test_units_together_are_all_visited(units: int, programs: int) -> None:
    share = Share(5, units, 12, 16, together=8)
    found = visited(share, 12)
    assert share.end - share.first == programs and len(found) == programs * 8 * 12
    assert set(found) == {(unit, node) for unit in range(units) for node in range(12)}


def plan_of(name: str) -> boleir.codegen.plan.Plan:
    recurrence = boleir.parse(TEXTS[name]) if name in TEXTS else resolve(name)
    return make_plan(derive(recurrence).normal, 32, 32, 2, 4)


@pytest.mark.parametrize(
    ("name", "heads"),
    [
        ("gdn", {"several": {"beta", "sums"}}),
        (
            "gated_delta_rule",
            {"key": {"norm_k", "norm_q"}, "value": {"guard_v"}, "several": {"beta", "sums"}},
        ),
        ("retention", {"key": {"guard_q", "guard_k"}, "value": {"guard_v"}, "several": {"sums"}}),
        (
            "fading_by_keys",
            {
                "key": {"guard_q", "guard_k"},
                "value": {"guard_v", "sums"},
                "several": {"sigmoid_b"},
            },
        ),
    ],
)
def test_row_scalars_are_computed_once_per_head_they_belong_to(
    name: str, heads: dict[str, set[str]]
) -> None:
    found = {
        group.heads: {s.name for s in group.scalars} | ({"sums"} if group.path_sums else set())
        for group in scalar_groups(plan_of(name))
    }
    assert found == heads


@pytest.mark.parametrize(("depth", "steps"), [(0, 0), (1, 1), (7, 3), (8, 4), (63, 6)])
def test_links_double_until_they_span_the_deepest_path(depth: int, steps: int) -> None:
    schedule = Schedule(gates="prepare")
    text = lower(
        resolve("gated_delta_rule"), Shapes(2, 4, 128, 128, 64, depth), schedule=schedule
    ).kernel("prepare").text  # fmt: skip
    assert (f"tl.static_range({steps})" in text) == (steps > 0)
    assert ("tl.gather" in text) == (steps > 0)
