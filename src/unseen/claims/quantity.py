"""What a criterion measures: a statistic of some runs, a difference or a change of differences, with its limits.

Every statistic is a function of averages over draws (seeds, or tasks with their seeds): each draw contributes a few
*moments*. Leaving out one unit at a time (the jackknife) turns any of them into one number per unit, of which the t
limits of a mean are taken; for a mean these numbers are the values of the units themselves.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from unseen.claims.evidence import Evidence, Group, LeftOut, Missing
from unseen.claims.failing import TwoKinds
from unseen.stats import (
    CorrelationLimits,
    Limits,
    MeanLimits,
    MixtureLimits,
    NoLimits,
    ShareLimits,
    SpreadDifferenceLimits,
    SpreadLimits,
    Variance,
    WidestLimits,
    spread_error,
)

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]
SIGNS = (1, -1, -1, 1)
"""Of the terms of a quantity: a group, minus another, minus the same difference before."""
FEWEST_LEARNED = 2
"""Fewer runs that learned have no t limits."""


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
"""The share of draws that have a property (1 or 0), of one group, with Clopper and Pearson's limits."""
CORRELATION = Statistic("correlation of ", _products, _pearson)
"""Pearson's r of the level of a factor and the value at that level, over all levels of all runs."""


@dataclass(frozen=True)
class Sample:
    """Moments of each term by shared draw, the cluster of each draw (if there are clusters), and what was left out.

    `missing` says why there is nothing to measure, if so. Of means and spreads without clusters: `sampling` is the
    variance of a draw of each term that comes from the finite test set (empty where that is not known), `bounded` says
    that the values lie on a scale from 0 to 1, `learned` which draws of each term learned, and `kinds` which of them succeeded,
    where the paper says itself that some seeds fail (else None). `drift` is the drift of each draw (NaN where it is not
    known), `drift_judged` whether it is that of the judged score, and `steps` how long the runs were trained.
    """

    terms: Sequence[Floats] = ()
    clusters: tuple[Any, ...] = ()
    left_out: tuple[LeftOut, ...] = ()
    missing: Missing | None = None
    sampling: tuple[float, ...] = ()
    bounded: bool = False
    learned: Sequence[Flags] = ()
    kinds: Sequence[TwoKinds | None] = ()
    drift: Floats | None = None
    drift_judged: bool = False
    steps: int = 0

    @property
    def size(self) -> int:
        """The number of draws."""
        return len(self.terms[0]) if self.terms else 0

    @property
    def independent(self) -> int:
        """The number of independent units: of clusters if there are some, else of draws."""
        return len(set(self.clusters)) if self.clusters else self.size

    @cached_property
    def units(self) -> NDArray[np.int64]:
        """The number of the unit that each draw belongs to."""
        if self.clusters:
            return np.unique(self.clusters, return_inverse=True)[1].astype(np.int64)
        return np.arange(self.size)


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
        drift, judged = self._find_drift(tables, evidence, shared)
        sampling: tuple[float, ...] = ()
        bounded = False
        learned = []
        kinds: list[TwoKinds | None] = []
        if self.statistic is MEAN and not clusters:
            kinds = [_divide(group, rows, evidence, shared) for group, rows in zip(self.groups, tables, strict=True)]
        if self.statistic in (MEAN, SPREAD) and not clusters:
            values = [rows["value"] for rows in tables]
            bounded = all(bool(value.between(0, 1).all()) for value in values)
            if bounded and all("n" in rows for rows in tables):
                variances = [_sampling_variance(rows, design.draw).reindex(shared).mean() for rows in tables]
                sampling = tuple(0.0 if math.isnan(variance) else float(variance) for variance in variances)
            for rows in tables:
                flags = rows["trial"].map(lambda trial: evidence.learned().get(trial, True)).astype(bool)
                learned.append(flags.groupby([rows[name] for name in design.draw]).all().loc[shared].to_numpy(np.bool_))
        steps = max((int(rows["trial"].map(evidence.steps()).max()) for rows in tables if len(rows)), default=0)
        return Sample(
            terms,
            clusters,
            tuple(left_out),
            sampling=sampling,
            bounded=bounded and len(self.groups) == 1,
            learned=learned,
            kinds=kinds,
            drift=drift,
            drift_judged=judged,
            steps=steps,
        )

    def _find_drift(
        self, tables: Sequence[pd.DataFrame], evidence: Evidence, shared: pd.Index
    ) -> tuple[Floats | None, bool]:
        """The drift of each draw, of statistics on the scale of the score; None where some run's is not known."""
        if self.statistic not in (MEAN, OVERALL, POOLED):
            return None, False
        terms = []
        all_judged = True
        for sign, rows in zip(SIGNS, tables, strict=False):
            drifts, judged = evidence.find_drift(rows)
            all_judged &= judged
            by_draw = drifts.groupby([rows[name] for name in evidence.design.draw]).mean()
            terms.append(sign * by_draw.reindex(shared).to_numpy(np.float64))
        drift = np.sum(terms, axis=0)
        return (None if np.isnan(drift).any() or not len(drift) else drift), all_judged

    def value(self, sample: Sample) -> float:
        """Return the quantity itself."""
        return float(self._combine([term.mean(axis=0) for term in sample.terms], sample.size))

    def value_per_unit(self, sample: Sample) -> Floats | None:
        """Return one number per independent unit whose average is the quantity, or nearly; None if there are none.

        Of a mean over draws these are its values; otherwise they are the pseudo-values of the jackknife.
        """
        if self.statistic not in (MEAN, OVERALL, POOLED):
            return None
        if self.statistic is MEAN and not sample.clusters:
            return np.asarray(self._combine([*sample.terms], sample.size), np.float64)
        return self._jackknife(sample)

    def limits(self, sample: Sample, variance: Variance | None = None) -> Limits:
        """Return the quantity with its one-sided limits; `variance` is that of the units, if it was moderated."""
        n = sample.independent
        value = self.value(sample)
        if self.statistic is SHARE:
            return ShareLimits(round(value * sample.size), sample.size)
        if self.statistic is SPREAD:
            # Of equal values, the moments may differ by rounding.
            spreads = [
                float(_standard_deviation(term.mean(axis=0), sample.size)) if np.ptp(term[:, 0]) > 0 else 0.0
                for term in sample.terms
            ]
            errors = [spread_error(term[:, 0]) for term in sample.terms]
            least = [math.sqrt(variance) for variance in sample.sampling] or [0.0, 0.0]
            if len(spreads) == 1:
                return SpreadLimits(spreads[0], n - 1, errors[0], least[0])
            if len(spreads) == 2:
                return SpreadDifferenceLimits(spreads[0], spreads[1], n - 1, math.hypot(*errors), (least[0], least[1]))
            return NoLimits(value)
        if self.statistic is CORRELATION:
            single = len(sample.terms) == 1
            units = self._jackknife(sample, np.arctanh if single else None)
            error = float(units.std(ddof=1)) / math.sqrt(n)
            return CorrelationLimits(value, error, n - 1) if single else MeanLimits(value, error, n - 1, n)
        mixture = self._mixture(sample, value)
        if mixture is not None:
            return mixture
        if variance is None:
            variance = self.unit_variance(sample)
        lowest, highest = (0.0, 1.0) if sample.bounded else (-math.inf, math.inf)
        return MeanLimits(value, math.sqrt(variance.value / n), variance.freedom, n, lowest, highest)

    def unit_variance(self, sample: Sample) -> Variance:
        """Return the variance between units, at least that of the test set."""
        units = self.value_per_unit(sample)
        spread = math.nan if units is None else float(units.var(ddof=1))
        return Variance(max(spread, sum(sample.sampling)), sample.independent - 1)

    def _mixture(self, sample: Sample, value: float) -> Limits | None:
        """The limits of a mean where some draws of a term learned and others did not; None if there is no such term."""
        mixed = [flags for flags in sample.learned if flags.any() and not flags.all()]
        units = self.value_per_unit(sample)
        if not mixed or units is None:
            return None
        learned = np.logical_and.reduce(mixed)
        count = int(learned.sum())
        if count < FEWEST_LEARNED:
            return NoLimits(value)
        others = units[~learned]
        variance = max(float(units[learned].var(ddof=1)), sum(sample.sampling))
        limits = MeanLimits(float(units[learned].mean()), math.sqrt(variance / count), count - 1, count)
        return MixtureLimits(value, ShareLimits(count, len(units)), limits, float(others.min()), float(others.max()))

    def limits_by_kinds(self, sample: Sample, n: int | None = None) -> list[Limits]:
        """The limits of a mean through the share of seeds that succeed, for each term of which the paper says that some fail.

        With `n`, those that so many draws would have if their values and shares were as in the sample.
        """
        units = self.value_per_unit(sample)
        if units is None:
            return []
        limits: list[Limits] = []
        for number, kinds in enumerate(sample.kinds):
            if kinds is None:
                continue
            larger = kinds.larger
            others = units[~larger]
            lowest, highest = self._range_of_unseen(sample, number) if larger.all() else (others.min(), others.max())
            total = n or sample.size
            count = round(int(larger.sum()) * total / sample.size)
            mean = float(units[larger].mean())
            variance = max(float(units[larger].var(ddof=1)), sum(sample.sampling))
            of_larger = MeanLimits(mean, math.sqrt(variance / count), count - 1, count)
            share = ShareLimits(count, total)
            limits.append(MixtureLimits(self.value(sample), share, of_larger, float(lowest), float(highest)))
        return limits

    def widen(self, sample: Sample, limits: Limits) -> Limits:
        """Widen limits by what the paper says itself of seeds that fail."""
        by_kinds = self.limits_by_kinds(sample)
        return WidestLimits((limits, *by_kinds)) if by_kinds else limits

    def _range_of_unseen(self, sample: Sample, number: int) -> tuple[float, float]:
        """Where the quantity may lie for draws of which this term is of the kind that was not seen."""
        lowest = highest = 0.0
        for index, (sign, term) in enumerate(zip(SIGNS, sample.terms, strict=False)):
            kinds = sample.kinds[index]
            low, high = float(term[:, 0].min()), float(term[:, 0].max())
            if index == number and kinds is not None:
                low, high = kinds.unseen_range
            lowest += sign * (low if sign > 0 else high)
            highest += sign * (high if sign > 0 else low)
        return lowest, highest

    def _jackknife(self, sample: Sample, transform: Callable[[Floats], Floats] | None = None) -> Floats:
        """The pseudo-values of the quantity, or of a transform of it: n times it minus n − 1 times it without a unit."""

        def measure(draws: Flags) -> Floats:
            value = self._combine([term[draws].mean(axis=0) for term in sample.terms], int(draws.sum()))
            with np.errstate(divide="ignore", invalid="ignore"):
                return value if transform is None else transform(np.clip(value, -1 + 1e-12, 1 - 1e-12))

        n = sample.independent
        whole = measure(np.ones(sample.size, np.bool_))
        without = [measure(sample.units != unit) for unit in range(n)]
        return n * whole - (n - 1) * np.array(without, np.float64)

    def _combine(self, means: Sequence[Floats], n: int) -> Floats:
        """The quantity, from the averages (…, k) of the moments of each term."""
        terms = [sign * self.statistic.finish(mean, n) for sign, mean in zip(SIGNS, means, strict=False)]
        return np.asarray(sum(terms[1:], terms[0]))


