"""How many seeds would settle a comparison."""

from __future__ import annotations

import math
from statistics import NormalDist

import numpy as np
from numpy.typing import ArrayLike

from unseen.errors import UsageError
from unseen.stats.compare import Scores, differences, keyed
from unseen.stats.intervals import FEWEST, check_level, one_per_seed

LARGE = 10_000
"""From this many seeds on Student's t is normal to four digits."""


def seeds_to_settle(
    a: Scores | ArrayLike,
    b: Scores | None = None,
    *,
    margin: float = 0.0,
    level: float = 0.95,
    power: float = 0.8,
) -> int | None:
    """The number of seeds, those already run included, whose interval would exclude the margin.

    `a` are paired differences (or scores to hold against a bound, the margin), one per seed; or `a` and `b` are
    scores by seed, and the differences on shared seeds are taken. It is the smallest n at which the t interval
    excludes the margin with probability `power`, if the true mean and spread are those seen so far. A rough number:
    it inherits the error of both. None where nothing can be said: fewer than 3 seeds, or a mean on the margin.

    >>> seeds_to_settle([0.02, 0.05, -0.01, 0.04])
    11
    >>> seeds_to_settle({0: 0.9, 1: 0.8, 2: 0.7}, {0: 0.9, 1: 0.7, 2: 0.8}) is None
    True
    """
    check_level(level)
    if not 0 < power < 1:
        raise UsageError(f"power lies between 0 and 1, got {power}; 0.8 is usual")
    values = one_per_seed(_differences(a, b), "seeds_to_settle")
    if len(values) < FEWEST:
        return None
    spread = float(values.std(ddof=1))
    distance = abs(float(values.mean()) - margin)
    # Below this, the distance is rounding: equal seeds give no more than a few units in the last place.
    rounding = 1e-12 * max(abs(margin), float(np.abs(values).max()))
    if distance <= rounding:
        return None
    if spread <= rounding:
        return FEWEST
    return _smallest(distance / spread, level, power)


def _differences(a: Scores | ArrayLike, b: Scores | None) -> object:
    if b is None:
        return [value for _, value in a.items()] if keyed(a) else a
    if not keyed(a):
        raise UsageError("seeds_to_settle expects differences, or two dicts or Series seed → score")
    found = differences(a, b)
    if len(set(found.strata)) > 1:
        raise UsageError("seeds_to_settle counts seeds: average over the strata of each seed first")
    return found.values


def _smallest(effect: float, level: float, power: float) -> int:
    """The smallest n for an effect in units of the spread; power grows with n, so halving finds it."""
    from scipy.stats import nct, t  # inside, because importing it takes most of a second

    normal = NormalDist()
    asymptotic = (max(0.0, normal.inv_cdf((1 + level) / 2) + normal.inv_cdf(power)) / effect) ** 2
    if asymptotic > LARGE:
        return math.ceil(asymptotic)

    def settles(n: int) -> bool:
        critical = t.ppf((1 + level) / 2, n - 1)
        return bool(nct.sf(critical, n - 1, effect * math.sqrt(n)) >= power)

    low, high = FEWEST - 1, FEWEST
    while not settles(high):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if settles(middle) else (middle, high)
    return high
