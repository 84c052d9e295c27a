"""One-sided confidence limits of means, shares, spreads and correlations over few units, and p values from them.

All limits answer one question: `at(alpha)` returns a lower and an upper limit, each of which is wrong with probability
`alpha` at most. `p_above` and `p_below` invert them, so a p value and an interval never disagree. `docs/statistics.md`
measures how often they are wrong.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from unseen.errors import UsageError
from unseen.stats.intervals import FEWEST, Estimate, Floats, Interval, check_level, read_values

NEAR = 3.0
"""Units lie near an end of their scale if their mean is within this many standard deviations of it."""
_SMALLEST = 1e-12
"""P values are not resolved below this."""
_BISECTIONS = 60
_LARGEST_EXPONENT = 700.0


class Limits(Protocol):
    """A number with its one-sided confidence limits."""

    @property
    def value(self) -> float:
        """The estimate."""
        ...

    def at(self, alpha: float) -> tuple[float, float]:
        """The lower and the upper limit, each wrong with probability `alpha` at most."""
        ...


@dataclass(frozen=True)
class MeanLimits:
    """Student's t limits of a mean of n units with this standard error and degrees of freedom.

    `lowest` and `highest` are the ends of the scale (0 and 1 for an accuracy), infinite if there are none. Units near an end
    have a long tail on the other side, which a small sample may miss: three seeds between 0.99 and 1.00 are no evidence
    that the fourth is not at 0.8. There, distances from the end are taken to follow a gamma distribution, and the limit on
    the far side is the wider of the t limit and the gamma limit. With many units the shape of the gamma distribution
    follows from their mean and spread; three units have the shape ½ (one degree of freedom each); in between, it is
    interpolated by the number of units.
    """

    value: float
    error: float
    freedom: float
    n: int = 0
    lowest: float = -math.inf
    highest: float = math.inf

    def at(self, alpha: float) -> tuple[float, float]:
        """The lower and the upper limit, each wrong with probability `alpha` at most."""
        width = float(special.stdtrit(self.freedom, 1 - alpha)) * self.error
        low = self.value - width
        high = self.value + width
        reach = NEAR * self.error * math.sqrt(self.n)
        above = self.value - self.lowest
        below = self.highest - self.value
        # alpha > 1/2 occurs only in the search for a p value; the correction is for limits beyond the estimate.
        if alpha < 0.5 and self.n >= FEWEST and min(above, below) < reach:
            shape = (min(above, below) / (self.error * math.sqrt(self.n))) ** 2
            freedom = self.n * max(1.0, 2 * shape * (self.n - FEWEST) / (self.n - 1))
            factor = freedom / float(special.chdtri(freedom, 1 - alpha))
            if below <= above:
                low = min(low, self.highest - factor * below)
            else:
                high = max(high, self.lowest + factor * above)
        return low, high


@dataclass(frozen=True)
class ShareLimits:
    """Clopper and Pearson's limits of a share of n independent units.

    >>> low, high = ShareLimits(9, 10).at(0.025)
    >>> round(low, 3), round(high, 3)
    (0.555, 0.997)
    """

    successes: int
    n: int

    @property
    def value(self) -> float:
        """The observed share."""
        return self.successes / self.n

    def at(self, alpha: float) -> tuple[float, float]:
        """The lower and the upper limit, each wrong with probability `alpha` at most."""
        k, n = self.successes, self.n
        low = float(special.betaincinv(k, n - k + 1, alpha)) if k else 0.0
        high = float(special.betaincinv(k + 1, n - k, 1 - alpha)) if k < n else 1.0
        return low, high


@dataclass(frozen=True)
class SpreadLimits:
    """The limits of a standard deviation: those of chi-squared, or of the jackknife where these are farther.

    Chi-squared is exact for normal units and far too certain for skewed ones. `error` is the jackknife's standard error
    of the logarithm (Miller 1968), with Student's t. `least` is the standard deviation that a finite test set gives to
    equal models: the upper limit of units that are all equal is that of this spread.
    """

    value: float
    freedom: float
    error: float = 0.0
    least: float = 0.0

    def at(self, alpha: float) -> tuple[float, float]:
        """The lower and the upper limit, each wrong with probability `alpha` at most."""
        factor = _spread_factor(self.error, self.freedom, alpha)
        low = math.sqrt(self.freedom / float(special.chdtri(self.freedom, alpha)))
        high = math.sqrt(self.freedom / float(special.chdtri(self.freedom, 1 - alpha)))
        if alpha < 0.5:
            low = min(low, 1 / factor)
            high = max(high, factor)
        return self.value * low, (self.value or self.least) * high


@dataclass(frozen=True)
class SpreadDifferenceLimits:
    """The limits of a difference of two standard deviations, from those of their ratio: F, or the jackknife's.

    The ratio is expressed in units of the second one, so the difference is above zero exactly if the ratio is above
    one. `error` is the jackknife's standard error of the logarithm of the ratio. `least` are the standard deviations
    that a finite test set gives to equal models. They stand for a spread of zero: that three units happen to be equal is
    no evidence that all are.
    """

    first: float
    second: float
    freedom: float
    error: float = 0.0
    least: tuple[float, float] = (0.0, 0.0)

    @property
    def value(self) -> float:
        """The first minus the second."""
        return self.first - self.second

    def at(self, alpha: float) -> tuple[float, float]:
        """The lower and the upper limit, each wrong with probability `alpha` at most."""
        factor = math.sqrt(float(special.fdtri(self.freedom, self.freedom, 1 - alpha)))
        if alpha < 0.5:
            factor = max(factor, _spread_factor(self.error, self.freedom, alpha))
        first, second = self.first or self.least[0], self.second or self.least[1]
        # Of a spread of zero, and nothing known of the test set, nothing tells how large it may be.
        low = second * (self.first / second / factor - 1) if second > 0 else -math.inf
        high = first * factor - self.second if first > 0 else math.inf
        return low, high


def spread_error(values: Floats) -> float:
    """The jackknife's standard error of the logarithm of a standard deviation; 0 where leaving one out leaves none."""
    n = len(values)
    others = [float(np.delete(values, unit).std(ddof=1)) for unit in range(n)]
    if min(others) <= 0:
        return 0.0
    return float(np.std(np.log(others), ddof=1)) * (n - 1) / math.sqrt(n)


