"""Intervals over seeds, each of which says what it covers."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from unseen.errors import UsageError
from unseen.randomness import Draws

FEWEST = 3
"""No interval is given for fewer seeds than this."""
INDICATIVE = 10
"""An interval over fewer seeds than this is shown, and marked as indicative."""


@dataclass(frozen=True)
class Interval:
    """An interval at a confidence level over `n` values; `low` and `high` are NaN where `n` is below 3.

    `covers` says what varied between the values (initialisation, data, task instance): the interval is silent
    about everything else.
    """

    low: float
    high: float
    level: float
    n: int
    covers: str

    @property
    def indicative(self) -> bool:
        """Whether it rests on too few values to be more than a hint."""
        return self.n < INDICATIVE


def bootstrap(
    values: ArrayLike,
    statistic: Callable[..., Any] = np.mean,
    *,
    generator: Draws,
    covers: str,
    level: float = 0.95,
    resamples: int = 10_000,
) -> Interval:
    """The percentile bootstrap interval of a statistic of one value per seed.

    `statistic` takes an array (resamples, n) and `axis=-1`. The same draws give the same interval.

    >>> from unseen.randomness import stream
    >>> accuracies = [0.90, 0.92, 0.91, 0.95]
    >>> draws = stream("bootstrap", "demo").block()
    >>> found = bootstrap(accuracies, generator=draws, covers="initialisation")
    >>> 0.90 <= found.low < 0.92 < found.high <= 0.95, found.indicative
    (True, True)
    """
    given = np.asarray(values, np.float64)
    _check_level(level)
    if given.ndim != 1 or not np.isfinite(given).all():
        bad = np.count_nonzero(~np.isfinite(given))
        raise UsageError(f"bootstrap expects one finite value per seed, got an array of shape {given.shape} "
                         f"with {bad} that are not finite; leave out diverged runs")
    if resamples < 1:
        raise UsageError(f"bootstrap needs at least one resample, got {resamples}")
    n = len(given)
    if n < FEWEST:
        return Interval(math.nan, math.nan, level, n, covers)
    resampled = given[generator.integers(n, (resamples, n))]
    low, high = np.quantile(statistic(resampled, axis=-1), [(1 - level) / 2, (1 + level) / 2])
    return Interval(float(low), float(high), level, n, covers)


def wilson(successes: int, n: int, *, covers: str, level: float = 0.95) -> Interval:
    """Wilson's score interval of a share, e.g. of the seeds that solved a task.

    >>> found = wilson(9, 10, covers="initialisation")
    >>> round(found.low, 3), round(found.high, 3)
    (0.596, 0.982)
    """
    _check_level(level)
    if not 0 <= successes <= n:
        raise UsageError(f"wilson expects 0 ≤ successes ≤ n, got {successes} of {n}")
    if n < FEWEST:
        return Interval(math.nan, math.nan, level, n, covers)
    z = NormalDist().inv_cdf((1 + level) / 2)
    p, shrink = successes / n, 1 + z * z / n
    centre = (p + z * z / (2 * n)) / shrink
    half = z / shrink * math.sqrt(p * (1 - p) / n + (z / (2 * n)) ** 2)
    # At the ends the bound is 0 or 1 exactly; rounding must not put it beyond.
    low = 0.0 if successes == 0 else max(0.0, centre - half)
    high = 1.0 if successes == n else min(1.0, centre + half)
    return Interval(low, high, level, n, covers)


def proportion_error(p: float, n: int) -> float:
    """The standard error of a share p of n independent answers; NaN where there are none.

    >>> proportion_error(0.5, 10_000)
    0.005
    """
    if n < 0 or not (0 <= p <= 1 or n == 0):
        raise UsageError(f"proportion_error expects a share between 0 and 1 and n ≥ 0, got {p} of {n}")
    return math.sqrt(p * (1 - p) / n) if n else math.nan


def _check_level(level: float) -> None:
    if not 0 < level < 1:
        raise UsageError(f"a confidence level lies between 0 and 1, got {level}; 0.95 is usual")
