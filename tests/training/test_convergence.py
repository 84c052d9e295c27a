"""Drift, starting level and the mark *not converged*: by hand, and against independent formulas."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import linregress, theilslopes

from unseen.training.convergence import drift, left_start, mean_of_curve, not_converged


def test_the_drift_of_a_line_is_its_rise_over_a_third_of_the_training() -> None:
    """0.01 per 10 steps, 90 steps: a third are 30 steps, 0.03. There is no error."""
    rise = drift(range(0, 91, 10), [0.50 + 0.01 * i for i in range(10)])
    assert rise is not None
    assert rise.value == pytest.approx(0.03)
    assert rise.standard_error == pytest.approx(0.0, abs=1e-12)


def test_a_noisy_drift_by_hand() -> None:
    """Steps 2, 3, 4 of … 3: the last third of steps 0 to 3 are 2 and 3, too few. Of 0 to 6 they are 4, 5, 6 with scores
    0.50, 0.54, 0.52: slopes 0.04, 0.01, −0.02, median 0.01, times 6 / 3 = 0.02. Residuals from 0.01 x are 0.46, 0.49,
    0.46, around their mean −0.01, 0.02, −0.01: squares 6e-4 in sum; the error is √(6e-4 / 1 / 2) · 2 = 0.0346."""
    assert drift([0, 1, 2, 3], [0.5] * 4) is None
    rise = drift(range(7), [0.1, 0.2, 0.3, 0.4, 0.50, 0.54, 0.52])
    assert rise is not None
    assert rise.value == pytest.approx(0.02)
    assert rise.standard_error == pytest.approx(2 * math.sqrt(3e-4))


@pytest.mark.parametrize("points", [9, 25, 100])
def test_the_slope_is_scipys_theil_sen_and_the_error_that_of_a_regression(points: int) -> None:
    generator = np.random.default_rng(points)
    steps = np.cumsum(generator.integers(1, 50, points))
    scores = 0.5 + 1e-4 * steps + 0.01 * generator.normal(size=points)
    tail = steps * 3 >= steps[-1] * 2
    x, y = steps[tail], scores[tail]
    rise = drift(steps.tolist(), scores.tolist())
    assert rise is not None
    assert rise.value == pytest.approx(theilslopes(y, x).slope * steps[-1] / 3, abs=1e-11)
    # The residuals of another line than the least-squares one are a little larger, and so is the error.
    least = linregress(x, y).stderr * steps[-1] / 3
    assert least <= rise.standard_error < 1.3 * least


@pytest.mark.parametrize("points", [10, 20, 25, 30, 50, 100, 300])
@pytest.mark.parametrize("start", [0.0, 0.5, 0.89])
def test_a_run_that_is_flat_for_its_last_30_percent_has_no_drift(points: int, start: float) -> None:
    """The fault of a least-squares line through the last third: its first tenth, from before the bend, made a long curve
    "still rising", however long it had been flat (as with 100 points below)."""
    flat = math.ceil(0.3 * points)
    scores = [*np.linspace(start, 0.9, points - flat).tolist(), *[0.9] * flat]
    rise = drift(range(1, points + 1), scores)
    assert rise is not None
    if points >= 30:
        assert rise.value == 0
    assert not_converged(scores) is False
    if points == 100 and start == 0.0:
        x = np.arange(34)
        line = linregress(x, scores[-34:], alternative="greater")
        assert line.slope * 33 > 0.01 and line.pvalue < 0.05


def test_rising_runs_are_not_converged() -> None:
    assert not_converged([0.9] * 10 + [0.90, 0.91, 0.92, 0.93, 0.94]) is True
    assert not_converged([0.50, 0.51, 0.52, 0.53, 0.54, 0.55], gain=0.0199) is True  # 0.01 · 6 / 3
    assert not_converged([0.50, 0.51, 0.52, 0.53, 0.54, 0.55], gain=0.0201) is False
    rise, flat = np.linspace(0.5, 0.9, 20).tolist(), [0.9, 0.901] * 10
    assert not_converged(rise)
    assert not not_converged(rise + flat)
    assert not_converged(flat + rise)


def test_noise_alone_is_seldom_called_a_rise() -> None:
    generator = np.random.default_rng(0)
    curves = 0.7 + 0.02 * generator.normal(size=(500, 30))
    assert sum(bool(not_converged(scores.tolist())) for scores in curves) / 500 < 0.08


def test_too_short_curves_do_not_tell() -> None:
    assert not_converged([]) is None
    assert not_converged([0.1, 0.3, 0.5, 0.7, 0.9]) is None
    assert not_converged([0.1, 0.2, 0.3, 0.4, float("nan"), 0.6]) is False
    assert drift([], []) is None and left_start([]) is None
    assert left_start([0.5, 0.9, 0.9]) is None
    assert drift(range(7), [0.1, 0.2, 0.3, 0.4, float("nan"), 0.6, 0.7]) is None
    with pytest.raises(ValueError, match="as many steps as scores; these are 2 and 1"):
        drift([0, 1], [0.5])


@pytest.mark.parametrize(
    ("scores", "answer"),
    [
        ([0.5, *[0.54, 0.545] * 10], False),  # less than a tenth of 0.5
        ([0.5, *[0.56, 0.565] * 10], True),
        ([0.9, *[0.915, 0.916] * 10], True),  # the room above 0.9 is 0.1, a tenth of it 0.01
        ([0.5, *[0.50, 0.62] * 10], False),  # above by 0.06, but the noise is 0.126
        ([-1.0, *[-0.95, -0.951] * 10], False),  # negative losses: 5 % less, 15 % less
        ([-1.0, *[-0.85, -0.851] * 10], True),
        ([0.5, *[0.4, 0.401] * 10], False),
    ],
)
def test_a_score_has_left_its_start_if_it_is_clearly_better(scores: list[float], answer: bool) -> None:
    assert left_start(scores) is answer


def test_noise_around_the_start_is_no_departure() -> None:
    generator = np.random.default_rng(1)
    curves = generator.binomial(500, 0.125, size=(500, 26)) / 500
    assert sum(bool(left_start(scores.tolist())) for scores in curves) / 500 < 0.01


def test_the_mean_of_a_curve_leaves_the_untrained_network_out() -> None:
    assert mean_of_curve([0, 10, 20], [0.5, 0.8, 1.0]) == pytest.approx(0.9)
    assert mean_of_curve([10, 20], [0.8, 1.0]) == pytest.approx(0.9)
    assert np.isnan(mean_of_curve([0], [0.5])) and np.isnan(mean_of_curve([], []))
    with pytest.raises(ValueError, match="zip"):
        mean_of_curve([0, 10], [0.5])
