"""Similarity of representations, groups among them, and how well groups explain which pairs work together."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from unseen.analysis.routing import Floats, Ints
from unseen.errors import UsageError, nearest
from unseen.randomness import Draws

Correlation = Literal["pearson", "spearman"]

EXACT = 2**16
"""Up to this number of different labelings all are tried; beyond, some are drawn."""
AT_ONCE = 2**21
"""How many labels are held in memory at a time."""
SLACK = 1e-12
"""Values this close, in units of the largest similarity, are a tie: sums in another order round differently."""
SAME = 1e-6
"""Rows this close are the same at single precision: their clusters would be clusters of rounding errors."""


# Similarity of two representations of the same items.


def cosine_matrix(vectors: ArrayLike) -> Floats:
    """The cosine of the angle between any two of N vectors (N, d): (N, N), symmetric, 1 on the diagonal.

    >>> cosine_matrix([[1.0, 0.0], [2.0, 0.0], [0.0, 3.0]]).tolist()
    [[1.0, 1.0, 0.0], [1.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
    """
    rows = _read_table(vectors, "vectors")
    length = np.linalg.norm(rows, axis=1, keepdims=True)
    if not length.all():
        raise UsageError(
            f"a zero vector has no direction: vector {int(length.argmin())} of {len(rows)} is zero; leave it out"
        )
    unit = rows / length
    cosines: Floats = (unit @ unit.T).clip(-1, 1)
    np.fill_diagonal(cosines, 1.0)
    return cosines


def linear_cka(x: ArrayLike, y: ArrayLike) -> float:
    """Linear centred kernel alignment of features (N, d) and (N, e) of the same N items, from 0 to 1.

    It does not change if features are rotated, scaled evenly or shifted; for one feature each, it is the squared
    correlation.

    >>> round(linear_cka([[0.0], [1.0], [2.0]], [[0.0], [1.0], [3.0]]), 4)  # 27 / 28
    0.9643
    """
    first, second = _read_pair(x, y)
    first = first - first.mean(axis=0)
    second = second - second.mean(axis=0)
    if not (first.any() and second.any()):
        raise UsageError("CKA compares how features vary, and one side is constant")
    # Both branches compute the same number; the one with the smaller matrices is cheaper.
    if len(first) < max(first.shape[1], second.shape[1]):
        first_kernel = first @ first.T
        second_kernel = second @ second.T
        shared = float((first_kernel * second_kernel).sum())
    else:
        first_kernel = first.T @ first
        second_kernel = second.T @ second
        shared = float(((first.T @ second) ** 2).sum())
    return min(1.0, shared / float(np.linalg.norm(first_kernel) * np.linalg.norm(second_kernel)))


def procrustes(x: ArrayLike, y: ArrayLike) -> float:
    """The distance of x (N, d) to y (N, e) after the best rotation: min ‖xQ − y‖ over orthogonal Q (Frobenius norm).

    A metric: 0 if one is a rotation of the other, symmetric, with the triangle inequality; the narrower side counts as
    padded with zeros. Neither centred nor scaled: pass cosine matrices where scale should not count. The gCOG paper's
    *relative alignment* of a model is `procrustes(before, y) - procrustes(after, y)`, with the cosine matrices before
    and after training: positive if training brought the model closer to y.

    >>> procrustes([[1.0, 0.0], [0.0, 2.0]], [[0.0, 1.0], [-2.0, 0.0]]), procrustes([[3.0]], [[0.0, 5.0]])
    (0.0, 2.0)
    """
    first, second = _read_pair(x, y)
    nuclear = float(np.linalg.svd(first.T @ second, compute_uv=False).sum())
    # Equal sides leave a difference of rounding errors, of either sign.
    return math.sqrt(max(0.0, float((first**2).sum()) + float((second**2).sum()) - 2 * nuclear))


def rsa(x: ArrayLike, y: ArrayLike, correlation: Correlation = "pearson") -> float:
    """Representational similarity: the correlation of two similarity matrices (N, N) over all pairs of items.

    Two matrices of dissimilarities yield the same number. The default is `pearson`, because the matrix of categorical
    targets has only two values, and its ranks are mostly ties.

    >>> x = cosine_matrix([[1.0, 0.0], [0.8, 0.6], [0.0, 1.0]])
    >>> round(rsa(x, [[1, 1, 0], [1, 1, 0], [0, 0, 1]]), 4), rsa(x, 1 - x, "spearman")
    (0.6934, -1.0)
    """
    if correlation not in get_args(Correlation):
        raise UsageError(f"there is no correlation {correlation!r}. {nearest(str(correlation), get_args(Correlation))}")
    first = _read_symmetric(x, "a similarity matrix x")
    second = _read_symmetric(y, "a similarity matrix y")
    if len(first) != len(second):
        raise UsageError(f"expected similarity matrices of the same items, got {len(first)} and {len(second)} of them")
    pairs = np.triu_indices(len(first), 1)
    first = first[pairs]
    second = second[pairs]
    if len(first) < 2 or (first == first[0]).all() or (second == second[0]).all():
        raise UsageError("RSA needs pairs of items that differ in how similar they are, and one side is constant")
    if correlation == "spearman":
        from scipy.stats import rankdata  # inside, because importing it takes long

        first = rankdata(first)
        second = rankdata(second)
    return float(np.corrcoef(first, second)[0, 1])


# Groups of items: are given groups apart, and which clusters does a matrix have?


class Gap(NamedTuple):
    """Mean similarity of pairs within groups and across groups, the difference, and its p value."""

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
    """Test whether items are more alike within their groups than across: `similarities` (N, N), `groups` (N,) labels.

    The p value is the share of labelings with groups of the same sizes whose gap is at least as large: of all of them
    up to 65 536, else of `permutations` drawn ones and the observed one. `weights` (N, N) are the weights of the pairs,
    0 to exclude a pair; labelings that leave no pair within or none across are skipped.

    >>> from unseen.randomness import stream
    >>> alike = [[1, 0.9, 0.1, 0.2], [0.9, 1, 0.3, 0.2], [0.1, 0.3, 1, 0.7], [0.2, 0.2, 0.7, 1]]
    >>> result = group_gap(alike, ["a", "a", "b", "b"], generator=stream("demo").block())
    >>> round(result.within, 3), round(result.across, 3), round(result.gap, 3), round(result.p_value, 3)
    (0.8, 0.2, 0.6, 0.333)
    """
    if permutations < 1:
        raise UsageError(f"the test needs at least one permutation, got {permutations}")
    matrix = _read_symmetric(similarities, "similarities")
    labels = _read_labels(groups, len(matrix))
    weight = np.ones_like(matrix)
    if weights is not None:
        weight = _read_symmetric(weights, "weights")
        if weight.shape != matrix.shape or weight.min() < 0:
            raise UsageError(
                f"weights say how much each pair counts: expected {matrix.shape}, none negative, got "
                f"{weight.shape}, the least {weight.min():g}"
            )
    weight = weight * (1 - np.eye(len(weight)))
    (within,), (across,) = _pair_means(matrix * weight, weight, labels[None])
    if np.isnan([within, across]).any():
        raise UsageError("expected pairs within a group and pairs across groups that count, got none of one kind")
    gap = float(within - across)
    labelings, exact = _labelings(labels, permutations, generator)
    null = np.concatenate([np.subtract(*_pair_means(matrix * weight, weight, rows)) for rows in labelings])
    null = null[np.isfinite(null)]
    reached = int(np.count_nonzero(null >= gap - SLACK * np.abs(matrix).max()))
    # The observed labeling is one of them: it is added to drawn ones, so that p is never 0.
    extra = 0 if exact else 1
    return Gap(float(within), float(across), gap, (reached + extra) / (len(null) + extra))


def _pair_means(weighted: Floats, weight: Floats, labels: Ints) -> tuple[Floats, Floats]:
    """The mean over pairs within and across groups for each row of labels (P, N); NaN where there are none."""
    within, within_weight = np.zeros((2, len(labels)))
    for group in range(int(labels.max()) + 1):
        member = (labels == group).astype(np.float64)
        # mᵀ W m sums a matrix over all pairs within the group, for every labeling at once.
        within += ((member @ weighted) * member).sum(axis=1)
        within_weight += ((member @ weight) * member).sum(axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        across_weight = weight.sum() - within_weight
        return (
            np.where(within_weight > 0, within / within_weight, np.nan),
            np.where(across_weight > SLACK, (weighted.sum() - within) / across_weight, np.nan),
        )


def _labelings(labels: Ints, draws: int, generator: Draws) -> tuple[Iterator[Ints], bool]:
    """Labelings with groups of the same sizes, some rows at a time: all different ones (True), or `draws` random ones."""
    sizes = tuple(np.bincount(labels).tolist())
    step = max(1, AT_ONCE // len(labels))
    if math.factorial(len(labels)) // math.prod(map(math.factorial, sizes)) <= EXACT:
        arrangements = _arrangements(sizes)
        return (arrangements[start : start + step] for start in range(0, len(arrangements), step)), True
    chunks = (min(step, draws - start) for start in range(0, draws, step))
    return (labels[generator.permutations(count, len(labels))] for count in chunks), False


@lru_cache(maxsize=8)
def _arrangements(sizes: tuple[int, ...]) -> Ints:
    """All different rows in which label k occurs `sizes[k]` times."""
    rows: list[list[int]] = []

    def extend(remaining: list[int], row: list[int]) -> None:
        if not any(remaining):
            rows.append(row)
        for label, count in enumerate(remaining):
            if count:
                extend([*remaining[:label], count - 1, *remaining[label + 1 :]], [*row, label])

    extend(list(sizes), [])
    return np.array(rows, np.int64)


def silhouette(distances: ArrayLike, groups: ArrayLike) -> float:
    """The mean silhouette of items in groups, −1 … 1: how much nearer their group is than the nearest other group.

    `distances` (N, N), for cosines `1 - cosine_matrix(vectors)`. A single item in a group counts 0 (Rousseeuw 1987).

    >>> silhouette([[0, 1, 4], [1, 0, 4], [4, 4, 0]], ["a", "a", "b"])
    0.5
    """
    matrix = _read_symmetric(distances, "distances")
    if matrix.min() < -SAME:
        raise UsageError(f"distances are not negative, got {matrix.min():g}; of cosines give 1 - cosines")
    labels = _read_labels(groups, len(matrix))
    items = np.arange(len(labels))
    member = np.eye(int(labels.max()) + 1)[labels]
    size = member.sum(axis=0)
    total = (matrix * (1 - np.eye(len(matrix)))) @ member
    inner = total[items, labels] / np.maximum(size[labels] - 1, 1)
    to_group = total / size
    to_group[items, labels] = np.inf
    outer = to_group.min(axis=1)
    larger = np.maximum(inner, outer)
    lead = np.divide(outer - inner, larger, out=np.zeros_like(inner), where=larger > SLACK)
    return float(np.where(size[labels] > 1, lead, 0.0).mean())


def complete_linkage_clusters(cosines: ArrayLike) -> Ints:
    """The CTL++ paper's clusters, numbered in the order of their first members.

    Euclidean distance between the rows of a matrix of cosines, complete linkage, cut at half the largest distance. By
    this rule there are always at least two clusters, even of very similar rows, unless they are the same at single
    precision.

    >>> complete_linkage_clusters([[1, 0.9, 0], [0.9, 1, 0.1], [0, 0.1, 1]]).tolist()
    [0, 0, 1]
    """
    from scipy.cluster.hierarchy import fcluster, linkage  # inside, because importing it takes long
    from scipy.spatial.distance import pdist

    distances = pdist(_read_table(cosines, "cosines"))
    if not len(distances) or distances.max() <= SAME:
        return np.zeros(len(np.asarray(cosines)), np.int64)
    clusters = fcluster(linkage(distances, "complete"), distances.max() / 2, "distance")
    _, first_item, cluster = np.unique(clusters, return_index=True, return_inverse=True)
    # The argsort of an argsort is the rank: of each cluster by its first item.
    return np.argsort(np.argsort(first_item))[cluster].astype(np.int64)


def adjusted_rand(one: ArrayLike, other: ArrayLike) -> float:
    """The agreement of two partitions of the same items: 1 if they are the same, 0 on average by chance.

    >>> adjusted_rand([0, 0, 1, 1], ["b", "b", "a", "a"]), round(adjusted_rand([0, 0, 1, 1], [0, 1, 0, 1]), 6)
    (1.0, -0.5)
    """
    first = _read_labels(one, None, fewest=1)
    second = _read_labels(other, len(first), fewest=1)
    width = int(second.max()) + 1
    # The contingency table of both partitions, counted as one partition into pairs of labels.
    table = np.bincount(first * width + second, minlength=(int(first.max()) + 1) * width).reshape(-1, width)
    together = _count_pairs(table)
    by_first = _count_pairs(table.sum(axis=1))
    by_second = _count_pairs(table.sum(axis=0))
    expected = by_first * by_second / max(_count_pairs(np.array([len(first)])), 1)
    largest = (by_first + by_second) / 2
    return (together - expected) / (largest - expected) if largest != expected else 1.0


def _count_pairs(counts: Ints) -> int:
    """The number of pairs within sets of these sizes."""
    return int((counts * (counts - 1) // 2).sum())


# Compatibility: which first items work with which second ones, and how much of that do groups explain?


class Gain(NamedTuple):
    """The share of the variance that a grouping explains, its excess over chance, and the p value."""

    explained: float
    gain: float
    p_value: float


NOTHING = Gain(math.nan, math.nan, math.nan)
"""The result where nothing varies."""


def explained_gain(
    tables: ArrayLike, rows: ArrayLike, columns: ArrayLike, *, generator: Draws, permutations: int = 2_000
) -> Gain:
    """How much of the values in tables (K, U, V) the labels of their rows explain, given the labels of the columns.

    `rows` (K, U) labels the rows of each table, 0, 1, …, or −1 to leave a row out; `columns` (V,) labels the columns of
    all tables; NaN is a missing value. The variance is that around the mean of each table and column label; the means
    by row label × column label explain a share of it, over all tables together. `gain` is that share minus its mean
    under labels shuffled among the rows, in the same way in all tables, because finer labels explain more of anything.
    The p value is the share of `permutations` drawn shuffles, and the observed labels, that explain at least as much.
    All three are NaN where nothing varies, e.g. where every pair works.

    >>> from unseen.randomness import stream
    >>> works = [[1, 1, 0, 0], [1, 1, 0, 0], [1, 1, 1, 1], [1, 1, 1, 0]]      # (first, second)
    >>> result = explained_gain([works], [[0, 0, 1, 1]], ["a", "a", "b", "b"], generator=stream("demo").block())
    >>> round(result.explained, 3), 0.3 < result.gain < 0.45, 0.25 < result.p_value < 0.4
    (0.6, True, True)
    """
    values = np.asarray(tables, np.float64)
    row_labels = np.asarray(rows)
    if values.ndim != 3 or row_labels.shape != values.shape[:2] or row_labels.dtype.kind not in "iu":
        raise UsageError(
            "expected tables (K, U, V) and whole numbers for their rows (K, U), got shapes "
            f"{values.shape} and {row_labels.shape} of {row_labels.dtype}"
        )
    if np.isinf(values).any():
        raise UsageError("expected finite values in tables, or NaN where there is none, got infinity")
    column_labels = _read_labels(columns, values.shape[2], fewest=1)
    # One shuffle of all rows for all tables, the observed order first; a table without some of the rows keeps the
    # order of the others.
    height = values.shape[1]
    keys = np.concatenate([np.arange(height)[None], generator.permutations(permutations, height)])
    explained = np.zeros(len(keys))
    varying = 0.0
    for table, labels in zip(values, row_labels.astype(np.int64), strict=True):
        present = np.flatnonzero((labels >= 0) & np.isfinite(table).any(axis=1))
        if len(present):
            shuffled = labels[present][np.argsort(keys[:, present], axis=1)]
            table_explained, table_varying = _sums_of_squares(table[present], shuffled, column_labels)
            explained = explained + table_explained
            varying = varying + table_varying
    if varying <= SLACK * max(1, values.size):
        return NOTHING
    share = explained / varying
    reached = int(np.count_nonzero(share >= share[0] - SLACK))  # the first is the observed one
    return Gain(float(share[0]), float(share[0] - share[1:].mean()), reached / len(share))


def _sums_of_squares(table: Floats, labelings: Ints, columns: Ints) -> tuple[Floats, float]:
    """The sum of squares that each labeling of the rows (P, U) explains, and the total, given the columns' labels."""
    member = np.eye(int(columns.max()) + 1)[columns]
    present: NDArray[Any] = np.isfinite(table)
    filled = np.where(present, table, 0.0)
    count = present @ member
    mean = filled.sum(axis=0) @ member
    mean = np.divide(mean, count.sum(axis=0), out=np.zeros_like(mean), where=count.sum(axis=0) > 0)
    deviation = np.where(present, filled - mean[columns], 0.0)
    # Sums and counts side by side, so that one product per label adds up both.
    by_row = np.hstack([deviation @ member, count])
    explained = np.zeros(len(labelings))
    for label in range(int(labelings.max()) + 1):
        sums, sizes = np.hsplit((labelings == label).astype(np.float64) @ by_row, 2)
        explained += np.divide(sums**2, sizes, out=np.zeros_like(sums), where=sizes > 0).sum(axis=1)
    return explained, float((deviation**2).sum())


# Reading arguments.


def _read_table(values: ArrayLike, description: str) -> Floats:
    """Finite numbers in rows and columns, in double precision."""
    try:
        table = np.asarray(values, np.float64)
    except (TypeError, ValueError):
        raise UsageError(f"expected {description} as a table of numbers, got something else") from None
    if table.ndim != 2 or 0 in table.shape:
        raise UsageError(
            f"expected {description} as a table with one row per item, got an array of shape {table.shape}"
        )
    if not np.isfinite(table).all():
        raise UsageError(f"expected finite numbers in {description}, got NaN or infinity")
    return table


def _read_symmetric(values: ArrayLike, description: str) -> Floats:
    """A symmetric table with a row and a column per item."""
    table = _read_table(values, description)
    square = table.shape[0] == table.shape[1]
    if not square or not np.allclose(table, table.T, rtol=1e-6, atol=1e-9):
        raise UsageError(
            f"expected {description} with one row and one column per item, symmetric, got shape {table.shape}"
            f"{' and not symmetric' if square else ''}"
        )
    return table


def _read_pair(x: ArrayLike, y: ArrayLike) -> tuple[Floats, Floats]:
    """Two tables with the same number of rows."""
    first = _read_table(x, "x")
    second = _read_table(y, "y")
    if len(first) != len(second):
        raise UsageError(f"expected features of the same items, got {len(first)} rows in x and {len(second)} in y")
    return first, second


def _read_labels(labels: ArrayLike, length: int | None, fewest: int = 2) -> Ints:
    """Labels of any type as numbers 0, 1, …; at least `fewest` different ones, one for each of `length` items."""
    values = np.asarray(labels)
    if values.ndim != 1 or not len(values) or (length is not None and len(values) != length):
        expected = "one label per item" if length is None else f"one label for each of {length} items"
        raise UsageError(f"expected {expected}, got an array of shape {values.shape}")
    if values.dtype.kind == "f" and np.isnan(values).any():
        raise UsageError("expected one label per item, got NaN")
    names, numbers = np.unique(values, return_inverse=True)
    if len(names) < fewest:
        raise UsageError(f"expected at least {fewest} groups, got one: {names[0]}")
    return numbers.astype(np.int64)
