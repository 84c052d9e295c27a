"""Clusters, silhouettes and gaps between groups by plain loops and enumeration."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unseen.errors import UsageError
from unseen.metrics import adjusted_rand, complete_linkage_clusters, cosine_matrix, group_gap, silhouette
from unseen.randomness import stream

quick = settings(deadline=None, derandomize=True, max_examples=50)


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
    if math.isnan(known[0]):
        with pytest.raises(UsageError, match="none of one kind"):
            group_gap(matrix, labels, weights=weights, generator=draws())
        return
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
        (lambda: group_gap(EYE, [0, 1, 0], generator=draws()), "one label for each of 4 things"),
        (lambda: group_gap(EYE * math.nan, [0, 1, 0, 1], generator=draws()), "NaN"),
        (lambda: group_gap(EYE, [0, 1, 0, math.nan], generator=draws()), "label for each thing, got NaN"),
        (lambda: group_gap(EYE, [0, 1, 0, 1], weights=np.eye(3), generator=draws()), "how much each pair counts"),
        (lambda: group_gap(EYE, [0, 1, 0, 1], weights=-np.ones((4, 4)), generator=draws()), "none negative"),
        (lambda: group_gap(EYE, [0, 1, 0, 1], generator=draws(), permutations=0), "at least one permutation"),
        (lambda: silhouette(EYE, [1, 1, 1, 1]), "at least 2 groups"),
        (lambda: silhouette(-EYE, [1, 1, 0, 0]), "give 1 - cosines"),
        (lambda: silhouette(np.ones((4, 3)), [1, 1, 0, 0]), r"shape \(4, 3\)"),
        (lambda: complete_linkage_clusters(EYE * math.nan), "NaN"),
        (lambda: adjusted_rand([0, 1], [0, 1, 1]), "each of 2 things"),
    ],
)
def test_wrong_use_is_said(call, said):
    with pytest.raises(UsageError, match=said):
        call()
