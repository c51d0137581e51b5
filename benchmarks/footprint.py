"""Bytes that a round writes and keeps, beside one state snapshot per node: no GPU is needed.

`python -m benchmarks.footprint` counts them from the emitted kernels' own description of their
buffers, for the layers and rows that are measured, and writes `results/footprint.json`.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from benchmarks.floor import ACTIVATION_BYTES, STATE_BYTES
from benchmarks.result_file import command_line, keep
from benchmarks.serving_shapes import LAYERS, TREE_ROWS, LayerShape, Row
from boleir.codegen.defaults import default_schedule
from boleir.codegen.interface import Interface, interface_of
from boleir.codegen.pipeline import lower
from boleir.codegen.planner import make_plan
from boleir.codegen.request import Shapes
from boleir.codegen.targets import target
from boleir.derive.derive import derive
from boleir.library import resolve

RESULT = Path(__file__).parent / "results" / "footprint.json"
FORMAT = 1
FLOAT_BYTES = 4


def interface(shape: LayerShape, row: Row, *, commit: str = "replay") -> Interface:
    """The buffers of GDN's default kernels for a row; with `commit` "factors" or "factors16", of
    those that store what the commit sums up."""
    recurrence = resolve("gdn")
    shapes = Shapes(shape.key_heads, shape.value_heads, shape.d_k, shape.d_v, row.nodes, row.depth)
    sizes = (shape.d_k, shape.d_v, shape.key_heads, shape.value_heads)
    schedule = default_schedule(make_plan(derive(recurrence).normal, *sizes), shapes, row.batch)
    if commit != "replay":
        schedule = replace(schedule, fusion="fused", solver="horner", commit=commit)
    return interface_of(lower(recurrence, shapes, schedule=schedule, target=target("sm_90")))


def node_bytes(face: Interface) -> dict[str, int]:
    """Bytes per node of one layer: `kept` until the commit (convolved inputs, unknowns if stored,
    and the gates it reads again), `scratch` that the next layer uses anew, `out`."""
    gates = sum(x.channels for x in face.inputs if x.name not in face.convolved)
    each = getattr(torch, face.unknown_dtype).itemsize
    unknowns = face.unknowns * face.value_heads * face.unknown_width * each
    stored = unknowns if "unknowns" in face.table else 0
    return {
        "kept": (face.kept_channels + gates) * ACTIVATION_BYTES + stored,
        "scratch": face.planes * face.value_heads * FLOAT_BYTES
        + unknowns
        - stored
        + (face.conv_channels - face.kept_channels) * ACTIVATION_BYTES,
        "out": face.value_heads * face.d_v * ACTIVATION_BYTES,
    }


def written(face: Interface, shape: LayerShape, row: Row) -> dict[str, int]:
    """Bytes that one layer writes in one round."""
    per_node = node_bytes(face)
    gates = sum(x.channels for x in face.inputs if x.name not in face.convolved)
    folded = face.folded * getattr(torch, face.folded_dtype).itemsize
    own = per_node["kept"] - gates * ACTIVATION_BYTES + per_node["scratch"]
    window = shape.packed_dim * (shape.conv_width - 1) * ACTIVATION_BYTES
    return {
        "verify": row.total_nodes * own + row.batch * (folded + face.vectors * FLOAT_BYTES),
        "out": row.total_nodes * per_node["out"],
        "commit": row.batch * (shape.state_elements * STATE_BYTES + window),
    }


def snapshots(shape: LayerShape, row: Row) -> dict[str, int]:
    """The same for one snapshot of state and window per node."""
    state = shape.state_elements * STATE_BYTES
    window = shape.packed_dim * (shape.conv_width - 1) * ACTIVATION_BYTES
    return {
        "verify": row.total_nodes * (state + window + shape.packed_dim * ACTIVATION_BYTES),
        "out": row.total_nodes * shape.value_dim * ACTIVATION_BYTES,
        "commit": row.batch * (state + window),
    }


def case(shape: LayerShape, row: Row) -> dict[str, Any]:
    """One layer shape and row."""
    stored = interface(shape, row)
    per_commit = {x: interface(shape, row, commit=x) for x in ("factors", "factors16")}
    state = shape.state_elements * STATE_BYTES
    ours, theirs = written(stored, shape, row), snapshots(shape, row)
    return {
        "layer": shape.name,
        "row": str(row),
        "snapshot_bytes_per_node": state,
        "bytes_per_node": {
            "replay": node_bytes(stored)["kept"],  # lives from verification to commit
            **{commit: node_bytes(face)["kept"] for commit, face in per_commit.items()},
            "paper_factors": _factor_bytes(shape),
        },
        "written": {"boleir": ours, "snapshots": theirs},
        "verify_ratio": theirs["verify"] / ours["verify"],
        "round_ratio": sum(theirs.values()) / sum(ours.values()),
        "scratch_bytes": _scratch(stored, row),
    }


def _factor_bytes(shape: LayerShape) -> int:
    """The paper's factors of one node in float32: P, U and K."""
    return FLOAT_BYTES * (shape.value_heads * (1 + shape.d_v) + shape.key_dim)


def _scratch(face: Interface, row: Row) -> int:
    """Bytes that all layers use in turn, for the whole batch."""
    folded = face.folded * getattr(torch, face.folded_dtype).itemsize
    per_request = folded + face.vectors * FLOAT_BYTES
    return row.total_nodes * node_bytes(face)["scratch"] + row.batch * per_request


def report(command: str) -> dict[str, Any]:
    """All layers and tree rows."""
    cases = [case(shape, row) for shape in LAYERS.values() for row in TREE_ROWS]
    return {"format": FORMAT, "environment": {"command": command}, "cases": cases}


def markdown(found: Mapping[str, Any]) -> str:
    """One line per layer and row."""
    head = [
        "layer", "batch x nodes x depth", "snapshot / node", "kept / node", "ratio",
        "verification writes", "snapshots write", "ratio", "round ratio",
    ]  # fmt: skip
    lines = [head, ["---"] * len(head)]
    for item in found["cases"]:
        snapshot, kept = item["snapshot_bytes_per_node"], item["bytes_per_node"]
        lines.append(
            [
                item["layer"],
                item["row"],
                _size(snapshot),
                _size(kept["replay"]),
                f"{snapshot / kept['replay']:.0f}x",
                _size(item["written"]["boleir"]["verify"]),
                _size(item["written"]["snapshots"]["verify"]),
                f"{item['verify_ratio']:.0f}x",
                f"{item['round_ratio']:.1f}x",
            ]
        )
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _size(count: float) -> str:
    """Bytes in decimal units."""
    for unit, size in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= size:
            return f"{count / size:.1f} {unit}"
    return f"{count:.0f} B"


def main(arguments: Sequence[str] | None = None) -> int:
    """Count, print, keep."""
    arguments = sys.argv[1:] if arguments is None else arguments
    command = argparse.ArgumentParser(description=(__doc__ or "").split(":")[0])
    command.add_argument("--out", type=Path, default=RESULT)
    options = command.parse_args(arguments)
    found = report(command_line(arguments, "benchmarks.footprint"))
    keep(found, options.out)
    print(markdown(found))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
