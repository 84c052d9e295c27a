"""How a run learned: was it still getting better when it ended, and how fast was it?"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.special import stdtrit


def still_learning(scores: Sequence[float], gain: float = 0.01, certainty: float = 0.95) -> bool | None:
    """Whether a validation curve was still rising at its end; None if it is too short to tell.

    A line is fitted to the last third of the curve (at least four points). The run was still learning if the line
    rises by more than `gain` over that stretch and its slope is above zero with this certainty (one-sided t-test).

    >>> still_learning([0.5, 0.55, 0.6, 0.65, 0.7, 0.75])
    True
    >>> still_learning([0.5, 0.9, 0.91, 0.90, 0.91, 0.90])
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
    return slope * (len(tail) - 1) > gain and slope > float(stdtrit(len(tail) - 2, certainty)) * error


def mean_of_curve(steps: Sequence[int], scores: Sequence[float]) -> float:
    """How fast a run learned, as a number: the mean of its curve, step 0 (the untrained network) left out.

    Points are taken to be equally far apart. NaN where there is none.

    >>> mean_of_curve([0, 5000, 10000], [0.5, 0.75, 1.0])
    0.875
    """
    values = [score for step, score in zip(steps, scores, strict=True) if step > 0]
    return float(np.mean(values)) if values else float("nan")
