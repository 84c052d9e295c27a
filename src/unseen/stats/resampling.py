"""Statistics of one value per seed with bootstrap intervals: stratified (percentile, BCa) and clustered.

For the interval of a mean, `unseen.stats.mean_interval` (Student's t) is the better choice below ten seeds.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from statistics import NormalDist
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike

from unseen.errors import UsageError, nearest
from unseen.randomness import Draws, Ints
from unseen.stats.intervals import FEWEST, Estimate, Floats, Interval, check_level, read_values, tails, wilson

Method = Literal["percentile", "bca"]
Statistic = Callable[..., Any]
"""Takes an array (…, n) and `axis=-1`, returns an array (…); the order of the values must not matter."""

AT_ONCE = 2**22
"""How many numbers are resampled at a time; this bounds the memory for any n."""
SLACK = 1e-12
"""Relative difference below which two values of a statistic are a tie: sums in another order round differently."""


def estimate(
    values: ArrayLike,
    statistic: Statistic = np.mean,
    *,
    generator: Draws,
    covers: str,
    strata: Iterable[Hashable] | None = None,
    clusters: Iterable[Hashable] | None = None,
    method: Method = "percentile",
    level: float = 0.95,
    resamples: int = 10_000,
) -> Estimate:
    """A statistic of one value per seed, by default the mean, with its bootstrap interval.

    With `clusters` (the task of each value, say) it is `clustered`, else the arguments are those of `bootstrap`.

    >>> from unseen.randomness import stream
    >>> print(estimate([0.90, 0.92, 0.91, 0.95], generator=stream("demo").block(), covers="initialisation"))
    0.920 [0.905, 0.940], n = 4 (initialisation), indicative
    """
    if clusters is not None:
        if strata is not None or method != "percentile":
            raise UsageError("clusters can't be combined with strata or with another method than 'percentile'")
        return clustered(
            values, clusters, statistic, generator=generator, covers=covers, level=level, resamples=resamples
        )
    array = read_values(values, "estimate", fewest=1)
    interval = bootstrap(
        array,
        statistic,
        generator=generator,
        covers=covers,
        strata=strata,
        method=method,
        level=level,
        resamples=resamples,
    )
    return Estimate(float(statistic(np.sort(array), axis=-1)), interval)


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
    statistic is computed over all of them together. With the same draws, the order of the values does not change the
    interval. `bca` corrects the percentile interval for bias and skewness (Efron 1987).

    >>> from unseen.randomness import stream
    >>> accuracies = [0.90, 0.92, 0.91, 0.95]
    >>> interval = bootstrap(accuracies, generator=stream("bootstrap", "demo").block(), covers="initialisation")
    >>> 0.90 <= interval.low < 0.92 < interval.high <= 0.95, interval.indicative
    (True, True)
    """
    if method not in get_args(Method):
        raise UsageError(f"there is no bootstrap method {method!r}. {nearest(str(method), get_args(Method))}")
    array, sizes = sort_by_stratum(read_values(values, "bootstrap"), strata)

    def measure(rows: Ints) -> Floats:
        return np.asarray(statistic(array[rows], axis=-1), np.float64)

    resampled = resampled_values(measure, sizes, generator=generator, level=level, resamples=resamples)
    quantiles = tails(level)
    if method == "bca" and len(resampled):
        observed = float(measure(np.arange(len(array))[None])[0])
        quantiles = _bca_quantiles(quantiles, resampled, observed, _acceleration(measure, sizes))
    return quantile_interval(resampled, quantiles, sizes, level=level, covers=covers, labelled=strata is not None)


def clustered(
    values: ArrayLike,
    clusters: Iterable[Hashable],
    statistic: Statistic = np.mean,
    *,
    generator: Draws,
    covers: str,
    level: float = 0.95,
    resamples: int = 10_000,
) -> Estimate:
    """A statistic of one value per run, with a percentile interval that includes the variation between clusters.

    `clusters` names the cluster of each value, e.g. its task. Clusters are drawn with replacement, then values within
    each drawn cluster. The interval is therefore about other tasks like these, whereas the `strata` of `bootstrap`
    keep the tasks fixed. Below 3 clusters there is no interval, however many runs there are. Where clusters differ in
    size, the drawn cluster takes the number of runs of the cluster that it replaces.

    >>> from unseen.randomness import stream
    >>> result = clustered([0.9, 0.91, 0.7, 0.71, 0.8, 0.81], ["a", "a", "b", "b", "c", "c"],
    ...                    generator=stream("demo").block(), covers="task instance and initialisation")
    >>> print(result)
    0.805 [0.705, 0.903], n = 6 in 3 clusters (task instance and initialisation), indicative
    """
    check_level(level)
    if resamples < 1:
        raise UsageError(f"the bootstrap needs at least one resample, got {resamples}")
    array, sizes = sort_by_stratum(read_values(values, "clustered", fewest=1), clusters, "clusters")
    low = high = math.nan
    if len(sizes) >= FEWEST:
        chunks = []
        for rows in resample_cluster_indices(sizes, generator, resamples):
            chunks.append(np.asarray(statistic(array[rows], axis=-1), np.float64))
        low, high = np.quantile(np.concatenate(chunks), tails(level)).tolist()
    interval = Interval(low, high, level, len(array), covers, clusters=len(sizes))
    return Estimate(float(statistic(array, axis=-1)), interval)


