"""A mean at each level of a factor."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from unseen.errors import UsageError


def by_level(values: NDArray[Any], factor: NDArray[Any]) -> pd.DataFrame:
    """The mean value at each level of a factor: columns level, value, standard_error, n.

    `values` are (N, …). A factor (N,) has one level for each example, whose values count by their mean; one of more
    axes, (N, L), has one for each token. Then n counts tokens, and the standard error takes those of one example
    together, because they are not independent.

    >>> found = by_level(np.array([[1.0, 0.0], [1.0, 1.0]]), np.array([["a", "b"], ["b", "b"]]))
    >>> found["level"].tolist(), found["value"].round(4).tolist(), found["n"].tolist()
    (['a', 'b'], [1.0, 0.6667], [1, 3])
    """
    if not 1 <= factor.ndim <= values.ndim or factor.shape != values.shape[: factor.ndim]:
        raise UsageError(
            f"a factor has one level per example or per token: expected {values.shape[:1]} or the first "
            f"axes of {values.shape}, got {factor.shape}"
        )
    each = values.reshape(factor.size, math.prod(values.shape[factor.ndim :])).mean(axis=1)
    levels, of = np.unique(factor.reshape(-1), return_inverse=True)
    n = np.bincount(of, minlength=len(levels))
    value = np.bincount(of, each, len(levels)) / n
    # What the tokens of one example and level are off by is added up before it is squared.
    example = np.repeat(np.arange(len(factor)), factor.size // max(1, len(factor)))
    cells, cell = np.unique(example * len(levels) + of, return_inverse=True)
    off = np.bincount(cell, each - value[of], len(cells))
    squares = np.bincount(cells % max(1, len(levels)), off**2, len(levels))
    return pd.DataFrame({"level": levels, "value": value, "standard_error": np.sqrt(squares) / n, "n": n})
