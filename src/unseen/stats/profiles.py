"""Performance profiles: the share of runs that reach each score."""

from __future__ import annotations

from collections.abc import Hashable, Iterable

import numpy as np
from numpy.typing import ArrayLike

from unseen.errors import UsageError
from unseen.randomness import Draws, Ints
from unseen.stats.intervals import Estimate, Floats, one_per_seed
from unseen.stats.resampling import between, counts, distribution, lay_out


def profile(
    values: ArrayLike,
    thresholds: ArrayLike,
    *,
    generator: Draws,
    covers: str,
    strata: Iterable[Hashable] | None = None,
    level: float = 0.95,
    resamples: int = 10_000,
) -> list[Estimate]:
    """For each threshold the share of runs at or above it, with a pointwise bootstrap interval.

    At one threshold it is the solve rate (whose Wilson interval is the better one). Bands are pointwise: of 20
    thresholds one is expected to miss. A share of 0 or 1 gets an interval of no width.

    >>> from unseen.randomness import stream
    >>> found = profile([0.5, 0.6, 0.9, 1.0], [0.55, 0.95], generator=stream("demo").block(), covers="data")
    >>> [one.value for one in found]
    [0.75, 0.25]
    """
    given, sizes = lay_out(one_per_seed(values, "profile", fewest=1), strata)
    levels = np.asarray(thresholds, np.float64)
    if levels.ndim != 1 or not len(levels) or not np.isfinite(levels).all():
        raise UsageError(f"profile expects a list of finite thresholds, got an array of shape {levels.shape}")
    reached = (given[:, None] >= levels).astype(np.float64)

    def measure(rows: Ints) -> Floats:
        return counts(rows) @ reached / len(given)

    drawn = distribution(measure, sizes, generator=generator, level=level, resamples=resamples)
    shares = ((1 - level) / 2, (1 + level) / 2)
    columns = drawn.T if len(drawn) else [drawn] * len(levels)
    return [
        Estimate(
            float(share),
            between(column, shares, sizes, level=level, covers=covers, labelled=strata is not None),
            note=f"at or above {threshold:g}",
        )
        for share, threshold, column in zip(reached.mean(axis=0), levels, columns, strict=True)
    ]
