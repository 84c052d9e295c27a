"""Convergence: whether a run has begun to learn, whether it was still improving when it ended, and when it may end.

A curve is a list of scores (the larger the better) at increasing steps of training. Its last third are the points from two
thirds of the last step on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

LEAST_POINTS = 3
"""A line is fitted to no fewer points: with two, its error could not be estimated."""
LEAST_VALIDATIONS = 20
"""The minimum number of validations before a plateau: the last third then has at least seven."""
PLATEAU_ERRORS = 2.0
"""The gain counts with this many of its standard errors added: a lull is not a plateau."""
START_SHARE = 0.1
"""A score has left its start only if it is better by this share of the start's distance from 0 or 1, the nearer of them."""
START_NOISE = 4.0
"""It must also be better by this many standard deviations of the noise between neighbouring points."""
_NORMAL_MEDIAN = 0.6745
"""The median distance of a normal value from its mean, in standard deviations."""


@dataclass(frozen=True)
class Drift:
    """By how much a score rose, or fell, over the last third of training, in units of the score."""

    value: float
    standard_error: float


def drift(steps: Sequence[float], scores: Sequence[float]) -> Drift | None:
    """The slope of a line through the last third of a curve, times the length of that third (in steps).

    The slope is the median of the slopes between all pairs of points (Theil and Sen), so that a few points from before a
    bend do not pass for a drift: of a curve that is flat for its last 30 % it is 0. None if the last third has fewer than
    three points, or some that are not finite.

    >>> drift([0, 10, 20, 30, 40, 50, 60], [0.5, 0.6, 0.7, 0.8, 0.82, 0.84, 0.86]).value
    0.04
    """
    x, y = _last_third(steps, scores)
    if len(x) < LEAST_POINTS or not np.isfinite(y).all():
        return None
    first, second = np.triu_indices(len(x), 1)
    slope = float(np.median((y[second] - y[first]) / (x[second] - x[first])))
    residuals = y - slope * x
    residuals -= residuals.mean()
    centred = x - x.mean()
    # The standard error of a least-squares slope, about the line of Theil and Sen: two degrees of freedom are spent.
    error = float(np.sqrt(residuals @ residuals / (len(x) - 2) / (centred @ centred)))
    length = float(steps[-1]) / 3
    # Rounded, so that a straight line drifts by exactly its rise and a flat one by exactly 0, not by a rounding error.
    return Drift(round(slope * length, 12), error * length)


def left_start(scores: Sequence[float]) -> bool | None:
    """Whether a score has left its starting level: `scores` begin with that of the untrained model.

    The mean of the last third is compared with the first score: it must be better by a tenth of the first score's
    distance from 0 or from 1 (the nearer), and by four standard deviations of the noise. The noise is that between
    neighbouring points (from their median distance, which a few jumps do not change). None if the last third has fewer
    than three points, or some that are not finite.

    >>> left_start([0.50, 0.49, 0.51, 0.50, 0.52, 0.51, 0.50]), left_start([0.50, 0.51, 0.60, 0.64, 0.70, 0.71, 0.70])
    (False, True)
    """
    _, tail = _last_third(range(len(scores)), scores)
    values = np.asarray(scores, float)
    if len(tail) < LEAST_POINTS or not np.isfinite(values).all():
        return None
    start = float(values[0])
    # The difference of two neighbours has √2 times the standard deviation of one.
    noise = float(np.median(np.abs(np.diff(values)))) / (_NORMAL_MEDIAN * np.sqrt(2))
    margin = max(START_SHARE * min(abs(start), abs(1 - start)), START_NOISE * noise)
    return bool(tail.mean() - start > margin)


def at_plateau(steps: Sequence[float], scores: Sequence[float], bound: float) -> bool:
    """Whether a run may end: its curve, which begins at step 0, has left its start and has ceased to rise.

    That is: there have been 20 validations, the score has left its starting level, and its gain over the last third of
    the curve, with two standard errors added, is below `bound`.

    >>> rise = [0.50 + 0.01 * i for i in range(41)]
    >>> at_plateau(range(41), rise, 0.005), at_plateau(range(81), rise + [0.9] * 40, 0.005)
    (False, True)
    >>> at_plateau(range(41), [0.5] * 41, 0.005)
    False
    """
    if len(scores) <= LEAST_VALIDATIONS or not left_start(scores):
        return False
    gain = drift(steps, scores)
    return gain is not None and gain.value + PLATEAU_ERRORS * gain.standard_error < bound


def not_converged(scores: Sequence[float], gain: float = 0.01, certainty: float = 0.95) -> bool | None:
    """Whether a validation curve (without step 0) was still rising at its end; None if it has fewer than six points.

    The run had not converged if its drift is more than `gain` and above zero with this certainty (one-sided t-test).

    >>> not_converged([0.5, 0.55, 0.6, 0.65, 0.7, 0.75])
    True
    >>> not_converged([0.5, 0.9, 0.91, 0.90, 0.91, 0.90])
    False
    """
    steps = range(1, len(scores) + 1)
    points, tail = _last_third(steps, scores)
    if len(points) < LEAST_POINTS:
        return None
    rise = drift(steps, scores)
    if rise is None or not np.isfinite(tail).all():
        return False
    return rise.value > gain and rise.value > float(stdtrit(len(points) - 2, certainty)) * rise.standard_error


def mean_of_curve(steps: Sequence[int], scores: Sequence[float]) -> float:
    """How fast a run learned, as a number: the mean of its curve without step 0 (the untrained network).

    Points count alike, as if they were equally far apart. NaN for an empty curve.

    >>> mean_of_curve([0, 5000, 10000], [0.5, 0.75, 1.0])
    0.875
    """
    values = [score for step, score in zip(steps, scores, strict=True) if step > 0]
    return float(np.mean(values)) if values else float("nan")


def _last_third(steps: Sequence[float], scores: Sequence[float]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The steps and scores from two thirds of the last step on."""
    x = np.asarray(steps, float)
    y = np.asarray(scores, float)
    if len(x) != len(y):
        raise ValueError(f"a curve has as many steps as scores; these are {len(x)} and {len(y)}")
    if not len(x):
        return x, y
    # 3 x, not 2/3 of the last step: whole numbers are compared exactly.
    inside = 3 * x >= 2 * x[-1]
    return x[inside], y[inside]
