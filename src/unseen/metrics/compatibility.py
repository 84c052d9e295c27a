"""Which first things work with which second ones: how much of that a grouping of the first explains."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from unseen.errors import UsageError
from unseen.metrics.activation import Floats, Ints
from unseen.metrics.grouping import SLACK, read_labels
from unseen.randomness import Draws


class Gain(NamedTuple):
    """The share of the variance that a grouping explains, how much more that is than by chance, and how likely so."""

    explained: float
    gain: float
    p_value: float


NOTHING = Gain(math.nan, math.nan, math.nan)
"""Where nothing varies there is nothing to explain."""


def explained_gain(
    tables: ArrayLike,
    rows: ArrayLike,
    columns: ArrayLike,
    *,
    generator: Draws,
    permutations: int = 2_000,
) -> Gain:
    """How much of the values in tables (K, U, V) the labels of their rows explain, given the labels of the columns.

    `rows` (K, U) labels the rows of each table, 0, 1, …, or −1 for a row to be left out; `columns` (V,) the columns of
    all; NaN is no value. What varies is counted around the mean of each table and column label; the cells of row label
    × column label explain a share of it, over all tables together. `gain` is that share minus its mean under labels
    shuffled among the rows, in the same way in all tables: finer labels explain more of anything. The p value is the
    share of `permutations` drawn shuffles, and the one observed, that explain at least as much. All NaN where nothing
    varies, e.g. where every pair works.

    >>> from unseen.randomness import stream
    >>> works = [[1, 1, 0, 0], [1, 1, 0, 0], [1, 1, 1, 1], [1, 1, 1, 0]]      # (first, second)
    >>> found = explained_gain([works], [[0, 0, 1, 1]], ["a", "a", "b", "b"], generator=stream("demo").block())
    >>> round(found.explained, 3), 0.3 < found.gain < 0.45, 0.25 < found.p_value < 0.4
    (0.6, True, True)
    """
    given, labels = np.asarray(tables, np.float64), np.asarray(rows)
    if given.ndim != 3 or labels.shape != given.shape[:2] or labels.dtype.kind not in "iu":
        raise UsageError(
            "expected tables (K, U, V) and whole numbers for their rows (K, U), got shapes "
            f"{given.shape} and {labels.shape} of {labels.dtype}"
        )
    if np.isinf(given).any():
        raise UsageError("expected finite values in tables, or NaN where there is none, got infinity")
    of = read_labels(columns, given.shape[2], fewest=1)
    # One shuffle of all rows for all tables; a table without some of them keeps the order of the others.
    keys = np.concatenate([np.arange(given.shape[1])[None], generator.permutations(permutations, given.shape[1])])
    explained, varying = np.zeros(len(keys)), 0.0
    for table, own in zip(given, labels.astype(np.int64), strict=True):
        here = np.flatnonzero((own >= 0) & np.isfinite(table).any(axis=1))
        if len(here):
            added, varies = _between(table[here], own[here][np.argsort(keys[:, here], axis=1)], of)
            explained, varying = explained + added, varying + varies
    if varying <= SLACK * max(1, given.size):
        return NOTHING
    share = explained / varying
    reached = int(np.count_nonzero(share >= share[0] - SLACK))  # the first is the one observed
    return Gain(float(share[0]), float(share[0] - share[1:].mean()), reached / len(share))


def _between(table: Floats, labelings: Ints, columns: Ints) -> tuple[Floats, float]:
    """The sum of squares that each labeling of the rows (P, U) explains, and the whole, given the columns' labels."""
    member = np.eye(int(columns.max()) + 1)[columns]
    there: NDArray[Any] = np.isfinite(table)
    filled = np.where(there, table, 0.0)
    count, mean = there @ member, filled.sum(axis=0) @ member
    mean = np.divide(mean, count.sum(axis=0), out=np.zeros_like(mean), where=count.sum(axis=0) > 0)
    off = np.where(there, filled - mean[columns], 0.0)
    by_row = np.hstack([off @ member, count])
    explained = np.zeros(len(labelings))
    for label in range(int(labelings.max()) + 1):
        sums, sizes = np.hsplit((labelings == label).astype(np.float64) @ by_row, 2)
        explained += np.divide(sums**2, sizes, out=np.zeros_like(sums), where=sizes > 0).sum(axis=1)
    return explained, float((off**2).sum())
