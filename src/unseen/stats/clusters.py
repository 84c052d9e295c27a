"""The bootstrap of values that come in clusters, such as the seeds of several tasks."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence

import numpy as np
from numpy.typing import ArrayLike

from unseen.errors import UsageError
from unseen.randomness import Draws, Ints
from unseen.stats.intervals import FEWEST, Estimate, Interval, check_level, one_per_seed
from unseen.stats.resampling import Statistic, batches, lay_out


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
    """A statistic of one value per run, with the percentile interval that counts the choice of clusters as chance.

    `clusters` names the cluster of each value, e.g. its task. Clusters are drawn with replacement, then values within
    each drawn one; so the interval is about other tasks like these, whereas `strata` of `bootstrap` hold the tasks
    fixed. There is none below 3 clusters, however many runs. Of clusters of unequal size a drawn one takes the place,
    and the number of runs, of another.

    >>> from unseen.randomness import stream
    >>> found = clustered([0.9, 0.91, 0.7, 0.71, 0.8, 0.81], ["a", "a", "b", "b", "c", "c"],
    ...                   generator=stream("demo").block(), covers="task instance and initialisation")
    >>> print(found)
    0.805 [0.705, 0.903], n = 6 in 3 clusters (task instance and initialisation), indicative
    """
    check_level(level)
    if resamples < 1:
        raise UsageError(f"the bootstrap needs at least one resample, got {resamples}")
    given, sizes = lay_out(one_per_seed(values, "clustered", fewest=1), clusters, "clusters")
    low = high = float("nan")
    if len(sizes) >= FEWEST:
        drawn = np.concatenate(
            [
                np.asarray(statistic(given[rows], axis=-1), np.float64)
                for rows in resample_clusters(sizes, generator, resamples)
            ]
        )
        low, high = np.quantile(drawn, [(1 - level) / 2, (1 + level) / 2]).tolist()
    interval = Interval(low, high, level, len(given), covers, clusters=len(sizes))
    return Estimate(float(statistic(given, axis=-1)), interval)


def resample_clusters(sizes: Sequence[int], generator: Draws, resamples: int) -> Iterator[Ints]:
    """Rows of indices: for each cluster one drawn from all, then as many of the drawn one's values as it has itself."""
    each = np.asarray(sizes, np.int64)
    start, place = np.cumsum(each) - each, np.repeat(np.arange(len(each)), each)
    for rows in batches(resamples, int(each.sum())):
        chosen = generator.integers(len(each), (rows, len(each)))[:, place]
        yield start[chosen] + generator.integers(each[chosen], chosen.shape)
