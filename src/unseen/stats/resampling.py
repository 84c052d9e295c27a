"""The stratified bootstrap, percentile and BCa. Randomness is handed in."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from statistics import NormalDist
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike

from unseen.errors import UsageError, nearest
from unseen.randomness import Draws, Ints
from unseen.stats.intervals import FEWEST, Estimate, Floats, Interval, check_level, one_per_seed

Method = Literal["percentile", "bca"]
Statistic = Callable[..., Any]
"""Takes an array (…, n) and `axis=-1`, gives an array (…); the order of the values must not matter."""

AT_ONCE = 2**22
"""How many numbers are resampled at a time: bounds the memory, whatever n."""
SLACK = 1e-12
"""Relative difference below which two values of a statistic are a tie: sums in another order round differently."""


def bootstrap(
    values: ArrayLike,
    statistic: Statistic = np.mean,
    *,
    generator: Draws,
    covers: str,
    strata: Iterable[Hashable] | None = None,
    method: Method = "percentile",
    level: float = 0.95,
    resamples: int = 10_000,
) -> Interval:
    """The bootstrap interval of a statistic of one value per seed.

    `strata` names the group of each value (e.g. its task): values are then resampled within their group, and the
    statistic is of all of them together. The same values in any order, with the same draws, give the same interval.
    `bca` corrects the percentile interval for bias and skewness (Efron 1987).

    >>> from unseen.randomness import stream
    >>> accuracies = [0.90, 0.92, 0.91, 0.95]
    >>> found = bootstrap(accuracies, generator=stream("bootstrap", "demo").block(), covers="initialisation")
    >>> 0.90 <= found.low < 0.92 < found.high <= 0.95, found.indicative
    (True, True)
    """
    if method not in get_args(Method):
        raise UsageError(f"there is no bootstrap method {method!r}. {nearest(str(method), get_args(Method))}")
    given, sizes = lay_out(one_per_seed(values, "bootstrap"), strata)

    def measure(rows: Ints) -> Floats:
        return np.asarray(statistic(given[rows], axis=-1), np.float64)

    drawn = distribution(measure, sizes, generator=generator, level=level, resamples=resamples)
    shares = ((1 - level) / 2, (1 + level) / 2)
    if method == "bca" and len(drawn):
        observed = float(measure(np.arange(len(given))[None])[0])
        shares = _corrected(shares, drawn, observed, _acceleration(measure, sizes))
    return between(drawn, shares, sizes, level=level, covers=covers, labelled=strata is not None)


def estimate(
    values: ArrayLike,
    statistic: Statistic = np.mean,
    *,
    generator: Draws,
    covers: str,
    strata: Iterable[Hashable] | None = None,
    method: Method = "percentile",
    level: float = 0.95,
    resamples: int = 10_000,
) -> Estimate:
    """A statistic of one value per seed, with its interval; the arguments are those of `bootstrap`."""
    given = one_per_seed(values, "estimate", fewest=1)
    interval = bootstrap(
        given,
        statistic,
        generator=generator,
        covers=covers,
        strata=strata,
        method=method,
        level=level,
        resamples=resamples,
    )
    return Estimate(float(statistic(np.sort(given), axis=-1)), interval)


def lay_out(values: Floats, strata: Iterable[Hashable] | None, what: str = "strata") -> tuple[Floats, tuple[int, ...]]:
    """The values sorted within their strata, stratum after stratum, and the sizes of the strata.

    >>> lay_out(np.array([3.0, 1.0, 2.0]), ["T6", "T1", "T6"])
    (array([1., 2., 3.]), (1, 2))
    """
    if strata is None:
        return np.sort(values), (len(values),)
    labels = list(strata)
    if len(labels) != len(values):
        raise UsageError(f"{what} name the group of each value: expected {len(values)} labels, got {len(labels)}")
    try:
        groups: dict[Hashable, list[float]] = {label: [] for label in sorted(set(labels), key=repr)}
    except TypeError:
        raise UsageError(f"{what} are labels, one per value, got a {type(labels[0]).__name__} as label") from None
    for label, value in zip(labels, values.tolist(), strict=True):
        groups[label].append(value)
    sizes = tuple(len(group) for group in groups.values())
    return np.array([value for group in groups.values() for value in sorted(group)], np.float64), sizes


def resample(sizes: Sequence[int], generator: Draws, resamples: int) -> Iterator[Ints]:
    """Rows of indices drawn with replacement within strata of these sizes, which lie one after another."""
    each = np.asarray(sizes, np.int64)
    size, start = np.repeat(each, each), np.repeat(np.cumsum(each) - each, each)
    for rows in batches(resamples, len(size)):
        yield start + generator.integers(size, (rows, len(size)))


def batches(rows: int, width: int) -> Iterator[int]:
    """Cut a table of so many rows into pieces that fit into memory: the number of rows of each."""
    at_once = max(1, AT_ONCE // max(1, width))
    yield from (min(at_once, rows - done) for done in range(0, rows, at_once))


def counts(rows: Ints) -> Floats:
    """How often each of n values occurs in each row of n indices.

    >>> counts(np.array([[0, 0, 2], [1, 2, 0]]))
    array([[2., 0., 1.],
           [1., 1., 1.]])
    """
    height, n = rows.shape
    cells = rows + n * np.arange(height)[:, None]
    return np.bincount(cells.ravel(), minlength=height * n).reshape(height, n).astype(np.float64)


def distribution(
    measure: Callable[[Ints], Floats], sizes: Sequence[int], *, generator: Draws, level: float, resamples: int
) -> Floats:
    """A measure of every resample (rows of indices), along the first axis; empty where a stratum is too small."""
    check_level(level)
    if resamples < 1:
        raise UsageError(f"the bootstrap needs at least one resample, got {resamples}")
    if min(sizes, default=0) < FEWEST:
        return np.empty(0)
    return np.concatenate([measure(rows) for rows in resample(sizes, generator, resamples)])


def between(
    drawn: Floats, shares: Sequence[float], sizes: Sequence[int], *, level: float, covers: str, labelled: bool = True
) -> Interval:
    """The interval between two quantiles of a bootstrap distribution."""
    low, high = np.quantile(drawn, shares).tolist() if len(drawn) else (math.nan, math.nan)
    return Interval(low, high, level, sum(sizes), covers, tuple(sizes) if labelled else ())


def _corrected(shares: tuple[float, float], drawn: Floats, observed: float, acceleration: float) -> tuple[float, float]:
    """The shares of the bootstrap distribution between which the BCa interval lies (Efron 1987)."""
    normal, slack = NormalDist(), SLACK * float(np.abs(drawn).max())
    below = float(np.mean(drawn < observed - slack) + np.mean(drawn <= observed + slack)) / 2
    # A statistic beyond all its resamples would put the correction at infinity: half a resample is the least.
    bias = normal.inv_cdf(min(max(below, 0.5 / len(drawn)), 1 - 0.5 / len(drawn)))
    low, high = (bias + normal.inv_cdf(share) for share in shares)
    return normal.cdf(bias + low / (1 - acceleration * low)), normal.cdf(bias + high / (1 - acceleration * high))


def _acceleration(measure: Callable[[Ints], Floats], sizes: Sequence[int]) -> float:
    """The skewness of the values' influence, by leaving each out in turn; each stratum around its own mean."""
    n = sum(sizes)
    others, ends = np.arange(n - 1), np.cumsum(list(batches(n, n)))
    left_out = np.concatenate(
        [measure(others + (others >= missing[:, None])) for missing in np.split(np.arange(n), ends[:-1])]
    )
    parts = np.split(left_out, np.cumsum(sizes)[:-1])
    influence = np.concatenate([(part.mean() - part) * (len(part) - 1) / len(part) for part in parts])
    spread = float((influence**2).sum())
    return float((influence**3).sum()) / (6 * spread**1.5) if spread > 0 else 0.0
