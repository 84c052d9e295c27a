"""What every statistic returns: an interval that says what it covers, and an estimate that carries one."""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from unseen.errors import UsageError

FEWEST = 3
"""No interval is given for fewer seeds than this."""
INDICATIVE = 10
"""An interval over fewer seeds than this is shown, and marked as indicative."""

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Interval:
    """An interval at a confidence level over `n` values; `low` and `high` are NaN where there are too few.

    `covers` says what varied between the values (initialisation, data, task instance): the interval is silent
    about everything else. `strata` are the sizes of the groups that were resampled each by itself (tasks, or the two
    sides of an unpaired comparison), empty where all values are one group. Few seeds in one stratum are not made up
    for by many strata, so the smallest decides whether there is an interval and whether it is indicative. `clusters`
    is the number of groups (tasks) that were themselves resampled, 0 where none were; few of them are not made up for
    by many seeds in each.
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
    def indicative(self) -> bool:
        """Whether it rests on too few values to be more than a hint."""
        return self.fewest < INDICATIVE


@dataclass(frozen=True)
class Estimate:
    """A number, its interval, and for comparisons the p value; `note` says how it came about.

    >>> print(Estimate(0.25, Interval(0.1, 0.4, 0.95, 8, "initialisation", (4, 4)), p_value=0.03, note="exact"))
    0.250 [0.100, 0.400], n = 4 + 4 (initialisation), p = 0.03, indicative; exact
    """

    value: float
    interval: Interval
    p_value: float | None = None
    note: str = ""

    @property
    def n(self) -> int:
        """How many values it rests on (pairs, where values are paired)."""
        return self.interval.n

    @property
    def strata(self) -> tuple[int, ...]:
        """How many of them are in each stratum; empty where there is one."""
        return self.interval.strata

    @property
    def covers(self) -> str:
        """What varied between them."""
        return self.interval.covers

    def __str__(self) -> str:
        known = not math.isnan(self.interval.low)
        span = f"[{self.interval.low:z.3f}, {self.interval.high:z.3f}]" if known else "(too few for an interval)"
        sizes = " + ".join(map(str, self.strata or (self.n,)))
        sizes += f" in {self.interval.clusters} clusters" if self.interval.clusters else ""
        p = "" if self.p_value is None else f", p = {self.p_value:.2g}"
        mark = ", indicative" if known and self.interval.indicative else ""
        note = f"; {self.note}" if self.note else ""
        return f"{self.value:z.3f} {span}, n = {sizes} ({self.covers}){p}{mark}{note}"


def wilson(successes: int, n: int, *, covers: str, level: float = 0.95) -> Interval:
    """Wilson's score interval of a share, e.g. of the seeds that solved a task.

    >>> found = wilson(9, 10, covers="initialisation")
    >>> round(found.low, 3), round(found.high, 3)
    (0.596, 0.982)
    """
    check_level(level)
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


def check_level(level: float) -> None:
    """Refuse what is no confidence level."""
    if not 0 < level < 1:
        raise UsageError(f"a confidence level lies between 0 and 1, got {level}; 0.95 is usual")


def one_per_seed(values: object, what: str, *, fewest: int = 0) -> Floats:
    """The values as an array (n,); every other layout is refused in the name of the function that was called."""
    try:
        given = np.asarray(values, np.float64)
    except (TypeError, ValueError):
        raise UsageError(
            f"{what} expects a list of numbers, one per seed, got a {type(values).__name__} of something else"
        ) from None
    if given.ndim != 1:
        raise UsageError(f"{what} expects one value per seed, an array (n,), got one of shape {given.shape}")
    bad = np.count_nonzero(~np.isfinite(given))
    if bad:
        raise UsageError(
            f"{what} expects finite values, got {bad} of {len(given)} that are not; leave out runs that "
            "diverged, or give them the score that they deserve"
        )
    if len(given) < fewest:
        raise UsageError(f"{what} needs at least {fewest} value{'s' * (fewest > 1)}, got {len(given)}")
    return given
