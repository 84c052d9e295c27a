"""Moderated variances: the spread of each of several configurations of few units, estimated from all (Smyth 2004)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import special

from unseen.stats.intervals import Floats

FEWEST_VARIANCES = 4
"""Fewer variances than this are left as they are."""
MOST_FREEDOM = 4.0
"""The others count as at most this many degrees of freedom. Limma lets them count for infinitely many where nothing
speaks against equal spreads; with three units hardly anything can, and means of wider configurations come out too
certain (`docs/statistics.md`)."""
REJECTED = 0.1
"""Below this p value of Bartlett's test, spreads are not equal, and each variance is used as it is."""


@dataclass(frozen=True)
class Variance:
    """A variance and its degrees of freedom."""

    value: float
    freedom: float


def moderate(variances: Sequence[Variance]) -> list[Variance]:
    """Shrink variances towards a common one, as limma does, unless Bartlett's test rejects equal spreads.

    The weight of the common variance follows from how much the logarithms of the variances differ beyond what their
    degrees of freedom explain; it is at most `MOST_FREEDOM`.

    >>> [round(entry.value, 2) for entry in moderate([Variance(value, 2) for value in (0.5, 1.0, 1.5, 2.0)])]
    [1.0, 1.17, 1.33, 1.5]
    """
    values = np.array([entry.value for entry in variances], np.float64)
    freedom = np.array([entry.freedom for entry in variances], np.float64)
    if len(values) < FEWEST_VARIANCES or not np.median(values) > 0:
        return list(variances)
    # A variance of zero would have an infinite logarithm; limma bounds it in the same way.
    bounded = np.maximum(values, 1e-5 * np.median(values))
    pooled = float(np.average(values, weights=freedom))
    if bartlett(bounded, freedom) < REJECTED:
        return list(variances)
    prior, prior_freedom = _fit_prior(bounded, freedom)
    prior_freedom = min(prior_freedom, MOST_FREEDOM)
    # The common variance of limma is a geometric mean, too small for the wider configurations.
    prior = max(prior, pooled)
    moderated = (prior_freedom * prior + freedom * values) / (prior_freedom + freedom)
    return [Variance(float(value), float(d + prior_freedom)) for value, d in zip(moderated, freedom, strict=True)]


def bartlett(variances: Floats, freedom: Floats) -> float:
    """The p value of Bartlett's test of equal variances, from the variances themselves."""
    count = len(variances)
    total = freedom.sum()
    pooled = float(np.average(variances, weights=freedom))
    statistic = total * np.log(pooled) - float(freedom @ np.log(variances))
    correction = 1 + ((1 / freedom).sum() - 1 / total) / (3 * (count - 1))
    return float(special.chdtrc(count - 1, max(statistic / correction, 0)))


def _fit_prior(variances: Floats, freedom: Floats) -> tuple[float, float]:
    """The common variance and its degrees of freedom: the moments of log-variances of a scaled F (limma's fitFDist)."""
    logs = np.log(variances) - special.digamma(freedom / 2) + np.log(freedom / 2)
    excess = float(logs.var(ddof=1) - special.polygamma(1, freedom / 2).mean())
    if excess <= 0:
        return float(np.average(variances, weights=freedom)), np.inf
    half = _invert_trigamma(excess)
    return float(np.exp(logs.mean() + special.digamma(half) - np.log(half))), 2 * half


def _invert_trigamma(value: float) -> float:
    """The number whose trigamma is this value, by Newton's method on its reciprocal."""
    number = 0.5 + 1 / value
    for _ in range(50):
        trigamma = float(special.polygamma(1, number))
        change = trigamma * (1 - trigamma / value) / float(special.polygamma(2, number))
        number += change
        if abs(change) < 1e-10 * number:
            break
    return number
