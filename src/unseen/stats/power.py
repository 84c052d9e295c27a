"""The number of seeds that would settle a comparison."""

from __future__ import annotations

import math
from statistics import NormalDist

import numpy as np
from numpy.typing import ArrayLike

from unseen.errors import UsageError
from unseen.stats.intervals import FEWEST, check_level, read_values
from unseen.stats.tests import Scores, differences, is_keyed

LARGE = 10_000
"""From this number of seeds on, Student's t is normal to four digits."""


def seeds_to_settle(
    a: Scores | ArrayLike,
    b: Scores | None = None,
    *,
    margin: float = 0.0,
    level: float = 0.95,
    power: float = 0.8,
) -> int | None:
    """The number of seeds, those already run included, whose interval would exclude the margin.

    `a` are paired differences (or scores to compare with a bound, the margin), one per seed; or `a` and `b` are
    scores by seed, whose differences on shared seeds are taken. The result is the smallest n at which the t interval
    excludes the margin with probability `power`, if the true mean and spread are those observed so far. It is a rough
    number, because it inherits the error of both. None below 3 seeds or if the mean lies on the margin.

    >>> seeds_to_settle([0.02, 0.05, -0.01, 0.04])
    11
    >>> seeds_to_settle({0: 0.9, 1: 0.8, 2: 0.7}, {0: 0.9, 1: 0.7, 2: 0.8}) is None
    True
    """
    check_level(level)
    if not 0 < power < 1:
        raise UsageError(f"power lies between 0 and 1, got {power}; 0.8 is usual")
    observed: object = a
    if b is not None:
        if not is_keyed(a):
            raise UsageError("seeds_to_settle expects differences, or two dicts or Series seed → score")
        shared = differences(a, b)
        if len(set(shared.strata)) > 1:
            raise UsageError("seeds_to_settle counts seeds: average over the strata of each seed first")
        observed = shared.values
    elif is_keyed(a):
        observed = [value for _, value in a.items()]
    values = read_values(observed, "seeds_to_settle")
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


def _smallest(effect: float, level: float, power: float) -> int:
    """The smallest n for an effect in units of the spread."""
    from scipy.stats import nct, t  # inside, because importing it takes most of a second

    normal = NormalDist()
    asymptotic = (max(0.0, normal.inv_cdf((1 + level) / 2) + normal.inv_cdf(power)) / effect) ** 2
    if asymptotic > LARGE:
        return math.ceil(asymptotic)

    def settles(n: int) -> bool:
        critical = t.ppf((1 + level) / 2, n - 1)
        return bool(nct.sf(critical, n - 1, effect * math.sqrt(n)) >= power)

    # Power grows with n: double until it suffices, then bisect.
    low = FEWEST - 1
    high = FEWEST
    while not settles(high):
        low = high
        high = 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        if settles(middle):
            high = middle
        else:
            low = middle
    return high
