from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from unseen.errors import UsageError
from unseen.stats import iqm, solve_rate

scores = st.lists(st.floats(-1, 1, allow_subnormal=False), min_size=1, max_size=30)
quick = settings(deadline=None, derandomize=True, max_examples=100)


@quick
@given(st.integers(1, 8).flatmap(lambda k: st.lists(st.floats(-1, 1), min_size=4 * k, max_size=4 * k)))
def test_iqm_is_the_trimmed_mean_where_quarters_are_whole(values):
    assert iqm(values) == pytest.approx(stats.trim_mean(values, 0.25), abs=1e-12)


@quick
@given(scores)
def test_iqm_is_the_mean_of_the_middle_half_of_the_values_repeated_four_times(values):
    """The definition for every n: four copies of each value make the quarters whole."""
    assert iqm(values) == pytest.approx(stats.trim_mean(np.repeat(values, 4), 0.25), abs=1e-12)


@quick
@given(scores, st.floats(-10, 10), st.floats(0, 10))
def test_iqm_follows_shift_and_scale_and_lies_within(values, shift, scale):
    found = iqm(values)
    assert iqm(np.array(values) * scale + shift) == pytest.approx(found * scale + shift, abs=1e-9)
    assert min(values) - 1e-12 <= found <= max(values) + 1e-12


def test_iqm_along_any_axis():
    values = np.random.default_rng(0).normal(size=(5, 6, 7))
    for axis in (0, 1, 2, -1):
        np.testing.assert_allclose(iqm(values, axis=axis), np.apply_along_axis(iqm, axis, values))


def test_iqm_ignores_what_is_far_out():
    assert iqm([0.0, 0.9, 0.9, 0.9]) == pytest.approx(0.9)
    assert iqm([0.9, 0.9, 0.9, 1e9]) == pytest.approx(0.9)
    assert iqm([0.4]) == 0.4


@quick
@given(st.lists(st.floats(0, 1), min_size=3, max_size=40), st.floats(0, 1))
def test_solve_rate_agrees_with_scipy(values, threshold):
    solved = sum(value >= threshold for value in values)
    found = solve_rate(values, threshold, covers="initialisation")
    theirs = stats.binomtest(solved, len(values)).proportion_ci(0.95, method="wilson")
    assert found.value == solved / len(values)
    assert (found.interval.low, found.interval.high) == pytest.approx((theirs.low, theirs.high), abs=1e-12)
    assert (found.n, found.covers) == (len(values), "initialisation")


def test_a_score_on_the_threshold_counts():
    assert solve_rate([0.9, 0.89, 0.95], 0.9, covers="x").note == "2 of 3 reached 0.9"


@pytest.mark.parametrize(
    "call",
    [
        lambda: iqm([]),
        lambda: iqm(np.zeros((3, 0))),
        lambda: iqm(0.5),
        lambda: solve_rate([], 0.5, covers="x"),
        lambda: solve_rate([0.5, np.nan], 0.5, covers="x"),
    ],
)
def test_wrong_layouts_are_answered(call):
    with pytest.raises(UsageError):
        call()
