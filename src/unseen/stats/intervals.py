"""The results of all statistics: an `Interval` that says what it covers, and an `Estimate` that carries one."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from unseen.errors import UsageError

FEWEST = 3
"""Fewer seeds than this have no interval."""
INDICATIVE = 10
"""An interval over fewer seeds than this is marked as indicative."""

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Interval:
    """An interval at a confidence level over `n` values; `low` and `high` are NaN where there are too few.

    `covers` names the sources of variation between the values (initialisation, data, task instance); the interval does
    not cover any other. `strata` are the sizes of the groups that were resampled separately (tasks, or the two sides of
    an unpaired comparison), empty where all values form one group. Many strata do not make up for few seeds in one of
    them, so the smallest decides whether there is an interval and whether it is indicative. `clusters` is the number of
    groups (tasks) that were themselves resampled, 0 where none were; many seeds in each do not make up for few of them.
    """

    low: float
    high: float
    level: float
    n: int
    covers: str
    strata: tuple[int, ...] = ()
    clusters: int = 0

    @property
    def fewest(self) -> int:
        """The number of values in the smallest stratum, or of clusters."""
        return self.clusters or min(self.strata, default=self.n)

    @property
    def bounded(self) -> bool:
        """Whether it is finite on a side: if some seeds learn and others do not, few of them bound the mean on neither."""
        return not (math.isinf(self.low) and math.isinf(self.high))

    @property
    def indicative(self) -> bool:
        """Whether the interval rests on fewer than 10 values (or clusters) and is only a hint."""
        return self.fewest < INDICATIVE

    def within(self, low: float, high: float) -> Interval:
        """The part of it between two bounds, such as those of a share.

        >>> Interval(-0.03, 2.04, 0.95, 3, "seeds").within(0, 1).high
        1
        """
        return replace(self, low=max(self.low, low), high=min(self.high, high))


@dataclass(frozen=True)
class Estimate:
    """A number, its interval, and for comparisons the p value; `note` says how it was computed.

    >>> print(Estimate(0.25, Interval(0.1, 0.4, 0.95, 8, "initialisation", (4, 4)), p_value=0.03, note="exact"))
    0.250 [0.100, 0.400], n = 4 + 4 (initialisation), p = 0.03, indicative; exact
    """

    value: float
    interval: Interval
    p_value: float | None = None
    note: str = ""

    @property
    def n(self) -> int:
        """The number of values (of pairs, where values are paired)."""
        return self.interval.n

    @property
    def strata(self) -> tuple[int, ...]:
        """The number of values in each stratum; empty where there is only one."""
        return self.interval.strata

    @property
    def covers(self) -> str:
        """The sources of variation between the values."""
        return self.interval.covers

    def __str__(self) -> str:
        interval = self.interval
        has_interval = not math.isnan(interval.low)
        span = f"[{interval.low:z.3f}, {interval.high:z.3f}]" if has_interval else "(too few for an interval)"
        if not interval.bounded:
            has_interval = False
            span = "(no interval)"
        text = f"{self.value:z.3f} {span}, n = {' + '.join(map(str, self.strata or (self.n,)))}"
        if interval.clusters:
            text += f" in {interval.clusters} clusters"
        text += f" ({self.covers})"
        if self.p_value is not None:
            text += f", p = {self.p_value:.2g}"
        if has_interval and interval.indicative:
            text += ", indicative"
        if self.note:
            text += f"; {self.note}"
        return text


def wilson(successes: int, n: int, *, covers: str, level: float = 0.95) -> Interval:
    """Wilson's score interval of a share, e.g. of the seeds that solved a task.

    >>> interval = wilson(9, 10, covers="initialisation")
    >>> round(interval.low, 3), round(interval.high, 3)
    (0.596, 0.982)
    """
    check_level(level)
    if not 0 <= successes <= n:
        raise UsageError(f"wilson expects 0 ≤ successes ≤ n, got {successes} of {n}")
    if n < FEWEST:
        return Interval(math.nan, math.nan, level, n, covers)
    # Written out, because scipy.stats takes most of a second to import and rounds differently.
    z = NormalDist().inv_cdf((1 + level) / 2)
    p = successes / n
    shrink = 1 + z * z / n
    centre = (p + z * z / (2 * n)) / shrink
    half = z / shrink * math.sqrt(p * (1 - p) / n + (z / (2 * n)) ** 2)
    # For no or only successes one bound is exactly 0 or 1; rounding must not move it.
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


def check_level(level: float) -> None:
    """Raise an error unless the level lies between 0 and 1."""
    if not 0 < level < 1:
        raise UsageError(f"a confidence level lies between 0 and 1, got {level}; 0.95 is usual")


def tails(level: float) -> tuple[float, float]:
    """The two quantiles between which the central interval of a confidence level lies."""
    return (1 - level) / 2, (1 + level) / 2


def read_values(values: object, function: str, *, fewest: int = 0) -> Floats:
    """The values as an array (n,), one per seed; errors name the function that was called."""
    try:
        array = np.asarray(values, np.float64)
    except (TypeError, ValueError):
        raise UsageError(
            f"{function} expects a list of numbers, one per seed, got a {type(values).__name__} of something else"
        ) from None
    if array.ndim != 1:
        raise UsageError(f"{function} expects one value per seed, an array (n,), got one of shape {array.shape}")
    bad = np.count_nonzero(~np.isfinite(array))
    if bad:
        raise UsageError(
            f"{function} expects finite values, got {bad} of {len(array)} that are not; drop runs that diverged "
            "or assign them a score"
        )
    if len(array) < fewest:
        raise UsageError(f"{function} needs at least {fewest} value{'s' * (fewest > 1)}, got {len(array)}")
    return array
