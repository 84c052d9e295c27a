"""The *still learning* mark, and the mean of a curve."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import linregress

from unseen.training.convergence import mean_of_curve, not_converged


def reference(scores: list[float]) -> bool | None:
    """The same rule by SciPy's regression."""
    tail = scores[-max(4, len(scores) // 3) :]
    if len(tail) < 4:
        return None
    fit = linregress(range(len(tail)), tail, alternative="greater")
    return bool(fit.slope * (len(tail) - 1) > 0.01 and fit.pvalue < 0.05)


@pytest.mark.parametrize("points", [4, 5, 12, 30, 100])
def test_agrees_with_a_regression(points: int) -> None:
    generator = np.random.default_rng(points)
    answers = set()
    for slope in np.linspace(-0.002, 0.02, 12):
        for noise in (0.001, 0.01):
            scores = (0.5 + slope * np.arange(points) + noise * generator.normal(size=points)).tolist()
            assert not_converged(scores) == reference(scores)
            answers.add(not_converged(scores))
    assert answers == {True, False}


def test_only_the_end_counts() -> None:
    rise, flat = np.linspace(0.5, 0.9, 20).tolist(), [0.9, 0.901] * 10
    assert not_converged(rise)
    assert not not_converged(rise + flat)
    assert not_converged(flat + rise)


def test_too_short_curves_do_not_tell() -> None:
    assert not_converged([]) is None
    assert not_converged([0.1, 0.5, 0.9]) is None
    assert not_converged([0.1, 0.2, float("nan"), 0.4]) is False


def test_the_mean_of_a_curve_leaves_the_untrained_network_out() -> None:
    assert mean_of_curve([0, 10, 20], [0.5, 0.8, 1.0]) == pytest.approx(0.9)
    assert mean_of_curve([10, 20], [0.8, 1.0]) == pytest.approx(0.9)
    assert np.isnan(mean_of_curve([0], [0.5])) and np.isnan(mean_of_curve([], []))
    with pytest.raises(ValueError, match="zip"):
        mean_of_curve([0, 10], [0.5])
