"""How far off: the absolute error of real answers, also in units of answering zero."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from unseen.errors import UsageError
from unseen.metrics.accuracy import Score
from unseen.metrics.levels import by_level


def absolute_error(prediction: NDArray[Any], targets: NDArray[Any]) -> Score:
    """The mean absolute error of one run. An example with several answers counts as one in the standard error.

    >>> absolute_error(np.array([[1.0], [2.0]]), np.array([[0.0], [2.0]]))
    Score(value=0.5, standard_error=0.35355339059327373, n=2)
    """
    distance, n = _distance(prediction, targets), len(targets)
    if n == 0:
        return Score(math.nan, math.nan, 0)
    off = distance.reshape(n, -1).mean(axis=1)
    return Score(float(off.mean()), float(off.std() / math.sqrt(n)), n)


def relative_error(prediction: NDArray[Any], targets: NDArray[Any]) -> Score:
    """The mean absolute error over that of answering zero everywhere: 1 is worth nothing, 0 is perfect.

    Errors of tasks whose targets differ in size can be compared and averaged only in these units.

    >>> relative_error(np.array([[1.0], [2.0]]), np.array([[2.0], [2.0]]))
    Score(value=0.25, standard_error=0.17677669529663687, n=2)
    """
    own, zero = absolute_error(prediction, targets), absolute_error(np.zeros_like(prediction), targets)
    return Score(own.value / zero.value, own.standard_error / zero.value, own.n)


def absolute_error_by(prediction: NDArray[Any], targets: NDArray[Any], factor: NDArray[Any]) -> pd.DataFrame:
    """The mean absolute error at each level of a factor, of examples (N,) or of tokens (N, L): see `by_level`.

    >>> absolute_error_by(np.array([[1.0], [2.0]]), np.array([[0.0], [2.0]]), np.array([0, 1]))["value"].tolist()
    [1.0, 0.0]
    """
    return by_level(_distance(prediction, targets), factor)


def relative_error_by(prediction: NDArray[Any], targets: NDArray[Any], factor: NDArray[Any]) -> pd.DataFrame:
    """The same over that of answering zero at the level.

    >>> relative_error_by(np.array([[1.0], [2.0]]), np.array([[2.0], [8.0]]), np.array([0, 1]))["value"].tolist()
    [0.5, 0.75]
    """
    own = absolute_error_by(prediction, targets, factor)
    zero = absolute_error_by(np.zeros_like(prediction), targets, factor)["value"]
    return own.assign(value=own["value"] / zero, standard_error=own["standard_error"] / zero)


def _distance(prediction: NDArray[Any], targets: NDArray[Any]) -> NDArray[np.float64]:
    """How far off each number is."""
    if prediction.shape != targets.shape:
        raise UsageError(f"answers have shape {prediction.shape} and targets {targets.shape}")
    return np.asarray(np.abs(prediction.astype(np.float64) - targets))
