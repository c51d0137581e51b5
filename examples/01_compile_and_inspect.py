"""Compile Gated DeltaNet for GPUs that need not be present, and look at everything on the way.

Shows what the library derives from the recurrence, the schedule it chose, what the compiler made
of the kernels (registers, spills, shared memory), and where the readable kernel source is.

    python examples/01_compile_and_inspect.py [folder]
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import boleir as bole
from boleir.codegen.artifact_folder import write
from boleir.codegen.build import build
from boleir.codegen.request import Request, Shapes

TARGETS = ("sm_80", "sm_90", "sm_120")


def main() -> None:
    """Run the example."""
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else tempfile.mkdtemp()) / "gdn"
    gdn = bole.load("gdn")
    print(f"The recurrence, one token:\n\n{gdn}")

    form = bole.derive(gdn)
    lemmas = str(form).partition("Lemma 1")[2]
    print(f"What follows for all nodes of a tree:\n\n  Lemma 1{lemmas}")

    # Qwen3.5-9B: 16 key heads, 32 value heads of 128 x 128; trees of up to 64 nodes, 8 deep.
    shapes = Shapes(key_heads=16, value_heads=32, d_k=128, d_v=128, max_nodes=64, max_depth=8)
    print(f"Compiling for {', '.join(TARGETS)} ...")
    artifact = build(Request(gdn, shapes, TARGETS))
    for variant in artifact.variants:
        print(f"\n{variant.target}")
        for launch in variant.launches:
            facts = variant.report[launch.kernel]
            print(
                f"  {launch.kernel:<8} grid {launch.grid[0]:<24} {launch.num_warps} warps, "
                f"{facts['registers']} registers, {facts['spills']} bytes spilled, "
                f"{facts['shared'] / 1024:.0f} KiB shared, {facts['size'] / 1024:.0f} KiB of code"
            )
    write(artifact, folder)
    print(f"\nThe kernels as readable Python: {folder / artifact.variants[0].source}")
    print(f"Everything a serving process needs: bole.load_compiled({str(folder)!r})")


if __name__ == "__main__":
    main()
