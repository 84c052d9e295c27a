"""How often the 95 % intervals contain the true value, by simulation of seeds from known distributions.

python -m unseen.stats.coverage        the table of docs/statistics.md, about four minutes on one core
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from scipy import stats

from unseen.randomness import Draws, stream
from unseen.stats.intervals import Floats, Interval
from unseen.stats.resampling import bootstrap, clustered, iqm, solve_rate
from unseen.stats.tests import probability_of_improvement

Quantiles = Callable[[Floats], Floats]
"""A distribution of seeds, as its quantile function: both the draws and the true value follow from it."""

SOLVED = 0.9
"""The score from which a simulated seed counts as having solved the task."""


def _normal(u: Floats) -> Floats:
    return stats.norm.ppf(u, 0.8, 0.03)


def _ceiling(u: Floats) -> Floats:
    """Accuracies crowded below 1 with a tail of worse seeds: mean 0.947, skewness −2.3."""
    return stats.beta.ppf(u, 9, 0.5)


def _bimodal(share: float) -> Quantiles:
    """A share of the seeds solves the task (0.98 ± 0.01), the others stay at a shortcut (0.55 ± 0.03)."""

    def quantiles(u: Floats) -> Floats:
        failed = 1 - share
        return np.where(
            u < failed,
            stats.norm.ppf(np.minimum(u / failed, 1 - 1e-12), 0.55, 0.03),
            stats.norm.ppf(np.maximum((u - failed) / share, 1e-12), 0.98, 0.01),
        )

    return quantiles


BIMODAL: dict[str, Quantiles] = {"bimodal, half solve": _bimodal(0.5), "bimodal, 8 of 10 solve": _bimodal(0.8)}
SEEDS: dict[str, Quantiles] = {"normal": _normal, "skewed, at the ceiling": _ceiling, **BIMODAL}
TRUTHS: dict[str, Callable[[Floats], float]] = {
    "mean": lambda population: float(population.mean()),
    "IQM": lambda population: float(iqm(population)),
    "solve rate": lambda population: float((population >= SOLVED).mean()),
}


class IntervalKind(NamedTuple):
    """An interval to try: of which quantity, how it is made, and in how many strata."""

    quantity: str
    make: Callable[[Floats, Draws], Interval]
    strata: int = 1


def _bootstrap(values: Floats, draws: Draws, **options: Any) -> Interval:
    return bootstrap(values, generator=draws, covers="simulation", resamples=1_000, **options)


def _student(values: Floats, draws: Draws) -> Interval:
    """The t interval of the mean: not part of the library, here as a yardstick."""
    low, high = stats.t.interval(0.95, len(values) - 1, values.mean(), stats.sem(values))
    return Interval(float(low), float(high), 0.95, len(values), "simulation")


def _stratified(values: Floats, draws: Draws) -> Interval:
    return _bootstrap(values, draws, strata=np.arange(len(values)) % 4)


def _wilson(values: Floats, draws: Draws) -> Interval:
    return solve_rate(values, SOLVED, covers="simulation").interval


KINDS: dict[str, IntervalKind] = {
    "mean, percentile": IntervalKind("mean", _bootstrap),
    "mean, BCa": IntervalKind("mean", partial(_bootstrap, method="bca")),
    "mean, Student's t (not in `unseen`)": IntervalKind("mean", _student),
    "mean over 4 strata, percentile": IntervalKind("mean", _stratified, strata=4),
    "IQM, percentile": IntervalKind("IQM", partial(_bootstrap, statistic=iqm)),
    "solve rate, Wilson": IntervalKind("solve rate", _wilson),
}


def covered(kind: str, seeds: str, n: int, *, repetitions: int) -> float:
    """The share of simulated experiments of n seeds (in each stratum) whose interval contains the true value."""
    quantity, make, strata = KINDS[kind]
    quantiles = SEEDS[seeds]
    truth = TRUTHS[quantity](quantiles((np.arange(200_000) + 0.5) / 200_000))
    # All kinds of interval are tried on the same seeds.
    samples = quantiles(stream("simulated seeds", seeds, n).block().uniform((repetitions, strata * n)))
    draws = stream("simulated intervals", kind, seeds, n).block()
    return _share_containing(truth, [make(values, draws) for values in samples])


def improvement_covered(n: int, *, repetitions: int) -> float:
    """The same for the probability of improvement between two sides of n normal seeds, one spread apart (0.760)."""
    truth = float(stats.norm.cdf(1 / np.sqrt(2)))
    draws = stream("simulated improvement", n).block()
    samples = draws.normal((repetitions, 2, n)) + np.array([[1.0], [0.0]])
    intervals = []
    for a, b in samples:
        result = probability_of_improvement(a, b, generator=draws, covers="simulation", resamples=1_000)
        intervals.append(result.interval)
    return _share_containing(truth, intervals)


def _share_containing(truth: float, intervals: Sequence[Interval]) -> float:
    return float(np.mean([interval.low <= truth <= interval.high for interval in intervals]))


TASKS: dict[str, float] = {"a tenth": 0.1, "a half": 0.5, "nine tenths": 0.9}
"""The share of the variance that lies between tasks."""
SEEDS_OF_TASK = 5


def clusters_covered(between: float, tasks: int, *, repetitions: int, cluster: bool = True) -> float:
    """The same for the mean over tasks of five normal seeds each, with a share of the variance between tasks.

    Without `cluster` the tasks are strata: the interval then ignores that other tasks could have been drawn.
    """
    draws = stream("simulated tasks", between, tasks).block()
    task = np.sqrt(between) * draws.normal((repetitions, tasks, 1))
    seed = np.sqrt(1 - between) * draws.normal((repetitions, tasks, SEEDS_OF_TASK))
    values = (task + seed).reshape(repetitions, -1)
    labels = np.repeat(np.arange(tasks), SEEDS_OF_TASK)

    intervals = []
    for sample in values:
        if cluster:
            result = clustered(sample, labels, generator=draws, covers="simulation", resamples=1_000)
            intervals.append(result.interval)
        else:
            intervals.append(_bootstrap(sample, draws, strata=labels))
    return _share_containing(0, intervals)


def table(sizes: Sequence[int] = (3, 5, 10, 20), *, repetitions: int = 4_000) -> Iterator[str]:
    """The coverage table in Markdown, line by line."""
    yield "| interval | seeds | " + " | ".join(f"n = {n}" for n in sizes) + " |"
    yield "|---|---|" + "---|" * len(sizes)
    for kind, seeds in itertools.product(KINDS, SEEDS):
        # A solve rate needs seeds of which some solve the task and others do not.
        if KINDS[kind].quantity != "solve rate" or seeds in BIMODAL:
            yield _row(kind, seeds, (covered(kind, seeds, n, repetitions=repetitions) for n in sizes))
    yield _row("probability of improvement", "normal", (improvement_covered(n, repetitions=repetitions) for n in sizes))
    for share, between in TASKS.items():
        yield _row(
            "mean, n tasks × 5 seeds, clustered",
            f"normal, {share} of the variance between tasks",
            (clusters_covered(between, n, repetitions=repetitions) for n in sizes),
        )
    yield _row(
        "mean, n tasks × 5 seeds, strata",
        "normal, a half of the variance between tasks",
        (clusters_covered(0.5, n, repetitions=repetitions, cluster=False) for n in sizes),
    )


def _row(kind: str, seeds: str, shares: Iterable[float]) -> str:
    return f"| {kind} | {seeds} | " + " | ".join(f"{share:.3f}" for share in shares) + " |"


if __name__ == "__main__":
    for line in table():
        sys.stdout.write(line + "\n")
        sys.stdout.flush()
