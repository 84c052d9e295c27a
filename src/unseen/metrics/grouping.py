"""Do representations fall into groups: clusters, and whether given groups are apart."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from unseen.errors import UsageError
from unseen.metrics.activation import Floats, Ints
from unseen.metrics.representation import read_square, read_table
from unseen.randomness import Draws

EXACT = 2**16
"""Up to this many different labelings all are tried; beyond, some are drawn."""
AT_ONCE = 2**21
"""How many labels are held in memory at a time."""
SLACK = 1e-12
"""Values this close, in units of the largest similarity, are a tie: sums in another order round differently."""
SAME = 1e-6
"""Rows this close are the same, as single precision has it: their clusters would be clusters of rounding errors."""


class Gap(NamedTuple):
    """Mean similarity of pairs within groups and across groups, the difference, and how likely chance makes it so."""

    within: float
    across: float
    gap: float
    p_value: float


def group_gap(
    similarities: ArrayLike,
    groups: ArrayLike,
    *,
    generator: Draws,
    weights: ArrayLike | None = None,
    permutations: int = 10_000,
) -> Gap:
    """Whether things are more alike within their groups than across: `similarities` (N, N), `groups` (N,) any labels.

    The p value is the share of labelings with groups of the same sizes whose gap is at least as large: of all of them
    up to 65 536, else of `permutations` drawn ones and the one observed. `weights` (N, N) says how much each pair
    counts, 0: not at all; labelings that leave no pair within or none across are passed over.

    >>> from unseen.randomness import stream
    >>> alike = [[1, 0.9, 0.1, 0.2], [0.9, 1, 0.3, 0.2], [0.1, 0.3, 1, 0.7], [0.2, 0.2, 0.7, 1]]
    >>> found = group_gap(alike, ["a", "a", "b", "b"], generator=stream("demo").block())
    >>> round(found.within, 3), round(found.across, 3), round(found.gap, 3), round(found.p_value, 3)
    (0.8, 0.2, 0.6, 0.333)
    """
    if permutations < 1:
        raise UsageError(f"the test needs at least one permutation, got {permutations}")
    matrix = read_square(similarities, "similarities")
    labels, weight = read_labels(groups, len(matrix)), np.ones_like(matrix)
    if weights is not None:
        weight = read_square(weights, "weights")
        if weight.shape != matrix.shape or weight.min() < 0:
            raise UsageError(
                f"weights say how much each pair counts: expected {matrix.shape}, none negative, got "
                f"{weight.shape}, the least {weight.min():g}"
            )
    weight = weight * (1 - np.eye(len(weight)))
    (within,), (across,) = _means(matrix * weight, weight, labels[None])
    if np.isnan([within, across]).any():
        raise UsageError("expected pairs within a group and pairs across groups that count, got none of one kind")
    chunks, exact = _labelings(labels, permutations, generator)
    null = np.concatenate([np.subtract(*_means(matrix * weight, weight, chunk)) for chunk in chunks])
    null, gap = null[np.isfinite(null)], float(within - across)
    reached = int(np.count_nonzero(null >= gap - SLACK * np.abs(matrix).max()))
    # What was observed is itself a labeling: with drawn ones it is counted in, so that p is never 0.
    extra = 0 if exact else 1
    return Gap(float(within), float(across), gap, (reached + extra) / (len(null) + extra))


def silhouette(distances: ArrayLike, groups: ArrayLike) -> float:
    """The mean silhouette of things in groups, −1 … 1: how much nearer the own group is than the nearest other.

    `distances` (N, N), for cosines `1 - cosine_matrix(vectors)`. A thing alone in its group counts 0 (Rousseeuw 1987).

    >>> silhouette([[0, 1, 4], [1, 0, 4], [4, 4, 0]], ["a", "a", "b"])
    0.5
    """
    matrix = read_square(distances, "distances")
    if matrix.min() < -SAME:
        raise UsageError(f"distances are not negative, got {matrix.min():g}; of cosines give 1 - cosines")
    labels = read_labels(groups, len(matrix))
    member = np.eye(int(labels.max()) + 1)[labels]
    size, things = member.sum(axis=0), np.arange(len(labels))
    total = (matrix * (1 - np.eye(len(matrix)))) @ member
    own = total[things, labels] / np.maximum(size[labels] - 1, 1)
    others = total / size
    others[things, labels] = np.inf
    nearest = others.min(axis=1)
    larger = np.maximum(own, nearest)
    lead = np.divide(nearest - own, larger, out=np.zeros_like(own), where=larger > SLACK)
    return float(np.where(size[labels] > 1, lead, 0.0).mean())


def complete_linkage_clusters(cosines: ArrayLike) -> Ints:
    """The CTL++ paper's clusters: 0, 1, … in the order of their first members.

    Euclidean distance between the rows of a matrix of cosines, complete linkage, cut at half the largest distance. By
    this rule there are always two clusters or more, however alike the rows, unless they are the same to single
    precision.

    >>> complete_linkage_clusters([[1, 0.9, 0], [0.9, 1, 0.1], [0, 0.1, 1]]).tolist()
    [0, 0, 1]
    """
    from scipy.cluster.hierarchy import fcluster, linkage  # inside, because importing it takes long
    from scipy.spatial.distance import pdist

    distances = pdist(read_table(cosines, "cosines"))
    if not len(distances) or distances.max() <= SAME:
        return np.zeros(len(np.asarray(cosines)), np.int64)
    found = fcluster(linkage(distances, "complete"), distances.max() / 2, "distance")
    _, first, of = np.unique(found, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[of].astype(np.int64)


def adjusted_rand(one: ArrayLike, other: ArrayLike) -> float:
    """How far two partitions of the same things agree: 1 if they are the same, 0 on average by chance.

    >>> adjusted_rand([0, 0, 1, 1], ["b", "b", "a", "a"]), round(adjusted_rand([0, 0, 1, 1], [0, 1, 0, 1]), 6)
    (1.0, -0.5)
    """
    first = read_labels(one, None, fewest=1)
    second = read_labels(other, len(first), fewest=1)
    width = int(second.max()) + 1
    table = np.bincount(first * width + second, minlength=(int(first.max()) + 1) * width).reshape(-1, width)
    together, by_first, by_second = (_pairs(counts) for counts in (table, table.sum(axis=1), table.sum(axis=0)))
    expected = by_first * by_second / max(_pairs(np.array([len(first)])), 1)
    most = (by_first + by_second) / 2
    return (together - expected) / (most - expected) if most != expected else 1.0


def read_labels(labels: ArrayLike, length: int | None, fewest: int = 2) -> Ints:
    """Labels of any kind as numbers 0, 1, …; at least `fewest` different ones, one for each of `length` things."""
    given = np.asarray(labels)
    if given.ndim != 1 or not len(given) or (length is not None and len(given) != length):
        expected = "one label for each thing" if length is None else f"one label for each of {length} things"
        raise UsageError(f"expected {expected}, got an array of shape {given.shape}")
    if given.dtype.kind == "f" and np.isnan(given).any():
        raise UsageError("expected a label for each thing, got NaN")
    found, of = np.unique(given, return_inverse=True)
    if len(found) < fewest:
        raise UsageError(f"expected at least {fewest} groups, got one: {found[0]}")
    return of.astype(np.int64)


def _means(weighted: Floats, weight: Floats, labels: Ints) -> tuple[Floats, Floats]:
    """The mean over pairs within and across groups for each row of labels (P, N); NaN where there are none."""
    within, counted = np.zeros((2, len(labels)))
    for group in range(int(labels.max()) + 1):
        member = (labels == group).astype(np.float64)
        within += ((member @ weighted) * member).sum(axis=1)
        counted += ((member @ weight) * member).sum(axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        apart = weight.sum() - counted
        return (
            np.where(counted > 0, within / counted, np.nan),
            np.where(apart > SLACK, (weighted.sum() - within) / apart, np.nan),
        )


def _labelings(labels: Ints, draws: int, generator: Draws) -> tuple[Iterator[Ints], bool]:
    """Labelings with groups of the same sizes, some rows at a time: all different ones (True), or `draws` random ones."""
    sizes = tuple(np.bincount(labels).tolist())
    step = max(1, AT_ONCE // len(labels))
    if math.factorial(len(labels)) // math.prod(map(math.factorial, sizes)) <= EXACT:
        every = _arrangements(sizes)
        return (every[start : start + step] for start in range(0, len(every), step)), True
    return (
        labels[generator.permutations(min(step, draws - done), len(labels))] for done in range(0, draws, step)
    ), False


@lru_cache(maxsize=8)
def _arrangements(sizes: tuple[int, ...]) -> Ints:
    """Every way to give so many things each label, one per row."""
    rows: list[list[int]] = []

    def place(left: list[int], row: list[int]) -> None:
        if not any(left):
            rows.append(row)
        for label, count in enumerate(left):
            if count:
                place([*left[:label], count - 1, *left[label + 1 :]], [*row, label])

    place(list(sizes), [])
    return np.array(rows, np.int64)


def _pairs(counts: Ints) -> int:
    """How many pairs there are within sets of these sizes."""
    return int((counts * (counts - 1) // 2).sum())
