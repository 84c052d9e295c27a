from __future__ import annotations

import itertools
import math
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from unseen.errors import UsageError
from unseen.randomness import stream
from unseen.stats import Estimate, Interval, bootstrap, clustered, estimate, iqm, resampling

# Multiples of 1/64: sums are exact, so that ties are ties in SciPy's arithmetic too.
SKEWED = np.array([61, 59, 57, 64, 63, 60, 62, 30, 58, 53, 48, 41]) / 64
LABELS = ["T1"] * 5 + ["T3"] * 4 + ["T6"] * 3

values_of_seeds = st.lists(st.integers(0, 64).map(lambda k: k / 64), min_size=3, max_size=12)
quick = settings(deadline=None, derandomize=True, max_examples=40)


def draws(name="test"):
    return stream("bootstrap", name).block()


def interval(values, statistic=np.mean, **options):
    return bootstrap(values, statistic, generator=draws(), covers="x", **{"resamples": 500, **options})


def mean_square(values, axis):
    return np.mean(values**2, axis=axis)


def with_distribution(values, statistic, **options):
    """Our interval, and the bootstrap distribution that it was read from."""
    seen = []

    def spy(x, axis):
        seen.append(np.asarray(statistic(x, axis=axis)))
        return seen[-1]

    found = interval(values, spy, **options)
    return found, seen[0]


def scipys(samples, statistic, distribution, method, level):
    """SciPy's interval from the same bootstrap distribution: formula against formula."""
    earlier = type("Earlier", (), {"bootstrap_distribution": distribution})()
    found = stats.bootstrap(
        samples,
        statistic,
        n_resamples=0,
        bootstrap_result=earlier,
        method=method,
        confidence_level=level,
        vectorized=True,
    ).confidence_interval
    return float(found.low), float(found.high)


@pytest.mark.parametrize("method", ["percentile", "bca"])
@pytest.mark.parametrize("statistic", [np.mean, np.median, mean_square], ids=lambda f: f.__name__)
@pytest.mark.parametrize("level", [0.95, 0.8])
def test_from_the_same_resamples_scipy_reads_the_same_interval(method, statistic, level):
    found, distribution = with_distribution(SKEWED, statistic, method=method, level=level, resamples=2_000)
    expected = scipys((SKEWED,), statistic, distribution, method, level)
    assert (found.low, found.high) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("method", ["percentile", "bca"])
def test_stratified_agrees_with_scipys_several_samples(method):
    samples = [SKEWED[:5], SKEWED[5:9], SKEWED[9:]]

    def over_all(*groups, axis):
        return np.concatenate(groups, axis=axis).mean(axis=axis)

    found, distribution = with_distribution(SKEWED, np.mean, strata=LABELS, method=method, resamples=2_000)
    assert (found.low, found.high) == pytest.approx(scipys(samples, over_all, distribution, method, 0.95), abs=1e-9)
    assert (found.n, found.strata, found.fewest) == (12, (5, 4, 3), 3)


def test_bca_agrees_with_scipys_own_resamples():
    ours = interval(SKEWED, method="bca", resamples=20_000)
    theirs = stats.bootstrap(
        (SKEWED,), np.mean, n_resamples=20_000, method="BCa", vectorized=True, rng=np.random.default_rng(0)
    ).confidence_interval
    assert (ours.low, ours.high) == pytest.approx((theirs.low, theirs.high), abs=0.01)
    percentile = interval(SKEWED, resamples=20_000)
    assert ours.low < percentile.low - 0.005, "the long tail is on the left: BCa moves the interval that way"


def test_a_stratum_is_resampled_within_itself():
    """Strata far apart and without spread inside: nothing varies, whereas unlabelled values vary a lot."""
    values, strata = [0.25] * 4 + [0.75] * 4, [0] * 4 + [1] * 4
    assert (interval(values, strata=strata).low, interval(values, strata=strata).high) == (0.5, 0.5)
    assert interval(values).low < 0.4


def test_stratified_mean_agrees_with_all_resamples():
    """Two strata of three: 27 × 27 equally likely resamples, enumerated."""
    values, strata = [0.0, 1.0, 5.0, 2.0, 2.5, 9.0], list("aaabbb")
    means = [
        np.mean(a + b) for a in itertools.product(values[:3], repeat=3) for b in itertools.product(values[3:], repeat=3)
    ]
    found = interval(values, strata=strata, level=0.9, resamples=40_000)
    for bound, share in ((found.low, 0.05), (found.high, 0.95)):
        assert np.quantile(means, share - 0.01) - 1e-9 <= bound <= np.quantile(means, share + 0.01) + 1e-9


@pytest.mark.parametrize(
    ("sizes", "exists", "indicative"),
    [((3, 3), True, True), ((10, 12), True, False), ((2, 30), False, True), ((9, 30), True, True)],
)
def test_the_smallest_stratum_decides(sizes, exists, indicative):
    labels = np.repeat(np.arange(len(sizes)), sizes)
    found = interval(np.linspace(0, 1, sum(sizes)), strata=labels)
    assert (not math.isnan(found.low), found.indicative) == (exists, indicative)
    assert (found.strata, found.n) == (sizes, sum(sizes))


