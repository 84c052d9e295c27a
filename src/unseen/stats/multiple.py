"""Many tests at once."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from unseen.errors import UsageError
from unseen.stats.intervals import Floats


def benjamini_hochberg(p_values: ArrayLike) -> Floats:
    """Adjusted p values: calling those at or below q discoveries keeps the expected share of false ones within q.

    NaN (a test that could not be done) stays NaN and does not count among the tests.

    >>> benjamini_hochberg([0.01, np.nan, 0.04, 0.03]).tolist()
    [0.03, nan, 0.04, 0.04]
    """
    # Inside, because importing scipy.stats takes most of a second and `unseen results` needs none of it.
    from scipy.stats import false_discovery_control

    given = np.asarray(p_values, np.float64)
    known = ~np.isnan(given)
    if given.ndim != 1 or (given[known] < 0).any() or (given[known] > 1).any():
        raise UsageError(
            "benjamini_hochberg expects a list of p values between 0 and 1 (NaN: no test), got "
            + (f"an array of shape {given.shape}" if given.ndim != 1 else f"{given[known].tolist()}")
        )
    adjusted = np.full(given.shape, np.nan)
    if known.any():
        adjusted[known] = false_discovery_control(given[known])
    return adjusted
