"""Bringing a derived quantity to a target by changing one input: bisection, entry by entry."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from boleir.derive.algebra import split_scalar
from boleir.derive.canonical import Canon, emit
from boleir.derive.closed_form import ClosedForm
from boleir.ir import Conv, Expr, Input, Kind, Number, Per, walk
from boleir.oracle.values import Array, Values

REACH = 1000.0
"""Inputs are searched in [-REACH, REACH]; gates saturate long before."""
STEPS = 60


@dataclass(frozen=True, slots=True)
class Driver:
    """A quantity and the input that drives it."""

    quantity: Expr
    by: Input


def erase_driver(form: ClosedForm) -> Iterator[Driver]:
    """One driver for each pair whose erase vector has a scalar (or a gain) that an input moves."""
    canon = Canon()
    taken: set[int] = set()
    decay = decay_driver(form)
    if decay is not None:
        taken.add(decay.by.key)
    for pair in form.normal.pairs:
        scalar = emit(split_scalar(canon.poly(pair.erase.vector))[0])
        quantity = scalar if pair.gain is None or not isinstance(scalar, Number) else pair.gain
        by = _mover(quantity, taken)
        if by is not None:
            taken.add(by.key)
            yield Driver(quantity, by)


def decay_driver(form: ClosedForm) -> Driver | None:
    """The driver of the log decay, if there is a decay and an input that moves it."""
    if form.P.trivial:
        return None
    by = _mover(form.P.log_decay, set())
    return None if by is None else Driver(form.P.log_decay, by)


def _mover(quantity: Expr, taken: set[int]) -> Input | None:
    """An input that moves each entry of `quantity` by itself: of its kind, rather of the token than
    a parameter, not through a convolution."""
    mixed = {x.key for node in walk(quantity) if isinstance(node, Conv) for x in walk(node)}
    free = [
        x
        for x in walk(quantity)
        if isinstance(x, Input)
        and x.key not in mixed | taken
        and x.kind in (quantity.kind, Kind.HEAD)
    ]
    free.sort(key=lambda x: (x.per is Per.HEAD, x.kind is not quantity.kind))
    return free[0] if free else None


def drive(driver: Driver, values: dict[str, Any], target: Array) -> None:
    """Overwrite the driver's input so that the quantity comes as close to `target` as it can.

    `values` are the arguments of `Values`; `target` broadcasts over [T, heads, d].
    """
    inputs = values["inputs"]
    given = inputs[driver.by.name]
    low, high = np.full(given.shape, -REACH), np.full(given.shape, REACH)
    rising = _quantity(driver, values, high) >= _quantity(driver, values, low)
    goal = _fitted(np.asarray(target), driver.by, given.shape)
    for _ in range(STEPS):
        middle = (low + high) / 2
        above = (_quantity(driver, values, middle) >= goal) == rising
        high, low = np.where(above, middle, high), np.where(above, low, middle)
    # At a saturated end many inputs give the target; the bisection ends at the tamest of them.
    inputs[driver.by.name] = (low + high) / 2


def _quantity(driver: Driver, values: dict[str, Any], candidate: Array) -> Array:
    """The quantity where the driving input is `candidate`, shaped like the input."""
    changed = values | {"inputs": values["inputs"] | {driver.by.name: candidate}}
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        result = Values(**changed)(driver.quantity)
    return _fitted(np.nan_to_num(result, nan=0.0), driver.by, candidate.shape)


def _fitted(value: Array, by: Input, shape: tuple[int, ...]) -> Array:
    """[T, heads, d] to the axes of the input: the first head of a group, a mean over what it
    lacks."""
    value = np.asarray(value, dtype=np.float64)
    while value.ndim < 3:
        value = value[None]
    if by.per is Per.HEAD:
        value = value.mean(axis=0, keepdims=True)
        shape = (1, *shape)
    if by.kind is Kind.HEAD:
        value = value.mean(axis=2, keepdims=True)
        shape = (*shape, 1)
    if value.shape[1] > shape[1]:
        value = value[:, :: value.shape[1] // shape[1]]
    value = np.broadcast_to(value, shape)
    value = value[..., 0] if by.kind is Kind.HEAD else value
    return value[0] if by.per is Per.HEAD else value
