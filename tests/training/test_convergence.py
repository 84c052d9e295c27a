"""The convergence rule, by hand: the fitted rise over the last points, against the bound."""

from __future__ import annotations

import pytest

from unseen.training.convergence import not_converged


@pytest.mark.parametrize(("gain", "rising"), [(0.0299, True), (0.0301, False), (0.035, False)])
def test_the_rise_of_four_points_spans_three_intervals(gain: float, rising: bool) -> None:
    """0.50, 0.51, 0.52, 0.53: the slope is 0.01 per point and the line rises by 3 · 0.01 from the first to the last
    point. (Slope times the number of points, 0.04, would be above all three bounds.)"""
    assert not_converged([0.50, 0.51, 0.52, 0.53], gain=gain) is rising


def test_a_noisy_line_by_hand() -> None:
    """Points 0, 2, 1, 3 (times 0.01) at x = −1.5, −0.5, 0.5, 1.5: x·y = 4 · 0.01, x·x = 5, slope 0.008, rise 0.024.
    Residuals −0.3, 0.9, −0.9, 0.3 (times 0.01) have squares 1.8e-4 in sum; the slope's standard error is
    √(1.8e-4 / 2 / 5) = 0.00424, and t with 2 degrees of freedom at 0.95 is 2.92: 0.008 < 0.0124, so it may be chance;
    at 0.8 it is 1.061: 0.008 > 0.0045, and the bound decides."""
    scores = [0.50, 0.52, 0.51, 0.53]
    assert not_converged(scores) is False
    assert not_converged(scores, gain=0.0239, certainty=0.8) is True
    assert not_converged(scores, gain=0.0241, certainty=0.8) is False


def test_the_last_third_counts_and_at_least_four_points() -> None:
    assert not_converged([0.5, 0.6, 0.7]) is None
    flat = [0.9] * 5
    assert not_converged([0.1 * i for i in range(10)] + flat) is False  # 15 points: the last five
    assert not_converged([0.9] * 10 + [0.90, 0.91, 0.92, 0.93, 0.94]) is True
