"""Prove thousands of random recurrences: derive each, and compare it with the sequential walk in
exact arithmetic on random trees.

    python -m tests.boleir.prove --count 2000 --seed 0

prints every recurrence that is refused or wrong, with its seed, and what came out of all. Draws
cover the axes of the family (`affine_recurrences`), and some lie just outside; refusals are counted
by class and printed with `--refusals`. `--outputs` draws outputs of every linear kind. Exit status
1 when a closed form is wrong or a derivation ends in anything but a refusal."""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from boleir.check.proof import prove
from boleir.derive.closed_form import ClosedForm
from boleir.derive.derive import derive
from boleir.errors import DerivationError
from boleir.ir import Kind, Number, Recurrence
from tests.boleir.affine_recurrences import outputs_recurrence, wide_recurrence

PROVED, REFUSED, WRONG = "proved", "refused", "WRONG"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one draw."""

    seed: int
    recurrence: Recurrence
    verdict: str
    detail: str
    """The class of the refusal, or where the closed form is wrong."""
    axes: frozenset[str] = frozenset()


def outcome(
    seed: int, trees: int = 3, draw: Callable[[int], Recurrence] = wide_recurrence
) -> Outcome:
    """Derive and prove the draw of one seed, with all its outputs."""
    recurrence = draw(seed)
    try:
        form = derive(recurrence)
    except DerivationError as refusal:
        return Outcome(seed, recurrence, REFUSED, type(refusal).__name__)
    except Exception as error:  # a crash is a finding of its own
        return Outcome(seed, recurrence, WRONG, f"{type(error).__name__}: {error}")
    failures = (
        prove(one, trees=trees, seed=seed, with_mutants=False).failure for one in (form, *form.more)
    )
    failure = next(filter(None, failures), None)
    return Outcome(seed, recurrence, WRONG if failure else PROVED, failure or "", axes(form))


def axes(form: ClosedForm) -> frozenset[str]:
    """Values of the axes that a closed form lies on."""
    normal, readout = form.normal, form.normal.readout
    number = isinstance(normal.decay, Number)
    found = {normal.side, f"decay {'number' if number else normal.decay.kind.name.lower()}"}
    found |= {f"{min(len(normal.pairs), 3)} pairs", f"{min(len(normal.writes), 3)} writes"}
    own = [*readout.pairs, *readout.writes]
    nothing = all(isinstance(x, Number) and x.value == 0 for x in own)
    if own and nothing:
        found.add("output before the update")
    found |= {
        name
        for name, there in {
            "gain": any(pair.gain is not None for pair in normal.pairs),
            "read before a decay": any(
                not p.erase.after_decay and not number for p in normal.pairs
            ),
            "micro-steps": normal.micro_steps > 1,
            "output gain": readout.gain is not None,
            "direct": readout.direct is not None,
            "two-sided gate": normal.decay.kind
            is (Kind.VALUE if normal.side == "left" else Kind.KEY),
        }.items()
        if there
    }
    return frozenset(found)


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=1000, help="number of recurrences")
    parser.add_argument("--seed", type=int, default=0, help="seed of the first one")
    parser.add_argument("--trees", type=int, default=3, help="random trees for each")
    parser.add_argument("--refusals", action="store_true", help="print what is refused too")
    parser.add_argument("--outputs", action="store_true", help="draw outputs of every linear kind")
    args = parser.parse_args()
    draw = outputs_recurrence if args.outputs else wide_recurrence
    verdicts: Counter[str] = Counter()
    met: Counter[str] = Counter()
    for seed in range(args.seed, args.seed + args.count):
        found = outcome(seed, args.trees, draw)
        verdicts[f"{found.verdict} {found.detail if found.verdict == REFUSED else ''}".strip()] += 1
        met.update(found.axes)
        if found.verdict == WRONG or (args.refusals and found.verdict == REFUSED):
            print(f"seed {seed}: {found.verdict}, {found.detail}\n{found.recurrence}", flush=True)
    for counter in (verdicts, met):
        print("\n".join(f"{count:7} {name}" for name, count in sorted(counter.items())))
    return int(WRONG in verdicts)


if __name__ == "__main__":
    sys.exit(main())