# Single numbers for several seeds, and performance profiles.


def iqm(values: ArrayLike, axis: int = -1) -> Any:
    """The interquartile mean: the mean of the middle half, robust to a bad seed and less noisy than the median.

    Where n / 4 is not a whole number, the values at the two cuts count partially, so that it is the middle half for
    every n. (Trimming whole values, as `scipy.stats.trim_mean` does, cuts nothing at n = 3, 20 % per side at n = 5 and
    14 % at n = 7: numbers over different n would be different statistics. For n divisible by 4 the two agree.)

    >>> round(float(iqm([0.0, 0.8, 0.9, 1.0])), 6), round(float(iqm([0.0, 0.5, 0.9, 0.9, 1.0])), 6)
    (0.85, 0.78)
    """
    array = np.asarray(values, np.float64)
    if array.ndim == 0 or array.shape[axis] == 0:
        raise UsageError(f"iqm needs at least one value along axis {axis}, got an array of shape {array.shape}")
    n = array.shape[axis]
    # Each of n sorted values is 1/n wide; its weight is the width inside [0.25, 0.75], doubled so that weights sum to 1.
    edges = np.clip(np.arange(n + 1) / n, 0.25, 0.75)
    middle: Floats = np.sort(np.moveaxis(array, axis, -1), axis=-1) @ (np.diff(edges) * 2)
    return middle


def solve_rate(values: ArrayLike, threshold: float, *, covers: str, level: float = 0.95) -> Estimate:
    """The share of seeds that reach a threshold, with Wilson's interval.

    >>> print(solve_rate([0.99, 0.52, 1.0, 0.98], 0.95, covers="initialisation"))
    0.750 [0.301, 0.954], n = 4 (initialisation), indicative; 3 of 4 reached 0.95
    """
    array = read_values(values, "solve_rate", fewest=1)
    solved = int(np.count_nonzero(array >= threshold))
    interval = wilson(solved, len(array), covers=covers, level=level)
    return Estimate(solved / len(array), interval, note=f"{solved} of {len(array)} reached {threshold:g}")


def profile(
    values: ArrayLike,
    thresholds: ArrayLike,
    *,
    generator: Draws,
    covers: str,
    strata: Iterable[Hashable] | None = None,
    level: float = 0.95,
    resamples: int = 10_000,
) -> list[Estimate]:
    """The performance profile: for each threshold the share of runs at or above it, with a bootstrap interval.

    At a single threshold it is the solve rate (whose Wilson interval is better). Bands are pointwise: of 20 thresholds,
    one is expected to miss. A share of 0 or 1 has an interval of width 0.

    >>> from unseen.randomness import stream
    >>> estimates = profile([0.5, 0.6, 0.9, 1.0], [0.55, 0.95], generator=stream("demo").block(), covers="data")
    >>> [share.value for share in estimates]
    [0.75, 0.25]
    """
    array, sizes = sort_by_stratum(read_values(values, "profile", fewest=1), strata)
    levels = np.asarray(thresholds, np.float64)
    if levels.ndim != 1 or not len(levels) or not np.isfinite(levels).all():
        raise UsageError(f"profile expects a list of finite thresholds, got an array of shape {levels.shape}")
    reached = (array[:, None] >= levels).astype(np.float64)

    def measure(rows: Ints) -> Floats:
        return count_draws(rows) @ reached / len(array)

    resampled = resampled_values(measure, sizes, generator=generator, level=level, resamples=resamples)
    estimates = []
    for i, share in enumerate(reached.mean(axis=0)):
        column = resampled[:, i] if len(resampled) else resampled
        interval = quantile_interval(
            column, tails(level), sizes, level=level, covers=covers, labelled=strata is not None
        )
        estimates.append(Estimate(float(share), interval, note=f"at or above {levels[i]:g}"))
    return estimates


# The machinery of resampling.


def sort_by_stratum(
    values: Floats, strata: Iterable[Hashable] | None, description: str = "strata"
) -> tuple[Floats, tuple[int, ...]]:
    """The values sorted within their strata, stratum after stratum, and the sizes of the strata.

    >>> sort_by_stratum(np.array([3.0, 1.0, 2.0]), ["T6", "T1", "T6"])
    (array([1., 2., 3.]), (1, 2))
    """
    if strata is None:
        return np.sort(values), (len(values),)
    labels = list(strata)
    if len(labels) != len(values):
        raise UsageError(
            f"{description} name the group of each value: expected {len(values)} labels, got {len(labels)}"
        )
    try:
        # By `repr`, because labels of different types can't be compared.
        groups: dict[Hashable, list[float]] = {label: [] for label in sorted(set(labels), key=repr)}
    except TypeError:
        raise UsageError(
            f"{description} are labels, one per value, got a {type(labels[0]).__name__} as label"
        ) from None
    for label, value in zip(labels, values.tolist(), strict=True):
        groups[label].append(value)
    ordered: list[float] = []
    for group in groups.values():
        ordered += sorted(group)
    return np.array(ordered, np.float64), tuple(len(group) for group in groups.values())


