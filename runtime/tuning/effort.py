"""How much is tried: the model's favourites first, then the neighbours of the best."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from operator import attrgetter

from boleir.codegen.schedule import Schedule


@dataclass(frozen=True, slots=True)
class Effort:
    """Candidates to measure: `first` by prediction, then `rounds` times `neighbours` around the
    best so far."""

    first: int
    rounds: int
    neighbours: int

    @property
    def most(self) -> int:
        """Candidates in all, at most."""
        return self.first + self.rounds * self.neighbours


EFFORT_LEVELS = {
    "quick": Effort(10, 1, 6),
    "default": Effort(28, 2, 10),
    "full": Effort(160, 6, 24),
}

FINE = (
    "registers", "factor_registers", "stages", "commit", "prefetch", "path_sum", "factor_stages",
    "factor_heads",
    "order", "pdl", "lead", "persistent", "walk_nodes", "readers",
)  # fmt: skip
"""Fields that the model cannot tell apart or hardly: left to the neighbours of good schedules."""

KIND = ("fusion", "solver", "gates")
"""Fields that make schedules different in kind: the model may be wrong about a whole kind."""

kind_of = attrgetter(*KIND)
"""The kind of a schedule."""
_coarsely = attrgetter(*(f.name for f in fields(Schedule) if f.name not in FINE))


def first_candidates(
    ranked: Sequence[Schedule], count: int, seeds: Iterable[Schedule] = ()
) -> list[Schedule]:
    """`count` schedules: `seeds`, half of the rest in the order of `ranked` (best predicted first),
    the other half the best of each kind in turn. Of those that differ in `FINE` fields alone only
    the first is taken."""
    chosen = dict.fromkeys(seeds)
    ranked = _coarse(ranked)
    for schedule in ranked[: max(1, (count - len(chosen)) // 2)]:
        chosen[schedule] = None
    kinds: dict[object, list[Schedule]] = {}
    for schedule in ranked:
        kinds.setdefault(kind_of(schedule), []).append(schedule)
    queues = [[s for s in kind if s not in chosen] for kind in kinds.values()]
    depth = 0
    while len(chosen) < count and any(depth < len(queue) for queue in queues):
        for queue in queues:
            if depth < len(queue) and len(chosen) < count:
                chosen[queue[depth]] = None
        depth += 1
    return list(chosen)[:count]


def _coarse(ranked: Sequence[Schedule]) -> list[Schedule]:
    """The first of each group that agrees in all but the `FINE` fields."""
    first: dict[object, Schedule] = {}
    for schedule in ranked:
        first.setdefault(_coarsely(schedule), schedule)
    return list(first.values())
