"""Means with intervals clustered by task, for thousands of groups: `means` at once, since most are laid out alike."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

import numpy as np
import pandas as pd

from unseen.randomness import Floats, stream
from unseen.report.means import RESAMPLES
from unseen.stats.clusters import resample_clusters
from unseen.stats.intervals import FEWEST
from unseen.stats.resampling import counts

CLUSTER = "task_seed"
_KEPT = 200
"""Draws for layouts of so many runs are kept: most figures have the same."""


def clustered_means(rows: pd.DataFrame, by: list[str]) -> pd.DataFrame:
    """The same as `means(rows, by, clusters="task_seed")`.

    >>> rows = pd.DataFrame({"family": "a", "task_seed": [0, 0, 1, 1, 2, 2], "value": [0.7, 0.8, 0.9, 0.8, 0.6, 0.7]})
    >>> clustered_means(rows, ["family"]).round(2).to_dict("records")
    [{'family': 'a', 'mean': 0.75, 'low': 0.65, 'high': 0.85, 'runs': 6, 'still_learning': 0}]
    """
    known = rows[rows["value"].notna()]
    labels = sorted(set(known[CLUSTER].tolist()), key=repr)
    group = known.groupby(by, sort=False, dropna=False).ngroup().to_numpy()
    cluster = known[CLUSTER].map({label: place for place, label in enumerate(labels)}).to_numpy(int)
    values = known["value"].to_numpy(float)
    ordered = values[np.lexsort((values, cluster, group))]
    found = known.drop_duplicates(by)[by].reset_index(drop=True)
    runs = np.bincount(group, minlength=len(found))
    start = np.cumsum(runs) - runs
    sizes = np.bincount(group * max(len(labels), 1) + cluster, minlength=len(found) * len(labels))
    layouts: dict[tuple[int, ...], list[int]] = {}
    for number, row in enumerate(sizes.reshape(len(found), -1).tolist() if len(found) else []):
        layouts.setdefault(tuple(size for size in row if size), []).append(number)
    mean, low, high = np.full((3, len(found)), np.nan)
    for layout, members in layouts.items():
        table = ordered[start[members][:, None] + np.arange(sum(layout))]
        mean[members] = table.mean(axis=1)
        low[members], high[members] = interval(table, layout)
    still = known["still_learning"].eq(1).to_numpy() if "still_learning" in known else np.zeros(len(known), bool)
    return found.assign(mean=mean, low=low, high=high, runs=runs,
                        still_learning=np.bincount(group, still, len(found)).astype(int))


def interval(table: Floats, layout: tuple[int, ...], resamples: int = RESAMPLES) -> tuple[Floats, Floats]:
    """The ends of the 95 % intervals of the means of rows (G, runs), whose clusters of these sizes lie one after
    another; NaN where clusters are too few. All rows are drawn again in the same way."""
    if len(layout) < FEWEST:
        return np.full(len(table), np.nan), np.full(len(table), np.nan)
    weights = iter(_weights(layout, resamples)) if sum(layout) <= _KEPT else _draw(layout, resamples)
    drawn = np.concatenate([often @ table.T for often in weights]) / sum(layout)
    low, high = np.quantile(drawn, [0.025, 0.975], axis=0)
    return low, high


@lru_cache(maxsize=32)
def _weights(layout: tuple[int, ...], resamples: int) -> tuple[Floats, ...]:
    return tuple(_draw(layout, resamples))


def _draw(layout: tuple[int, ...], resamples: int) -> Iterator[Floats]:
    """How often each run is drawn, a row per resample."""
    for rows in resample_clusters(layout, stream("interval", "figure").block(), resamples):
        yield counts(rows)
