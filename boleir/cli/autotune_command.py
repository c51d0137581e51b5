"""`bolec autotune`: measure which schedules are fastest here, and keep the answer."""

from __future__ import annotations

import argparse
import re
import time
from typing import TYPE_CHECKING, Any

from boleir.cli.arguments import add_recurrence, dims, find_recurrence, heads, positive
from boleir.cli.output import Progress, print_json, table
from boleir.errors import ScheduleError

if TYPE_CHECKING:
    from boleir.codegen.targets import Target
    from boleir.ir import Recurrence
    from boleir.runtime.tuning.entry import Entry
    from boleir.runtime.tuning.keys import TuningKey
    from boleir.runtime.tuning.preview import Preview

SUMMARY = "measure which schedule is fastest on this GPU and keep it for later compilations"
EXAMPLES = (
    "bolec autotune gdn --heads 16:32 --dims 128x128 --nodes 16,32,64 --depth 8 --batch 1,16",
    "bolec autotune gdn --effort full --devices 0,1",
    "bolec autotune gdn --dry-run --target sm_120 --show 30   # no GPU needed",
    "bolec autotune gated_delta_rule --nodes 64 --json",
)
DTYPES = ("bfloat16", "float16", "float32")


def numbers(text: str) -> tuple[int, ...]:
    """Integers separated by commas, or a range of powers of two such as `1..32`; for argparse."""
    match = re.fullmatch(r"(\d{1,9})\.\.(\d{1,9})", text)
    if match:
        low, high = int(match.group(1)), int(match.group(2))
        found = tuple(1 << bit for bit in range(31) if low <= 1 << bit <= high)
    else:
        parts = text.split(",")
        if not all(re.fullmatch(r"\d{1,9}", part) for part in parts):
            raise argparse.ArgumentTypeError(f"{text!r} is not like 16,32 or 1..32")
        found = tuple(int(part) for part in parts)
    if not found:
        raise argparse.ArgumentTypeError(f"{text!r} holds no power of two")
    return found


def configure(parser: argparse.ArgumentParser) -> None:
    """The command's own options."""
    add_recurrence(parser)
    add = parser.add_argument
    add("--heads", type=heads, default=(16, 32), metavar="H:HV", help="key and value heads (16:32)")
    add("--dims", type=dims, default=(128, 128), metavar="KxV", help="d_k and d_v (128x128)")
    add("--nodes", type=numbers, default=(64,), metavar="N,..", help="most nodes of a tree (64)")
    add("--depth", type=numbers, default=(8,), metavar="D,..", help="deepest node, in edges (8)")
    add("--batch", type=numbers, default=(1, 16), metavar="B,..", help="requests at once (1,16)")
    add("--dtype", choices=DTYPES, default="bfloat16", help="inputs and outputs (bfloat16)")
    add("--state-dtype", choices=DTYPES, default="float32", help="the state pool (float32)")
    add(
        "--effort",
        choices=("quick", "default", "full"),
        default="default",
        help="how much is tried",
    )
    add("--again", action="store_true", help="forget what was measured before")
    add("--devices", type=numbers, metavar="N,..", help="GPUs to measure on (all that are alike)")
    add("--jobs", type=positive, help="compilers at once (all cores)")
    add("--dry-run", action="store_true", help="show the space and what the model predicts")
    add("--target", help="with --dry-run: GPU to predict for (the one present, else sm_90)")
    add("--show", type=positive, default=12, help="with --dry-run: candidates to show (12)")


def run(args: argparse.Namespace) -> int:
    """Tune, or with --dry-run predict, and print it. Status 1 if nothing works for some key."""
    recurrence = find_recurrence(args.recurrence)
    keys = wanted_keys(recurrence, args)
    if args.dry_run:
        return dry_run(recurrence, keys, args)
    from boleir.runtime.tuning.autotune import bench, tune

    started = time.monotonic()
    target = find_target(args.target)
    on = bench(target, args.devices, args.jobs)
    try:
        with Progress(quiet=args.quiet) as say:
            entries = tune(
                recurrence, keys, target, on, effort=args.effort, again=args.again, say=say
            )
    finally:
        on.close()
    seconds = time.monotonic() - started
    predictions = [correlation(recurrence, entry, target) for entry in entries]
    if args.json:
        print_json(
            {
                "environment": on.environment.to_json(),
                "store": str(on.store.root),
                "seconds": round(seconds, 1),
                "entries": [
                    {**summary(entry), "rank_correlation": value}
                    for entry, value in zip(entries, predictions, strict=True)
                ],
            }
        )
    else:
        print(report(entries, predictions))
        print(f"\n{seconds:.0f} s; kept in {on.store.root / on.environment.folder}")
    return 0 if all(entry.chosen for entry in entries) else 1


