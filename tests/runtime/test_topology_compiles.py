"""The topology kernel compiles for GPUs that are not there; its threads exchange no data."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest

ARCHES = (80, 90, 100)
SHAPES = ((64, 8, 1), (60, 12, 1), (256, 255, 4))

_COMPILE = """
import json, sys
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from boleir.codegen.topology import warps_for
from boleir.codegen.topology_kernel import topology

def report(arch, nodes, depth, words):
    pointers = ("parents", "cu_nodes", "ancestors", "depth", "near", "flags")
    signature = {name: "*i64" if name == "ancestors" else "*i32" for name in pointers}
    constants = {"MAX_NODES": nodes, "MAX_DEPTH": depth, "CONV_WIDTH": 4, "WORDS": words}
    signature |= dict.fromkeys(constants, "constexpr")
    kernel = triton.compile(
        ASTSource(topology, signature, constants),
        target=GPUTarget("cuda", arch, 32),
        options={"num_warps": warps_for(nodes, words)},
    )
    return {
        "variant": [arch, nodes, depth, words],
        "bytes": len(kernel.asm["cubin"]),
        "shared": kernel.metadata.shared,
        "conversions": kernel.asm["ttgir"].count("convert_layout"),
    }

print(json.dumps([report(*variant) for variant in json.loads(sys.argv[1])]))
"""


@pytest.fixture(scope="module")
def reports() -> list[dict[str, Any]]:
    """Compiled in a child: an architecture that the compiler rejects may end the process."""
    variants = [(arch, *shape) for arch in ARCHES for shape in SHAPES]
    child = subprocess.run(
        [sys.executable, "-c", _COMPILE, json.dumps(variants)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert child.returncode == 0, child.stderr[-2000:]
    return json.loads(child.stdout.splitlines()[-1])


def test_every_variant_compiles(reports: list[dict[str, Any]]) -> None:
    assert len(reports) == len(ARCHES) * len(SHAPES)
    assert all(report["bytes"] > 0 for report in reports)


def test_every_lane_keeps_its_own_word(reports: list[dict[str, Any]]) -> None:
    for report in reports:
        assert report["conversions"] == 0, report
        # Only the reductions of several warps meet in shared memory.
        assert report["shared"] <= 1024, report
