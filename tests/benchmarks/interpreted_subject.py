"""Called where Triton interprets kernels: boleir as a subject."""

from __future__ import annotations

import torch

from benchmarks.boleir_subject import BoleirSubject
from benchmarks.measure import capture, check
from benchmarks.protocol import HostClock
from benchmarks.serving_shapes import Kind, LayerShape, Row
from benchmarks.workload import make_workload


def errors(kind: Kind, *, full: bool) -> dict[str, float]:
    """Of a small layer."""
    shape = LayerShape("small", key_heads=2, value_heads=2, d_k=16, d_v=16)
    work = make_workload(shape, Row(2, 5, 2), layers=2, kind=kind, dtype=torch.float32)
    clock = HostClock()
    return check(capture(BoleirSubject(work, full=full), work, clock), work, clock)