def _divide(group: Group, rows: pd.DataFrame, evidence: Evidence, shared: pd.Index) -> TwoKinds | None:
    """Divide the draws of a term into those that succeed and those that fail; None if the paper speaks of no such runs.

    A draw succeeds if all its runs do.
    """
    for failing in evidence.failing:
        if failing.covers(group):
            succeeded = (rows["value"] > failing.level).groupby([rows[name] for name in evidence.design.draw]).all()
            return TwoKinds(succeeded.loc[shared].to_numpy(np.bool_), failing.level)
    return None


def _keep_matched(tables: Sequence[pd.DataFrame], columns: Sequence[str]) -> list[pd.DataFrame]:
    """Keep the rows of each table that have a partner in every other table."""
    keys = [pd.MultiIndex.from_frame(rows[list(columns)]) for rows in tables]
    matched = []
    for rows, key in zip(tables, keys, strict=True):
        has_partner = np.logical_and.reduce([key.isin(other) for other in keys])
        matched.append(rows[has_partner])
    return matched


def _sampling_variance(rows: pd.DataFrame, draw: Sequence[str]) -> pd.Series:
    """The variance of each draw that comes from the finite test set: p(1 − p)/n of each run, over those of the draw.

    One more success and one more failure are counted: a run without any error has no certain accuracy.
    """
    count = rows["n"].astype(float)
    share = (rows["value"] * count + 1) / (count + 2)
    variances = (share * (1 - share) / count.where(count > 0)).fillna(0.0)
    groups = variances.groupby([rows[name] for name in draw])
    return groups.sum() / groups.size() ** 2
