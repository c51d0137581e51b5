"""Spearman's rank correlation: does the order of one list say anything about that of another?"""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt


def ranks(values: Sequence[float]) -> list[float]:
    """The place of each value in ascending order, equal values sharing the mean of theirs."""
    order = sorted(range(len(values)), key=lambda at: values[at])
    found = [0.0] * len(values)
    start = 0
    while start < len(order):
        end = start
        while end + 1 < len(order) and values[order[end + 1]] == values[order[start]]:
            end += 1
        for at in order[start : end + 1]:
            found[at] = (start + end) / 2
        start = end + 1
    return found


def rank_correlation(first: Sequence[float], second: Sequence[float]) -> float | None:
    """Between -1 and 1 (Spearman 1904: Pearson's coefficient of the ranks); None where one list
    says nothing, being constant or shorter than two. Raises `ValueError` for unequal lengths."""
    if len(first) != len(second):
        raise ValueError(f"{len(first)} and {len(second)} values")
    a, b = ranks(first), ranks(second)
    mean = (len(a) - 1) / 2
    covariance = sum((x - mean) * (y - mean) for x, y in zip(a, b, strict=True))
    spread = sum((x - mean) ** 2 for x in a) * sum((y - mean) ** 2 for y in b)
    return covariance / sqrt(spread) if spread > 0 else None
