"""Statistics: arrays in, numbers out. Randomness is handed in, never found.

Every result says what varied between its values (`covers`) and how many there are (`n`, `strata`).
"""

from __future__ import annotations

from unseen.stats.aggregate import iqm, solve_rate
from unseen.stats.clusters import clustered
from unseen.stats.compare import Differences, Scores, differences, paired, probability_of_improvement
from unseen.stats.intervals import FEWEST, INDICATIVE, Estimate, Interval, proportion_error, wilson
from unseen.stats.multiple import benjamini_hochberg
from unseen.stats.permutation import permutation_test, sign_flip_test
from unseen.stats.power import seeds_to_settle
from unseen.stats.profiles import profile
from unseen.stats.resampling import bootstrap, estimate
from unseen.stats.voting import Votes, significant_votes, votes

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
