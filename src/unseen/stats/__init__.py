"""Statistics: pure functions from arrays to numbers; random draws are passed in.

Every result names the sources of variation between its values (`covers`) and their number (`n`, `strata`).
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from unseen.stats.intervals import FEWEST, INDICATIVE, Estimate, Interval, proportion_error, wilson
    from unseen.stats.power import seeds_to_settle
    from unseen.stats.resampling import bootstrap, clustered, estimate, iqm, mean_intervals, profile, solve_rate
    from unseen.stats.tests import (
        Differences,
        Scores,
        benjamini_hochberg,
        differences,
        paired,
        permutation_test,
        probability_of_improvement,
        sign_flip_test,
    )
    from unseen.stats.voting import Votes, significant_votes, votes

# Imported when one of their names is first used.
_MODULES = ("intervals", "resampling", "tests", "power", "voting")
__all__ = [
    "FEWEST",
    "INDICATIVE",
    "Differences",
    "Estimate",
    "Interval",
    "Scores",
    "Votes",
    "benjamini_hochberg",
    "bootstrap",
    "clustered",
    "differences",
    "estimate",
    "iqm",
    "mean_intervals",
    "paired",
    "permutation_test",
    "probability_of_improvement",
    "profile",
    "proportion_error",
    "seeds_to_settle",
    "sign_flip_test",
    "significant_votes",
    "solve_rate",
    "votes",
    "wilson",
]


def __getattr__(name: str) -> Any:
    if name in __all__:
        for module in _MODULES:
            loaded = import_module(f"{__name__}.{module}")
            if hasattr(loaded, name):
                return getattr(loaded, name)
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