def resample_indices(sizes: Sequence[int], generator: Draws, resamples: int) -> Iterator[Ints]:
    """Rows of indices drawn with replacement within strata of these sizes, which lie one after another."""
    strata = np.asarray(sizes, np.int64)
    size = np.repeat(strata, strata)
    start = np.repeat(np.cumsum(strata) - strata, strata)
    for rows in chunk_sizes(resamples, len(size)):
        yield start + generator.integers(size, (rows, len(size)))


def resample_cluster_indices(sizes: Sequence[int], generator: Draws, resamples: int) -> Iterator[Ints]:
    """Rows of indices: for each cluster one drawn from all, then as many values of the drawn one as it has itself."""
    clusters = np.asarray(sizes, np.int64)
    start = np.cumsum(clusters) - clusters
    slot = np.repeat(np.arange(len(clusters)), clusters)
    for rows in chunk_sizes(resamples, int(clusters.sum())):
        chosen = generator.integers(len(clusters), (rows, len(clusters)))[:, slot]
        yield start[chosen] + generator.integers(clusters[chosen], chosen.shape)


def chunk_sizes(rows: int, width: int) -> Iterator[int]:
    """Cut a table of this many rows into chunks that fit into memory: the number of rows of each."""
    at_once = max(1, AT_ONCE // max(1, width))
    for start in range(0, rows, at_once):
        yield min(at_once, rows - start)


def count_draws(rows: Ints) -> Floats:
    """How often each of n values occurs in each row of n indices.

    >>> count_draws(np.array([[0, 0, 2], [1, 2, 0]]))
    array([[2., 0., 1.],
           [1., 1., 1.]])
    """
    height, n = rows.shape
    index = rows + n * np.arange(height)[:, None]  # one bincount for all rows
    return np.bincount(index.ravel(), minlength=height * n).reshape(height, n).astype(np.float64)


def resampled_counts(
    sizes: Sequence[int], generator: Draws, resamples: int, *, clusters: bool = False
) -> Iterator[Floats]:
    """How often each run is drawn, a row per resample, in chunks."""
    draw = resample_cluster_indices if clusters else resample_indices
    return map(count_draws, draw(sizes, generator, resamples))


def resampled_values(
    measure: Callable[[Ints], Floats], sizes: Sequence[int], *, generator: Draws, level: float, resamples: int
) -> Floats:
    """The bootstrap distribution: a measure of every resample (rows of indices); empty where a stratum is too small."""
    check_level(level)
    if resamples < 1:
        raise UsageError(f"the bootstrap needs at least one resample, got {resamples}")
    if min(sizes, default=0) < FEWEST:
        return np.empty(0)
    return np.concatenate([measure(rows) for rows in resample_indices(sizes, generator, resamples)])


def quantile_interval(
    resampled: Floats,
    quantiles: Sequence[float],
    sizes: Sequence[int],
    *,
    level: float,
    covers: str,
    labelled: bool = True,
) -> Interval:
    """The interval between two quantiles of a bootstrap distribution; NaN where the distribution is empty."""
    low, high = np.quantile(resampled, quantiles).tolist() if len(resampled) else (math.nan, math.nan)
    return Interval(low, high, level, sum(sizes), covers, tuple(sizes) if labelled else ())


def _bca_quantiles(
    quantiles: tuple[float, float], resampled: Floats, observed: float, acceleration: float
) -> tuple[float, float]:
    """The quantiles of the bootstrap distribution between which the BCa interval lies (Efron 1987)."""
    normal = NormalDist()
    slack = SLACK * float(np.abs(resampled).max())
    below = float(np.mean(resampled < observed - slack) + np.mean(resampled <= observed + slack)) / 2
    # A statistic beyond all its resamples would make the bias infinite, so its share is at least half a resample.
    half = 0.5 / len(resampled)
    bias = normal.inv_cdf(min(max(below, half), 1 - half))
    low, high = (bias + normal.inv_cdf(quantile) for quantile in quantiles)
    return normal.cdf(bias + low / (1 - acceleration * low)), normal.cdf(bias + high / (1 - acceleration * high))


def _acceleration(measure: Callable[[Ints], Floats], sizes: Sequence[int]) -> float:
    """The skewness of the values' influence by the jackknife, each stratum around its own mean."""
    n = sum(sizes)
    others = np.arange(n - 1)
    estimates = []
    start = 0
    for rows in chunk_sizes(n, n):
        omitted = np.arange(start, start + rows)
        # Row i lists all indices but i: those from i on are shifted by one.
        estimates.append(measure(others + (others >= omitted[:, None])))
        start += rows
    strata = np.split(np.concatenate(estimates), np.cumsum(sizes)[:-1])
    influence = np.concatenate([(stratum.mean() - stratum) * (len(stratum) - 1) / len(stratum) for stratum in strata])
    spread = float((influence**2).sum())
    return float((influence**3).sum()) / (6 * spread**1.5) if spread > 0 else 0.0