def _spread_factor(error: float, freedom: float, alpha: float) -> float:
    """The factor of the jackknife's limits of a spread, or of a ratio of spreads."""
    return math.exp(min(float(special.stdtrit(freedom, 1 - alpha)) * error, _LARGEST_EXPONENT))


@dataclass(frozen=True)
class CorrelationLimits:
    """The limits of a correlation: Student's t on Fisher's scale, with a standard error over units."""

    value: float
    error: float
    freedom: float

    def at(self, alpha: float) -> tuple[float, float]:
        """The lower and the upper limit, each wrong with probability `alpha` at most."""
        width = float(special.stdtrit(self.freedom, 1 - alpha)) * self.error
        centre = math.atanh(min(max(self.value, -1 + 1e-12), 1 - 1e-12))
        return math.tanh(centre - width), math.tanh(centre + width)


@dataclass(frozen=True)
class MixtureLimits:
    """The limits of a mean where some units learned and others did not.

    The mean is the share that learned times their mean plus the rest times theirs. Half of the error goes to Clopper
    and Pearson's limit of the share, half to the t limit of those that learned; the others are taken at the least
    favourable of their values. Few units say little about the share, so three of them never decide such a mean. The two
    kinds may change places: the t limit may be that of those that failed.
    """

    value: float
    share: ShareLimits
    learned: Limits
    lowest: float
    highest: float

    def at(self, alpha: float) -> tuple[float, float]:
        """The lower and the upper limit, each wrong with probability `alpha` at most."""
        if self.share.n <= FEWEST:
            return -math.inf, math.inf
        shares = self.share.at(alpha / 2)
        low, high = self.learned.at(alpha / 2)
        return (
            min(share * low + (1 - share) * self.lowest for share in shares),
            max(share * high + (1 - share) * self.highest for share in shares),
        )


