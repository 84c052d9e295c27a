"""What a criterion measures: a statistic of some runs, a difference or a change of differences, with its interval.

Every statistic is a function of averages over draws (seeds, or tasks with their seeds): each draw contributes a few
*moments*, and resampling the draws means resampling rows of moments. So one bootstrap serves a mean, a spread, a pooled
mean and a correlation.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from unseen.claims.evidence import Evidence, Group, LeftOut, Missing
from unseen.randomness import Draws
from unseen.stats import Estimate, estimate, wilson

Floats = NDArray[np.float64]
SIGNS = (1, -1, -1, 1)
"""Of the terms of a quantity: a group, minus another, minus the same difference before."""
RESAMPLES = 10_000


@dataclass(frozen=True)
class Statistic:
    """`moments` maps the rows of a group and the columns that name a draw to one row per draw; `finish` maps their
    averages (…, k) over n draws to a number.

    `name` is the beginning of its description. `linear` means that it is an average of one number per draw, or nearly.
    """

    name: str
    moments: Callable[[pd.DataFrame, Sequence[str]], pd.DataFrame]
    finish: Callable[[Floats, int], Floats]
    linear: bool = False


def _sum_per_draw(rows: pd.DataFrame, draw: Sequence[str], **columns: pd.Series) -> pd.DataFrame:
    return pd.DataFrame(columns).groupby([rows[name] for name in draw]).sum()


def _averages(rows: pd.DataFrame, draw: Sequence[str]) -> pd.DataFrame:
    """The average over the runs of a draw; a draw that lacks some of them is left out."""
    groups = rows.groupby(list(draw))["value"].agg(["mean", "size"])
    value = groups["mean"][groups["size"] == groups["size"].max()]
    return pd.DataFrame({"value": value, "square": value**2})


def _standard_deviation(means: Floats, n: int) -> Floats:
    # The difference of two moments may be negative by rounding.
    variance = np.maximum(means[..., 1] - means[..., 0] ** 2, 0)
    return np.asarray(np.sqrt(variance * n / (n - 1)))


def _weighted_totals(rows: pd.DataFrame, draw: Sequence[str]) -> pd.DataFrame:
    return _sum_per_draw(rows, draw, total=rows["value"] * rows["n"], count=rows["n"].astype(float))


def _totals(rows: pd.DataFrame, draw: Sequence[str]) -> pd.DataFrame:
    return _sum_per_draw(rows, draw, total=rows["value"], count=rows["value"] * 0 + 1)


def _products(rows: pd.DataFrame, draw: Sequence[str]) -> pd.DataFrame:
    x = rows["level"].astype(float)
    y = rows["value"]
    return _sum_per_draw(rows, draw, count=x * 0 + 1, x=x, y=y, xx=x * x, yy=y * y, xy=x * y)


def _pearson(means: Floats, n: int) -> Floats:
    x, y, xx, yy, xy = (means[..., k] / means[..., 0] for k in range(1, 6))
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray((xy - x * y) / np.sqrt((xx - x * x) * (yy - y * y)))


MEAN = Statistic("", _averages, lambda means, n: means[..., 0], linear=True)
SPREAD = Statistic("spread over seeds of ", _averages, _standard_deviation)
POOLED = Statistic("", _weighted_totals, lambda means, n: means[..., 0] / means[..., 1])
"""The mean over all examples of all runs, so that a run with more of them weighs more."""
OVERALL = Statistic("", _totals, lambda means, n: means[..., 0] / means[..., 1], linear=True)
"""The mean over all runs, however many of them a draw has."""
SHARE = Statistic("share of seeds with ", _averages, lambda means, n: means[..., 0], linear=True)
"""The share of draws that have a property (1 or 0), of one group, with Wilson's interval: resampling five draws of
which none has it would always give none of five."""
CORRELATION = Statistic("correlation of ", _products, _pearson)
"""Pearson's r of the level of a factor and the value at that level, over all levels of all runs."""


