"""Comparisons of two sets of runs: paired differences, permutation tests, probability of improvement, many tests."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Hashable, Iterable
from typing import Any, Literal, NamedTuple, Protocol, TypeGuard, get_args

import numpy as np
from numpy.typing import ArrayLike

from unseen.errors import UsageError, nearest
from unseen.randomness import Draws, Ints
from unseen.stats.intervals import Estimate, Floats, read_values, tails
from unseen.stats.resampling import (
    SLACK,
    Method,
    Statistic,
    chunk_sizes,
    count_draws,
    estimate,
    quantile_interval,
    resampled_values,
)

Alternative = Literal["two-sided", "greater", "less"]
Stratum = tuple[Hashable, ...]

EXACT = 2**16
"""Up to this number of arrangements all are tried; beyond, some are drawn."""


# Paired comparisons on shared seeds.


class Scores(Protocol):
    """One score per seed: a dict or pandas Series, seed → score, or (stratum, …, seed) → score."""

    def items(self) -> Iterable[tuple[Hashable, Any]]:
        """The pairs of key and score."""
        ...


class Differences(NamedTuple):
    """a − b for every shared key, the stratum of each, and a note of the keys that were left out."""

    values: Floats
    strata: list[Stratum]
    note: str


def differences(a: Scores, b: Scores) -> Differences:
    """The differences a − b on the keys that both have.

    >>> shared = differences({0: 0.9, 1: 0.8, 2: 0.7}, {1: 0.5, 2: 0.6, 7: 0.4})
    >>> shared.values.round(3).tolist(), shared.note
    ([0.3, 0.1], '2 pairs on shared seeds, 1 of a and 1 of b left out')
    """
    first = _read_scores(a, "a")
    second = _read_scores(b, "b")
    # By `repr`, because keys of different types can't be compared.
    shared = sorted(first.keys() & second.keys(), key=repr)
    if not shared:
        raise UsageError(
            f"a paired comparison needs shared seeds: a has {_list_keys(first)}, b has {_list_keys(second)}"
        )
    note = f"{len(shared)} pair{'s' * (len(shared) > 1)} on shared seeds"
    dropped = []
    for name, scores in (("a", first), ("b", second)):
        if len(scores) > len(shared):
            dropped.append(f"{len(scores) - len(shared)} of {name}")
    if dropped:
        note += f", {' and '.join(dropped)} left out"
    values = np.array([first[key] - second[key] for key in shared])
    return Differences(values, [_stratum(key) for key in shared], note)


def paired(
    a: Scores,
    b: Scores,
    *,
    generator: Draws,
    covers: str,
    statistic: Statistic = np.mean,
    method: Method = "percentile",
    alternative: Alternative = "two-sided",
    level: float = 0.95,
    resamples: int = 10_000,
) -> Estimate:
    """The difference a − b on shared seeds: a statistic of it, its interval, and the p value of a sign-flip test.

    Pairing removes the variation that both sides share (data, task instance, seed). Where keys are (stratum, …, seed),
    pairs are resampled within their stratum. Without shared seeds a comparison is impossible and raises an error.

    >>> from unseen.randomness import stream
    >>> a, b = {0: 0.98, 1: 0.97, 2: 0.99, 3: 0.95}, {0: 0.71, 1: 0.73, 2: 0.70, 4: 0.72}
    >>> print(paired(a, b, generator=stream("demo").block(), covers="initialisation"))
    ... # doctest: +NORMALIZE_WHITESPACE
    0.267 [0.240, 0.290], n = 3 (initialisation), p = 0.25, indicative;
    3 pairs on shared seeds, 1 of a and 1 of b left out; all 8 sign flips
    """
    shared = differences(a, b)
    difference = estimate(
        shared.values,
        statistic,
        generator=generator,
        covers=covers,
        strata=shared.strata if len(set(shared.strata)) > 1 else None,
        method=method,
        level=level,
        resamples=resamples,
    )
    p_value, test = sign_flip_test(
        shared.values, statistic, generator=generator, alternative=alternative, resamples=resamples
    )
    return Estimate(difference.value, difference.interval, p_value, f"{shared.note}; {test}")


def sign_flip_test(
    differences: ArrayLike,
    statistic: Statistic = np.mean,
    *,
    generator: Draws,
    alternative: Alternative = "two-sided",
    resamples: int = 10_000,
) -> tuple[float, str]:
    """The p value of paired differences and a note on the test: under the null, both signs are equally likely.

    With n pairs there are 2ⁿ arrangements, so the p value can't fall below 2 / 2ⁿ: five seeds never reach 0.05.

    >>> from unseen.randomness import stream
    >>> sign_flip_test([0.2, 0.1, 0.3, 0.2, 0.1], generator=stream("demo").block())
    (0.0625, 'all 32 sign flips')
    """
    values = np.sort(read_values(differences, "sign_flip_test", fewest=1))
    n = len(values)
    exact = 2**n <= EXACT
    flips: Iterable[Ints]
    if exact:
        # The binary digits of 0 … 2ⁿ − 1 are all choices of signs.
        flips = [(np.arange(2**n)[:, None] >> np.arange(n)) & 1]
        note = f"all {2**n} sign flips"
    else:
        flips = (generator.integers(2, (rows, n)) for rows in chunk_sizes(resamples, n))
        note = f"{resamples} sign flips drawn"
    null = np.concatenate([np.asarray(statistic(values * (1 - 2 * flip), axis=-1), np.float64) for flip in flips])
    return _p_value(float(statistic(values, axis=-1)), null, alternative, exact), note


# Unpaired comparisons.


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
    to 65 536, else of `resamples` drawn ones and the observed one. The interval resamples each side separately.

    >>> from unseen.randomness import stream
    >>> result = permutation_test([0.97, 0.98, 0.99], [0.70, 0.93, 0.75, 0.72], generator=stream("demo").block(),
    ...                           covers="initialisation")
    >>> round(result.value, 3), round(result.p_value, 3), result.note
    (0.205, 0.057, 'all 35 assignments')
    """
    first = np.sort(read_values(a, "permutation_test", fewest=1))
    second = np.sort(read_values(b, "permutation_test", fewest=1))
    pooled = np.concatenate([first, second])
    n = len(first)
    total = len(pooled)
    sizes = (n, len(second))

    def measure(rows: Ints) -> Floats:
        chosen = pooled[rows]
        return np.asarray(statistic(chosen[:, :n], chosen[:, n:], axis=-1), np.float64)

    resampled = resampled_values(measure, sizes, generator=generator, level=level, resamples=resamples)
    interval = quantile_interval(resampled, tails(level), sizes, level=level, covers=covers)
    observed = float(measure(np.arange(total)[None])[0])
    exact = math.comb(total, n) <= EXACT
    if exact:
        null = measure(_assignments(total, n))
        note = f"all {len(null)} assignments"
    else:
        chunks = [measure(generator.permutations(rows, total)) for rows in chunk_sizes(resamples, total)]
        null = np.concatenate(chunks)
        note = f"{resamples} assignments drawn"
    return Estimate(observed, interval, _p_value(observed, null, alternative, exact), note)


