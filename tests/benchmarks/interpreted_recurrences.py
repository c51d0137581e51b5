"""Run in a child with TRITON_INTERPRET=1: the measurement of all recurrences, in small."""

from __future__ import annotations

import sys
from pathlib import Path

from benchmarks import recurrences
from benchmarks.serving_shapes import LAYERS, LayerShape

if __name__ == "__main__":
    LAYERS["qwen3.5-9b"] = LayerShape("qwen3.5-9b", key_heads=1, value_heads=2, d_k=16, d_v=16)
    options = ["--device", "cpu", "--dtype", "float32", "--rows", "1x5x2", "--rounds", "1"]
    raise SystemExit(recurrences.main([*options, "--out", str(Path(sys.argv[1])), *sys.argv[2:]]))