@dataclass(frozen=True)
class WidestLimits:
    """The widest of several limits of the same number: it can only be more careful than each of them."""

    choices: tuple[Limits, ...]

    @property
    def value(self) -> float:
        """The estimate, that of the first."""
        return self.choices[0].value

    def at(self, alpha: float) -> tuple[float, float]:
        """The lower and the upper limit, each wrong with probability `alpha` at most."""
        limits = [choice.at(alpha) for choice in self.choices]
        return min(low for low, _ in limits), max(high for _, high in limits)


@dataclass(frozen=True)
class NoLimits:
    """A number without limits: nothing is known about its error."""

    value: float

    def at(self, alpha: float) -> tuple[float, float]:
        """Everything is possible."""
        return -math.inf, math.inf


# -- p values ---------------------------------------------------------------------------------------------------------


def p_above(limits: Limits, bound: float) -> float:
    """The one-sided p value of *the true value is above the bound*: the smallest alpha whose lower limit is above.

    >>> round(p_above(MeanLimits(2.92, 1.0, 2), 0.0), 3)
    0.05
    """
    return _smallest_alpha(lambda alpha: limits.at(alpha)[0] > bound)


def p_below(limits: Limits, bound: float) -> float:
    """The one-sided p value of *the true value is below the bound*."""
    return _smallest_alpha(lambda alpha: limits.at(alpha)[1] < bound)


def _smallest_alpha(excludes: Callable[[float], bool]) -> float:
    """The smallest alpha at which the limit excludes the bound, by bisection on the logarithm of its odds."""
    if excludes(_SMALLEST):
        return _SMALLEST
    if not excludes(1 - _SMALLEST):
        return 1.0
    low, high = float(special.logit(_SMALLEST)), float(special.logit(1 - _SMALLEST))
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        if excludes(float(special.expit(middle))):
            high = middle
        else:
            low = middle
    return float(special.expit(high))


# -- means ------------------------------------------------------------------------------------------------------------


def mean_limits(
    values: ArrayLike,
    *,
    variance: float | None = None,
    freedom: float | None = None,
    lowest: float = -math.inf,
    highest: float = math.inf,
) -> MeanLimits:
    """The t limits of the mean of one value per unit; a moderated variance and its freedom replace the sample's own."""
    array = read_values(values, "mean_limits", fewest=2)
    n = len(array)
    spread = float(array.var(ddof=1)) if variance is None else variance
    return MeanLimits(
        float(array.mean()), math.sqrt(spread / n), n - 1 if freedom is None else freedom, n, lowest, highest
    )


def welch(ours: MeanLimits, spread: float | None, n: int | None) -> MeanLimits:
    """Limits of our mean that include the error of a printed one, of n units with this standard deviation (Welch).

    The printed mean minus ours has the same limits around their difference. A number that is printed without spread or
    number of units counts as exact.
    """
    if not spread or n is None or n < 2:
        return ours
    theirs = spread**2 / n
    variance = ours.error**2 + theirs
    freedom = variance**2 / (ours.error**4 / ours.freedom + theirs**2 / (n - 1))
    return MeanLimits(ours.value, math.sqrt(variance), freedom, ours.n)


def bounded_limits(
    mean: Floats, variance: Floats, freedom: Floats | float, n: int, alpha: float
) -> tuple[Floats, Floats]:
    """The limits of `MeanLimits` for many means of n units each, on a scale from 0 to 1."""
    error = np.sqrt(variance / n)
    width = special.stdtrit(freedom, 1 - alpha) * error
    low, high = mean - width, mean + width
    distance = np.minimum(mean, 1 - mean)
    near = distance < NEAR * np.sqrt(variance)
    shape = distance**2 / np.where(near, variance, 1.0)
    gamma_freedom = n * np.maximum(1, 2 * shape * (n - FEWEST) / (n - 1))
    reach = distance * gamma_freedom / special.chdtri(gamma_freedom, 1 - alpha)
    low = np.where(near & (mean >= 0.5), np.minimum(low, 1 - reach), low)
    high = np.where(near & (mean < 0.5), np.maximum(high, reach), high)
    return low, high