@quick
@given(values_of_seeds, st.sampled_from(["percentile", "bca"]), st.randoms(use_true_random=False))
def test_the_order_of_the_seeds_does_not_matter(values, method, random):
    strata = [k % 2 for k in range(len(values))]
    places = list(range(len(values)))
    random.shuffle(places)
    moved = [values[k] for k in places]
    assert interval(values, method=method) == interval(moved, method=method)
    if len(values) >= 6:
        again = interval(moved, strata=[strata[k] for k in places], method=method)
        assert interval(values, strata=strata, method=method) == again


@quick
@given(
    values_of_seeds,
    st.sampled_from(["percentile", "bca"]),
    st.sampled_from([np.mean, np.median, iqm]),
    st.sampled_from([-8.0, 0.5, 3.0]),
    st.sampled_from([0.25, 1.0, 16.0]),
)
def test_shift_and_scale_carry_over(values, method, statistic, shift, scale):
    plain = interval(values, statistic, method=method)
    moved = interval(np.array(values) * scale + shift, statistic, method=method)
    assert (moved.low, moved.high) == pytest.approx((plain.low * scale + shift, plain.high * scale + shift), abs=1e-9)


@quick
@given(values_of_seeds, st.sampled_from(["percentile", "bca"]))
def test_bounds_lie_within_the_values(values, method):
    found = interval(values, method=method)
    assert min(values) - 1e-12 <= found.low <= found.high <= max(values) + 1e-12


def test_equal_seeds_have_an_interval_of_no_width():
    for method in ("percentile", "bca"):
        found = interval([0.7] * 4, method=method)
        assert (found.low, found.high) == pytest.approx((0.7, 0.7))


def test_pieces_in_memory_give_a_whole_interval(monkeypatch):
    """Many values are resampled and left out piece by piece."""
    whole = with_distribution(SKEWED, np.mean, method="bca")[0]
    monkeypatch.setattr(resampling, "AT_ONCE", 12 * 4)
    assert [len(rows) for rows in resampling.resample_indices((12,), draws(), 10)] == [4, 4, 2]
    pieces = interval(SKEWED, method="bca")
    assert (pieces.low, pieces.high) == pytest.approx((whole.low, whole.high))


def test_resampled_indices_stay_in_their_stratum_and_reach_all_of_it():
    rows = np.concatenate(list(resampling.resample_indices((3, 1, 4), draws(), 2_000)))
    assert rows.shape == (2_000, 8)
    assert [sorted(set(column)) for column in rows.T] == [[0, 1, 2]] * 3 + [[3]] + [[4, 5, 6, 7]] * 4
    assert stats.chisquare(np.bincount(rows[:, 4:].ravel())[4:]).pvalue > 1e-4


def test_an_estimate_carries_its_interval():
    found = estimate(SKEWED, iqm, generator=draws(), covers="data", strata=LABELS)
    assert found == Estimate(
        pytest.approx(iqm(SKEWED)), bootstrap(SKEWED, iqm, generator=draws(), covers="data", strata=LABELS)
    )
    assert (found.n, found.strata, found.covers, found.p_value) == (12, (5, 4, 3), "data", None)
    assert found.interval.low <= found.value <= found.interval.high


def test_an_estimate_says_what_it_rests_on():
    few = estimate([0.5, 0.7], generator=draws(), covers="initialisation")
    assert str(few) == "0.600 (too few for an interval), n = 2 (initialisation)"
    many = Estimate(0.5, Interval(0.25, 0.75, 0.95, 20, "data"), note="why")
    assert str(many) == "0.500 [0.250, 0.750], n = 20 (data); why"


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (partial(interval, SKEWED, strata=["a", "b"]), "expected 12 labels, got 2"),
        (partial(interval, [1.0, 2.0, 3.0], strata=[["a"], ["b"], ["c"]]), "got a list as label"),
        (partial(interval, SKEWED, method="bcs"), "Did you mean 'bca'"),
        (partial(interval, [[0.1, 0.2], [0.3, 0.4]]), r"array \(n,\), got one of shape \(2, 2\)"),
        (partial(interval, {0: 0.5}), "list of numbers"),
        (partial(interval, [0.1, math.inf, math.nan]), "2 of 3"),
        (partial(estimate, [], generator=None, covers="x"), "at least 1 value"),
    ],
)
def test_wrong_layouts_are_answered(call, says):
    with pytest.raises(UsageError, match=says):
        call()


def test_an_estimate_with_clusters_is_the_clustered_one():
    values, tasks = [0.9, 0.8, 0.7, 0.95, 0.6, 0.65], list("aabbcc")
    options = {"covers": "seeds", "resamples": 500}
    assert estimate(values, clusters=tasks, generator=draws(), **options) == clustered(
        values, tasks, generator=draws(), **options
    )
    for mixed in ({"strata": tasks}, {"method": "bca"}):
        with pytest.raises(UsageError, match="can't be combined"):
            estimate(values, clusters=tasks, generator=draws(), **mixed, **options)
