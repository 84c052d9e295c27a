"""What a claim measures: a statistic of some runs, a difference or a change of differences, with its interval.

Every statistic is a function of averages over draws (seeds, or tasks with their seeds): each draw contributes a few
*moments*, and resampling the draws is resampling rows of moments. So one bootstrap serves a mean, a spread, a pooled
mean and a correlation.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from unseen.randomness import Draws
from unseen.stats import Estimate, bootstrap, clustered, wilson
from unseen.studies.claims.evidence import Evidence, Group

Floats = NDArray[np.float64]
Unit = Sequence[str]
"""The columns that name a draw."""
SIGNS = (1, -1, -1, 1)
"""Of the terms of a quantity: one group, minus another, minus the same two elsewhere."""


@dataclass(frozen=True)
class Statistic:
    """`moments` of the rows of a group, one row per draw; `finish`: their averages (…, k) over n draws → a number.

    `name` is for people; `linear` says that it is an average of one number per draw, or nearly.
    """

    name: str
    moments: Callable[[pd.DataFrame, Unit], pd.DataFrame]
    finish: Callable[[Floats, int], Floats]
    linear: bool = False


def _sums(rows: pd.DataFrame, unit: Unit, **columns: pd.Series) -> pd.DataFrame:
    return pd.DataFrame(columns).groupby([rows[name] for name in unit]).sum()


def _averages(rows: pd.DataFrame, unit: Unit) -> pd.DataFrame:
    """The average over a draw's runs; a draw that lacks one of the values has none."""
    found = rows.groupby(list(unit))["value"].agg(["mean", "size"])
    value = found["mean"][found["size"] == found["size"].max()]
    return pd.DataFrame({"value": value, "square": value**2})


def _spread(means: Floats, n: int) -> Floats:
    variance = np.maximum(means[..., 1] - means[..., 0] ** 2, 0)
    return np.asarray(np.sqrt(variance * n / (n - 1)))


def _weighted(rows: pd.DataFrame, unit: Unit) -> pd.DataFrame:
    return _sums(rows, unit, total=rows["value"] * rows["n"], count=rows["n"].astype(float))


def _totals(rows: pd.DataFrame, unit: Unit) -> pd.DataFrame:
    return _sums(rows, unit, total=rows["value"], count=rows["value"] * 0 + 1)


def _products(rows: pd.DataFrame, unit: Unit) -> pd.DataFrame:
    x, y = rows["level"].astype(float), rows["value"]
    return _sums(rows, unit, one=x * 0 + 1, x=x, y=y, xx=x * x, yy=y * y, xy=x * y)


def _pearson(means: Floats, n: int) -> Floats:
    x, y, xx, yy, xy = (means[..., k] / means[..., 0] for k in range(1, 6))
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray((xy - x * y) / np.sqrt((xx - x * x) * (yy - y * y)))


MEAN = Statistic("", _averages, lambda means, n: means[..., 0], linear=True)
SPREAD = Statistic("spread over seeds of ", _averages, _spread)
POOLED = Statistic("", _weighted, lambda means, n: means[..., 0] / means[..., 1])
"""The mean over all examples of all runs, so that a run with more of them weighs more."""
OVERALL = Statistic("", _totals, lambda means, n: means[..., 0] / means[..., 1], linear=True)
"""The mean over all runs, however many of them a draw has."""
SHARE = Statistic("share of seeds with ", _averages, lambda means, n: means[..., 0], linear=True)
"""The share of draws that have something (1 or 0), of one group: with Wilson's interval, since none of five resampled
is always none of five."""
CORRELATION = Statistic("correlation of ", _products, _pearson)
"""Pearson's r of the level of a factor and the value there, over all levels of all runs."""