def _assignments(total: int, n: int) -> Ints:
    """All choices of n runs as the first side; each row lists the chosen runs, then the others."""
    chosen = np.array(list(itertools.combinations(range(total), n)), np.int64)
    first_side = np.zeros((len(chosen), total), np.bool_)
    np.put_along_axis(first_side, chosen, True, axis=1)
    return np.argsort(~first_side, axis=1, kind="stable")


def _p_value(observed: float, null: Floats, alternative: Alternative, exact: bool) -> float:
    if alternative not in get_args(Alternative):
        raise UsageError(f"there is no alternative {alternative!r}. {nearest(str(alternative), get_args(Alternative))}")
    slack = SLACK * max(abs(observed), float(np.abs(null).max()))
    # The observed arrangement is one of them: it is added to drawn ones, so that p is never 0.
    extra = 0 if exact else 1
    greater = (int(np.count_nonzero(null >= observed - slack)) + extra) / (len(null) + extra)
    less = (int(np.count_nonzero(null <= observed + slack)) + extra) / (len(null) + extra)
    return {"greater": greater, "less": less, "two-sided": min(1.0, 2 * min(greater, less))}[alternative]


def probability_of_improvement(
    a: Scores | ArrayLike,
    b: Scores | ArrayLike,
    *,
    generator: Draws,
    covers: str,
    level: float = 0.95,
    resamples: int = 10_000,
) -> Estimate:
    """The probability that a run of a beats a run of b, where a tie counts one half: Mann and Whitney's U / (n·m).

    Runs are not paired. With strata, (stratum, …, seed) → score, it is the mean over strata of the probability within
    each, and both sides of every stratum are resampled separately. Where one side always wins, every resample agrees:
    the interval has width 0, and the note warns that this is not certainty.

    >>> from unseen.randomness import stream
    >>> result = probability_of_improvement([3, 2, 1], [2, 0, 0], generator=stream("demo").block(), covers="data")
    >>> round(result.value, 3), result.n, result.strata
    (0.833, 6, (3, 3))
    """
    first = _by_stratum(a, "a")
    second = _by_stratum(b, "b")
    if first.keys() != second.keys():
        odd = ", ".join("/".join(map(str, name)) for name in sorted(first.keys() ^ second.keys(), key=repr))
        raise UsageError(f"probability_of_improvement expects the same strata on both sides; only one has: {odd}")
    wins = []
    sizes = []
    for name, x in first.items():
        y = second[name]
        # The mean of this table is the probability within the stratum; weighted by how often each run is drawn, it is
        # that of a resample.
        wins.append((np.sign(x[:, None] - y) + 1) / (2 * x.size * y.size))
        sizes += [len(x), len(y)]
    boundaries = np.cumsum(sizes)[:-1]

    def measure(rows: Ints) -> Floats:
        counts = np.split(count_draws(rows), boundaries, axis=1)
        probabilities = []
        for x, table, y in zip(counts[::2], wins, counts[1::2], strict=True):
            probabilities.append(((x @ table) * y).sum(axis=1))
        return np.asarray(np.mean(probabilities, axis=0), np.float64)

    value = float(np.mean([table.sum() for table in wins]))
    resampled = resampled_values(measure, sizes, generator=generator, level=level, resamples=resamples)
    interval = quantile_interval(resampled, tails(level), sizes, level=level, covers=covers)
    certain = all(np.ptp(table) == 0 for table in wins)
    note = "all pairs have the same outcome: resampling can't show how uncertain this is" if certain else ""
    return Estimate(value, interval, note=note)


