"""Comparisons of two sets of runs: paired differences on shared seeds, and the probability of improvement."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable
from typing import Any, NamedTuple, Protocol, TypeGuard

import numpy as np
from numpy.typing import ArrayLike

from unseen.errors import UsageError
from unseen.randomness import Draws, Ints
from unseen.stats.intervals import Estimate, Floats, one_per_seed
from unseen.stats.permutation import Alternative, sign_flip_test
from unseen.stats.resampling import Method, Statistic, between, counts, distribution, estimate

Stratum = tuple[Hashable, ...]


class Scores(Protocol):
    """One score per seed: a dict or pandas Series, seed → score, or (stratum, …, seed) → score."""

    def items(self) -> Iterable[tuple[Hashable, Any]]:
        """The pairs of key and score."""
        ...


def keyed(scores: object) -> TypeGuard[Scores]:
    """Whether scores are named by their seeds."""
    return hasattr(scores, "items")


class Differences(NamedTuple):
    """a − b for every shared key, the stratum of each, and a note of what was left out."""

    values: Floats
    strata: list[Stratum]
    note: str


def differences(a: Scores, b: Scores) -> Differences:
    """The differences a − b on the keys that both have.

    >>> found = differences({0: 0.9, 1: 0.8, 2: 0.7}, {1: 0.5, 2: 0.6, 7: 0.4})
    >>> found.values.round(3).tolist(), found.note
    ([0.3, 0.1], '2 pairs on shared seeds, 1 of a and 1 of b left out')
    """
    first, second = _read(a, "a"), _read(b, "b")
    shared = sorted(first.keys() & second.keys(), key=repr)
    if not shared:
        raise UsageError(
            "a paired comparison needs shared seeds: "
            + ", ".join(f"{side} has {_few(scores)}" for side, scores in (("a", first), ("b", second)))
        )
    dropped = [
        f"{len(scores) - len(shared)} of {side}"
        for side, scores in (("a", first), ("b", second))
        if len(scores) > len(shared)
    ]
    pairs = f"{len(shared)} pair{'s' * (len(shared) > 1)} on shared seeds"
    return Differences(
        np.array([first[key] - second[key] for key in shared]),
        [_stratum(key) for key in shared],
        pairs + (f", {' and '.join(dropped)} left out" if dropped else ""),
    )


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

    Pairing takes out what both sides share (data, task instance, luck of the seed). Where keys are (stratum, …,
    seed), pairs are resampled within their stratum. Without a shared seed there is nothing to compare: an error.

    >>> from unseen.randomness import stream
    >>> a, b = {0: 0.98, 1: 0.97, 2: 0.99, 3: 0.95}, {0: 0.71, 1: 0.73, 2: 0.70, 4: 0.72}
    >>> print(paired(a, b, generator=stream("demo").block(), covers="initialisation"))
    ... # doctest: +NORMALIZE_WHITESPACE
    0.267 [0.240, 0.290], n = 3 (initialisation), p = 0.25, indicative;
    3 pairs on shared seeds, 1 of a and 1 of b left out; all 8 sign flips
    """
    found = differences(a, b)
    strata = found.strata if len(set(found.strata)) > 1 else None
    difference = estimate(
        found.values,
        statistic,
        generator=generator,
        covers=covers,
        strata=strata,
        method=method,
        level=level,
        resamples=resamples,
    )
    p_value, how = sign_flip_test(
        found.values, statistic, generator=generator, alternative=alternative, resamples=resamples
    )
    return Estimate(difference.value, difference.interval, p_value, f"{found.note}; {how}")


def probability_of_improvement(
    a: Scores | ArrayLike,
    b: Scores | ArrayLike,
    *,
    generator: Draws,
    covers: str,
    level: float = 0.95,
    resamples: int = 10_000,
) -> Estimate:
    """How likely a run of a beats a run of b, a tie counting one half: Mann and Whitney's U / (n·m).

    Runs are not paired. With strata, (stratum, …, seed) → score, it is the mean over strata of the probability within
    each, and both sides of every stratum are resampled by themselves. Where one side always wins, every resample says
    so too: the interval has no width, and the note says that this is no certainty.

    >>> from unseen.randomness import stream
    >>> found = probability_of_improvement([3, 2, 1], [2, 0, 0], generator=stream("demo").block(), covers="data")
    >>> round(found.value, 3), found.n, found.strata
    (0.833, 6, (3, 3))
    """
    first, second = _by_stratum(a, "a"), _by_stratum(b, "b")
    if first.keys() != second.keys():
        odd = ", ".join("/".join(map(str, name)) for name in sorted(first.keys() ^ second.keys(), key=repr))
        raise UsageError(f"probability_of_improvement expects the same strata on both sides; only one has: {odd}")
    sides = [side for name in first for side in (first[name], second[name])]
    sizes = [len(side) for side in sides]
    # Within a stratum: the mean of a table of wins, weighted by how often each run was drawn.
    wins = [(np.sign(x[:, None] - y) + 1) / (2 * x.size * y.size) for x, y in zip(sides[::2], sides[1::2], strict=True)]
    places = np.cumsum(sizes)[:-1]

    def measure(rows: Ints) -> Floats:
        drawn = np.split(counts(rows), places, axis=1)
        each = [((x @ table) * y).sum(axis=1) for x, table, y in zip(drawn[::2], wins, drawn[1::2], strict=True)]
        return np.asarray(np.mean(each, axis=0), np.float64)

    value = float(np.mean([table.sum() for table in wins]))
    drawn = distribution(measure, sizes, generator=generator, level=level, resamples=resamples)
    interval = between(drawn, ((1 - level) / 2, (1 + level) / 2), sizes, level=level, covers=covers)
    certain = all(np.ptp(table) == 0 for table in wins)
    note = "every pair ends alike: resampling can't show how uncertain this is" if certain else ""
    return Estimate(value, interval, note=note)


def _read(scores: object, side: str) -> dict[Hashable, float]:
    if not keyed(scores):
        raise UsageError(
            f"a paired comparison expects seed → score (a dict or Series), {side} is a {type(scores).__name__}"
        )
    pairs = [(key, float(score)) for key, score in scores.items()]
    found = dict(pairs)
    if len(found) < len(pairs):
        raise UsageError(f"{side} has {len(pairs)} scores for {len(found)} seeds; select one record per seed")
    bad = [key for key, score in pairs if not math.isfinite(score)]
    if bad:
        raise UsageError(f"{side} has no finite score for {_few(dict.fromkeys(bad))}; leave out runs that diverged")
    return found


def _by_stratum(scores: Scores | ArrayLike, side: str) -> dict[Stratum, Floats]:
    """The sorted scores of each stratum; a plain array is one stratum."""
    if not keyed(scores):
        return {(): np.sort(one_per_seed(scores, "probability_of_improvement", fewest=1))}
    groups: dict[Stratum, list[float]] = {}
    for key, score in sorted(_read(scores, side).items(), key=lambda pair: repr(pair[0])):
        groups.setdefault(_stratum(key), []).append(score)
    if not groups:
        raise UsageError(f"probability_of_improvement needs at least one run on each side, {side} has none")
    return {name: np.sort(np.array(group)) for name, group in groups.items()}


def _stratum(key: Hashable) -> Stratum:
    """What stands before the seed in a key."""
    return key[:-1] if isinstance(key, tuple) else ()


def _few(scores: dict[Hashable, Any]) -> str:
    keys = [str(key) for key in scores]
    return (", ".join(keys[:5]) + (", …" if len(keys) > 5 else "")) or "no seeds"
