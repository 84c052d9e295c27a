from __future__ import annotations

import doctest
import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from unseen.errors import UsageError
from unseen.randomness import stream
from unseen.stats import Interval, bootstrap, intervals, proportion_error, wilson

VALUES = np.array([0.81, 0.92, 0.88, 0.79, 0.95, 0.91, 0.84, 0.90, 0.87, 0.93, 0.60, 0.89])


def draws(name="test"):
    return stream("bootstrap", name).block()


def interquartile_mean(values, axis):
    return stats.trim_mean(values, 0.25, axis=axis)


@pytest.mark.parametrize("statistic", [np.mean, np.median, interquartile_mean], ids=lambda f: f.__name__)
@pytest.mark.parametrize("level", [0.95, 0.8])
def test_bootstrap_agrees_with_scipy(statistic, level):
    ours = bootstrap(VALUES, statistic, generator=draws(), covers="x", level=level, resamples=20_000)
    theirs = stats.bootstrap(
        (VALUES,),
        statistic,
        confidence_level=level,
        n_resamples=20_000,
        method="percentile",
        vectorized=True,
        rng=np.random.default_rng(0),
    ).confidence_interval
    # The Monte-Carlo error of these quantiles is below 0.0015 at 20 000 resamples.
    assert (ours.low, ours.high) == pytest.approx((theirs.low, theirs.high), abs=0.004)


def test_bootstrap_agrees_with_the_enumerated_distribution():
    """All 4⁴ resamples of four values, equally likely."""
    values = [0.0, 1.0, 3.0, 10.0]
    means = np.sort([np.mean(chosen) for chosen in itertools.product(values, repeat=4)])
    for level in (0.5, 0.9):
        found = bootstrap(values, generator=draws(), covers="x", level=level, resamples=40_000)
        # The distribution is discrete: a quantile may fall on a neighbouring atom when probabilities tie.
        for bound, share in ((found.low, (1 - level) / 2), (found.high, (1 + level) / 2)):
            assert np.quantile(means, share - 0.01) - 1e-9 <= bound <= np.quantile(means, share + 0.01) + 1e-9


def test_three_values_span_the_interval():
    """Each extreme of three values has probability 1/27 > 2.5 %, so the interval is their range."""
    found = bootstrap([3.0, 1.0, 2.0], generator=draws(), covers="initialisation")
    assert found == Interval(1.0, 3.0, 0.95, 3, "initialisation")


def test_the_same_draws_give_the_same_interval_and_others_another():
    first, again, other = (bootstrap(VALUES, generator=draws(key), covers="x", resamples=99) for key in "aab")
    assert first == again
    assert first != other


@pytest.mark.parametrize(
    ("n", "exists", "indicative"),
    [(0, False, True), (1, False, True), (2, False, True), (3, True, True), (9, True, True), (10, True, False)],
)
def test_few_seeds(n, exists, indicative):
    for found in (bootstrap(VALUES[:n], generator=draws(), covers="data"), wilson(n // 2, n, covers="data")):
        assert (not math.isnan(found.low), not math.isnan(found.high)) == (exists, exists)
        assert (found.n, found.indicative, found.covers) == (n, indicative, "data")


def test_intervals_cover_about_as_often_as_they_say():
    """Wilson at n = 40 covers about 95 %, the bootstrap of 25 normal values a little less."""
    rng = np.random.default_rng(1)
    hits = [wilson(int(k), 40, covers="x") for k in rng.binomial(40, 0.3, 400)]
    assert 0.91 <= np.mean([one.low <= 0.3 <= one.high for one in hits]) <= 0.99
    generator = draws("coverage")
    samples = rng.normal(size=(400, 25))
    found = [bootstrap(values, generator=generator, covers="x", resamples=400) for values in samples]
    assert 0.88 <= np.mean([one.low <= 0 <= one.high for one in found]) <= 0.98


@settings(deadline=None, derandomize=True, max_examples=100)
@given(st.integers(3, 2000), st.floats(0, 1), st.sampled_from([0.5, 0.9, 0.95, 0.999]))
def test_wilson_agrees_with_scipy(n, share, level):
    successes = round(share * n)
    found = wilson(successes, n, covers="examples", level=level)
    theirs = stats.binomtest(successes, n).proportion_ci(level, method="wilson")
    assert (found.low, found.high) == pytest.approx((theirs.low, theirs.high), abs=1e-12)
    assert 0 <= found.low <= successes / n <= found.high <= 1


def test_wilson_ends_exactly_at_zero_and_one():
    assert wilson(0, 7, covers="x").low == 0.0
    assert wilson(7, 7, covers="x").high == 1.0


def test_proportion_error():
    assert proportion_error(0.9, 10_000) == pytest.approx(0.003)
    answers = np.array([1, 1, 0, 1, 0])
    assert proportion_error(0.6, 5) == pytest.approx(answers.std() / math.sqrt(5))
    assert proportion_error(1.0, 8) == 0.0
    assert math.isnan(proportion_error(math.nan, 0))


@pytest.mark.parametrize(
    "call",
    [
        lambda: bootstrap([0.1, math.nan, 0.2], generator=draws(), covers="x"),
        lambda: bootstrap(np.zeros((3, 3)), generator=draws(), covers="x"),
        lambda: bootstrap(VALUES, generator=draws(), covers="x", level=95),
        lambda: bootstrap(VALUES, generator=draws(), covers="x", resamples=0),
        lambda: wilson(5, 4, covers="x"),
        lambda: wilson(1, 4, covers="x", level=1.0),
        lambda: proportion_error(1.2, 4),
        lambda: proportion_error(0.5, -1),
    ],
)
def test_wrong_use_is_answered(call):
    with pytest.raises(UsageError):
        call()


def test_worked_examples():
    assert doctest.testmod(intervals).failed == 0