@dataclass(frozen=True)
class Sample:
    """Moments of each term by shared draw, the cluster of each draw (if there are clusters), and what was left out.

    `missing` says why there is nothing to measure, if so.
    """

    terms: Sequence[Floats] = ()
    clusters: tuple[Any, ...] = ()
    left_out: tuple[LeftOut, ...] = ()
    missing: Missing | None = None

    @property
    def size(self) -> int:
        """The number of draws."""
        return len(self.terms[0]) if self.terms else 0

    @property
    def independent(self) -> int:
        """The number of independent units: of clusters if there are some, else of draws."""
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
        """One, two or four groups, with the signs of `SIGNS`."""
        groups = (self.group,) if self.other is None else (self.group, self.other)
        return groups if self.before is None else groups + self.before.groups

    def __str__(self) -> str:
        difference = " minus ".join(f"{self.statistic.name}{group}" for group in self.groups[:2])
        return difference if self.before is None else f"({difference}) minus ({self.before})"

    def sample(self, evidence: Evidence) -> Sample:
        """Take from the evidence what can be measured."""
        design = evidence.design
        tables = []
        left_out: dict[LeftOut, None] = {}  # an ordered set: groups may share runs
        selections = [evidence.select(group) for group in self.groups]
        for selection in selections:
            if selection.missing is not None:
                return Sample(missing=selection.missing)
            tables.append(selection.rows)
            left_out.update(dict.fromkeys(selection.left_out))
        if design.matched_on:
            tables = _keep_matched(tables, design.columns_shared_by(self.groups))
        moments = [self.statistic.moments(rows, design.draw) for rows in tables]
        shared = moments[0].index
        for other in moments[1:]:
            shared = shared.intersection(other.index)
        shared = shared.sort_values()
        terms = [table.loc[shared].to_numpy(np.float64) for table in moments]
        clusters = tuple(shared.get_level_values(design.cluster)) if design.cluster else ()
        return Sample(terms, clusters, tuple(left_out))

    def estimate(self, sample: Sample, generator: Draws, covers: str, level: float = 0.95) -> Estimate:
        """Estimate the quantity with a bootstrap interval over draws, or over clusters and the draws in them."""

        def measure(rows: Floats, axis: int = -1) -> Any:
            draws = rows.astype(np.int64)
            return self._combine([term[draws].mean(axis=-2) for term in sample.terms], sample.size)

        # The bootstrap resamples the numbers of the draws, and `measure` looks up their moments.
        numbers = np.arange(sample.size, dtype=np.float64)
        if self.statistic is SHARE:
            share = float(measure(numbers))
            return Estimate(share, wilson(round(share * sample.size), sample.size, covers=covers, level=level))
        return estimate(
            numbers,
            measure,
            generator=generator,
            covers=covers,
            clusters=sample.clusters or None,
            level=level,
            resamples=RESAMPLES,
        )

    def value_per_unit(self, sample: Sample) -> Floats | None:
        """Return one number per independent unit whose average is the quantity; None if it is no such average."""
        if not self.statistic.linear:
            return None
        units = np.unique(sample.clusters, return_inverse=True)[1] if sample.clusters else np.arange(sample.size)
        values = []
        for unit in range(sample.independent):
            means = [term[units == unit].mean(axis=0) for term in sample.terms]
            values.append(self._combine(means, sample.size))
        return np.array(values)

    def _combine(self, means: Sequence[Floats], n: int) -> Floats:
        terms = [sign * self.statistic.finish(mean, n) for sign, mean in zip(SIGNS, means, strict=False)]
        return np.asarray(sum(terms[1:], terms[0]))


def _keep_matched(tables: Sequence[pd.DataFrame], columns: Sequence[str]) -> list[pd.DataFrame]:
    """Keep the rows of each table that have a partner in every other table."""
    keys = [pd.MultiIndex.from_frame(rows[list(columns)]) for rows in tables]
    matched = []
    for rows, key in zip(tables, keys, strict=True):
        has_partner = np.logical_and.reduce([key.isin(other) for other in keys])
        matched.append(rows[has_partner])
    return matched
