"""Means with their intervals, for many groups of runs at once."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from unseen.randomness import stream
from unseen.stats import bootstrap
from unseen.stats.clusters import clustered

RESAMPLES = 2_000
"""Ends of intervals in figures: a hundredth of their width is finer than a dot."""


def means(rows: pd.DataFrame, by: Sequence[str], clusters: str | None = None,
          resamples: int = RESAMPLES) -> pd.DataFrame:
    """One row per group: `by`, `mean`, the ends of its 95 % bootstrap interval `low` and `high` (NaN below three runs),
    how many `runs`, and how many of them were `still_learning`.

    `rows` has one row per run and group with its `value`; where `clusters` is a column (the task seed), the interval
    counts the choice of clusters as chance.

    >>> rows = pd.DataFrame({"model": ["a"] * 4, "value": [0.7, 0.8, 0.9, 0.8], "still_learning": [0, 1, 0, None]})
    >>> means(rows, ["model"]).round(2).to_dict("records")
    [{'model': 'a', 'mean': 0.8, 'low': 0.73, 'high': 0.88, 'runs': 4, 'still_learning': 1}]
    """
    known = rows[rows["value"].notna()]
    found = []
    for levels, group in known.groupby(list(by), sort=False, dropna=False):
        values, draws = group["value"].to_numpy(float), stream("interval", "figure").block()
        if clusters is None:
            low_high = bootstrap(values, generator=draws, covers="runs", resamples=resamples)
        else:
            low_high = clustered(values, group[clusters].tolist(), generator=draws, covers="runs",
                                 resamples=resamples).interval
        still = int((group["still_learning"] == 1).sum()) if "still_learning" in group else 0
        found.append([*levels, values.mean(), low_high.low, low_high.high, len(values), still])
    return pd.DataFrame(found, columns=[*by, "mean", "low", "high", "runs", "still_learning"])
