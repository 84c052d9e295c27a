from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from unseen.randomness import stream
from unseen.stats import bootstrap, clustered, differences, estimate
from unseen.stats.resampling import resample_cluster_indices

quick = settings(deadline=None, derandomize=True, max_examples=40)


def draws(name="test"):
    return stream("clusters", name).block()


def interval(values, clusters, statistic=np.mean, **options):
    found = clustered(values, clusters, statistic, generator=draws(), covers="x", **{"resamples": 500, **options})
    return found.interval


def test_two_stages_agree_with_all_resamples():
    """Three clusters of two: 3³ ways to draw clusters, 2⁶ to draw their values, enumerated."""
    pairs = [(0.0, 1.0), (4.0, 6.0), (5.0, 9.0)]
    means = [
        np.mean([one for pair in chosen for one in pair])
        for drawn in itertools.product(pairs, repeat=3)
        for chosen in itertools.product(*(itertools.product(pair, repeat=2) for pair in drawn))
    ]
    for level in (0.5, 0.9):
        found = interval(np.ravel(pairs), list("aabbcc"), level=level, resamples=40_000)
        for bound, share in ((found.low, (1 - level) / 2), (found.high, (1 + level) / 2)):
            assert np.quantile(means, share - 0.01) - 1e-9 <= bound <= np.quantile(means, share + 0.01) + 1e-9


def test_indices_come_from_one_cluster_for_every_place():
    rows = np.concatenate(list(resample_cluster_indices((2, 1, 4), draws(), 6_000)))
    of = np.repeat([0, 1, 2], [2, 1, 4])[rows]
    assert rows.shape == (6_000, 7)
    assert (of[:, 0] == of[:, 1]).all() and (of[:, 3:] == of[:, 3:4]).all()
    for place, cluster in ((0, 0), (2, 1), (3, 2)):
        assert stats.chisquare(np.bincount(of[:, place])).pvalue > 1e-4, cluster
    assert stats.chisquare(np.bincount(rows[:, 3][of[:, 3] == 2])[3:]).pvalue > 1e-4


def test_the_choice_of_clusters_counts():
    """Clusters far apart, no spread within: strata see no uncertainty, clusters see all of it."""
    values, tasks = np.repeat([0.1, 0.3, 0.8, 0.9], 5), np.repeat(list("abcd"), 5)
    strata = bootstrap(values, strata=tasks, generator=draws(), covers="x")
    found = interval(values, tasks, resamples=5_000)
    plain = bootstrap([0.1, 0.3, 0.8, 0.9], generator=draws(), covers="x")
    assert strata.low == pytest.approx(strata.high)
    assert (found.low, found.high) == pytest.approx((plain.low, plain.high), abs=0.03)


def test_clusters_of_one_are_a_plain_bootstrap():
    values = np.array([3.0, 1.0, 4.0, 1.5, 9.0, 2.6])
    plain = bootstrap(values, generator=draws(), covers="x", resamples=20_000)
    found = interval(values, range(6), resamples=20_000)
    assert (found.low, found.high) == pytest.approx((plain.low, plain.high), abs=0.15)


@quick
@given(
    st.lists(st.tuples(st.integers(0, 64).map(lambda k: k / 64), st.integers(0, 3)), min_size=4, max_size=14),
    st.randoms(use_true_random=False),
)
def test_order_does_not_matter_and_bounds_lie_within(pairs, random):
    values, tasks = zip(*pairs, strict=True)
    found = interval(values, tasks)
    random.shuffle(pairs)
    assert repr(interval(*zip(*pairs, strict=True))) == repr(found)  # NaN is not equal to NaN
    if len(set(tasks)) >= 3:
        assert min(values) <= found.low <= found.high <= max(values)
    else:
        assert math.isnan(found.low)


def test_the_number_of_clusters_decides():
    values = np.linspace(0, 1, 60)
    few, some, many = (interval(values, np.arange(60) % k) for k in (2, 9, 12))
    assert math.isnan(few.low) and not math.isnan(some.low)
    assert (some.indicative, many.indicative) == (True, False)
    assert (some.n, some.clusters, some.fewest) == (60, 9, 9)
    found = clustered(values, np.arange(60) % 12, generator=draws(), covers="task instance")
    assert str(found).endswith("n = 60 in 12 clusters (task instance)")
    assert found.value == pytest.approx(0.5)


def test_paired_differences_can_be_clustered():
    """The keys of paired scores name the tasks."""
    a = {(task, seed): 0.5 + 0.1 * task + 0.01 * seed for task in range(4) for seed in range(3)}
    b = dict.fromkeys(a, 0.5)
    found = differences(a, b)
    wide = clustered(found.values, found.strata, generator=draws(), covers="x").interval
    narrow = estimate(found.values, strata=found.strata, generator=draws(), covers="x").interval
    assert wide.low < narrow.low - 0.05 and wide.high > narrow.high + 0.05


@pytest.mark.parametrize(
    ("values", "clusters", "options", "says"),
    [
        ([1.0, 2.0], ["a"], {}, "clusters name the group of each value: expected 2 labels, got 1"),
        ([1.0, math.nan], ["a", "b"], {}, "finite"),
        ([], [], {}, "at least 1 value"),
        ([1.0], ["a"], {"level": 2}, "confidence level"),
        ([1.0], ["a"], {"resamples": 0}, "at least one resample"),
    ],
)
def test_wrong_layouts_are_answered(values, clusters, options, says):
    with pytest.raises(ValueError, match=says):
        interval(values, clusters, **options)
