"""What it takes to compare representations: the metrics that work on matrices, at the size of their papers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from time import process_time

import numpy as np

from benchmarks.rows import Asked, Row
from benchmarks.timing import Timed, pinned, rounds_of
from unseen import analysis
from unseen.randomness import Draws, Floats, Ints, stream
from unseen.training.process import one_thread

Work = Callable[[], object]
WIDTH = 512
"""Of the gcog paper's states."""


@dataclass(frozen=True)
class Metric:
    """What a metric is measured on (`size` of what, in its paper or target) and how it is set up at any size."""

    of: str
    size: int
    make: Callable[[int], Work]


def alignment(asked: Asked) -> Iterator[Row]:
    """CPU milliseconds of each metric, one thread. Quick: an eighth of the size."""
    for name, metric in METRICS.items():
        size = metric.size // 8 if asked.quick else metric.size
        case = f"{name} {metric.of}={size}"
        if asked.wants(case):
            with one_thread(), pinned():
                found = Timed.of(rounds_of({case: metric.make(size)}, 2 if asked.quick else 5, process_time)[case])
            yield Row(case, "time", found.seconds * 1e3, "ms", "less", found.low * 1e3, found.high * 1e3, found.rounds)


def _draws(*names: object) -> Draws:
    return stream("benchmark", "alignment", *map(str, names)).block()


def _vectors(count: int, side: str = "x") -> Floats:
    return _draws(side, count).normal((count, WIDTH))


def _cosines(count: int, side: str = "x") -> Floats:
    return analysis.cosine_matrix(_vectors(count, side))


def _routing(rules: int, decided: float) -> Floats:
    """A square activation matrix: a share of each rule goes to a module of its own, the rest anywhere."""
    noise = _draws("routing", rules).uniform((rules, rules))
    own = np.eye(rules)[_draws("own", rules).permutations(1, rules)[0]]
    return np.asarray(decided * own + (1 - decided) * noise / noise.sum(axis=1, keepdims=True))


def _alignment(matrix: Floats) -> Work:
    return partial(analysis.alignment, matrix)


def _tokens(rules: int) -> Work:
    """All specialization metrics of 10 000 examples of 10 tokens, standard errors included."""
    rule = np.arange(100_000).reshape(10_000, 10) % rules
    return partial(analysis.specialization, _routing(rules, 0.5)[rule], rule)


def _groups(things: int) -> Ints:
    return np.arange(things) % 2


def _gap(count: int) -> Work:
    alike, groups = _cosines(count), _groups(count)
    return lambda: analysis.group_gap(alike, groups, generator=_draws("gap"), permutations=2_000)


def _gain(count: int) -> Work:
    """Which of `count` functions work with which, at each of 8 symbols, explained by two groups."""
    tables, rows = _draws("gain").uniform((8, count, count)).round(), np.tile(_groups(count), (8, 1))
    return lambda: analysis.explained_gain(tables, rows, _groups(count), generator=_draws("shuffles"))


METRICS = {
    "alignment, routing at random": Metric("rules", 1024, lambda n: _alignment(_routing(n, 0.0))),
    "alignment, routing half decided": Metric("rules", 1024, lambda n: _alignment(_routing(n, 0.5))),
    "alignment, all rules alike": Metric("rules", 1024, lambda n: _alignment(analysis.uniform_activation(n))),
    "specialization": Metric("rules", 32, _tokens),
    "cosines": Metric("samples", 800, lambda n: partial(analysis.cosine_matrix, _vectors(n))),
    "linear CKA": Metric("samples", 800, lambda n: partial(analysis.linear_cka, _vectors(n), _vectors(n, "y"))),
    "Procrustes": Metric("samples", 800, lambda n: partial(analysis.procrustes, _cosines(n), _cosines(n, "y"))),
    "RSA": Metric("samples", 800, lambda n: partial(analysis.rsa, _cosines(n), _cosines(n, "y"))),
    "RSA by ranks": Metric("samples", 800, lambda n: partial(analysis.rsa, _cosines(n), _cosines(n, "y"), "spearman")),
    "gap of groups": Metric("functions", 32, _gap),
    "silhouette": Metric("functions", 32, lambda n: partial(analysis.silhouette, 1 - _cosines(n), _groups(n))),
    "clusters": Metric("functions", 32, lambda n: partial(analysis.complete_linkage_clusters, _cosines(n))),
    "clusters or groups": Metric("functions", 32, lambda n: partial(analysis.adjusted_rand, _groups(n), _groups(n))),
    "gain of groups": Metric("functions", 32, _gain),
}
"""The papers' sizes: 32 rules or functions, 800 samples of states; alignment at the size of its target."""
