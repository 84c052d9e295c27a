"""Spearman's rank correlation within groups of units, with a permutation test."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

from unseen.errors import UsageError
from unseen.randomness import Draws

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class RankCorrelation:
    """The mean of Spearman's ρ over groups, and how often permuted units give one as low (`p_below`) or as high (`p_above`).

    `groups` has the ρ of each group in order; NaN, and left out, where a group has fewer than three units or no spread.
    """

    rho: float
    p_below: float
    p_above: float
    groups: tuple[float, ...]
    units: int


def correlate_ranks(
    groups: Sequence[tuple[Sequence[float], Sequence[float]]], draws: Draws, permutations: int = 10_000
) -> RankCorrelation:
    """Correlate the ranks of two measures over the units of each group; units are permuted within their groups only.

    >>> from unseen.randomness import stream
    >>> opposed = ([1, 2, 3, 4, 5], [9, 7, 5, 3, 1])
    >>> result = correlate_ranks([opposed, opposed], stream("doctest").block(), permutations=1000)
    >>> result.rho, result.p_below < 0.01, result.units
    (-1.0, True, 10)
    """
    pairs = []
    correlations = []
    units = 0
    for first, second in groups:
        if len(first) != len(second):
            raise UsageError(f"a group has {len(first)} values of one measure and {len(second)} of the other")
        x = _standardized_ranks(first)
        y = _standardized_ranks(second)
        if x is None or y is None:
            correlations.append(float("nan"))
            continue
        units += len(x)
        pairs.append((x, y))
        # Of ranks with mean 0 and length 1, the scalar product is Spearman's ρ.
        correlations.append(float(x @ y))
    if not pairs:
        raise UsageError("no group has three units that differ in both measures")
    observed = float(np.mean([x @ y for x, y in pairs]))
    permuted = np.zeros(permutations)
    for x, y in pairs:
        orders = draws.permutations(permutations, len(x))
        permuted += x[orders] @ y / len(pairs)
    # The observed order is one of the permutations, so that no p is 0; equal values may differ by rounding.
    below = (1 + int((permuted <= observed + 1e-9).sum())) / (1 + permutations)
    above = (1 + int((permuted >= observed - 1e-9).sum())) / (1 + permutations)
    return RankCorrelation(observed, below, above, tuple(correlations), units)


def _standardized_ranks(values: Sequence[float] | NDArray[Any]) -> Floats | None:
    """Ranks with mean 0 and length 1; None if there are fewer than three, or all are equal."""
    ranks = rankdata(np.asarray(values, np.float64))
    centred = ranks - ranks.mean()
    length = np.linalg.norm(centred)
    return None if len(ranks) < 3 or length == 0 else centred / length