def wanted_keys(recurrence: Recurrence, args: argparse.Namespace) -> list[TuningKey]:
    """One key for each bucket that the sizes fall into. Raises `ScheduleError` outside them."""
    from boleir.codegen.request import Shapes
    from boleir.runtime.tuning.buckets import BATCHES
    from boleir.runtime.tuning.keys import key_of

    found: dict[TuningKey, None] = {}
    for nodes in args.nodes:
        for depth in args.depth:
            for batch in args.batch:
                shapes = Shapes(
                    args.heads[0],
                    args.heads[1],
                    args.dims[0],
                    args.dims[1],
                    nodes,
                    min(depth, nodes - 1),
                    args.dtype,
                    args.state_dtype,
                )
                key = key_of(recurrence, shapes, batch) if batch else None
                if key is None:
                    raise ScheduleError(f"batch {batch} is not in 1..{BATCHES[-1]}")
                found[key] = None
    return list(found)


def find_target(name: str | None) -> Target:
    """The target called so, by default that of the GPU present, else sm_90."""
    from boleir.codegen.targets import target
    from boleir.runtime.present import present_target

    here = present_target() if name is None else None
    return here or target(name or "sm_90")


def dry_run(recurrence: Recurrence, keys: list[TuningKey], args: argparse.Namespace) -> int:
    """Print how many schedules there are, what the model expects of each kind, and what would be
    tried first."""
    from boleir.runtime.tuning.preview import preview

    target = find_target(args.target)
    values = []
    with Progress(quiet=args.quiet) as progress:
        for number, key in enumerate(keys, 1):
            progress.count(number, len(keys), f"{key.name}, {target.name}")
            item = preview(recurrence, key, target, args.effort)
            values.append(item.to_json(args.show))
            if not args.json:
                progress.clear()
                print(expectation(item, args.show), flush=True)
    if args.json:
        print_json(values)
    return 0


def expectation(item: Preview, show: int) -> str:
    """What a tuning of one key would try, as text."""
    kinds = [(p.us, count, p.schedule.label) for p, count in item.kinds]
    first = [(p.us, p.per_sm, p.schedule.label) for p in item.first[:show]]
    return "\n".join(
        [
            f"{item.key.name}, {item.target}: {item.schedules:,} schedules, at most "
            f"{item.most} to be tried; default {item.default.us:.1f} us predicted",
            table(("us", "schedules", "the best of each kind (predicted)"), kinds) + "\n",
            table(("us", "per SM", "tried first"), first) + "\n",
        ]
    )


def correlation(recurrence: Recurrence, entry: Entry, target: Target) -> float | None:
    """Rank correlation of what the model predicts and what was measured."""
    from boleir.runtime.tuning.autotune import space_of
    from boleir.runtime.tuning.cost_model import predict
    from boleir.runtime.tuning.rank import rank_correlation

    space = space_of(recurrence, entry.key, target)
    pairs = [
        (predict(o.schedule, space.plan, space.shapes, target, entry.key.batch).us, o.us)
        for o in entry.outcomes
        if o.us is not None
    ]
    found = rank_correlation([p for p, _ in pairs], [us for _, us in pairs])
    return None if found is None else round(found, 3)


def summary(entry: Entry) -> dict[str, Any]:
    """What is known of a key, as plain values."""
    from boleir.runtime.tuning.choice import best

    found = best(entry.outcomes, entry.policy.tie)
    return {
        "key": entry.key.to_json(),
        "chosen": None if found is None else found.schedule.to_json(),
        "us": None if found is None else found.us,
        "error": None if found is None else found.error,
        "measured": sum(outcome.ok for outcome in entry.outcomes),
        "failed": [
            {"schedule": outcome.schedule.label, "reason": outcome.failure}
            for outcome in entry.outcomes
            if not outcome.ok
        ],
    }


def report(entries: list[Entry], predictions: list[float | None]) -> str:
    """One row for each key."""
    from boleir.runtime.tuning.choice import best

    rows = []
    for entry, predicted in zip(entries, predictions, strict=True):
        found = best(entry.outcomes, entry.policy.tie)
        count = sum(outcome.ok for outcome in entry.outcomes)
        failed = len(entry.outcomes) - count
        label = "nothing works" if found is None else found.schedule.label
        us = None if found is None else found.us
        rows.append((entry.key.name, us, count, failed, predicted, label))
    return table(("tuned", "us", "measured", "failed", "model", "schedule"), rows)
