"""Whole numbers that callers give: counts, and places in a list."""

from __future__ import annotations

from operator import index

from boleir.errors import LaunchError


def whole(name: str, value: object) -> int:
    """`value` as an int. Raises `LaunchError` for what is no whole number, True and False too."""
    if not isinstance(value, bool):
        try:
            return index(value)  # type: ignore[arg-type]
        except TypeError:
            pass
    raise LaunchError(f"{name} must be a whole number, not {value!r}")


def count(name: str, value: object, least: int) -> int:
    """A whole number of at least `least`. Raises `LaunchError`."""
    number = whole(name, value)
    if number < least:
        raise LaunchError(f"{name} must be at least {least}, not {number}")
    return number


def place(name: str, value: object, size: int, owner: str) -> int:
    """The number of one of `size` things that `owner` has. Raises `LaunchError`."""
    number = whole(name, value)
    if not 0 <= number < size:
        raise LaunchError(f"{name} {number} is not one of the {owner}'s {size}")
    return number
