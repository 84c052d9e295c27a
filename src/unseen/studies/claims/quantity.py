"""What a claim measures: a statistic of some runs, or the difference of two, with an interval over seeds.

Every statistic is a function of averages over seeds: each seed contributes a few *moments*, and resampling the seeds
is resampling rows of moments. So one bootstrap serves a mean, a spread, a pooled mean and a correlation.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from unseen.randomness import Draws
from unseen.stats import Estimate, bootstrap
from unseen.studies.claims.evidence import SEED, Evidence, Group

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Statistic:
    """`moments` of the rows of a group, one row per seed; `finish`: their averages (…, k) over n seeds → a number.

    `name` is for people; `linear` says that it is an average of one number per seed.
    """

    name: str
    moments: Callable[[pd.DataFrame], pd.DataFrame]
    finish: Callable[[Floats, int], Floats]
    linear: bool = False


def _per_seed(rows: pd.DataFrame, **columns: pd.Series) -> pd.DataFrame:
    return pd.DataFrame(columns).groupby([rows[name] for name in SEED]).sum()


def _averages(rows: pd.DataFrame) -> pd.DataFrame:
    """The average over a seed's runs; a seed that lacks one of the values has none."""
    found = rows.groupby(SEED)["value"].agg(["mean", "size"])
    value = found["mean"][found["size"] == found["size"].max()]
    return pd.DataFrame({"value": value, "square": value**2})


def _spread(means: Floats, n: int) -> Floats:
    variance = np.maximum(means[..., 1] - means[..., 0] ** 2, 0)
    return np.asarray(np.sqrt(variance * n / (n - 1)))


def _weighted(rows: pd.DataFrame) -> pd.DataFrame:
    return _per_seed(rows, total=rows["value"] * rows["n"], count=rows["n"].astype(float))


def _products(rows: pd.DataFrame) -> pd.DataFrame:
    x, y = rows["level"].astype(float), rows["value"]
    return _per_seed(rows, one=x * 0 + 1, x=x, y=y, xx=x * x, yy=y * y, xy=x * y)


def _pearson(means: Floats, n: int) -> Floats:
    x, y, xx, yy, xy = (means[..., k] / means[..., 0] for k in range(1, 6))
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray((xy - x * y) / np.sqrt((xx - x * x) * (yy - y * y)))


MEAN = Statistic("", _averages, lambda means, n: means[..., 0], linear=True)
SPREAD = Statistic("spread over seeds of ", _averages, _spread)
POOLED = Statistic("", _weighted, lambda means, n: means[..., 0] / means[..., 1])
"""The mean over all examples of all runs, so that a run with more of them weighs more."""
CORRELATION = Statistic("correlation of ", _products, _pearson)
"""Pearson's r of the level of a factor and the value there, over all levels of all runs."""


@dataclass(frozen=True)
class Sample:
    """What the seeds say: moments of each term by shared seed; or why there is nothing to say."""

    seeds: int
    terms: Sequence[Floats] = ()
    left_out: tuple[str, ...] = ()
    missing: str = ""


@dataclass(frozen=True)
class Quantity:
    """A statistic of a group; minus that of another, on shared seeds, if there is one."""

    statistic: Statistic
    group: Group
    other: Group | None = None

    @property
    def groups(self) -> tuple[Group, ...]:
        """One or two."""
        return (self.group,) if self.other is None else (self.group, self.other)

    def __str__(self) -> str:
        return " minus ".join(f"{self.statistic.name}{one}" for one in self.groups)

    def sample(self, evidence: Evidence) -> Sample:
        """What can be measured from the evidence."""
        chosen = [evidence.choose(one) for one in self.groups]
        missing = next((one.missing for one in chosen if one.missing), "")
        if missing:
            return Sample(0, missing=missing)
        moments = [self.statistic.moments(one.rows) for one in chosen]
        shared = moments[0].index
        for other in moments[1:]:
            shared = shared.intersection(other.index)
        shared = shared.sort_values()
        left_out = tuple(dict.fromkeys(text for one in chosen for text in one.left_out))
        return Sample(len(shared), [found.loc[shared].to_numpy(np.float64) for found in moments], left_out)

    def estimate(self, sample: Sample, generator: Draws, covers: str) -> Estimate:
        """The number and its bootstrap interval over seeds."""

        def measure(rows: Floats, axis: int = -1) -> Any:
            seeds = rows.astype(np.int64)
            found = [self.statistic.finish(term[seeds].mean(axis=-2), sample.seeds) for term in sample.terms]
            return found[0] if len(found) == 1 else found[0] - found[1]

        every = np.arange(sample.seeds, dtype=np.float64)
        return Estimate(float(measure(every)), bootstrap(every, measure, generator=generator, covers=covers))

    def per_seed(self, sample: Sample) -> Floats | None:
        """One number per seed whose average is the quantity; None where it is no such average."""
        if not self.statistic.linear:
            return None
        values = [term[:, 0] for term in sample.terms]
        return np.asarray(values[0] if len(values) == 1 else values[0] - values[1])
