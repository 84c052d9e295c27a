from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from unseen.errors import UsageError
from unseen.randomness import stream
from unseen.stats import bootstrap, iqm, permutation_test, sign_flip_test

side = st.lists(st.integers(0, 9).map(float), min_size=2, max_size=5)
alternatives = st.sampled_from(["two-sided", "greater", "less"])
quick = settings(deadline=None, derandomize=True, max_examples=60)


def draws(name="test"):
    return stream("permutation", name).block()


def compared(a, b, **options):
    return permutation_test(a, b, generator=draws(), covers="initialisation", **{"resamples": 300, **options})


def iqm_difference(a, b, axis):
    return iqm(a, axis=axis) - iqm(b, axis=axis)


def mean_difference(a, b, axis):
    return np.mean(a, axis=axis) - np.mean(b, axis=axis)


@quick
@given(side, side, alternatives)
def test_exact_agrees_with_scipy(a, b, alternative):
    # SciPy compares with a tolerance relative to the statistic; whole numbers over 20 make ties exact enough for it.
    theirs = stats.permutation_test(
        (a, b), mean_difference, n_resamples=np.inf, vectorized=True, alternative=alternative
    )
    found = compared(a, b, alternative=alternative)
    assert found.value == pytest.approx(theirs.statistic)
    if abs(found.value) > 1e-9:
        assert found.p_value == pytest.approx(theirs.pvalue)


def test_equal_means_are_no_evidence_whatever_the_rounding():
    """The null is symmetric about the observed 0; a sum that rounds to 1e-17 is still a tie."""
    assert compared([0.1, 0.2, 0.3], [0.3, 0.2, 0.1]).p_value == 1.0
    for alternative in ("greater", "less"):
        # Of the eight sign flips of 0.1, 0.2 and −0.3 three lie on either side and two are zero, but for rounding.
        assert sign_flip_test([0.1, 0.2, -0.3], generator=draws(), alternative=alternative)[0] == 5 / 8


def test_another_statistic_and_its_interval():
    a, b = [0.9, 0.8, 0.95, 0.3, 0.97], [0.5, 0.7, 0.6, 0.9]
    found = compared(a, b, statistic=iqm_difference)
    theirs = stats.permutation_test((a, b), iqm_difference, n_resamples=np.inf, vectorized=True)
    assert (found.value, found.p_value) == pytest.approx((theirs.statistic, theirs.pvalue))
    assert (found.n, found.strata, found.note) == (9, (5, 4), "all 126 assignments")


def test_the_interval_of_the_difference_resamples_each_side_by_itself():
    """With weights ±1/n it is a stratified bootstrap of one set of values."""
    a, b = np.array([4.0, 7.0, 9.0, 4.5]), np.array([1.0, 2.0, 8.0, 2.5])
    found = compared(a, b, resamples=20_000).interval
    assert found.strata == (4, 4)
    mirrored = bootstrap(
        np.concatenate([2 * a, -2 * b]),
        generator=draws("other"),
        covers="x",
        resamples=20_000,
        strata=[0] * 4 + [1] * 4,
    )
    assert (found.low, found.high) == pytest.approx((mirrored.low, mirrored.high), abs=0.15)


@pytest.mark.parametrize("alternative", ["two-sided", "greater", "less"])
def test_sampled_comes_near_the_exact_value(alternative):
    """10 against 12 is beyond exact enumeration (646 646 assignments); SciPy's p is from ten times the draws."""
    rng = np.random.default_rng(3)
    a, b = rng.normal(0.5, 1, 10), rng.normal(0, 1, 12)
    found = compared(a, b, alternative=alternative, resamples=20_000)
    theirs = stats.permutation_test(
        (a, b),
        mean_difference,
        n_resamples=200_000,
        vectorized=True,
        batch=20_000,
        alternative=alternative,
        rng=np.random.default_rng(0),
    )
    assert found.p_value == pytest.approx(theirs.pvalue, abs=0.015)
    assert found.note == "20000 assignments drawn"


def test_a_sampled_p_value_is_never_zero():
    found = compared(np.arange(20) + 100, np.arange(20), resamples=99)
    assert found.p_value == pytest.approx(2 / 100)
    flipped = sign_flip_test(np.arange(1, 31), generator=draws(), resamples=99, alternative="greater")
    assert flipped == (pytest.approx(1 / 100), "99 sign flips drawn")


@quick
@given(side, side)
def test_sides_and_alternatives_mirror_each_other(a, b):
    there, back = compared(a, b, alternative="greater"), compared(b, a, alternative="less")
    assert there.p_value == pytest.approx(back.p_value)
    assert compared(a, b).p_value == compared(a[::-1], b[::-1]).p_value


def test_the_null_is_kept():
    """Where there is no difference, p ≤ 0.1 happens in at most about a tenth of the experiments."""
    rng = np.random.default_rng(5)
    p = [compared(*rng.normal(size=(2, 5)), resamples=1).p_value for _ in range(400)]
    assert 0.05 <= np.mean(np.array(p) <= 0.1) <= 0.14


def test_sign_flips_drawn_come_near_the_exact_ones():
    values = np.random.default_rng(1).normal(0.4, 1, 17)
    drawn, how = sign_flip_test(values, generator=draws(), resamples=20_000)
    assert how == "20000 sign flips drawn"
    theirs = stats.permutation_test(
        (values,), np.mean, permutation_type="samples", n_resamples=np.inf, vectorized=True, batch=20_000
    )
    assert drawn == pytest.approx(theirs.pvalue, abs=0.01)


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: compared([1.0], []), "at least 1 value"),
        (lambda: compared([1.0, np.nan], [2.0]), "1 of 2"),
        (lambda: compared([1.0], [2.0], alternative="grater"), "Did you mean 'greater'"),
        (lambda: sign_flip_test([[1.0]], generator=draws()), "shape"),
    ],
)
def test_wrong_use_is_answered(call, says):
    with pytest.raises(UsageError, match=says):
        call()
