"""Statistics: pure functions from arrays to numbers; random draws are passed in.

Every result names the sources of variation between its values (`covers`) and their number (`n`, `strata`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from unseen.registry import import_on_use

if TYPE_CHECKING:
    from unseen.stats.confidence_intervals import (
        CorrelationLimits,
        Limits,
        MeanLimits,
        MixtureLimits,
        NoLimits,
        ShareLimits,
        SpreadDifferenceLimits,
        SpreadLimits,
        WidestLimits,
        compare_means,
        mean_interval,
        mean_intervals,
        mean_limits,
        p_above,
        p_below,
        spread_error,
        welch,
    )
    from unseen.stats.intervals import FEWEST, INDICATIVE, Estimate, Interval, proportion_error, wilson
    from unseen.stats.moderation import Variance, moderate
    from unseen.stats.power import seeds_to_settle
    from unseen.stats.resampling import bootstrap, clustered, estimate, iqm, profile, solve_rate
    from unseen.stats.tests import (
        Differences,
        Scores,
        benjamini_hochberg,
        differences,
        holm,
        paired,
        permutation_test,
        probability_of_improvement,
        sign_flip_test,
    )
    from unseen.stats.voting import Votes, significant_votes, votes

# Imported when one of their names is first used.
_MODULES = ("intervals", "resampling", "tests", "power", "voting", "confidence_intervals", "moderation")
__all__ = [
    "FEWEST",
    "INDICATIVE",
    "CorrelationLimits",
    "Differences",
    "Estimate",
    "Interval",
    "Limits",
    "MeanLimits",
    "MixtureLimits",
    "NoLimits",
    "Scores",
    "ShareLimits",
    "SpreadDifferenceLimits",
    "SpreadLimits",
    "Variance",
    "Votes",
    "WidestLimits",
    "benjamini_hochberg",
    "bootstrap",
    "clustered",
    "compare_means",
    "differences",
    "estimate",
    "holm",
    "iqm",
    "mean_interval",
    "mean_intervals",
    "mean_limits",
    "moderate",
    "p_above",
    "p_below",
    "paired",
    "permutation_test",
    "probability_of_improvement",
    "profile",
    "proportion_error",
    "seeds_to_settle",
    "sign_flip_test",
    "significant_votes",
    "solve_rate",
    "spread_error",
    "votes",
    "welch",
    "wilson",
]

__getattr__ = import_on_use(__name__, _MODULES, __all__)
