"""How often do the 95 % intervals contain the truth? Simulated seeds with known truth.

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
from unseen.stats.aggregate import iqm, solve_rate
from unseen.stats.clusters import clustered
from unseen.stats.compare import probability_of_improvement
from unseen.stats.intervals import Floats, Interval
from unseen.stats.resampling import bootstrap

Quantiles = Callable[[Floats], Floats]
"""A distribution of seeds, by its quantile function: it gives both the draws and the truth."""

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


SEEDS: dict[str, Quantiles] = {
    "normal": _normal,
    "skewed, at the ceiling": _ceiling,
    "bimodal, half solve": _bimodal(0.5),
    "bimodal, 8 of 10 solve": _bimodal(0.8),
}
TRUTHS: dict[str, Callable[[Floats], float]] = {
    "mean": lambda all_values: float(all_values.mean()),
    "IQM": lambda all_values: float(iqm(all_values)),
    "solve rate": lambda all_values: float((all_values >= SOLVED).mean()),
}


class Kind(NamedTuple):
    """An interval to try: of what, in how many strata, and how it is made."""

    of: str
    make: Callable[[Floats, Draws], Interval]
    strata: int = 1


def _bootstrap(values: Floats, draws: Draws, **options: Any) -> Interval:
    return bootstrap(values, generator=draws, covers="simulation", resamples=1_000, **options)


def _student(values: Floats, draws: Draws) -> Interval:
    """The t interval of the mean: no part of the library, here as the yardstick."""
    low, high = stats.t.interval(0.95, len(values) - 1, values.mean(), stats.sem(values))
    return Interval(float(low), float(high), 0.95, len(values), "simulation")


def _stratified(values: Floats, draws: Draws) -> Interval:
    return _bootstrap(values, draws, strata=np.arange(len(values)) % 4)


def _wilson(values: Floats, draws: Draws) -> Interval:
    return solve_rate(values, SOLVED, covers="simulation").interval


KINDS: dict[str, Kind] = {
    "mean, percentile": Kind("mean", _bootstrap),
    "mean, BCa": Kind("mean", partial(_bootstrap, method="bca")),
    "mean, Student's t (not in `unseen`)": Kind("mean", _student),
    "mean over 4 strata, percentile": Kind("mean", _stratified, strata=4),
    "IQM, percentile": Kind("IQM", partial(_bootstrap, statistic=iqm)),
    "solve rate, Wilson": Kind("solve rate", _wilson),
}


def covered(kind: str, seeds: str, n: int, *, repetitions: int) -> float:
    """The share of simulated experiments of n seeds (in each stratum) whose interval contains the truth."""
    of, make, strata = KINDS[kind]
    quantiles = SEEDS[seeds]
    truth = TRUTHS[of](quantiles((np.arange(200_000) + 0.5) / 200_000))
    # All kinds of interval are tried on the same seeds.
    samples = quantiles(stream("simulated seeds", seeds, n).block().uniform((repetitions, strata * n)))
    draws = stream("simulated intervals", kind, seeds, n).block()
    found = [make(values, draws) for values in samples]
    return float(np.mean([one.low <= truth <= one.high for one in found]))


def improvement_covered(n: int, *, repetitions: int) -> float:
    """The same for the probability of improvement between two sides of n normal seeds, one spread apart (0.760)."""
    truth, draws = float(stats.norm.cdf(1 / np.sqrt(2))), stream("simulated improvement", n).block()
    sides = draws.normal((repetitions, 2, n)) + np.array([[1.0], [0.0]])
    found = [
        probability_of_improvement(a, b, generator=draws, covers="simulation", resamples=1_000).interval
        for a, b in sides
    ]
    return float(np.mean([one.low <= truth <= one.high for one in found]))


TASKS: dict[str, float] = {"a tenth": 0.1, "a half": 0.5, "nine tenths": 0.9}
"""How much of the variance lies between tasks."""
SEEDS_OF_TASK = 5


def clusters_covered(between: float, tasks: int, *, repetitions: int, cluster: bool = True) -> float:
    """The same for the mean over tasks of five normal seeds each, with a share of the variance between tasks.

    Without `cluster` the tasks are strata: the interval then does not know that other tasks could have been drawn.
    """
    draws = stream("simulated tasks", between, tasks).block()
    task = np.sqrt(between) * draws.normal((repetitions, tasks, 1))
    seed = np.sqrt(1 - between) * draws.normal((repetitions, tasks, SEEDS_OF_TASK))
    values = (task + seed).reshape(repetitions, -1)
    labels = np.repeat(np.arange(tasks), SEEDS_OF_TASK)

    def make(one: Floats) -> Interval:
        if not cluster:
            return _bootstrap(one, draws, strata=labels)
        return clustered(one, labels, generator=draws, covers="simulation", resamples=1_000).interval

    return float(np.mean([found.low <= 0 <= found.high for found in map(make, values)]))


def table(sizes: Sequence[int] = (3, 5, 10, 20), *, repetitions: int = 4_000) -> Iterator[str]:
    """The coverage table in Markdown, line by line."""
    yield "| interval | seeds | " + " | ".join(f"n = {n}" for n in sizes) + " |"
    yield "|---|---|" + "---|" * len(sizes)
    for kind, seeds in itertools.product(KINDS, SEEDS):
        # A solve rate needs seeds of which some solve and others don't.
        if KINDS[kind].of != "solve rate" or seeds.startswith("bimodal"):
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