def mean_intervals(table: Floats, level: float = 0.95) -> tuple[Floats, Floats]:
    """The bounds of the intervals of the means of rows (G, n) of units, as `mean_interval` has them for one.

    >>> low, high = mean_intervals(np.array([[0.90, 0.92, 0.91, 0.95], [1.0, 2.0, 3.0, 4.0]]))
    >>> low.round(3).tolist(), high.round(3).tolist()
    ([0.886, 0.446], [0.954, 4.554])
    """
    check_level(level)
    groups, n = table.shape
    if n < FEWEST:
        return np.full(groups, np.nan), np.full(groups, np.nan)
    mean = table.mean(axis=1)
    variance = table.var(axis=1, ddof=1)
    alpha = (1 - level) / 2
    width = special.stdtrit(n - 1, 1 - alpha) * np.sqrt(variance / n)
    low, high = mean - width, mean + width
    # Values that all lie between 0 and 1 are taken to be on that scale, as claims take them.
    scaled = ((table >= 0) & (table <= 1)).all(axis=1)
    low[scaled], high[scaled] = bounded_limits(mean[scaled], variance[scaled], n - 1.0, n, alpha)
    return low, high


def mean_interval(
    values: ArrayLike,
    level: float = 0.95,
    *,
    covers: str = "",
    clusters: Iterable[Hashable] | None = None,
) -> Interval:
    """The t interval of a mean of one value per unit; NaN below three units.

    Values that all lie between 0 and 1 are taken to be on that scale: see `MeanLimits`. With `clusters` (the task of
    each value, say) these are the units: the interval is that of the mean over clusters of their means, and is about
    other clusters like these.

    >>> interval = mean_interval([0.60, 0.62, 0.61, 0.65], covers="initialisation")
    >>> round(interval.low, 3), round(interval.high, 3)
    (0.586, 0.654)
    """
    array = read_values(values, "mean_interval")
    count = 0
    units = np.sort(array)
    if clusters is not None:
        units = cluster_means(array, clusters)
        count = len(units)
    low, high = mean_intervals(units[None], level)
    return Interval(float(low[0]), float(high[0]), level, len(array), covers, clusters=count)


def compare_means(
    a: Mapping[str, float], b: Mapping[str, float], *, covers: str, level: float = 0.95, paired: bool = True
) -> Estimate:
    """The mean of a minus that of b, one value per unit, with its t interval and the two-sided p value.

    Units that both have are paired, and the others are left out; if they share none, or with `paired=False`, it is Welch's
    test of all. Interval and p value agree: one excludes zero exactly if the other is below 1 − level. There is neither
    below three units, and no p value for differences that do not vary.

    >>> print(compare_means({"0": 0.98, "1": 0.97, "2": 0.99}, {"0": 0.71, "1": 0.73, "2": 0.70}, covers="seeds"))
    0.267 [0.204, 0.329], n = 3 (seeds), p = 0.003, indicative; paired
    """
    check_level(level)
    shared = sorted(a.keys() & b.keys()) if paired else []
    first = np.array([a[key] for key in shared or a], np.float64)
    second = np.array([b[key] for key in shared or b], np.float64)
    value = float(first.mean() - second.mean())
    sizes = () if shared else (len(first), len(second))
    n = len(shared) or sum(sizes)
    if min(len(first), len(second)) < FEWEST:
        return Estimate(value, Interval(math.nan, math.nan, level, n, covers, sizes))
    if shared:
        limits = mean_limits(first - second)
    else:
        limits = welch(mean_limits(first), float(second.std(ddof=1)), len(second))
        limits = MeanLimits(value, limits.error, limits.freedom, n)
    low, high = limits.at((1 - level) / 2)
    p_value = None
    if limits.error > 0:
        p_value = min(1.0, 2 * float(special.stdtr(limits.freedom, -abs(value) / limits.error)))
    interval = Interval(low, high, level, n, covers, sizes)
    return Estimate(value, interval, p_value, "paired" if shared else "Welch's test")


def cluster_means(values: Floats, clusters: Iterable[Hashable]) -> Floats:
    """The mean of each cluster, sorted."""
    labels = list(clusters)
    if len(labels) != len(values):
        raise UsageError(f"clusters name the group of each value: expected {len(values)} labels, got {len(labels)}")
    groups: dict[Hashable, list[float]] = {}
    for label, value in zip(labels, values.tolist(), strict=True):
        groups.setdefault(label, []).append(value)
    return np.sort([float(np.mean(sorted(group))) for group in groups.values()])
