"""How a time grows with a size: the exponent k of t ∝ n^k, from measured points."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from benchmarks.rows import Row

FEWEST = 3
"""Points of a fit: with two there is no telling how far it is off."""


@dataclass(frozen=True)
class Fitted:
    """An exponent, its standard error (NaN with two points), and how many points it comes from."""

    exponent: float
    error: float
    points: int


def fitted(curve: Mapping[int, float]) -> Fitted:
    """The slope of log t over log n by least squares: 1 for a time in proportion, 2 for a square, 0 for none at all.

    >>> found = fitted({1: 3.0, 2: 6.0, 4: 12.0})
    >>> round(found.exponent, 6), round(found.error, 6), found.points
    (1.0, 0.0, 3)
    """
    n, t = (np.log(np.array(list(side), float)) for side in (curve.keys(), curve.values()))
    n, t = n - n.mean(), t - t.mean()
    spread = float(n @ n)
    slope = float(n @ t) / spread
    free = len(n) - 2
    error = math.sqrt(float(((t - slope * n) ** 2).sum()) / free / spread) if free else math.nan
    return Fitted(slope, error, len(n))


def upper_half(curve: Mapping[int, float]) -> dict[int, float]:
    """The larger half of the sizes, and no fewer than three: what a time has of a constant counts least there.

    >>> upper_half({8: 1.0, 1: 0.1, 2: 0.2, 4: 0.4, 16: 2.0, 32: 4.0, 64: 8.0})
    {8: 1.0, 16: 2.0, 32: 4.0, 64: 8.0}
    """
    sizes = sorted(curve)
    return {n: curve[n] for n in sizes[-max(FEWEST, math.ceil(len(sizes) / 2)) :]}


def exponents(case: str, curve: Mapping[int, float]) -> Iterator[Row]:
    """The exponent of a curve over the upper half of its sizes, which is the one to read, and over all of them."""
    parts = {"exponent": upper_half(curve)}
    if len(parts["exponent"]) < len(curve):
        parts["exponent, all sizes"] = dict(curve)
    for figure, part in parts.items():
        found = fitted(part)
        low, high = found.exponent - found.error, found.exponent + found.error
        known = not math.isnan(found.error)
        yield Row(
            case,
            figure,
            found.exponent,
            "",
            low=low if known else None,
            high=high if known else None,
            rounds=found.points,
            note=f"± its standard error; {len(part)} sizes, {min(part)} to {max(part)}",
        )
