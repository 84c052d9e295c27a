"""One-sided limits against SciPy, their p values, Holm, moderated variances."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy import stats

from unseen.stats import (
    CorrelationLimits,
    Limits,
    MeanLimits,
    MixtureLimits,
    NoLimits,
    ShareLimits,
    SpreadDifferenceLimits,
    SpreadLimits,
    Variance,
    compare_means,
    holm,
    mean_interval,
    mean_intervals,
    mean_limits,
    moderate,
    p_above,
    p_below,
    welch,
)
from unseen.stats.moderation import bartlett

VALUES = np.array([0.71, 0.74, 0.78, 0.70, 0.77])


def test_means_are_student_s() -> None:
    low, high = stats.t.interval(0.9, 4, VALUES.mean(), stats.sem(VALUES))
    assert mean_limits(VALUES).at(0.05) == pytest.approx((low, high))
    interval = mean_interval(VALUES, 0.9, covers="initialisation")
    assert (interval.low, interval.high) == pytest.approx((low, high)) and interval.indicative
    for bound in (0.70, 0.72, 0.75):
        test = stats.ttest_1samp(VALUES, bound, alternative="greater")
        assert p_above(mean_limits(VALUES), bound) == pytest.approx(test.pvalue, rel=1e-6)
        assert p_below(mean_limits(VALUES), bound) == pytest.approx(1 - test.pvalue, rel=1e-6)


def test_intervals_over_clusters_are_those_of_their_means() -> None:
    interval = mean_interval([0.9, 0.91, 0.7, 0.71, 0.8, 0.81], clusters=["a", "a", "b", "b", "c", "c"])
    expected = mean_interval([0.905, 0.705, 0.805])
    assert (interval.low, interval.high) == pytest.approx((expected.low, expected.high))
    assert (interval.n, interval.clusters) == (6, 3)
    assert math.isnan(mean_interval([0.1, 0.2]).low) and math.isnan(mean_interval([1, 2, 3, 4], clusters="aabb").low)


def test_welch_against_scipy() -> None:
    ours = mean_limits(VALUES)
    for bound in (0.75, 0.80):
        test = stats.ttest_ind_from_stats(VALUES.mean(), VALUES.std(ddof=1), 5, bound, 0.04, 7, equal_var=False)
        assert 2 * p_below(welch(ours, 0.04, 7), bound) == pytest.approx(test.pvalue, rel=1e-6)
    assert welch(ours, None, 5) == ours == welch(ours, 0.1, None)


def test_shares_and_spreads_against_scipy() -> None:
    for successes in (0, 3, 10):
        interval = stats.binomtest(successes, 10).proportion_ci(0.9, method="exact")
        assert ShareLimits(successes, 10).at(0.05) == pytest.approx((interval.low, interval.high))
    low, high = SpreadLimits(2.0, 4).at(0.05)
    assert stats.chi2.sf(4 * 4 / low**2, 4) == pytest.approx(0.05)
    assert stats.chi2.cdf(4 * 4 / high**2, 4) == pytest.approx(0.05)
    ratio = SpreadDifferenceLimits(3.0, 1.0, 4)
    assert p_above(ratio, 0.0) == pytest.approx(stats.f.sf(9, 4, 4), rel=1e-6)
    assert p_above(SpreadDifferenceLimits(0.0, 0.0, 4), 0.0) == 1
    # Skewed units: the farther of both limits counts.
    low, high = SpreadLimits(2.0, 4, error=0.5).at(0.05)
    assert high == pytest.approx(max(2 * math.exp(0.5 * stats.t.ppf(0.95, 4)), SpreadLimits(2.0, 4).at(0.05)[1]))
    assert p_above(SpreadDifferenceLimits(3.0, 1.0, 4, error=1.0), 0.0) == pytest.approx(
        stats.t.sf(math.log(3), 4), rel=1e-6
    )
    low, high = CorrelationLimits(0.5, 0.1, 5).at(0.05)
    assert math.atanh(high) - math.atanh(0.5) == pytest.approx(0.1 * stats.t.ppf(0.95, 5))
    assert -1 < low < 0.5 < high < 1


def test_units_that_happen_to_be_equal_are_no_evidence_that_all_are() -> None:
    """A test set of 1,000 examples cannot tell 0.9995 from 1; without its size, nothing is known of a spread of zero."""
    least = (0.001, 0.001)
    for first, second in ((0.0006, 0.0), (0.0, 0.0006)):
        limits = SpreadDifferenceLimits(first, second, 2, least=least)
        assert p_above(limits, 0.0) > 0.05 and p_below(limits, 0.0) > 0.05
    assert p_above(SpreadDifferenceLimits(0.1, 0.0, 4, least=least), 0.0) == pytest.approx(
        stats.f.sf(1e4, 4, 4), rel=1e-6
    )
    assert p_above(SpreadDifferenceLimits(0.1, 0.0, 4), 0.0) == 1 == p_below(SpreadDifferenceLimits(0.0, 0.1, 4), 0.0)
    assert SpreadLimits(0.0, 2, least=0.001).at(0.05) == (0.0, SpreadLimits(0.001, 2).at(0.05)[1])


def test_units_at_the_end_of_a_scale_have_a_long_tail() -> None:
    values = [0.999, 0.998, 0.9995]
    plain, bounded = mean_limits(values), mean_limits(values, lowest=0, highest=1)
    assert bounded.at(0.05)[1] == plain.at(0.05)[1]
    mean = float(np.mean(values))
    assert bounded.at(0.05)[0] == pytest.approx(1 - (1 - mean) * 3 / stats.chi2.ppf(0.05, 3))
    mirrored = mean_limits([1 - value for value in values], lowest=0, highest=1)
    assert mirrored.at(0.05)[1] == pytest.approx(1 - bounded.at(0.05)[0])
    # In the middle of the scale nothing changes, and neither with many units that are not skewed.
    assert mean_limits(VALUES, lowest=0, highest=1).at(0.05) == mean_limits(VALUES).at(0.05)


def test_mixtures_are_bounded_through_the_share_that_learned() -> None:
    learned = mean_limits([0.97, 0.98, 0.99, 0.98])
    mixture = MixtureLimits(0.88, ShareLimits(4, 5), learned, 0.5, 0.5)
    share = ShareLimits(4, 5).at(0.025)[0]
    assert mixture.at(0.05)[0] == pytest.approx(share * learned.at(0.025)[0] + (1 - share) * 0.5)
    assert mixture.at(0.05)[0] < 0.7 < mixture.at(0.05)[1]


@pytest.mark.parametrize(
    "limits",
    [
        mean_limits(VALUES),
        mean_limits([0.99, 0.98, 0.999, 0.97], lowest=0, highest=1),
        ShareLimits(3, 8),
        SpreadLimits(0.7, 5),
        SpreadDifferenceLimits(0.9, 0.2, 5),
        CorrelationLimits(0.4, 0.2, 5),
        MixtureLimits(0.7, ShareLimits(4, 6), mean_limits(VALUES), 0.5, 0.6),
    ],
)
def test_p_values_and_limits_agree(limits: Limits) -> None:
    wider = [limits.at(alpha) for alpha in (0.2, 0.05, 0.01, 0.001)]
    for (low, high), (lower, higher) in itertools.pairwise(wider):
        assert lower <= low and high <= higher
    for alpha in (0.2, 0.05, 0.004):
        low, high = limits.at(alpha)
        assert p_above(limits, low) == pytest.approx(alpha, rel=1e-3)
        assert p_below(limits, high) == pytest.approx(alpha, rel=1e-3)


def test_nothing_is_known_without_limits() -> None:
    assert p_above(NoLimits(0.9), 0.0) == 1 == p_below(NoLimits(0.9), 1.0)
    assert p_above(MeanLimits(0.9, 0.0, 4), 0.9) == 1, "a mean on its bound is not above it"


def test_holm_against_plain_steps() -> None:
    p_values = [0.03, 0.001, 0.012, 0.5]
    adjusted = holm(p_values)
    for alpha in (0.004, 0.02, 0.04, 0.06, 0.2):
        rejected = set()
        for step, number in enumerate(np.argsort(p_values)):
            if p_values[number] * (4 - step) > alpha:
                break
            rejected.add(int(number))
        assert {number for number in range(4) if adjusted[number] <= alpha} == rejected
    assert holm([]).tolist() == []


def test_variances_are_moderated_towards_each_other() -> None:
    alike = [Variance(value, 4) for value in (1.0, 0.8, 1.3, 1.1, 0.2)]
    moderated = moderate(alike)
    assert all(entry.freedom > 4 for entry in moderated)
    assert moderated[-1].value > 0.2 and moderated[2].value < 1.3
    assert moderate(alike[:3]) == alike[:3], "fewer than four are left alone"
    different = [Variance(value, 4) for value in (1.0, 0.01, 1.3, 0.02)]
    assert moderate(different) == different, "spreads that are not equal are left alone"
    zeros = [Variance(0.0, 4)] * 5
    assert moderate(zeros) == zeros


def test_bartlett_against_scipy() -> None:
    generator = np.random.default_rng(3)
    groups = [generator.normal(size=size) for size in (4, 6, 5, 9)]
    variances = np.array([group.var(ddof=1) for group in groups])
    freedom = np.array([len(group) - 1.0 for group in groups])
    assert bartlett(variances, freedom) == pytest.approx(stats.bartlett(*groups).pvalue)


def test_means_of_many_groups_have_the_intervals_of_each_alone() -> None:
    """Against `MeanLimits`, with and without the ends of the scale."""
    draws = np.random.default_rng(3)
    for table in (draws.normal(size=(6, 5)), draws.beta(9, 0.5, size=(6, 5)), draws.beta(0.5, 9, size=(6, 4))):
        low, high = mean_intervals(table, level=0.9)
        ends = {"lowest": 0.0, "highest": 1.0} if table.min() >= 0 else {}
        for number, row in enumerate(table):
            assert (low[number], high[number]) == pytest.approx(mean_limits(row, **ends).at(0.05))
            alone = mean_interval(row, 0.9)
            assert (alone.low, alone.high) == pytest.approx((low[number], high[number]))
    low, high = mean_intervals(np.ones((3, 2)))
    assert np.isnan(low).all() and np.isnan(high).all() and len(low) == 3
    assert [bounds.tolist() for bounds in mean_intervals(np.ones((1, 4)))] == [[1.0], [1.0]]


def test_comparisons_are_those_of_scipy() -> None:
    a, b = [0.61, 0.58, 0.66, 0.70, 0.64], [0.52, 0.55, 0.50, 0.60, 0.57]
    keyed = [{str(seed): value for seed, value in enumerate(values)} for values in (a, b)]
    pairs = compare_means(*keyed, covers="seeds")
    expected = stats.ttest_rel(a, b)
    interval = expected.confidence_interval(0.95)
    assert pairs.p_value == pytest.approx(expected.pvalue)
    assert (pairs.interval.low, pairs.interval.high) == pytest.approx((interval.low, interval.high))
    for apart in (
        compare_means(*keyed, covers="seeds", paired=False),
        compare_means(keyed[0], {f"other {key}": value for key, value in keyed[1].items()}, covers="seeds"),
    ):
        expected = stats.ttest_ind(a, b, equal_var=False)
        interval = expected.confidence_interval(0.95)
        assert apart.p_value == pytest.approx(expected.pvalue) and apart.interval.strata == (5, 5)
        assert (apart.interval.low, apart.interval.high) == pytest.approx((interval.low, interval.high))
    constant = compare_means({"0": 0.5, "1": 0.5, "2": 0.5}, {"0": 0.25, "1": 0.25, "2": 0.25}, covers="seeds")
    assert constant.p_value is None and constant.interval.low == constant.interval.high == 0.25
    assert math.isnan(compare_means({"0": 1.0}, {"0": 2.0}, covers="seeds").interval.low)
