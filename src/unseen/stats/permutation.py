"""Permutation tests: is a difference larger than exchanging the labels would make it?"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike

from unseen.errors import UsageError, nearest
from unseen.randomness import Draws, Ints
from unseen.stats.intervals import Estimate, Floats, one_per_seed
from unseen.stats.resampling import SLACK, Statistic, batches, between, distribution

Alternative = Literal["two-sided", "greater", "less"]

EXACT = 2**16
"""Up to this many arrangements all are tried; beyond, some are drawn."""


def mean_difference(a: Floats, b: Floats, axis: int = -1) -> Any:
    """The mean of a minus the mean of b."""
    return np.mean(a, axis=axis) - np.mean(b, axis=axis)


def permutation_test(
    a: ArrayLike,
    b: ArrayLike,
    *,
    generator: Draws,
    covers: str,
    statistic: Callable[..., Any] = mean_difference,
    alternative: Alternative = "two-sided",
    level: float = 0.95,
    resamples: int = 10_000,
) -> Estimate:
    """Compare two sets of runs that share no seeds: the difference, its bootstrap interval, and the p value.

    `statistic` takes arrays (…, n) and (…, m) and `axis=-1`. The p value is the share of assignments of the runs to
    the two sides with a statistic at least as large (two-sided: twice the smaller of both shares): of all of them up
    to 65 536, else of `resamples` drawn ones and the one observed. The interval resamples each side by itself.

    >>> from unseen.randomness import stream
    >>> found = permutation_test([0.97, 0.98, 0.99], [0.70, 0.93, 0.75, 0.72], generator=stream("demo").block(),
    ...                          covers="initialisation")
    >>> round(found.value, 3), round(found.p_value, 3), found.note
    (0.205, 0.057, 'all 35 assignments')
    """
    first, second = (np.sort(one_per_seed(side, "permutation_test", fewest=1)) for side in (a, b))
    pooled, n, sizes = np.concatenate([first, second]), len(first), (len(first), len(second))

    def measure(rows: Ints) -> Floats:
        chosen = pooled[rows]
        return np.asarray(statistic(chosen[:, :n], chosen[:, n:], axis=-1), np.float64)

    drawn = distribution(measure, sizes, generator=generator, level=level, resamples=resamples)
    interval = between(drawn, ((1 - level) / 2, (1 + level) / 2), sizes, level=level, covers=covers)
    observed = float(measure(np.arange(len(pooled))[None])[0])
    exact = math.comb(len(pooled), n) <= EXACT
    null = (
        measure(_assignments(len(pooled), n))
        if exact
        else np.concatenate(
            [measure(generator.permutations(rows, len(pooled))) for rows in batches(resamples, len(pooled))]
        )
    )
    note = f"all {len(null)} assignments" if exact else f"{resamples} assignments drawn"
    return Estimate(observed, interval, _p_value(observed, null, alternative, exact), note)


def sign_flip_test(
    differences: ArrayLike,
    statistic: Statistic = np.mean,
    *,
    generator: Draws,
    alternative: Alternative = "two-sided",
    resamples: int = 10_000,
) -> tuple[float, str]:
    """The p value of paired differences, and how it came about: under the null each sign is as likely as the other.

    With n pairs there are 2ⁿ arrangements, so it can't fall below 2 / 2ⁿ: five seeds never reach 0.05.

    >>> from unseen.randomness import stream
    >>> sign_flip_test([0.2, 0.1, 0.3, 0.2, 0.1], generator=stream("demo").block())
    (0.0625, 'all 32 sign flips')
    """
    given = np.sort(one_per_seed(differences, "sign_flip_test", fewest=1))
    n, exact = len(given), 2 ** len(given) <= EXACT
    every = (
        [(np.arange(2**n)[:, None] >> np.arange(n)) & 1]
        if exact
        else (generator.integers(2, (rows, n)) for rows in batches(resamples, n))
    )
    null = np.concatenate([np.asarray(statistic(given * (1 - 2 * flips), axis=-1), np.float64) for flips in every])
    note = f"all {len(null)} sign flips" if exact else f"{resamples} sign flips drawn"
    return _p_value(float(statistic(given, axis=-1)), null, alternative, exact), note


def _assignments(total: int, n: int) -> Ints:
    """Every way to choose n of the runs as the first side; each row lists the chosen ones, then the others."""
    chosen = np.array(list(itertools.combinations(range(total), n)), np.int64)
    taken = np.zeros((len(chosen), total), np.bool_)
    np.put_along_axis(taken, chosen, True, axis=1)
    return np.argsort(~taken, axis=1, kind="stable")


def _p_value(observed: float, null: Floats, alternative: Alternative, exact: bool) -> float:
    if alternative not in get_args(Alternative):
        raise UsageError(f"there is no alternative {alternative!r}. {nearest(str(alternative), get_args(Alternative))}")
    slack = SLACK * max(abs(observed), float(np.abs(null).max()))
    # What was observed is itself an arrangement: with drawn ones it is counted in, so that p is never 0.
    extra = 0 if exact else 1
    greater, less = (
        (int(np.count_nonzero(beyond)) + extra) / (len(null) + extra)
        for beyond in (null >= observed - slack, null <= observed + slack)
    )
    return {"greater": greater, "less": less, "two-sided": min(1.0, 2 * min(greater, less))}[alternative]