# Many tests at once.


def holm(p_values: ArrayLike) -> Floats:
    """Adjusted p values: rejecting those at or below alpha is wrong about any of them with probability alpha at most.

    NaN (a test that could not be done) stays NaN and does not count.

    >>> holm([0.01, np.nan, 0.04, 0.03]).tolist()
    [0.03, nan, 0.06, 0.06]
    """
    values = np.asarray(p_values, np.float64)
    adjusted = np.full(values.shape, np.nan)
    order = np.argsort(values, kind="stable")[: np.count_nonzero(~np.isnan(values))]
    factors = np.arange(len(order), 0, -1)
    adjusted[order] = np.minimum(1, np.maximum.accumulate(values[order] * factors))
    return adjusted


def benjamini_hochberg(p_values: ArrayLike) -> Floats:
    """Adjusted p values: calling those at or below q discoveries keeps the expected share of false ones within q.

    NaN (a test that could not be done) stays NaN and does not count among the tests.

    >>> benjamini_hochberg([0.01, np.nan, 0.04, 0.03]).tolist()
    [0.03, nan, 0.04, 0.04]
    """
    # Inside, because importing scipy.stats takes most of a second and `unseen results` needs none of it.
    from scipy.stats import false_discovery_control

    values = np.asarray(p_values, np.float64)
    tested = ~np.isnan(values)
    if values.ndim != 1 or (values[tested] < 0).any() or (values[tested] > 1).any():
        raise UsageError(
            "benjamini_hochberg expects a list of p values between 0 and 1 (NaN: no test), got "
            + (f"an array of shape {values.shape}" if values.ndim != 1 else f"{values[tested].tolist()}")
        )
    adjusted = np.full(values.shape, np.nan)
    if tested.any():
        adjusted[tested] = false_discovery_control(values[tested])
    return adjusted


# Reading scores by seed.


def is_keyed(scores: object) -> TypeGuard[Scores]:
    """Whether scores are keyed by their seeds."""
    return hasattr(scores, "items")


def _read_scores(scores: object, side: str) -> dict[Hashable, float]:
    if not is_keyed(scores):
        raise UsageError(
            f"a paired comparison expects seed → score (a dict or Series), {side} is a {type(scores).__name__}"
        )
    pairs = [(key, float(score)) for key, score in scores.items()]
    by_key = dict(pairs)
    if len(by_key) < len(pairs):
        raise UsageError(f"{side} has {len(pairs)} scores for {len(by_key)} seeds; select one record per seed")
    bad = {key: score for key, score in pairs if not math.isfinite(score)}
    if bad:
        raise UsageError(f"{side} has no finite score for {_list_keys(bad)}; leave out runs that diverged")
    return by_key


def _by_stratum(scores: Scores | ArrayLike, side: str) -> dict[Stratum, Floats]:
    """The sorted scores of each stratum; a plain array is one stratum."""
    if not is_keyed(scores):
        return {(): np.sort(read_values(scores, "probability_of_improvement", fewest=1))}
    groups: dict[Stratum, list[float]] = {}
    for key, score in sorted(_read_scores(scores, side).items(), key=lambda pair: repr(pair[0])):
        groups.setdefault(_stratum(key), []).append(score)
    if not groups:
        raise UsageError(f"probability_of_improvement needs at least one run on each side, {side} has none")
    return {name: np.sort(np.array(group)) for name, group in groups.items()}


def _stratum(key: Hashable) -> Stratum:
    """The components of a key before the seed."""
    return key[:-1] if isinstance(key, tuple) else ()


def _list_keys(scores: dict[Hashable, float]) -> str:
    keys = [str(key) for key in scores]
    return (", ".join(keys[:5]) + (", …" if len(keys) > 5 else "")) or "no seeds"
