"""How an experiment of the rules family votes: for the best gating, or for the best beyond the luck of its seeds."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd

from unseen.metrics.votes import EXPERIMENT
from unseen.stats import FEWEST, benjamini_hochberg

Count = Callable[[pd.DataFrame], pd.DataFrame]
"""Errors by experiment and seed, a column for each gating → what each experiment gives to each gating."""
_DIGITS = 12
"""Mean errors that agree to so many decimals are tied."""


def shared_votes(errors: pd.DataFrame) -> pd.DataFrame:
    """The gating with the smallest mean error gets the vote, equals share it."""
    means = errors.groupby(level=list(EXPERIMENT)).mean().round(_DIGITS)
    best = means.eq(means.min(axis=1), axis=0)
    return best.div(best.sum(axis=1), axis=0)


def decided_votes(errors: pd.DataFrame, level: float = 0.95) -> pd.DataFrame:
    """The votes of those experiments alone whose best gating beats each other one beyond the luck of the seeds.

    By paired t tests, of which the largest p value is the experiment's, adjusted (Benjamini and Hochberg) over all
    experiments. With fewer than three seeds nothing is decided.
    """
    from scipy.special import stdtr  # inside, as wherever few calls need SciPy

    if errors.empty:
        return errors.groupby(level=list(EXPERIMENT)).mean()
    winner = errors.groupby(level=list(EXPERIMENT)).mean().idxmin(axis=1)
    of_row = errors.columns.get_indexer(pd.Index(winner.reindex(errors.droplevel(["seed", "data_seed"]).index)))
    best = errors.to_numpy()[np.arange(len(errors)), of_row]
    lead = errors.sub(best, axis=0).groupby(level=list(EXPERIMENT))
    mean, error, seeds = lead.mean().to_numpy(), lead.sem().to_numpy(), lead.size().to_numpy()
    # Leads without spread: certain if there is one, none at all if it is zero.
    t = np.divide(mean, error, out=np.where(mean > 0, np.inf, 0.0), where=error > 0)
    won = winner.to_numpy()[:, None] == errors.columns.to_numpy()
    p_values = np.where(won, 0.0, 2 * stdtr(np.maximum(seeds - 1, 1)[:, None], -t)).max(axis=1)
    decided = benjamini_hochberg(np.where(seeds < FEWEST, np.nan, p_values)) <= 1 - level
    return pd.DataFrame(won.astype(float), winner.index, errors.columns)[decided]
