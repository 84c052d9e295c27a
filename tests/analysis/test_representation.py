"""Similarity, groups and compatibility of representations against SciPy, definitions and enumeration."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy import stats
from scipy.linalg import orthogonal_procrustes
from scipy.spatial.distance import cosine

from unseen.analysis import (
    adjusted_rand,
    complete_linkage_clusters,
    cosine_matrix,
    explained_gain,
    group_gap,
    linear_cka,
    procrustes,
    rsa,
    silhouette,
)
from unseen.errors import UsageError
from unseen.randomness import stream

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
def test_invalid_representations_are_refused(call, said):
    with pytest.raises(UsageError, match=said):
        call()


def draws():
    return stream("test", "grouping").block()


@st.composite
def matrices(draw, things=(3, 8)):
    numbers = np.random.default_rng(draw(st.integers(0, 10**6)))
    return cosine_matrix(numbers.normal(size=(draw(st.integers(*things)), 3)))


@st.composite
def grouped(draw, things=(3, 6)):
    """A matrix of cosines and groups, of which one has two members or more."""
    matrix = draw(matrices(things))
    labels = draw(
        st.lists(st.sampled_from("abc"), min_size=len(matrix), max_size=len(matrix)).filter(
            lambda found: 1 < len(set(found)) < len(found)
        )
    )
    return matrix, labels


def agglomerate(rows):
    """Complete linkage by hand: join the two sets with the smallest largest distance, while it is small enough."""
    distance = [[float(np.linalg.norm(a - b)) for b in rows] for a in rows]
    most = max(max(row) for row in distance) / 2
    sets = [[i] for i in range(len(rows))]

    def apart(one, other):
        return max(distance[i][j] for i in one for j in other)

    while len(sets) > 1:
        one, other = min(itertools.combinations(sets, 2), key=lambda pair: apart(*pair))
        if apart(one, other) > most:
            break
        sets = [s for s in sets if s not in (one, other)] + [sorted(one + other)]
    sets.sort()
    return [next(place for place, members in enumerate(sets) if i in members) for i in range(len(rows))]


@quick
@given(matrices())
def test_clusters_by_hand(matrix):
    found = complete_linkage_clusters(matrix)
    assert found.tolist() == agglomerate(matrix)
    assert found.max() >= 1  # by this rule there are always two


@quick
@given(matrices(), st.integers(0, 99))
def test_clusters_do_not_depend_on_the_order_of_things(matrix, seed):
    order = np.random.default_rng(seed).permutation(len(matrix))
    found = complete_linkage_clusters(matrix[np.ix_(order, order)])
    assert adjusted_rand(found, complete_linkage_clusters(matrix)[order]) == 1
    assert list(dict.fromkeys(found.tolist())) == list(range(found.max() + 1))  # numbered as they come


def test_rounding_errors_are_no_clusters():
    same = np.tile(np.random.default_rng(0).normal(size=40), (12, 1))
    assert complete_linkage_clusters(cosine_matrix(same)).tolist() == [0] * 12
    assert complete_linkage_clusters(cosine_matrix(same + 1e-9 * np.eye(12, 40))).tolist() == [0] * 12
    assert complete_linkage_clusters([[1.0]]).tolist() == [0]


@quick
@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2)), min_size=2, max_size=7))
def test_adjusted_rand_by_counting_pairs_under_every_permutation(labels):
    one, other = zip(*labels, strict=True)

    def together(a, b):
        return sum(a[i] == a[j] and b[i] == b[j] for i, j in itertools.combinations(range(len(a)), 2))

    chance = np.mean([together(one, order) for order in itertools.permutations(other)])
    most = (together(one, one) + together(other, other)) / 2
    expected = (together(one, other) - chance) / (most - chance) if abs(most - chance) > 1e-9 else 1
    assert adjusted_rand(one, other) == pytest.approx(expected)


@quick
@given(grouped((3, 8)))
def test_silhouette_by_hand(found):
    matrix, labels = found
    distances, each = 1 - matrix, []
    for i, own in enumerate(labels):
        mean = {
            g: np.mean([distances[i, j] for j in range(len(labels)) if labels[j] == g and j != i] or [0])
            for g in set(labels)
        }
        others = min(mean[g] for g in mean if g != own)
        each.append((others - mean[own]) / max(others, mean[own]) if labels.count(own) > 1 else 0)
    assert silhouette(distances, labels) == pytest.approx(np.mean(each))


def test_silhouette_of_the_same_things_is_nothing():
    assert silhouette(np.zeros((4, 4)), [0, 0, 1, 1]) == 0


def gap_of(matrix, labels, weights=None):
    sides = {True: [], False: []}
    for i, j in itertools.combinations(range(len(labels)), 2):
        sides[labels[i] == labels[j]].append((matrix[i][j], 1 if weights is None else weights[i][j]))
    if any(sum(w for _, w in side) == 0 for side in sides.values()):
        return math.nan, math.nan
    return tuple(np.average([v for v, _ in sides[same]], weights=[w for _, w in sides[same]]) for same in (True, False))


@quick
@given(grouped())
def test_gap_and_its_p_value_under_every_labeling(found):
    matrix, labels = found
    result = group_gap(matrix, labels, generator=draws())
    within, across = gap_of(matrix, labels)
    every = [np.subtract(*gap_of(matrix, order)) for order in itertools.permutations(labels)]
    assert (result.within, result.across) == pytest.approx((within, across))
    assert result.gap == pytest.approx(within - across)
    assert result.p_value == pytest.approx(np.mean(np.array(every) >= within - across - 1e-10))


@quick
@given(grouped(), st.integers(0, 99))
def test_gap_of_weighted_pairs(found, seed):
    """Weights 0 … 2; labelings without a gap are passed over."""
    matrix, labels = found
    weights = np.random.default_rng(seed).integers(3, size=matrix.shape)
    weights = np.triu(weights) + np.triu(weights, 1).T
    known = gap_of(matrix, labels, weights)
    assume(not math.isnan(known[0]))
    result = group_gap(matrix, labels, weights=weights, generator=draws())
    every = np.array([np.subtract(*gap_of(matrix, order, weights)) for order in itertools.permutations(labels)])
    every = every[~np.isnan(every)]
    assert (result.within, result.across) == pytest.approx(known)
    assert result.p_value == pytest.approx(np.mean(every >= np.subtract(*known) - 1e-10))


def test_drawn_labelings_agree_with_all():
    """C(18, 9) = 48 620 are tried, of C(20, 10) = 184 756 some are drawn; here the latter enumerated by hand."""
    numbers = np.random.default_rng(6)
    vectors = numbers.normal(size=(20, 6)) + 0.55 * np.eye(2, 6)[np.repeat([0, 1], 10)]
    matrix, labels = cosine_matrix(vectors), np.repeat([0, 1], 10)
    found = group_gap(matrix, labels, generator=draws(), permutations=4_000)
    chosen = np.array(list(itertools.combinations(range(20), 10)))
    sides = np.ones((len(chosen), 20))
    np.put_along_axis(sides, chosen, -1, axis=1)
    # With two groups of one size the gap rises with Σ ± cosine.
    every = ((sides @ (matrix - np.eye(20))) * sides).sum(axis=1)
    observed = ((1 - 2 * labels) @ (matrix - np.eye(20)) * (1 - 2 * labels)).sum()
    expected = np.mean(every >= observed - 1e-9)
    assert 0.005 < expected < 0.3
    assert found.p_value == pytest.approx(expected, abs=4 * math.sqrt(expected / 4_000))
    assert found == group_gap(matrix, labels, generator=draws(), permutations=4_000)


def test_groups_apart_and_no_groups():
    apart = np.eye(2)[np.repeat([0, 1], 16)]
    found = group_gap(cosine_matrix(apart), np.repeat(["a", "b"], 16), generator=draws(), permutations=500)
    assert (found.within, found.across, found.gap, found.p_value) == (1, 0, 1, 1 / 501)
    alike = np.tile(np.random.default_rng(7).normal(size=30), (32, 1))
    found = group_gap(cosine_matrix(alike), np.repeat(["a", "b"], 16), generator=draws(), permutations=500)
    assert found.gap == pytest.approx(0, abs=1e-12) and found.p_value == 1.0  # ties, whatever the rounding


def test_p_values_are_uniform_without_groups():
    found = [
        group_gap(
            cosine_matrix(np.random.default_rng(seed).normal(size=(8, 4))), [0] * 4 + [1] * 4, generator=draws()
        ).p_value
        for seed in range(200)
    ]
    assert 0.02 <= np.mean(np.array(found) <= 0.1) <= 0.2
    assert 0.4 < np.mean(found) < 0.62


EYE = np.eye(4)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: group_gap(EYE, [0, 0, 0, 0], generator=draws()), "at least 2 groups, got one"),
        (lambda: group_gap(EYE, [0, 1, 2, 3], generator=draws()), "none of one kind"),
        (
            lambda: group_gap(EYE, [0, 0, 1, 1], weights=1 - np.kron(np.eye(2), np.ones((2, 2))), generator=draws()),
            "none of one kind",
        ),
        (lambda: group_gap(EYE, [0, 1, 0], generator=draws()), "one label for each of 4 items"),
        (lambda: group_gap(EYE * math.nan, [0, 1, 0, 1], generator=draws()), "NaN"),
        (lambda: group_gap(EYE, [0, 1, 0, math.nan], generator=draws()), "one label per item, got NaN"),
        (lambda: group_gap(EYE, [0, 1, 0, 1], weights=np.eye(3), generator=draws()), "how much each pair counts"),
        (lambda: group_gap(EYE, [0, 1, 0, 1], weights=-np.ones((4, 4)), generator=draws()), "none negative"),
        (lambda: group_gap(EYE, [0, 1, 0, 1], generator=draws(), permutations=0), "at least one permutation"),
        (lambda: silhouette(EYE, [1, 1, 1, 1]), "at least 2 groups"),
        (lambda: silhouette(-EYE, [1, 1, 0, 0]), "give 1 - cosines"),
        (lambda: silhouette(np.ones((4, 3)), [1, 1, 0, 0]), r"shape \(4, 3\)"),
        (lambda: complete_linkage_clusters(EYE * math.nan), "NaN"),
        (lambda: adjusted_rand([0, 1], [0, 1, 1]), "each of 2 items"),
    ],
)
def test_invalid_groups_are_refused(call, said):
    with pytest.raises(UsageError, match=said):
        call()


def compatibility_draws():
    return stream("test", "compatibility").block()


def share(tables, rows, columns):
    """Explained and whole sums of squares, one value at a time."""
    explained = whole = 0.0
    for table, labels in zip(tables, rows, strict=True):
        for column in set(columns):
            values = {
                (i, j): table[i][j]
                for i in range(len(labels))
                for j in range(len(columns))
                if labels[i] >= 0 and columns[j] == column and not math.isnan(table[i][j])
            }
            if values:
                mean = np.mean(list(values.values()))
                whole += sum((v - mean) ** 2 for v in values.values())
                for label in set(labels):
                    cell = [v for (i, _), v in values.items() if labels[i] == label]
                    explained += len(cell) * (np.mean(cell) - mean) ** 2 if cell else 0
    return explained / whole if whole > 1e-9 else math.nan


@st.composite
def systems(draw, missing=True):
    numbers = np.random.default_rng(draw(st.integers(0, 10**6)))
    count, rows, columns = draw(st.integers(1, 3)), draw(st.integers(2, 5)), draw(st.integers(1, 4))
    tables = numbers.integers(2, size=(count, rows, columns)).astype(float)
    labels = numbers.integers(3, size=(count, rows))
    if missing:
        tables[numbers.random(tables.shape) < 0.2] = np.nan
        labels[numbers.random(labels.shape) < 0.1] = -1
    return tables, labels, numbers.integers(2, size=columns).tolist()


@quick
@given(systems())
def test_explained_by_hand(system):
    tables, rows, columns = system
    found = explained_gain(tables, rows, columns, generator=compatibility_draws(), permutations=20)
    expected = share(tables, rows.tolist(), columns)
    if math.isnan(expected):
        assert all(math.isnan(value) for value in found)
    else:
        assert found.explained == pytest.approx(expected, abs=1e-9)
        assert 0 < found.p_value <= 1 and found.gain <= found.explained + 1e-12


@quick
@given(systems(missing=False))
def test_gain_and_p_value_under_every_shuffle(system):
    """Without gaps: one permutation of the rows for all tables; drawn ones come near to all of them."""
    tables, rows, columns = system
    known = share(tables, rows.tolist(), columns)
    assume(not math.isnan(known))
    every = [share(tables, rows[:, order].tolist(), columns) for order in itertools.permutations(range(rows.shape[1]))]
    found = explained_gain(tables, rows, columns, generator=compatibility_draws(), permutations=4_000)
    spread = np.std(every)
    assert found.gain == pytest.approx(known - np.mean(every), abs=1e-9 + 5 * spread / math.sqrt(4_000))
    assert found.p_value == pytest.approx(np.mean(np.array(every) >= known - 1e-9), abs=0.04)


def test_chance_in_closed_form():
    """k labels of N rows explain (k − 1) / (N − 1) of what rows explain, on average."""
    numbers = np.random.default_rng(0)
    table = numbers.integers(2, size=(12, 6)).astype(float)
    labels = np.array([0, 0, 0, 0, 0, 1, 1, 1, 2, 2, 3, 3])
    columns = [0, 0, 0, 1, 1, 1]
    found = explained_gain([table], [labels], columns, generator=compatibility_draws(), permutations=20_000)
    rows = share([table], [list(range(12))], columns)
    assert found.explained - found.gain == pytest.approx(3 / 11 * rows, abs=2e-3)


def test_labels_that_say_everything_and_nothing():
    """Two clusters: one works with both groups, one with its own only."""
    table = np.ones((16, 8))
    table[:6, 4:] = 0
    columns = ["a"] * 4 + ["b"] * 4
    clusters = np.repeat([0, 1], [6, 10])
    found = explained_gain([table], [clusters], columns, generator=compatibility_draws(), permutations=999)
    assert found.explained == pytest.approx(1) and found.gain > 0.9 and found.p_value < 0.005
    found = explained_gain([table], [np.tile([0, 1], 8)], columns, generator=compatibility_draws(), permutations=999)
    assert found.explained == pytest.approx(0) and found.p_value == pytest.approx(1) and found.gain < 0
    for same in (np.ones((16, 8)), np.zeros((16, 8)), np.repeat([[1.0, 0.0]], 16, axis=0).repeat(4, axis=1)):
        assert all(math.isnan(v) for v in explained_gain([same], [clusters], columns, generator=compatibility_draws()))
    assert all(
        math.isnan(v) for v in explained_gain([table * math.nan], [clusters], columns, generator=compatibility_draws())
    )


def test_a_table_without_a_row_shuffles_the_others_alike():
    """Rows left out of one table change nothing in another."""
    numbers = np.random.default_rng(1)
    tables = numbers.integers(2, size=(2, 6, 4)).astype(float)
    rows = np.array([[0, 0, 0, 1, 1, 1], [-1] * 6])
    whole = explained_gain(tables, rows, [0, 0, 1, 1], generator=compatibility_draws())
    assert whole == explained_gain(tables[:1], rows[:1], [0, 0, 1, 1], generator=compatibility_draws())
    gone = tables[:1].copy()
    gone[0, 2] = np.nan  # as if it were not among the rows
    found = explained_gain(gone, rows[:1], [0, 0, 1, 1], generator=compatibility_draws())
    assert found.explained == pytest.approx(
        explained_gain(
            np.delete(gone, 2, 1), np.delete(rows[:1], 2, 1), [0, 0, 1, 1], generator=compatibility_draws()
        ).explained
    )


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: explained_gain(np.ones((3, 4)), [[0, 1, 1]], [0] * 4, generator=compatibility_draws()), "tables"),
        (lambda: explained_gain(np.ones((1, 3, 4)), [[0, 1]], [0] * 4, generator=compatibility_draws()), "tables"),
        (
            lambda: explained_gain(np.ones((1, 3, 4)), [["a", "b", "c"]], [0] * 4, generator=compatibility_draws()),
            "whole numbers",
        ),
        (
            lambda: explained_gain(np.ones((1, 3, 4)), [[0, 1, 1]], [0] * 3, generator=compatibility_draws()),
            "each of 4 items",
        ),
        (
            lambda: explained_gain(np.full((1, 3, 4), math.inf), [[0, 1, 1]], [0] * 4, generator=compatibility_draws()),
            "infinity",
        ),
    ],
)
def test_invalid_tables_are_refused(call, said):
    with pytest.raises(UsageError, match=said):
        call()
