"""How alike two representations of the same things are: cosines, CKA, Procrustes, RSA."""

from __future__ import annotations

import math
from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike

from unseen.errors import UsageError, nearest
from unseen.metrics.activation import Floats

Correlation = Literal["pearson", "spearman"]


def cosine_matrix(vectors: ArrayLike) -> Floats:
    """The cosine of the angle between any two of N vectors (N, d): (N, N), symmetric, 1 on the diagonal.

    >>> cosine_matrix([[1.0, 0.0], [2.0, 0.0], [0.0, 3.0]]).tolist()
    [[1.0, 1.0, 0.0], [1.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
    """
    given = read_table(vectors, "vectors")
    length = np.linalg.norm(given, axis=1, keepdims=True)
    if not length.all():
        raise UsageError(
            f"a zero vector has no direction: vector {int(length.argmin())} of {len(given)} is zero; leave it out"
        )
    unit = given / length
    found: Floats = (unit @ unit.T).clip(-1, 1)
    np.fill_diagonal(found, 1.0)
    return found


def linear_cka(x: ArrayLike, y: ArrayLike) -> float:
    """Linear centred kernel alignment of features (N, d) and (N, e) of the same N things, from 0 to 1.

    The same for rotated or evenly scaled features and for features moved by a constant; of one feature each, the
    squared correlation.

    >>> round(linear_cka([[0.0], [1.0], [2.0]], [[0.0], [1.0], [3.0]]), 4)  # 27 / 28
    0.9643
    """
    one, other = _same_things(x, y)
    one, other = one - one.mean(axis=0), other - other.mean(axis=0)
    if not (one.any() and other.any()):
        raise UsageError("CKA compares how features vary, and one side is constant")
    if len(one) < max(one.shape[1], other.shape[1]):  # the smaller of two ways to the same numbers
        first, second = one @ one.T, other @ other.T
        shared = float((first * second).sum())
    else:
        first, second = one.T @ one, other.T @ other
        shared = float(((one.T @ other) ** 2).sum())
    return min(1.0, shared / float(np.linalg.norm(first) * np.linalg.norm(second)))


def procrustes(x: ArrayLike, y: ArrayLike) -> float:
    """How far x (N, d) stays from y (N, e) after the best rotation: min ‖xQ − y‖ over orthogonal Q (Frobenius norm).

    A distance: 0 if one is a rotation of the other, symmetric, with the triangle inequality; the narrower side counts
    as padded with zeros. Neither centred nor scaled: hand in cosine matrices where scale should not count. The gCOG
    paper's *relative alignment* of a model is `procrustes(before, y) - procrustes(after, y)`, the cosine matrices
    before and after training: positive if training brought it closer to y.

    >>> procrustes([[1.0, 0.0], [0.0, 2.0]], [[0.0, 1.0], [-2.0, 0.0]]), procrustes([[3.0]], [[0.0, 5.0]])
    (0.0, 2.0)
    """
    one, other = _same_things(x, y)
    nuclear = float(np.linalg.svd(one.T @ other, compute_uv=False).sum())
    # Equal sides leave a difference of rounding errors, of either sign.
    return math.sqrt(max(0.0, float((one**2).sum()) + float((other**2).sum()) - 2 * nuclear))


def rsa(x: ArrayLike, y: ArrayLike, correlation: Correlation = "pearson") -> float:
    """Representational similarity: the correlation of two similarity matrices (N, N), each pair of things once.

    Matrices of dissimilarities give the same number, if both are. `pearson` unless asked otherwise: the matrix of
    categorical targets has two values only, and ranks of it are mostly ties.

    >>> x = cosine_matrix([[1.0, 0.0], [0.8, 0.6], [0.0, 1.0]])
    >>> round(rsa(x, [[1, 1, 0], [1, 1, 0], [0, 0, 1]]), 4), rsa(x, 1 - x, "spearman")
    (0.6934, -1.0)
    """
    if correlation not in get_args(Correlation):
        raise UsageError(f"there is no correlation {correlation!r}. {nearest(str(correlation), get_args(Correlation))}")
    one, other = read_square(x, "a similarity matrix x"), read_square(y, "a similarity matrix y")
    if len(one) != len(other):
        raise UsageError(f"expected similarity matrices of the same things, got {len(one)} and {len(other)} of them")
    pairs = np.triu_indices(len(one), 1)
    first, second = one[pairs], other[pairs]
    if any(len(side) < 2 or (side == side[0]).all() for side in (first, second)):
        raise UsageError("RSA needs pairs of things that differ in how similar they are, and one side is constant")
    if correlation == "spearman":
        from scipy.stats import rankdata  # inside, because importing it takes long

        first, second = rankdata(first), rankdata(second)
    return float(np.corrcoef(first, second)[0, 1])


def read_table(values: ArrayLike, what: str) -> Floats:
    """Finite numbers in rows and columns, in double precision."""
    try:
        given = np.asarray(values, np.float64)
    except (TypeError, ValueError):
        raise UsageError(f"expected {what} as a table of numbers, got something else") from None
    if given.ndim != 2 or 0 in given.shape:
        raise UsageError(f"expected {what} as a table with a row for each thing, got an array of shape {given.shape}")
    if not np.isfinite(given).all():
        raise UsageError(f"expected finite numbers in {what}, got NaN or infinity")
    return given


def read_square(values: ArrayLike, what: str) -> Floats:
    """A symmetric table with a row and a column for each thing."""
    given = read_table(values, what)
    if given.shape[0] != given.shape[1] or not np.allclose(given, given.T, rtol=1e-6, atol=1e-9):
        raise UsageError(
            f"expected {what} with a row and a column for each thing, symmetric, got shape {given.shape}"
            f"{' and not symmetric' if given.shape[0] == given.shape[1] else ''}"
        )
    return given


def _same_things(x: ArrayLike, y: ArrayLike) -> tuple[Floats, Floats]:
    one, other = read_table(x, "x"), read_table(y, "y")
    if len(one) != len(other):
        raise UsageError(f"expected features of the same things, got {len(one)} rows in x and {len(other)} in y")
    return one, other
