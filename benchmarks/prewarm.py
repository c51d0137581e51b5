"""Compiles the kernels of all measurements ahead on all cores: `python -m benchmarks.prewarm`.

Children take the variants in turns and leave them in the cache of compiled kernels, from which the
measurements then read. One that fails is reported and left to the measurement.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from typing import NamedTuple

from benchmarks.recurrences import key_heads_for
from benchmarks.run import rows_from
from benchmarks.serving_shapes import LAYERS, Row
from boleir.codegen.plan import NoKernel
from boleir.errors import BoleirError
from boleir.library import names, resolve


class Variant(NamedTuple):
    """A recurrence on a row."""

    recurrence: str
    row: Row


MEASURED: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("gated_delta_rule", ("trees", "chains", "decode", "growth", "depth", "batch")),
    ("gdn", ("trees", "chains")),
    ("kda", ("trees",)),
    ("all", ("1x64x8", "16x64x8")),
)
"""Recurrences and the rows that are measured of them."""


def variants(measured: Sequence[tuple[str, Sequence[str]]] = MEASURED) -> list[Variant]:
    """All, each once, in the order of `measured`."""
    found: dict[Variant, None] = {}
    for name, rows in measured:
        for row in rows_from(rows):
            for recurrence in names() if name == "all" else (name,):
                found[Variant(recurrence, row)] = None
    return list(found)


def compile_one(variant: Variant, layer: str, target: str | None) -> None:
    """Compile as the measurements do. Raises `BoleirError`."""
    import boleir

    shape, row = LAYERS[layer], variant.row
    recurrence = resolve(variant.recurrence)
    for key_heads in key_heads_for(recurrence, shape):
        boleir.compile(
            recurrence, key_heads=key_heads, value_heads=shape.value_heads, d_k=shape.d_k,
            d_v=shape.d_v, max_nodes=row.nodes, max_depth=row.depth, batch=row.batch, target=target,
            dtype="bfloat16",
        )  # fmt: skip


def compile_share(part: int, parts: int, layer: str, target: str | None) -> int:
    """Every `parts`-th variant, beginning with number `part`; how many failed."""
    failures = 0
    for variant in variants()[part::parts]:
        started = time.monotonic()
        try:
            compile_one(variant, layer, target)
        except NoKernel:
            continue
        except BoleirError as error:
            failures += 1
            print(f"{variant.recurrence} {variant.row}: {error.message}", file=sys.stderr)
            continue
        print(f"{variant.recurrence} {variant.row}: {time.monotonic() - started:.1f} s", flush=True)
    return failures


def main(arguments: Sequence[str] | None = None) -> int:
    """Start the children, or be one."""
    command = argparse.ArgumentParser(description=(__doc__ or "").split(":")[0])
    command.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    command.add_argument("--layer", choices=LAYERS, default="qwen3.5-9b")
    command.add_argument("--target", help="compile without that GPU (default: for the one present)")
    command.add_argument("--share", type=int, help="only this child's share")
    options = command.parse_args(arguments)
    if options.share is not None:
        return min(1, compile_share(options.share, options.jobs, options.layer, options.target))
    own = [sys.executable, "-m", "benchmarks.prewarm", "--jobs", str(options.jobs)]
    own += ["--layer", options.layer, *(["--target", options.target] if options.target else [])]
    started = time.monotonic()
    children = [subprocess.Popen([*own, "--share", str(share)]) for share in range(options.jobs)]
    failed = sum(child.wait() != 0 for child in children)
    seconds = time.monotonic() - started
    print(f"{len(variants())} variants in {seconds:.0f} s, {failed} children had failures")
    return min(1, failed)


if __name__ == "__main__":
    raise SystemExit(main())
