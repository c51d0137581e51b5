"""Pieces and passes of products under each precision plan."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import boleir
from boleir.codegen.emit.precision import Pieces, Precision
from boleir.codegen.emit.writer import Writer
from boleir.codegen.pipeline import lower
from boleir.codegen.request import Shapes
from boleir.codegen.schedule import Schedule


@pytest.mark.parametrize(
    ("plan", "dtype", "pieces"),
    [
        ("fp32", "bf16", 1),
        ("fp32", "fp32", 2),
        ("bf16", "fp32", 1),
        ("bf16", "bf16", 1),
        ("tf32", "fp32", 1),
        ("ieee", "bf16", 1),
    ],
)
def test_pieces_per_format(plan: str, dtype: str, pieces: int) -> None:
    assert len(Precision(plan).pieces(Writer(), "x", dtype).names) == pieces


class Numbers:
    """What the emitted lines do with a float32 tile: casts, sums, masks of bits."""

    def __init__(self, values: np.ndarray[Any, Any]) -> None:
        self.values = values

    def to(self, dtype: str, bitcast: bool = False) -> Numbers:
        """A cast; to bfloat16 by rounding to the nearest, ties to even."""
        if bitcast:
            return Numbers(self.values.view(dtype))
        bits = self.values.view(np.uint32).astype(np.uint64)
        rounded = (bits + 0x7FFF + (bits >> 16 & 1)) & 0xFFFF0000
        cast = rounded.astype(np.uint32).view(np.float32)
        return Numbers(np.where(np.isnan(self.values), self.values, cast))

    def __add__(self, other: int) -> Numbers:
        return Numbers(self.values + np.int32(other))

    def __and__(self, other: int) -> Numbers:
        return Numbers(self.values & np.int32(other))

    def __sub__(self, other: Numbers) -> Numbers:
        return Numbers(self.values - other.values)


def split(names: Pieces, w: Writer, x: np.ndarray[Any, Any]) -> list[np.ndarray[Any, Any]]:
    """Values of the pieces of `x` after the lines in `w`."""
    tl = SimpleNamespace(int32="int32", float32="float32", bfloat16="bfloat16")
    found: dict[str, Any] = {"x": Numbers(x), "tl": tl}
    exec("\n".join(line.strip() for line in w.lines), found)
    return [found[name].values.astype(np.float64) for name in names.names]


def test_three_pieces_keep_every_bit() -> None:
    w = Writer()
    pieces = Precision("fp32").thirds(w, "x")
    assert pieces.names == ("x_hi", "x_lo", "x_last")
    x = np.random.default_rng(0).normal(size=100_000).astype(np.float32)
    x *= np.float32(10.0) ** np.random.default_rng(1).integers(-20, 20, x.size)
    assert (sum(split(pieces, w, x)) == x).all()
    assert Precision("ieee").thirds(Writer(), "x").names == ("x",)


def test_two_pieces_keep_sixteen_bits_and_what_is_not_finite() -> None:
    w = Writer()
    pieces = Precision("fp32").pieces(w, "x")
    x = np.random.default_rng(0).normal(size=100_000).astype(np.float32)
    assert (np.abs(sum(split(pieces, w, x)) - x) <= 2.0**-17 * np.abs(x)).all()
    strange = np.array([np.nan, np.inf, -np.inf], np.float32)
    strange = np.append(strange, np.array([0x7FFFFFFF, 0xFFFFFFFF], np.uint32).view(np.float32))
    with np.errstate(all="ignore"):
        high, low = split(pieces, w, strange)
    assert (np.isnan(high) | np.isnan(low)).all()


def test_whole_operands_keep_every_bit() -> None:
    whole = Precision("fp32", whole=True)
    assert len(whole.pieces(Writer(), "x").names) == 3
    assert len(whole.pieces(Writer(), "x", "bf16").names) == 1
    assert len(Precision("bf16", whole=True).pieces(Writer(), "x").names) == 1


@pytest.mark.parametrize(("left", "right", "passes"), [(1, 1, 1), (2, 1, 2), (2, 2, 3), (3, 1, 3)])
def test_passes_leave_out_what_is_below_the_last_digit(left: int, right: int, passes: int) -> None:
    w = Writer()
    a = Pieces(tuple(f"a{i}" for i in range(left)))
    b = Pieces(tuple(f"b{i}" for i in range(right)))
    Precision("fp32").dot(w, "out", a, b, "start")
    assert len(w.lines) == passes
    assert w.lines[-1].strip() == (
        "out = tl.dot(a0, b0, out)" if passes > 1 else "out = tl.dot(a0, b0, start)"
    )
    assert "start" in w.lines[0] and sum("start" in line for line in w.lines) == 1


@pytest.mark.parametrize(
    ("plan", "option"),
    [("ieee", 'input_precision="ieee"'), ("tf32", 'input_precision="tf32"'), ("fp32", None)],
)
def test_explicit_plans_are_one_pass(plan: str, option: str | None) -> None:
    shapes = Shapes(1, 1, 32, 32, 16, 3)
    schedule = Schedule(b_v=32, b_k=32, node_block=16, precision=plan)
    text = lower(boleir.load("gated_delta_rule"), shapes, schedule=schedule).kernel("verify").text
    dots = [line for line in text.splitlines() if "tl.dot(" in line]
    assert dots
    if option is None:
        assert not any("input_precision" in line for line in dots)
    else:
        assert all(option in line for line in dots)


@pytest.mark.parametrize(("dtype", "state", "passes"), [
    ("bfloat16", "float32", 2), ("bfloat16", "bfloat16", 1), ("float16", "float32", 3),
    ("float32", "float32", 3),
])  # fmt: skip
def test_state_products_take_what_their_operands_need(dtype: str, state: str, passes: int) -> None:
    shapes = Shapes(1, 1, 32, 32, 16, 3, dtype=dtype, state_dtype=state)
    schedule = Schedule(b_v=32, b_k=32, node_block=16)
    text = lower(boleir.load("gated_delta_rule"), shapes, schedule=schedule).kernel("verify").text
    assert sum("erased = tl.dot(" in line for line in text.splitlines()) == passes
    grams = sum("gram_k_k = tl.dot(" in line for line in text.splitlines())
    # float32 vectors meet each other with all bits
    assert grams == {"bfloat16": 1, "float16": 3, "float32": 6}[dtype]