@dataclass(frozen=True)
class Sample:
    """What the draws say: moments of each term by shared draw; the cluster of each, if they come in clusters; or why
    there is nothing to say."""

    terms: Sequence[Floats] = ()
    clusters: tuple[Any, ...] = ()
    left_out: tuple[str, ...] = ()
    missing: str = ""
    noun: str = "seed"

    @property
    def size(self) -> int:
        """How many draws there are."""
        return len(self.terms[0]) if self.terms else 0

    @property
    def independent(self) -> int:
        """How many of them, or of their clusters, are independent."""
        return len(set(self.clusters)) if self.clusters else self.size


@dataclass(frozen=True)
class Quantity:
    """A statistic of a group; minus that of another, if there is one; minus the same difference `before`."""

    statistic: Statistic
    group: Group
    other: Group | None = None
    before: Quantity | None = None

    @property
    def groups(self) -> tuple[Group, ...]:
        """One, two or four, with the signs of `SIGNS`."""
        here = (self.group,) if self.other is None else (self.group, self.other)
        return here if self.before is None else here + self.before.groups

    def __str__(self) -> str:
        said = " minus ".join(f"{self.statistic.name}{one}" for one in self.groups[:2])
        return said if self.before is None else f"({said}) minus ({self.before})"

    def sample(self, evidence: Evidence) -> Sample:
        """What can be measured from the evidence."""
        chosen, design = [evidence.choose(one) for one in self.groups], evidence.design
        missing = next((one.missing for one in chosen if one.missing), "")
        if missing:
            return Sample(missing=missing)
        rows = [one.rows for one in chosen]
        if design.places:
            rows = _matched(rows, design.shared_by(self.groups))
        moments = [self.statistic.moments(found, design.unit) for found in rows]
        shared = moments[0].index
        for other in moments[1:]:
            shared = shared.intersection(other.index)
        shared = shared.sort_values()
        return Sample(
            [found.loc[shared].to_numpy(np.float64) for found in moments],
            tuple(shared.get_level_values(design.cluster)) if design.cluster else (),
            tuple(dict.fromkeys(text for one in chosen for text in one.left_out)),
            noun=design.noun,
        )

    def estimate(self, sample: Sample, generator: Draws, covers: str, level: float = 0.95) -> Estimate:
        """The number and its bootstrap interval over draws, or over clusters and the draws in them."""

        def measure(rows: Floats, axis: int = -1) -> Any:
            draws = rows.astype(np.int64)
            return self._combined([term[draws].mean(axis=-2) for term in sample.terms], sample.size)

        every = np.arange(sample.size, dtype=np.float64)
        if self.statistic is SHARE:
            share = float(measure(every))
            return Estimate(share, wilson(round(share * sample.size), sample.size, covers=covers, level=level))
        if sample.clusters:
            return clustered(every, sample.clusters, measure, generator=generator, covers=covers, level=level)
        interval = bootstrap(every, measure, generator=generator, covers=covers, level=level)
        return Estimate(float(measure(every)), interval)

    def per_draw(self, sample: Sample) -> Floats | None:
        """One number per independent draw whose average is the quantity; None where it is no such average."""
        if not self.statistic.linear:
            return None
        labels = np.unique(sample.clusters, return_inverse=True)[1] if sample.clusters else np.arange(sample.size)
        return np.array(
            [
                self._combined([term[labels == one].mean(axis=0) for term in sample.terms], sample.size)
                for one in range(sample.independent)
            ]
        )

    def _combined(self, means: Sequence[Floats], n: int) -> Floats:
        found = [sign * self.statistic.finish(mean, n) for sign, mean in zip(SIGNS, means, strict=False)]
        return np.asarray(sum(found[1:], found[0]))


def _matched(tables: Sequence[pd.DataFrame], by: Sequence[str]) -> list[pd.DataFrame]:
    """The rows of each table that have a partner in every other."""
    keys = [pd.MultiIndex.from_frame(rows[list(by)]) for rows in tables]
    return [
        rows[np.logical_and.reduce([key.isin(other) for other in keys])] for rows, key in zip(tables, keys, strict=True)
    ]
