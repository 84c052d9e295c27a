"""Cosines, CKA, Procrustes and RSA against SciPy, their definitions, and what may not change them."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from scipy.linalg import orthogonal_procrustes
from scipy.spatial.distance import cosine

from unseen.errors import UsageError
from unseen.metrics import cosine_matrix, linear_cka, procrustes, rsa

quick = settings(deadline=None, derandomize=True, max_examples=50)


@st.composite
def pairs(draw, things=(3, 9), width=(1, 12)):
    """Two sets of features of the same things: fewer and more features than things."""
    numbers = np.random.default_rng(draw(st.integers(0, 10**6)))
    n = draw(st.integers(*things))
    return (
        numbers.normal(size=(n, draw(st.integers(*width)))) + draw(st.floats(-3, 3)),
        numbers.normal(size=(n, draw(st.integers(*width)))),
    )


def rotation(width, seed):
    return np.linalg.qr(np.random.default_rng(seed).normal(size=(width, width)))[0]


def test_cosines_one_by_one():
    vectors = np.random.default_rng(0).normal(size=(6, 4)).astype(np.float32)
    found = cosine_matrix(vectors)
    for i in range(6):
        for j in range(6):
            assert found[i, j] == pytest.approx(1 - cosine(vectors[i].astype(float), vectors[j].astype(float)))
    assert (found == found.T).all() and (np.diagonal(found) == 1).all()


def test_cosines_of_parallel_vectors_stay_within_one():
    vectors = np.random.default_rng(1).normal(size=(1, 50)) * np.linspace(0.1, 3, 40)[:, None]
    assert cosine_matrix(vectors).max() == 1.0
    assert cosine_matrix(np.vstack([vectors, -vectors])).min() == pytest.approx(-1.0)


@quick
@given(pairs())
def test_cka_is_the_normalised_hsic(sides):
    """By its definition over things × things matrices, whichever way it was computed."""
    n = len(sides[0])
    centre = np.eye(n) - 1 / n
    first, second = (centre @ side @ side.T @ centre for side in sides)
    expected = np.trace(first @ second) / math.sqrt(np.trace(first @ first) * np.trace(second @ second))
    assert linear_cka(*sides) == pytest.approx(expected)
    assert 0 <= linear_cka(*sides) <= 1
    assert linear_cka(*sides) == pytest.approx(linear_cka(*sides[::-1]))


@quick
@given(pairs(), st.integers(0, 99), st.floats(0.01, 100))
def test_cka_ignores_rotation_scale_and_place(sides, seed, scale):
    x, y = sides
    assert linear_cka(scale * x @ rotation(x.shape[1], seed) + 5, y) == pytest.approx(linear_cka(x, y))
    assert linear_cka(x, x @ rotation(x.shape[1], seed) * scale) == pytest.approx(1)


def test_cka_of_one_feature_is_a_squared_correlation():
    x, y = np.random.default_rng(2).normal(size=(2, 30))
    assert linear_cka(x[:, None], y[:, None]) == pytest.approx(stats.pearsonr(x, y)[0] ** 2)


@quick
@given(pairs(), st.integers(0, 10**6))
def test_procrustes_is_what_the_best_rotation_leaves(sides, seed):
    x, y = sides
    width = max(x.shape[1], y.shape[1])
    wide = [np.pad(side, ((0, 0), (0, width - side.shape[1]))) for side in (x, y)]
    best, _ = orthogonal_procrustes(*wide)
    assert procrustes(x, y) == pytest.approx(np.linalg.norm(wide[0] @ best - wide[1]), abs=1e-6)
    for other in range(3):
        assert np.linalg.norm(wide[0] @ rotation(width, seed + other) - wide[1]) >= procrustes(x, y) - 1e-9
    assert procrustes(x, y) == pytest.approx(procrustes(y, x), abs=1e-7)


def test_procrustes_by_trying_all_rotations_of_the_plane():
    x, y = np.random.default_rng(3).normal(size=(2, 7, 2))
    angles = np.linspace(0, 2 * np.pi, 3001)
    turns = np.array([[[np.cos(a), -np.sin(a)], [np.sin(a), np.cos(a)]] for a in angles])
    turns = np.concatenate([turns, turns @ np.diag([1, -1])])
    assert procrustes(x, y) == pytest.approx(np.linalg.norm(x @ turns - y, axis=(1, 2)).min(), abs=1e-4)


@quick
@given(pairs(width=(4, 4)), st.integers(0, 99), st.floats(0.01, 100))
def test_procrustes_is_a_distance_that_rotations_leave_alone(sides, seed, scale):
    x, y = sides
    z = np.random.default_rng(seed).normal(size=x.shape)
    turned = x @ rotation(4, seed)
    size = np.linalg.norm(x)
    assert procrustes(x, x) < 1e-5 * size and procrustes(x, turned) < 1e-5 * size
    assert procrustes(turned, y) == pytest.approx(procrustes(x, y), abs=1e-6)
    assert procrustes(scale * x, scale * y) == pytest.approx(scale * procrustes(x, y), abs=1e-5 * scale)
    assert procrustes(x, z) <= procrustes(x, y) + procrustes(y, z) + 1e-9
    # Scale counts, unless cosines are compared.
    target = cosine_matrix(y)
    assert procrustes(cosine_matrix(scale * turned), target) == pytest.approx(procrustes(cosine_matrix(x), target))
    assert procrustes(2 * x, x) == pytest.approx(size)


def test_relative_alignment_is_positive_where_training_helped():
    """As in the gCOG analysis: cosine matrices of activations, and of one-hot targets."""
    numbers = np.random.default_rng(4)
    classes = numbers.integers(5, size=60)
    target = cosine_matrix(np.eye(5)[classes])
    assert set(np.unique(target)) == {0, 1}
    before = cosine_matrix(numbers.normal(size=(60, 32)))
    after = cosine_matrix(4 * np.eye(5)[classes] @ numbers.normal(size=(5, 32)) + numbers.normal(size=(60, 32)))
    assert procrustes(before, target) - procrustes(after, target) > 1


@pytest.mark.parametrize("correlation", ["pearson", "spearman"])
def test_rsa_by_scipy(correlation):
    x, y = np.random.default_rng(5).normal(size=(2, 8, 3))
    first, second = cosine_matrix(x), cosine_matrix(y)
    each = [[matrix[i, j] for i in range(8) for j in range(i + 1, 8)] for matrix in (first, second)]
    expected = {"pearson": stats.pearsonr, "spearman": stats.spearmanr}[correlation](*each)[0]
    assert rsa(first, second, correlation) == pytest.approx(expected)
    assert rsa(1 - first, 1 - second, correlation) == pytest.approx(expected)
    assert rsa(1 - first, second, correlation) == pytest.approx(-expected)


@quick
@given(pairs(width=(2, 6)), st.integers(0, 99), st.floats(0.01, 100))
def test_rsa_ignores_rotation_scale_and_the_order_of_things(sides, seed, scale):
    x, y = sides
    known = rsa(cosine_matrix(x), cosine_matrix(y))
    assert rsa(cosine_matrix(scale * x @ rotation(x.shape[1], seed)), cosine_matrix(y)) == pytest.approx(known)
    order = np.random.default_rng(seed).permutation(len(x))
    assert rsa(cosine_matrix(x[order]), cosine_matrix(y[order])) == pytest.approx(known)
    first, second = cosine_matrix(x), cosine_matrix(y)
    assert rsa(first, second**3, "spearman") == pytest.approx(rsa(first, second, "spearman"))  # any rising function
    assert rsa(first, 3 * second + 1) == pytest.approx(known)


X = np.arange(12.0).reshape(4, 3)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: cosine_matrix([[1.0, 2.0], [0.0, 0.0]]), "vector 1 of 2 is zero"),
        (lambda: cosine_matrix([[1.0, math.nan]]), "got NaN or infinity"),
        (lambda: cosine_matrix([1.0, 2.0]), r"shape \(2,\)"),
        (lambda: cosine_matrix([[1.0, 2.0], [3.0]]), "table of numbers"),
        (lambda: cosine_matrix(np.empty((0, 3))), r"shape \(0, 3\)"),
        (lambda: linear_cka(X, X[:3]), "4 rows in x and 3 in y"),
        (lambda: linear_cka(X, np.ones((4, 2))), "one side is constant"),
        (lambda: procrustes(X, X[1:]), "4 rows in x and 3 in y"),
        (lambda: procrustes(X + math.inf, X), "finite"),
        (lambda: rsa(X, X), "symmetric"),
        (lambda: rsa(X[:3], X[:3]), "not symmetric"),
        (lambda: rsa(np.eye(3), np.eye(4)), "3 and 4"),
        (lambda: rsa(np.eye(3), np.eye(3)), "one side is constant"),
        (lambda: rsa(np.eye(3), np.eye(3), "kendall"), "there is no correlation 'kendall'"),
    ],
)
def test_wrong_use_is_said(call, said):
    with pytest.raises(UsageError, match=said):
        call()
