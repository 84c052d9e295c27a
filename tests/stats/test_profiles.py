from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unseen.errors import UsageError
from unseen.randomness import stream
from unseen.stats import bootstrap, profile, solve_rate

THRESHOLDS = np.linspace(0, 1, 11)
scores = st.lists(st.integers(0, 20).map(lambda k: k / 20), min_size=3, max_size=15)
quick = settings(deadline=None, derandomize=True, max_examples=60)


def draws(name="test"):
    return stream("profile", name).block()


def profiled(values, thresholds=THRESHOLDS, **options):
    return profile(values, thresholds, generator=draws(), covers="initialisation", **{"resamples": 300, **options})


@quick
@given(scores)
def test_it_is_the_solve_rate_at_every_threshold_and_falls(values):
    found = profiled(values)
    for threshold, one in zip(THRESHOLDS, found, strict=True):
        assert one.value == pytest.approx(solve_rate(values, threshold, covers="x").value)
        assert one.interval.low - 1e-12 <= one.value <= one.interval.high + 1e-12
    for what in (
        [one.value for one in found],
        [one.interval.low for one in found],
        [one.interval.high for one in found],
    ):
        assert all(np.diff(what) <= 1e-12)
    assert found[0].value == 1.0


@quick
@given(scores, st.booleans())
def test_each_band_is_the_bootstrap_of_the_share(values, labelled):
    """The matrix product over counts does what resampling the scores and counting does."""
    strata = [k % 2 for k in range(len(values))] if labelled and len(values) >= 6 else None
    one = profiled(values, [0.5], strata=strata)[0]
    slow = bootstrap(
        values,
        lambda x, axis: (x >= 0.5).mean(axis=axis),
        generator=draws(),
        covers="initialisation",
        strata=strata,
        resamples=300,
    )
    assert (one.interval.low, one.interval.high) == pytest.approx((slow.low, slow.high))
    assert (one.n, one.strata, one.covers) == (slow.n, slow.strata, slow.covers)


def test_the_order_of_the_runs_does_not_matter():
    values, strata = [0.2, 0.9, 0.5, 0.7, 1.0, 0.1], list("ababab")
    assert profiled(values, strata=strata) == profiled(values[::-1], strata=strata[::-1])


def test_too_few_runs_have_shares_but_no_bands():
    found = profiled([0.2, 0.8], [0.5])
    assert (found[0].value, found[0].note) == (0.5, "at or above 0.5")
    assert math.isnan(found[0].interval.low)


@pytest.mark.parametrize(
    "call",
    [
        lambda: profiled([], [0.5]),
        lambda: profiled([0.5], []),
        lambda: profiled([0.5], 0.5),
        lambda: profiled([0.5], [math.nan]),
        lambda: profiled([[0.5]], [0.5]),
    ],
)
def test_wrong_layouts_are_answered(call):
    with pytest.raises(UsageError):
        call()
