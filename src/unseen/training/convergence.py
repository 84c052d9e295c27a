"""Convergence: whether a run was still improving when it ended, and how fast it learned."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.special import stdtrit


def not_converged(scores: Sequence[float], gain: float = 0.01, certainty: float = 0.95) -> bool | None:
    """Whether a validation curve was still rising at its end; None if it has fewer than four points.

    A line is fitted to the last third of the curve (at least four points). The run had not converged if the line rises
    by more than `gain` from the first to the last of these points and its slope is above zero with this certainty
    (one-sided t-test).

    >>> not_converged([0.5, 0.55, 0.6, 0.65, 0.7, 0.75])
    True
    >>> not_converged([0.5, 0.9, 0.91, 0.90, 0.91, 0.90])
    False
    """
    tail = np.asarray(scores[-max(4, len(scores) // 3) :], float)
    if len(tail) < 4:
        return None
    if not np.isfinite(tail).all():
        return False
    x = np.arange(len(tail)) - (len(tail) - 1) / 2
    slope = float(x @ tail / (x @ x))
    residual = tail - tail.mean() - slope * x
    error = float(np.sqrt(residual @ residual / (len(tail) - 2) / (x @ x)))
    # n points span n - 1 intervals: the rise of the line is slope * (n - 1).
    rise = slope * (len(tail) - 1)
    return rise > gain and slope > float(stdtrit(len(tail) - 2, certainty)) * error


def mean_of_curve(steps: Sequence[int], scores: Sequence[float]) -> float:
    """How fast a run learned, as a number: the mean of its curve without step 0 (the untrained network).

    Points count alike, as if they were equally far apart. NaN for an empty curve.

    >>> mean_of_curve([0, 5000, 10000], [0.5, 0.75, 1.0])
    0.875
    """
    values = [score for step, score in zip(steps, scores, strict=True) if step > 0]
    return float(np.mean(values)) if values else float("nan")
