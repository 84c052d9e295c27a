"""Means with their intervals, for thousands of groups of runs at once: most are laid out alike, so that one set of
draws does for them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache

import numpy as np
import pandas as pd

from unseen.randomness import Floats, stream
from unseen.stats.clusters import resample_clusters
from unseen.stats.intervals import FEWEST
from unseen.stats.resampling import counts, resample

RESAMPLES = 2_000
"""Ends of intervals in figures: a hundredth of their width is finer than a dot."""
KEPT = 200
"""Draws for up to so many runs are kept: most figures ask for the same."""


def means(
    rows: pd.DataFrame, by: Sequence[str], clusters: str | None = None, resamples: int = RESAMPLES
) -> pd.DataFrame:
    """One row per group: `by`, `mean`, the ends of its 95 % bootstrap interval `low` and `high` (NaN below three runs),
    how many `runs`, and how many of them were `still_learning`.

    `rows` has one row per run and group with its `value`; where `clusters` is a column (the task seed), the interval
    counts the choice of clusters as chance, and is NaN below three of them.

    >>> rows = pd.DataFrame({"model": ["a"] * 4, "value": [0.7, 0.8, 0.9, 0.8], "still_learning": [0, 1, 0, None]})
    >>> means(rows, ["model"]).round(1).to_dict("records")
    [{'model': 'a', 'mean': 0.8, 'low': 0.7, 'high': 0.9, 'runs': 4, 'still_learning': 1}]
    """
    known = rows[rows["value"].notna()]
    group = known.groupby(list(by), sort=False, dropna=False).ngroup().to_numpy()
    first = np.unique(group, return_index=True)[1]
    cluster, size = _codes(known[clusters]) if clusters else (np.zeros(len(known), np.int64), 1)
    values = known["value"].to_numpy(float)
    ordered = values[np.lexsort((values, cluster, group))]
    runs = np.bincount(group, minlength=len(first))
    start = np.cumsum(runs) - runs
    sizes = np.bincount(group * size + cluster, minlength=len(first) * size).reshape(len(first), size)
    alike: dict[tuple[int, ...], list[int]] = {}
    for number, row in enumerate(sizes.tolist()):
        alike.setdefault(tuple(filter(None, row)), []).append(number)
    mean, low, high = np.full((3, len(first)), np.nan)
    for own, members in alike.items():
        table = ordered[start[members][:, None] + np.arange(sum(own))]
        mean[members] = table.mean(axis=1)
        low[members], high[members] = intervals(table, own, resamples, clusters is not None)
    still = known["still_learning"].eq(1).to_numpy() if "still_learning" in known else np.zeros(len(known), bool)
    return (
        known[list(by)]
        .iloc[first]
        .reset_index(drop=True)
        .assign(
            mean=mean, low=low, high=high, runs=runs, still_learning=np.bincount(group, still, len(first)).astype(int)
        )
    )


def intervals(
    table: Floats, sizes: tuple[int, ...], resamples: int = RESAMPLES, clustered: bool = True
) -> tuple[Floats, Floats]:
    """The ends of the 95 % intervals of the means of rows (G, runs), all of which are drawn again in the same way.

    Runs of a cluster stand side by side, and clusters have these sizes; without clusters there is one size.
    """
    if (len(sizes) if clustered else sum(sizes)) < FEWEST:
        return np.full(len(table), np.nan), np.full(len(table), np.nan)
    often = _kept(sizes, resamples, clustered) if sum(sizes) <= KEPT else _drawn(sizes, resamples, clustered)
    low, high = np.quantile(np.concatenate([part @ table.T for part in often]) / sum(sizes), [0.025, 0.975], axis=0)
    return low, high


@lru_cache(maxsize=32)
def _kept(sizes: tuple[int, ...], resamples: int, clustered: bool) -> tuple[Floats, ...]:
    return tuple(_drawn(sizes, resamples, clustered))


def _drawn(sizes: tuple[int, ...], resamples: int, clustered: bool) -> Iterator[Floats]:
    """How often each run is drawn, a row per resample."""
    draw = resample_clusters if clustered else resample
    return map(counts, draw(sizes, stream("interval", "figure").block(), resamples))


def _codes(labels: pd.Series) -> tuple[np.ndarray, int]:
    """Labels as numbers in the order in which the statistics of clusters take them, and how many there are."""
    known = sorted(set(labels.tolist()), key=repr)
    return labels.map({label: place for place, label in enumerate(known)}).to_numpy(np.int64), len(known)
